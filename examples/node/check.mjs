// Checks this client against the test vectors: node check.mjs FOLDER. It ends with code 3 if a case is not as expected. Cases of several clients, and of labels, are not for this client.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client, POLICY } from "./client.mjs";
import { envelopes } from "./envelopes.mjs";
import { decode, Double, Dropped, encode, pack, unpack } from "./messages.mjs";
import { queryOf, Refused, settled } from "./questions.mjs";
import { publicCoin, randomizerOf, respond, verify, width } from "./randomizers.mjs";
import { Store } from "./store.mjs";
import { recordOf } from "./join.mjs";

const hex = (digits) => Buffer.from(digits, "hex");
const pieces = (given) => (typeof given === "string" ? hex(given) : Buffer.concat(given.flatMap(([digits, times]) => Array(times).fill(hex(digits)))));

/** A value of a message from its JSON. */
function valued(value) {
  if (Array.isArray(value)) return value.map(valued);
  if (typeof value !== "object" || value === null) return value;
  const [[name, part] = [], ...more] = Object.entries(value);
  if (!more.length && name === "float") return new Double(Number(part));
  if (!more.length && name === "int") return BigInt(part);
  if (!more.length && name === "bytes") return hex(part);
  return new Map(Object.entries(value).map(([each, inner]) => [each, valued(inner)]));
}

const CHECKS = {
  messages({ encode: fields, decode: what }) {
    if (fields) {
      const bytes = pack(valued(fields));
      unpack(bytes);
      if (["request", "receipt", "roll", "end"].includes(fields.kind)) decode(bytes);
      return { bytes: bytes.toString("hex") };
    }
    if (what.side !== "client") return null;
    try {
      decode(pieces(what.bytes));
      return { fault: null };
    } catch (error) {
      if (!(error instanceof Dropped)) throw error;
      return { fault: "dropped" };
    }
  },
  envelopes({ seal, open }) {
    if (seal) return { envelope: envelopes(seal.run, hex(seal.server), hex(seal.private)).seal(seal.topic, hex(seal.message)).toString("hex") };
    const message = envelopes(open.run, hex(open.server), Buffer.alloc(32)).open(open.topic, hex(open.envelope));
    return message ? { message: message.toString("hex") } : { forged: true };
  },
  thresholds({ randomizer: name, params, values, coins, words }) {
    const randomizer = randomizerOf(name, valued(params));
    verify(randomizer);
    const weights = Object.fromEntries(Object.entries(randomizer.weights).map(([weight, value]) => [weight, String(value)]));
    const reports = values.flatMap((value) => coins.flatMap((coin) => words.map((word) => respond(randomizer, value, BigInt(word), BigInt(coin)))));
    return { nano: Number(randomizer.nano), width: width(randomizer), total: String(randomizer.total), weights, reports };
  },
  coins: ({ key, client }) => ({ coin: String(publicCoin(hex(key), client)) }),
  questions({ query: name, params }, { record }) {
    const own = settled(recordOf(record));
    try {
      const query = queryOf(name, valued(params), own);
      return { value: query.value(own), domain: [query.domain.kind, query.domain.low, query.domain.high] };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { code: error.code };
    }
  },
  replies: (given) => answered(client(given), given),
  refusals: (given) => answered(client(given), given),
  ledgers(given) {
    const own = client(given);
    const steps = given.steps.map((step) => {
      if (step.request) return answered(own, step);
      own.confirm(decode(hex(step.receipt)));
      return { confirmed: [...own.confirmed].map((each) => each.split(" ")).map(([run, round]) => [run, Number(round)]) };
    });
    return { steps, accounts: given.runs.map((run) => own.account(run).toString("hex")) };
  },
};

function client({ member, start, records, limits = {}, policy = {} }) {
  const own = new Client({ run: "", member, start, record: recordOf(records[0]), store: new Store(), policy: { ...POLICY, perRun: 2e9, life: 3e9, ...policy } });
  own.policy.perRun = limits.run ?? own.policy.perRun;
  own.policy.life = limits.life ?? own.policy.life;
  return own;
}

function answered(own, { request, words }) {
  const message = decode(hex(request));
  own.draw = (ask) => BigInt(words[ask][0]);
  const answers = own.handle(message);
  const spent = { run: own.store.spent(message.run), life: own.store.life, rounds: own.store.rounds, kept: own.store.kept };
  const fields = answers.map(unpack);
  if (fields[0]?.get("kind") !== "refusal") return { replies: answers.map((bytes) => bytes.toString("hex")), spent };
  const [code, start, stop] = ["code", "start", "stop"].map((name) => fields[0].get(name));
  return { code, start, stop, spent };
}

/** Whether everything that was found is as expected; of faults and refusals only what is the client's to say. */
function same(found, expected) {
  if (Array.isArray(found)) return Array.isArray(expected) && found.length === expected.length && found.every((each, at) => same(each, expected[at]));
  if (found !== null && typeof found === "object") return expected !== null && Object.keys(found).every((name) => same(found[name], expected[name]));
  return found === expected || (found === "dropped" && typeof expected === "string");
}

function holds(check, given, common, expected) {
  try {
    return same(check(given, common), expected);
  } catch {
    return false;
  }
}

const folder = process.argv[2];
const index = JSON.parse(readFileSync(join(folder, "index.json"), "utf8"));
let wrong = 0;
for (const [file, digest] of Object.entries(index.sha256)) {
  const bytes = readFileSync(join(folder, file));
  const { cases, common } = JSON.parse(bytes);
  const check = CHECKS[file.replace(".json", "")];
  const mine = cases.filter(({ name }) => !/^(host|labels|server):/.test(name));
  const failed = mine.filter(({ given, expect }) => !holds(check, given, common, expect)).map(({ name }) => name);
  if (createHash("sha256").update(bytes).digest("hex") !== digest) failed.push("its SHA-256");
  wrong += failed.length;
  console.log(`${file}: ${mine.length} of ${cases.length} cases checked; ${failed.length ? `not as expected: ${failed.join("; ")}` : "all as expected"}`);
}
process.exitCode = wrong ? 3 : 0;
