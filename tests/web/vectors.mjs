/** What this client gives for the vectors of docs/vectors, compared with what they expect: the same code in Node and in a browser. */

import { InputError, RefusedError, ForgedError, WireError, hex, unhex } from "../../clients/web/bytes.js";
import { Client } from "../../clients/web/client.js";
import { Party, publicKey } from "../../clients/web/envelope.js";
import { pack } from "../../clients/web/pack.js";
import { philoxWord } from "../../clients/web/philox.js";
import { buildQuery } from "../../clients/web/queries.js";
import { build, verify } from "../../clients/web/randomizers/index.js";
import { expEpsilon } from "../../clients/web/rational.js";
import { rowOf, schemaOf } from "../../clients/web/record.js";
import { MemoryStore } from "../../clients/web/store.js";
import { sha256 } from "../../clients/web/vendor/noble-hashes/sha2.js";
import { CLIENT, SERVER, decode, encode } from "../../clients/web/wire.js";

const LIMITS = { run: 2e9, life: 3e9 };

/** JSON of a vector as it is packed: whole numbers are bigints, and tags are what they name. */
export function unplain(value) {
  if (typeof value === "number") return BigInt(value);
  if (Array.isArray(value)) return value.map(unplain);
  if (value === null || typeof value !== "object") return value;
  const [[tag, digits], ...more] = Object.entries(value).length ? Object.entries(value) : [[]];
  if (!more.length && typeof digits === "string") {
    if (tag === "bytes") return unhex(digits);
    if (tag === "float") return double(digits);
    if (tag === "int") return BigInt(digits);
  }
  return new Map(Object.entries(value).map(([name, part]) => [name, unplain(part)]));
}

const double = (digits) => ({ inf: Infinity, "-inf": -Infinity, nan: NaN })[digits] ?? Number(digits);

const joined = (pieces) => unhex(typeof pieces === "string" ? pieces : pieces.map(([digits, times]) => digits.repeat(times)).join(""));

const cell = ([kind, value]) => (value === null ? null : kind === "number" ? double(value) : kind === "whole" ? BigInt(value) : value);
export const kinds = (row) => Object.fromEntries(Object.entries(row).map(([column, [kind]]) => [column, kind]));
export const cells = (row) => Object.fromEntries(Object.entries(row).map(([column, each]) => [column, cell(each)]));

function messages(given) {
  if (given.encode) {
    const bytes = pack(unplain(given.encode));
    return { bytes: hex(encode(decode(bytes, CLIENT.kinds.includes(given.encode.kind) ? CLIENT : SERVER))) };
  }
  try {
    decode(joined(given.decode.bytes), { client: CLIENT, server: SERVER }[given.decode.side]);
  } catch (error) {
    if (error instanceof WireError) return { fault: error.code };
    throw error;
  }
  return { fault: null };
}

function envelopes({ seal, open }) {
  if (seal) {
    const party = new Party(seal.run, unhex(seal.server), unhex(seal.private), () => null);
    return { public: hex(publicKey(unhex(seal.private))), envelope: hex(party.seal(seal.topic, unhex(seal.message))) };
  }
  try {
    const party = new Party(open.run, unhex(open.server), new Uint8Array(32), () => unhex(open.speaker));
    return { message: hex(party.open(open.topic, unhex(open.envelope))) };
  } catch (error) {
    if (error instanceof ForgedError) return { forged: true };
    throw error;
  }
}

function thresholds({ randomizer: name, params, values, coins, words, nano, weights: rows, word_bits: bits }) {
  if (rows) {
    const weight = (report, value) => BigInt(rows[value][report]);
    try {
      verify({ nano, channel: { domain: { low: 0, high: rows.length - 1 }, alphabet: rows[0].length, total: 1n << BigInt(bits), weight } });
    } catch (error) {
      return { code: error.code };
    }
    return { code: null };
  }
  const randomizer = build(name, unplain(params));
  verify(randomizer);
  const cellsOf = coins.map((coin) => randomizer.cellOf(BigInt(coin)));
  const reports = values.flatMap((value) => cellsOf.flatMap((each) => words.map((word) => randomizer.sample(value, BigInt(word), each))));
  const { total, base, slope, other, truth, inner, cells: multipliers } = randomizer;
  const weights = {
    "binary-rr": { flip: other },
    "one-bit-mean": { base, slope },
    grr: { other, truth },
    "signed-blocks": inner && { blocks: (inner.k - 1) / 2, other: inner.other, truth: inner.truth },
    "subset-selection": inner && { order: inner.alphabet, w: inner.w, multipliers, held: inner.held, other: inner.other },
  }[name];
  const texts = Object.fromEntries(Object.entries(weights).map(([key, weight]) => [key, String(weight)]));
  return { nano: randomizer.nano, exp: sixty(randomizer.nano), width: randomizer.reportBytes, total: String(total), weights: texts, reports };
}

/** e^epsilon in 60 digits, from the fraction that lies just below it. */
function sixty(nano) {
  const { num, den } = expEpsilon(nano);
  const [whole, side] = [num * 10n ** 50n, 10n ** 50n - 1n];
  const digits = ((whole * 10n ** 59n) / (den * side)).toString();
  return `${digits.slice(0, -59)}.${digits.slice(-59)}`.slice(0, 61);
}

const coins = ({ key, client }) => ({ coin: String(philoxWord(unhex(key), client)) });

function questions({ query, params }, { record }) {
  try {
    const built = buildQuery(query, unplain(params));
    const schema = schemaOf(kinds(record));
    built.fit(schema);
    const { kind, low, high } = built.domain;
    return { value: built.value(rowOf(cells(record), schema)), domain: [kind, low, high] };
  } catch (error) {
    if (error instanceof RefusedError) return { code: error.code };
    if (error instanceof InputError) return { code: "bad-query" };
    throw error;
  }
}

/** The clients of one store, one for each run. */
class Holder {
  constructor({ member, start, records: [record], limits, policy, broken }, store) {
    const step = { read: "get", write: "commit" }[broken];
    if (step) store[step] = () => Promise.reject(new RefusedError("store", ""));
    const { run, life } = { ...LIMITS, ...limits };
    const { allowed, least, rounds, kept } = policy ?? {};
    this.options = { member, start, record: cells(record), schema: kinds(record), store };
    this.options.policy = { perRun: run, life, randomizers: allowed, leastNano: least, rounds, bytes: kept };
    this.options.words = { private: true, word: (width, round, ask) => BigInt(this.given[ask][0]) };
    this.clients = new Map();
  }

  of(run) {
    if (!this.clients.has(run)) this.clients.set(run, new Client({ ...this.options, run }));
    return this.clients.get(run);
  }

  async answer(request, words) {
    this.given = words;
    const { run } = decode(unhex(request));
    const client = this.of(run);
    const replies = await client.handle(unhex(request));
    const totals = await this.options.store.totals(run);
    const spent = { run: totals.run, life: totals.life, rounds: totals.rounds, kept: totals.size };
    const first = replies.length === 1 ? decode(replies[0]) : null;
    if (first?.kind === "refusal") return { code: first.code, start: first.start, stop: first.stop, refusal: hex(replies[0]), spent };
    return { replies: replies.map(hex), spent };
  }
}

const answers = (given, _, store) => new Holder(given, store).answer(given.request, given.words);

async function ledgers(given, _, store) {
  const holder = new Holder(given, store);
  const steps = [];
  for (const step of given.steps) {
    if (step.request) steps.push(await holder.answer(step.request, step.words));
    else {
      const receipt = decode(unhex(step.receipt));
      await holder.of(receipt.run).handle(unhex(step.receipt));
      steps.push({ confirmed: [...holder.clients].flatMap(([run, { confirmed }]) => [...confirmed].map((round) => [run, round])).sort() });
    }
  }
  const accounts = [];
  for (const run of given.runs) accounts.push(hex(encode(await holder.of(run).account())));
  return { steps, accounts };
}

const FINDERS = { messages, envelopes, thresholds, coins, questions, replies: answers, refusals: answers, ledgers };
export const NAMES = Object.keys(FINDERS);

/** Each case with what is found, but those of several clients or of one client's own. @param newStore an empty store for each case */
export async function found(name, file, newStore = () => new MemoryStore()) {
  const results = [];
  for (const { name: called, given, expect } of file.cases.filter((each) => !/^(host|own):/.test(each.name))) {
    const result = await Promise.resolve()
      .then(async () => FINDERS[name](given, file.common, await newStore()))
      .catch((error) => ({ error: String(error?.stack ?? error) }));
    results.push({ name: called, expect, result });
  }
  return results;
}

const flipped = (text, at) => text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);

/** A value with one bit changed, at each place in turn. */
export function* changed(value) {
  if (typeof value === "boolean") yield !value;
  else if (typeof value === "number") yield value % 2 === 0 ? value + 1 : value - 1;
  else if (typeof value === "string") for (const at of [...value].keys()) yield flipped(value, at);
  else if (value === null) yield 0;
  else if (Array.isArray(value)) for (const [at, part] of value.entries()) for (const each of changed(part)) yield value.with(at, each);
  else for (const [key, part] of Object.entries(value)) for (const each of changed(part)) yield { ...value, [key]: each };
}

const canonical = (value) =>
  JSON.stringify(value, (_, part) => (part && typeof part === "object" && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort()) : part));

/**
 * All faults of all files: wrong digests, wrong results, and where `withChanges`, changes of one bit that no comparison sees.
 * @param read the text of a file
 */
export async function faults(read, withChanges, newStore) {
  const wrong = [];
  const counts = { cases: 0, changes: 0 };
  const digests = JSON.parse(await read("index.json")).sha256;
  for (const name of NAMES) {
    const text = await read(`${name}.json`);
    const bytes = new TextEncoder().encode(text);
    const digest = () => hex(sha256(bytes));
    if (digest() !== digests[`${name}.json`]) wrong.push(`${name}.json is not the file of the index`);
    for (let at = 7; at < bytes.length; at += Math.ceil(bytes.length / 50)) {
      bytes[at] ^= 1 << at % 8;
      if (digest() === digests[`${name}.json`]) wrong.push(`${name}.json: a change at byte ${at} is not seen`);
      bytes[at] ^= 1 << at % 8;
    }
    for (const { name: called, expect, result } of await found(name, JSON.parse(text), newStore)) {
      counts.cases += 1;
      const is = canonical(result);
      if (is !== canonical(expect)) wrong.push(`${name}: ${called}: expected ${canonical(expect)}, found ${is}`);
      for (const other of withChanges ? changed(expect) : []) {
        counts.changes += 1;
        if (canonical(other) === is) wrong.push(`${name}: ${called}: a changed bit is not seen`);
      }
    }
  }
  return { wrong, ...counts };
}
