/** The ten messages of a run and their MessagePack form: strict, canonical, bounded; names and parameters only, never code. */

import { blake2b } from "./vendor/noble-hashes/blake2.js";
import { WireError, fromBigEndian, join, same, utf8 } from "./bytes.js";
import { Reader, pack } from "./pack.js";
import { below, bytes, line, list, map, matching, name, oneOf, parameters, truth, tuple, unlessEmpty, usually, word } from "./schema.js";

export const MAX_BYTES = 1 << 20;
export const VERSION = "ldp/1";
export const EVERYBODY = "all";
const MAX_TEXT = 1 << 16;
const MAX_ASKS = 4096;
const MAX_WIDTH = 4096;
export const MAX_LINES = 1 << 14;

/** @typedef {[number, number]} Span Clients from the first on, to before the second. */
/** @typedef {import("./schema.js").Parameters} Parameters */

/**
 * @typedef {object} Ask One local query as data, for the clients start..stop.
 * @property {string} query
 * @property {Parameters} query_params
 * @property {string} randomizer
 * @property {Parameters} randomizer_params
 * @property {number} start
 * @property {number} stop
 * @property {Uint8Array} coins the key of its public coins
 * @property {string} once the label of a memoised answer, or empty
 * @property {Uint8Array} [source] the digest of the plug-ins that it needs
 */

/** @typedef {{kind: "request", run: string, round: number, asks: Ask[], missing: Span[]}} Request */
/** @typedef {{kind: "reply", run: string, round: number, member: string, ask: number, start: number, width: number, reports: Uint8Array}} Reply */
/** @typedef {{kind: "refusal", run: string, round: number, member: string, start: number, stop: number, code: string, text: string}} Refusal */
/** @typedef {{kind: "receipt", run: string, round: number, accepted: [number, number, bigint][]}} Receipt */
/** @typedef {[number, number, bigint]} Line A round, its charged reports, their checksum. */
/** @typedef {{kind: "account", run: string, member: string, rounds: Line[]}} Account */
/** @typedef {{kind: "hello", run: string, member: string, start: number, stop: number, private: boolean}} Hello */
/** @typedef {{kind: "gone", run: string, member: string}} Gone */
/** @typedef {{kind: "roll", run: string, missing: Span[]}} Roll */
/** @typedef {{kind: "end", run: string}} End */
/** @typedef {{kind: "absent", run: string, round: number, member: string, ask: number, start: number, stop: number, why: string, code: string}} Absent */
/** @typedef {Request | Reply | Refusal | Receipt | Account | Hello | Gone | Roll | End | Absent} Message */

const index = below(0, 2 ** 48);
const round = below(1, 2 ** 32);
const spans = list(tuple(index, index), 0, 4096);
const ask = map({
  query: name,
  query_params: parameters,
  randomizer: name,
  randomizer_params: parameters,
  start: index,
  stop: index,
  coins: bytes(16, 16),
  once: usually("", matching(/^[A-Za-z0-9_.-]{0,64}$/)),
  source: { ...bytes(16, 16), usual: new Uint8Array(), spared: true },
});
const place = below(0, MAX_ASKS);

/** @param {string} kind @param {import("./schema.js").Fields} fields */
function message(kind, fields) {
  return map({ run: name, kind: oneOf(kind), ...fields });
}

/** @type {{[kind: string]: import("./schema.js").Kind<any>}} */
const KINDS = {
  request: message("request", { round, asks: list(ask, 1, MAX_ASKS), missing: usually([], spans) }),
  reply: message("reply", { round, member: name, ask: place, start: index, width: below(1, MAX_WIDTH + 1), reports: bytes(0, MAX_BYTES) }),
  refusal: message("refusal", { round, member: name, start: index, stop: index, code: name, text: line(1000) }),
  absent: message("absent", {
    round,
    member: name,
    ask: place,
    start: index,
    stop: index,
    why: oneOf("missing", "refused", "crowd"),
    code: usually("", matching(/^[A-Za-z0-9_.-]{0,64}$/)),
  }),
  receipt: message("receipt", { round, accepted: list(tuple(index, index, word), 1, 4096) }),
  account: message("account", { member: name, rounds: list(tuple(below(1, 2 ** 32), index, word), 0, MAX_LINES) }),
  hello: message("hello", { member: name, start: index, stop: index, private: truth }),
  gone: message("gone", { member: name }),
  roll: message("roll", { missing: unlessEmpty(spans) }),
  end: message("end", {}),
};

/** @typedef {{kinds: string[], limits: import("./pack.js").Limits}} Side A receiving side: the kinds of its messages, and their largest shapes. */

/** @type {Side} */
export const CLIENT = {
  kinds: ["request", "receipt", "roll", "end"],
  limits: { containers: 8 * MAX_ASKS, mapLength: 64, arrayLength: 1 << 16, text: 4 * MAX_TEXT },
};
/** @type {Side} */
export const SERVER = {
  kinds: ["reply", "refusal", "absent", "account", "hello", "gone"],
  limits: { containers: 2 + MAX_LINES, mapLength: 16, arrayLength: MAX_LINES, text: 4000 },
};
/** @type {Side} */
export const EITHER = { kinds: Object.keys(KINDS), limits: CLIENT.limits };

/** The canonical bytes of a message. @param {Message} message @returns {Uint8Array} */
export function encode(message) {
  return pack(KINDS[message.kind].write(message));
}

/**
 * The message in `payload`, of a kind that `side` may be sent. Throws WireError unless it is one, in canonical form.
 * @param {Uint8Array} payload
 * @param {Side} [side]
 * @returns {Message}
 */
export function decode(payload, side = EITHER) {
  if (payload.length > MAX_BYTES) throw new WireError(`a message of ${payload.length} bytes; ${MAX_BYTES} is the most`, "oversized");
  const reader = new Reader(payload, side.limits);
  const data = reader.read();
  if (!(data instanceof Map)) throw new WireError("a message that is no map", "malformed");
  const called = data.get("kind");
  if (typeof called !== "string" || !side.kinds.includes(called)) throw new WireError("a message of no kind that comes here", "unknown-kind");
  const kind = KINDS[called];
  const message = kind.read(data, called);
  if (reader.repeats) throw new WireError("a name twice in one map", "repeated-key");
  if (!reader.canonical || !same(encode(message), payload)) throw new WireError("a message that is not in canonical form", "not-canonical");
  return message;
}

/** A checksum of a reply: its reports, clients and request; several are joined by exclusive or. @param {Reply} reply @returns {bigint} */
export function checksum(reply) {
  const what = utf8(`${reply.round} ${reply.ask} ${reply.start} ${reply.width} `);
  return fromBigEndian(blake2b(join(what, reply.reports), { dkLen: 8 }));
}

/**
 * Where messages of a run go: requests to `req/GROUP`, replies, hellos and wills to `rep|hello|gone/GROUP/MEMBER`.
 * @param {string} run
 * @param {string} leaf
 * @param {string} group
 * @param {string} [member]
 */
export function topic(run, leaf, group, member = "") {
  return `${VERSION}/${run}/${leaf}/${group}` + (member ? `/${member}` : "");
}
