/**
 * MessagePack as the wire uses it. A whole number is a bigint and a fraction a number, since 1 and 1.0 are different bytes; a map is a Map, in its order.
 *
 * The usual libraries read both as one number and lose the form, so that nobody could check that bytes are canonical.
 */

import { WireError, bigEndian, fromBigEndian, join, utf8 } from "./bytes.js";

/** @typedef {bigint | number | string | boolean | null | Uint8Array | any[] | Map<string, any>} Value */

/**
 * @typedef {object} Limits The largest shapes of a message, which are checked while it is read.
 * @property {number} containers maps and arrays in one message
 * @property {number} mapLength
 * @property {number} arrayLength
 * @property {number} text bytes of one text
 */

const DEPTH = 512;
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The canonical bytes of a value. @param {any} value @returns {Uint8Array} */
export function pack(value) {
  if (value === null) return Uint8Array.of(0xc0);
  if (typeof value === "boolean") return Uint8Array.of(value ? 0xc3 : 0xc2);
  if (typeof value === "bigint") return packWhole(value);
  if (typeof value === "number") return packFraction(value);
  if (typeof value === "string") return join(head(utf8(value).length, 0xa0, 32, [0xd9, 0xda, 0xdb]), utf8(value));
  if (value instanceof Uint8Array) return join(head(value.length, 0, 0, [0xc4, 0xc5, 0xc6]), value);
  if (Array.isArray(value)) return join(head(value.length, 0x90, 16, [0, 0xdc, 0xdd]), ...value.map(pack));
  const parts = [...value].flatMap(([key, part]) => [pack(key), pack(part)]);
  return join(head(value.size, 0x80, 16, [0, 0xde, 0xdf]), ...parts);
}

/** The head of a text, bytes, an array or a map: `short` plus a length below `below`, else one of three `wide` codes, 0 where there is none. */
function head(/** @type {number} */ length, /** @type {number} */ short, /** @type {number} */ below, /** @type {number[]} */ wide) {
  if (length < below) return Uint8Array.of(short | length);
  const size = wide[0] && length < 1 << 8 ? 0 : length < 1 << 16 ? 1 : 2;
  return join(Uint8Array.of(wide[size]), bigEndian(BigInt(length), 1 << size));
}

function packWhole(/** @type {bigint} */ value) {
  if (value >= 0n && value < 128n) return Uint8Array.of(Number(value));
  if (value < 0n && value >= -32n) return Uint8Array.of(Number(value & 255n));
  const bits = [8n, 16n, 32n, 64n].findIndex((width) => (value >= 0n ? value >> width === 0n : -value <= 1n << (width - 1n)));
  if (bits < 0) throw new RangeError("a whole number of more than 64 bits");
  return join(Uint8Array.of((value >= 0n ? 0xcc : 0xd0) + bits), bigEndian(BigInt.asUintN(64, value), 8).slice(8 - (1 << bits)));
}

function packFraction(/** @type {number} */ value) {
  const bytes = new Uint8Array(9);
  bytes[0] = 0xcb;
  new DataView(bytes.buffer).setFloat64(1, value);
  return bytes;
}

/** One reading of a message. `canonical` and `repeats` say afterwards whether every part was in its shortest form, and whether a map has a name twice. */
export class Reader {
  /** @param {Uint8Array} bytes @param {Limits} limits */
  constructor(bytes, limits) {
    this.bytes = bytes;
    this.limits = limits;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.place = 0;
    this.left = limits.containers;
    this.canonical = true;
    this.repeats = false;
  }

  /** The one value of the message. Throws WireError. @returns {Value} */
  read() {
    const value = this.value(0);
    if (this.place < this.bytes.length) throw new WireError("bytes after the message", "trailing-bytes");
    return value;
  }

  /** @param {number} depth @returns {any} */
  value(depth) {
    if (depth > DEPTH) throw new WireError(`a message nested deeper than ${DEPTH}`, "too-deep");
    const code = this.take(1)[0];
    if (code < 0x80) return BigInt(code);
    if (code < 0x90) return this.map(code & 15, depth);
    if (code < 0xa0) return this.array(code & 15, depth);
    if (code < 0xc0) return this.text(code & 31);
    if (code >= 0xe0) return BigInt(code) - 256n;
    return this.wide(code, depth);
  }

  /** @param {number} code @param {number} depth @returns {any} */
  wide(code, depth) {
    if (code === 0xc0) return null;
    if (code === 0xc2 || code === 0xc3) return code === 0xc3;
    if (code === 0xca || code === 0xcb) return this.fraction(code === 0xca ? 4 : 8);
    if (code >= 0xc4 && code <= 0xc6) return this.take(this.length(code - 0xc4, 0)).slice();
    if (code >= 0xcc && code <= 0xcf) return this.whole(code - 0xcc, false);
    if (code >= 0xd0 && code <= 0xd3) return this.whole(code - 0xd0, true);
    if (code >= 0xd9 && code <= 0xdb) return this.text(this.length(code - 0xd9, 32));
    if (code === 0xdc || code === 0xdd) return this.array(this.length(code - 0xdb, 16), depth);
    if (code === 0xde || code === 0xdf) return this.map(this.length(code - 0xdd, 16), depth);
    throw new WireError(code === 0xc1 ? "a byte that MessagePack does not use" : "an extension type", code === 0xc1 ? "malformed" : "extension");
  }

  /** @param {number} size */
  take(size) {
    if (this.place + size > this.bytes.length) throw new WireError("a message that ends too early", "malformed");
    this.place += size;
    return this.bytes.subarray(this.place - size, this.place);
  }

  /** A length in 2^size bytes; below `least`, or in more bytes than it needs, it is not canonical. @param {number} size @param {number} least */
  length(size, least) {
    const length = Number(fromBigEndian(this.take(1 << size)));
    const narrower = size === 0 ? least : size === 1 ? (least === 16 ? 16 : 1 << 8) : 1 << 16;
    if (length < narrower) this.canonical = false;
    return length;
  }

  /** @param {number} size @param {boolean} signed */
  whole(size, signed) {
    const bytes = this.take(1 << size);
    const value = signed ? BigInt.asIntN(8 << size, fromBigEndian(bytes)) : fromBigEndian(bytes);
    if (packWhole(value).length !== 1 + bytes.length || (signed && value >= 0n)) this.canonical = false;
    return value;
  }

  /** @param {number} size */
  fraction(size) {
    const place = this.place;
    this.take(size);
    if (size < 8) this.canonical = false;
    return size === 8 ? this.view.getFloat64(place) : this.view.getFloat32(place);
  }

  /** @param {number} length */
  text(length) {
    if (length > this.limits.text) throw new WireError(`a text of ${length} bytes; ${this.limits.text} are the most`, "too-long");
    const bytes = this.take(length);
    try {
      return UTF8.decode(bytes);
    } catch {
      throw new WireError("a text that is not UTF-8", "malformed");
    }
  }

  /** @param {number} length @param {number} most */
  open(length, most) {
    if (length > most) throw new WireError(`${length} parts; ${most} are the most`, "too-long");
    this.left -= 1;
    if (this.left < 0) throw new WireError(`more than ${this.limits.containers} maps and arrays`, "too-long");
  }

  /** @param {number} length @param {number} depth @returns {Value[]} */
  array(length, depth) {
    this.open(length, this.limits.arrayLength);
    const parts = [];
    for (let part = 0; part < length; part += 1) parts.push(this.value(depth + 1));
    return parts;
  }

  /** @param {number} length @param {number} depth @returns {Map<string, any>} */
  map(length, depth) {
    this.open(length, this.limits.mapLength);
    const parts = new Map();
    for (let part = 0; part < length; part += 1) {
      const key = this.value(depth + 1);
      if (typeof key !== "string") throw new WireError("a name that is no text", "malformed");
      if (parts.has(key)) this.repeats = true;
      parts.set(key, this.value(depth + 1));
    }
    return parts;
  }
}
