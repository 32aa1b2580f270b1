/** Bytes: texts in UTF-8, hexadecimal digits, joining and comparing; and the errors of this client. */

export { bytesToHex as hex, concatBytes as join, utf8ToBytes as utf8 } from "./vendor/noble-hashes/utils.js";

/** A message that cannot be read; `code` is the counter that Python has for it. */
export class WireError extends Error {
  /** @param {string} text @param {string} code */
  constructor(text, code) {
    super(text);
    this.name = "WireError";
    this.code = code;
  }
}

/** A message without its speaker's signature. */
export class ForgedError extends Error {}

/** A wrong parameter or question, in one line. */
export class InputError extends Error {}

/** A request that this client does not answer; `code` goes over the wire, the text stays here. */
export class RefusedError extends Error {
  /** @param {string} code @param {string} [text] */
  constructor(code, text = "") {
    super(text || code);
    this.name = "RefusedError";
    this.code = code;
  }
}

/** @param {Uint8Array} one @param {Uint8Array} other */
export function same(one, other) {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

/** Throws InputError unless the text is pairs of hexadecimal digits. @param {string} digits */
export function unhex(digits) {
  if (!/^(?:[0-9a-fA-F]{2})*$/.test(digits)) throw new InputError(`${JSON.stringify(digits.slice(0, 40))} is not in hexadecimal digits`);
  return Uint8Array.from({ length: digits.length / 2 }, (_, place) => parseInt(digits.slice(2 * place, 2 * place + 2), 16));
}

/** A whole number in so many bytes, the most significant first. @param {bigint} number @param {number} size */
export function bigEndian(number, size) {
  return Uint8Array.from({ length: size }, (_, place) => Number((number >> BigInt(8 * (size - 1 - place))) & 255n));
}

/** The whole number in bytes, the most significant first. @param {Uint8Array} bytes */
export function fromBigEndian(bytes) {
  return bytes.reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
}

/** How many characters (code points) a text has. @param {string} value */
export function characters(value) {
  return [...value].length;
}
