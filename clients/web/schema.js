/** Checks of decoded values: each reads one value of a message, or throws WireError with the place where it is wrong. */

import { WireError, characters } from "./bytes.js";

/**
 * @template T
 * @typedef {object} Kind One kind of value: `read` from what was decoded, `write` to what is packed; `usual` is what stands for its absence.
 * @property {(value: any, where: string) => T} read
 * @property {(value: T) => any} write
 * @property {T} [usual]
 * @property {boolean} [spared] whether the canonical form has it only if it is not empty
 */

/** @typedef {bigint | number | string | string[] | number[]} Parameter A bigint is a whole number, a number a fraction. */
/** @typedef {Map<string, Parameter>} Parameters */

const NAME = /^[A-Za-z0-9_.-]{1,64}$/;
const MAX_TEXT = 1 << 16;

/** @param {string} where @param {any} value @returns {WireError} */
function wrongType(where, value) {
  const infinite = typeof value === "number" && !Number.isFinite(value);
  return new WireError(`${where}: a value of another type`, infinite ? "not-finite" : "wrong-type");
}

/** @param {boolean} right @param {string} where @param {string} what */
function require(right, where, what) {
  if (!right) throw new WireError(`${where}: ${what}`, "wrong-value");
}

/**
 * A value that is packed as it was read.
 * @param {(value: any) => boolean} isOf whether it is of the type
 * @param {(value: any) => string} fault of a value of the type; empty if there is none
 * @returns {Kind<any>}
 */
function plain(isOf, fault) {
  return {
    read(value, where) {
      if (!isOf(value)) throw wrongType(where, value);
      const what = fault(value);
      require(!what, where, what);
      return value;
    },
    write: (value) => value,
  };
}

/** @param {any} value */
const isText = (value) => typeof value === "string";

/** @param {string} text @param {number} most characters */
const isWithin = (text, most) => text.length <= most || characters(text) <= most;

/** A whole number from `least` to below `end`. @param {number} least @param {number} end @returns {Kind<number>} */
export function below(least, end) {
  return {
    read(value, where) {
      if (typeof value !== "bigint") throw wrongType(where, value);
      require(value >= BigInt(least) && value < BigInt(end), where, `a whole number outside ${least}..${end - 1}`);
      return Number(value);
    },
    write: BigInt,
  };
}

/** A checksum: 64 bits, as a bigint. @type {Kind<bigint>} */
export const word = plain((value) => typeof value === "bigint", (value) => (value >= 0n && value >> 64n === 0n ? "" : "not 64 bits"));

/** @param {RegExp} pattern @returns {Kind<string>} */
export const matching = (pattern) => plain(isText, (value) => (pattern.test(value) ? "" : `a text that does not match ${pattern}`));

export const name = matching(NAME);

/** @param {number} most characters @returns {Kind<string>} */
export const line = (most) => plain(isText, (value) => (isWithin(value, most) ? "" : `a text of more than ${most} characters`));

/** @param {...string} words @returns {Kind<string>} */
export function oneOf(...words) {
  return {
    read(value, where) {
      if (typeof value !== "string" || !words.includes(value)) throw new WireError(`${where}: none of ${words.join(", ")}`, "wrong-value");
      return value;
    },
    write: (value) => value,
  };
}

/** @type {Kind<boolean>} */
export const truth = plain((value) => typeof value === "boolean", () => "");

/** @param {number} least @param {number} most @returns {Kind<Uint8Array>} */
export const bytes = (least, most) =>
  plain((value) => value instanceof Uint8Array, ({ length }) => (length >= least && length <= most ? "" : `${length} bytes`));

/** @template T @param {Kind<T>} part @param {number} least @param {number} most @returns {Kind<T[]>} */
export function list(part, least, most) {
  return {
    read(value, where) {
      if (!Array.isArray(value)) throw wrongType(where, value);
      require(value.length >= least && value.length <= most, where, `${value.length} parts`);
      return value.map((each, place) => part.read(each, `${where}.${place}`));
    },
    write: (value) => value.map(part.write),
  };
}

/** @param {...Kind<any>} parts @returns {Kind<any[]>} */
export function tuple(...parts) {
  return {
    read(value, where) {
      if (!Array.isArray(value)) throw wrongType(where, value);
      if (value.length < parts.length) throw new WireError(`${where}: ${value.length} parts of ${parts.length}`, "missing-field");
      require(value.length === parts.length, where, `${value.length} parts, not ${parts.length}`);
      return parts.map((part, place) => part.read(value[place], `${where}.${place}`));
    },
    write: (value) => parts.map((part, place) => part.write(value[place])),
  };
}

/** The parameters of a query or a randomizer. @type {Kind<Parameters>} */
export const parameters = {
  read(value, where) {
    if (!(value instanceof Map)) throw wrongType(where, value);
    for (const [key, part] of value) {
      name.read(key, `${where}.name`);
      if (!isParameter(part)) throw wrongType(`${where}.${key}`, part);
    }
    return value;
  },
  write: (value) => value,
};

/** @param {any} value */
const isNumber = (value) => typeof value === "bigint" || (typeof value === "number" && Number.isFinite(value));

/** @param {any} value */
function isParameter(value) {
  if (typeof value === "bigint") return true;
  if (typeof value === "number") return Number.isFinite(value);
  if (typeof value === "string") return isWithin(value, MAX_TEXT);
  if (!Array.isArray(value)) return false;
  const hasWhole = value.some((part) => typeof part === "bigint");
  if (hasWhole && value.every(isNumber)) throw new WireError("a list of whole numbers, which are fractions", "not-canonical");
  return value.every((part) => typeof part === "string") || value.every(isNumber);
}

/** A field whose absence means `usual`, although the canonical form has it. @template T @param {T} usual @param {Kind<T>} kind @returns {Kind<T>} */
export function usually(usual, kind) {
  return { ...kind, usual };
}

/** A list that the canonical form leaves out when it is empty. @template T @param {Kind<T[]>} kind @returns {Kind<T[]>} */
export function unlessEmpty(kind) {
  return { ...kind, usual: [], spared: true };
}

/** @typedef {{[field: string]: Kind<any>}} Fields The fields of a map in their order. */

/** A map of these fields. @param {Fields} fields @returns {Kind<any>} */
export function map(fields) {
  return {
    read(value, where) {
      if (!(value instanceof Map)) throw wrongType(where, value);
      for (const [field, kind] of Object.entries(fields)) {
        if (!value.has(field) && kind.usual === undefined) throw new WireError(`${where}: no field ${field}`, "missing-field");
      }
      for (const field of value.keys()) {
        if (!Object.hasOwn(fields, field)) throw new WireError(`${where}: a field that there is not`, "unknown-field");
      }
      const read = Object.entries(fields).map(([field, kind]) => {
        return [field, value.has(field) ? kind.read(value.get(field), `${where}.${field}`) : kind.usual];
      });
      return Object.fromEntries(read);
    },
    write(value) {
      const written = Object.entries(fields).filter(([field, kind]) => !kind.spared || value[field]?.length);
      return new Map(written.map(([field, kind]) => [field, kind.write(value[field])]));
    },
  };
}
