/** What the JavaScript client makes of messages and queries: one answer for each case on standard input. */

import { readFileSync } from "node:fs";
import { InputError, RefusedError, WireError, hex, unhex } from "../../clients/web/bytes.js";
import { buildQuery } from "../../clients/web/queries.js";
import { build } from "../../clients/web/randomizers/index.js";
import { rowOf, schemaOf } from "../../clients/web/record.js";
import { CLIENT, SERVER, checksum, decode, encode } from "../../clients/web/wire.js";
import { cells, kinds, unplain } from "./vectors.mjs";

/** The bytes of the message that was read, and its checksum if it is a reply; or the fault. */
function message({ side, bytes }) {
  try {
    const found = decode(unhex(bytes), side === "client" ? CLIENT : SERVER);
    return [hex(encode(found)), found.kind === "reply" ? String(checksum(found)) : ""];
  } catch (error) {
    if (error instanceof WireError) return error.code;
    throw error;
  }
}

function query({ name, params, record }) {
  try {
    const built = buildQuery(name, unplain(params));
    const schema = schemaOf(kinds(record));
    built.fit(schema);
    return built.value(rowOf(cells(record), schema));
  } catch (error) {
    if (error instanceof RefusedError) return error.code;
    if (error instanceof InputError) return "bad-query";
    throw error;
  }
}

function draws({ name, params, draws: given }) {
  try {
    const randomizer = build(name, unplain(params));
    return given.map(([value, word, cell]) => {
      const report = randomizer.sample(value, randomizer.leading(BigInt(word)), cell);
      return [report, String(randomizer.weight(report, value, cell))];
    });
  } catch (error) {
    if (error instanceof RefusedError) return error.code;
    throw error;
  }
}

const DOES = { message, query, draws };
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((each) => DOES[each.do](each))));
