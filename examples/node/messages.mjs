// The messages: MessagePack in its canonical form, and the fields of what a member sends and receives.

import { blake2b } from "./blake2b.mjs";

/** A double, which is not the whole number of the same value: 1.0 and 1 have different bytes. */
export class Double {
  constructor(value) {
    this.value = value;
  }
}

/** A message that is dropped. */
export class Dropped extends Error {}

function need(holds, what) {
  if (!holds) throw new Dropped(what);
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
export const MOST = 1 << 20; // bytes of a message
const CONTAINERS = 1 << 15;
const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const LABEL = /^[A-Za-z0-9_.-]{0,64}$/;

/** Canonical bytes. Whole numbers are numbers or BigInts, maps are Maps. */
export function pack(value) {
  if (value instanceof Double) {
    const bytes = Buffer.alloc(9, 0xcb);
    bytes.writeDoubleBE(value.value, 1);
    return bytes;
  }
  if (typeof value === "boolean") return Buffer.of(value ? 0xc3 : 0xc2);
  if (typeof value === "number" || typeof value === "bigint") return packWhole(BigInt(value));
  if (typeof value === "string") {
    const text = Buffer.from(value, "utf8");
    return Buffer.concat([head(text.length, [0xa0, 31], 0xd9, 0xda, 0xdb), text]);
  }
  if (value instanceof Uint8Array) return Buffer.concat([head(value.length, [0, -1], 0xc4, 0xc5, 0xc6), value]);
  if (Array.isArray(value)) return Buffer.concat([head(value.length, [0x90, 15], 0, 0xdc, 0xdd), ...value.map(pack)]);
  need(value instanceof Map, "a value that no message holds");
  return Buffer.concat([head(value.size, [0x80, 15], 0, 0xde, 0xdf), ...[...value].flatMap(([name, each]) => [pack(name), pack(each)])]);
}

function head(length, [short, most], one, two, four) {
  if (length <= most) return Buffer.of(short | length);
  if (one && length < 1 << 8) return Buffer.of(one, length);
  const bytes = length < 1 << 16 ? Buffer.alloc(3, two) : Buffer.alloc(5, four);
  bytes.writeUIntBE(length, 1, bytes.length - 1);
  return bytes;
}

function packWhole(number) {
  if (number >= -32n && number < 128n) return Buffer.of(Number(number & 0xffn));
  const sizes = [1, 2, 4, 8];
  const fits = (size) => (number < 0n ? BigInt.asIntN(8 * size, number) : BigInt.asUintN(8 * size, number)) === number;
  const place = sizes.findIndex(fits);
  need(place >= 0, "a whole number of more than 64 bits");
  const bytes = Buffer.alloc(1 + sizes[place], (number < 0n ? 0xd0 : 0xcc) + place);
  const digits = BigInt.asUintN(64, number).toString(16).padStart(16, "0");
  bytes.write(digits.slice(16 - 2 * sizes[place]), 1, "hex");
  return bytes;
}

/** The value in these bytes, whose form is the canonical one. */
export function unpack(bytes) {
  let at = 0;
  let left = CONTAINERS;
  const take = (count) => {
    need(at + count <= bytes.length, "it ends early");
    at += count;
    return bytes.subarray(at - count, at);
  };
  const whole = (size, signed) => {
    const part = take(size);
    const number = BigInt("0x" + part.toString("hex"));
    const value = signed ? BigInt.asIntN(8 * size, number) : number;
    return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  };
  const text = (length) => {
    need(length <= 1 << 18, "too long");
    try {
      return UTF8.decode(take(length));
    } catch {
      throw new Dropped("a text that is not UTF-8");
    }
  };
  const many = (length, most, depth) => {
    need(length <= most && --left >= 0 && depth < 16, "too long or too deep");
    return Array.from({ length }, () => read(depth + 1));
  };
  const map = (length, depth) => {
    need(length <= 64, "too long");
    const flat = many(2 * length, 128, depth);
    const pairs = new Map(Array.from({ length }, (_, pair) => [flat[2 * pair], flat[2 * pair + 1]]));
    need(pairs.size === length, "a name twice");
    return pairs;
  };
  const read = (depth) => {
    const first = take(1)[0];
    if (first < 0x80) return first;
    if (first < 0x90) return map(first & 15, depth);
    if (first < 0xa0) return many(first & 15, 1 << 16, depth);
    if (first < 0xc0) return text(first & 31);
    if (first >= 0xe0) return first - 256;
    switch (first) {
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return Buffer.from(take(whole(1 << (first - 0xc4), false)));
      case 0xcb: return new Double(take(8).readDoubleBE());
      case 0xcc: case 0xcd: case 0xce: case 0xcf: return whole(1 << (first - 0xcc), false);
      case 0xd0: case 0xd1: case 0xd2: case 0xd3: return whole(1 << (first - 0xd0), true);
      case 0xd9: case 0xda: case 0xdb: return text(whole(1 << (first - 0xd9), false));
      case 0xdc: case 0xdd: return many(whole(2 << (first - 0xdc), false), 1 << 16, depth);
      case 0xde: case 0xdf: return map(whole(2 << (first - 0xde), false), depth);
      default: throw new Dropped("a type that no message holds");
    }
  };
  const value = read(0);
  need(at === bytes.length, "a byte too many");
  need(pack(value).equals(bytes), "not canonical");
  return value;
}

// what a field may hold
const whole = (least, most) => (value) => (typeof value === "number" || typeof value === "bigint") && value >= least && value <= most;
const matching = (pattern) => (value) => typeof value === "string" && pattern.test(value);
const list = (least, most, each) => (value) => Array.isArray(value) && value.length >= least && value.length <= most && value.every(each);
const tuple = (...parts) => (value) => Array.isArray(value) && value.length === parts.length && parts.every((part, at) => part(value[at]));
const record = (fields) => (value) =>
  value instanceof Map && [...value.keys()].join() === Object.keys(fields).join() && Object.entries(fields).every(([name, part]) => part(value.get(name)));
const finite = (value) => value instanceof Double && Number.isFinite(value.value);
const isText = (value) => typeof value === "string";
const parameter = (value) =>
  whole(-(2n ** 63n), 2n ** 64n - 1n)(value) || finite(value) || (isText(value) && [...value].length <= 1 << 16) || (Array.isArray(value) && (value.every(isText) || value.every(finite)));
const parameters = (value) => value instanceof Map && [...value].every(([name, each]) => matching(NAME)(name) && parameter(each));
const kind = (name) => (value) => value === name;
const NAMED = matching(NAME);
const INDEX = whole(0, 2 ** 48 - 1);
const ROUND = whole(1, 2 ** 32 - 1);
const ASK = record({
  query: NAMED, query_params: parameters, randomizer: NAMED, randomizer_params: parameters, start: INDEX, stop: INDEX,
  coins: (value) => value instanceof Uint8Array && value.length === 16, once: matching(LABEL),
});
const KINDS = {
  request: record({ run: NAMED, kind: kind("request"), round: ROUND, asks: list(1, 4096, ASK), missing: list(0, 4096, tuple(INDEX, INDEX)) }),
  receipt: record({ run: NAMED, kind: kind("receipt"), round: ROUND, accepted: list(1, 4096, tuple(INDEX, INDEX, whole(0, 2n ** 64n - 1n))) }),
  roll: (value) => record({ run: NAMED, kind: kind("roll"), ...(value.has("missing") && { missing: list(1, 4096, tuple(INDEX, INDEX)) }) })(value),
  end: record({ run: NAMED, kind: kind("end") }),
};

/** A message to a member as an object, its asks too. Throws Dropped. */
export function decode(bytes) {
  need(bytes.length <= MOST, "oversized");
  const value = unpack(bytes);
  need(value instanceof Map, "no map");
  const fits = Object.hasOwn(KINDS, value.get("kind")) && KINDS[value.get("kind")];
  need(fits && fits(value), "no message to a member");
  const message = Object.fromEntries(value);
  return message.kind === "request" ? { ...message, asks: message.asks.map((ask) => Object.fromEntries(ask)) } : message;
}

/** The bytes of a message, from its fields in order. */
export const encode = (fields) => pack(new Map(Object.entries(fields)));

/** The checksum of a reply. */
export function checksum({ round, ask, start, width, reports }) {
  return blake2b(Buffer.concat([Buffer.from(`${round} ${ask} ${start} ${width} `), reports]), 8).readBigUInt64BE();
}
