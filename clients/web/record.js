/** One person's record: columns of numbers, whole numbers, truth values, dates or text; a missing value is null. */

import { InputError } from "./bytes.js";
import { Day, dateOf } from "./dates.js";

const KINDS = ["number", "whole", "truth", "date", "text"];
const LONGEST = 256; // characters of a text: the rest is cut, as in Python

/** The kind of a value by its type. @type {{[type: string]: Kind}} */
const KIND_OF = { number: "number", bigint: "whole", boolean: "truth", string: "text" };

/** @typedef {"number" | "whole" | "truth" | "date" | "text"} Kind */
/** @typedef {Map<string, Kind>} Schema The columns and their kinds: all that a refusal may depend on. */
/** @typedef {number | bigint | boolean | string | Day | null} Cell A date is given as text, such as 2020-06-01, or 2020-06-01T14:30. */
/** @typedef {Map<string, Cell>} Row Cells of the schema's kinds; a number that is not one, and an empty text, are null. */

/**
 * The schema of a plain object of kinds, or of the values of a record. Throws InputError for a value whose kind cannot be seen.
 * @param {{[column: string]: Kind}} kinds
 * @returns {Schema}
 */
export function schemaOf(kinds) {
  for (const [column, kind] of Object.entries(kinds)) {
    if (!KINDS.includes(kind)) throw new InputError(`column ${column} is of no kind; give one of ${KINDS.join(", ")}`);
  }
  return new Map(Object.entries(kinds));
}

/** The kinds of a record's values. @param {{[column: string]: Cell}} record @returns {{[column: string]: Kind}} */
export function kindsOf(record) {
  return Object.fromEntries(Object.entries(record).map(([column, value]) => [column, kindOf(column, value)]));
}

/** @param {string} column @param {Cell} value @returns {Kind} */
function kindOf(column, value) {
  const kind = KIND_OF[typeof value];
  if (!kind) throw new InputError(`the value of ${column} is missing, so its kind is not seen; give a schema`);
  return kind;
}

/**
 * The record in its schema's kinds. Throws InputError, without the value, for a value of another kind.
 * @param {{[column: string]: Cell}} record
 * @param {Schema} schema
 * @returns {Row}
 */
export function rowOf(record, schema) {
  return new Map([...schema].map(([column, kind]) => [column, cellOf(column, Object.hasOwn(record, column) ? record[column] : null, kind)]));
}

/** @param {string} column @param {Cell} value @param {Kind} kind @returns {Cell} */
function cellOf(column, value, kind) {
  if (kind === "text" && typeof value === "string") return cutText(value) || null;
  if (kind === "number" && typeof value === "number") return Number.isNaN(value) ? null : value;
  if (kind === "date" && typeof value === "string" && dateOf(value)) return dateOf(value);
  if (kind === "truth" && typeof value === "boolean") return value;
  if (kind === "whole" && (typeof value === "bigint" || Number.isSafeInteger(value))) return BigInt.asIntN(64, BigInt(/** @type {bigint} */ (value)));
  if ((value === null || value === undefined) && ["number", "date", "text"].includes(kind)) return null;
  throw new InputError(`the value of ${column} is no ${kind}`);
}

/** A text as a column of text has it: at most 256 characters, without zeros at its end. @param {string} value */
export function cutText(value) {
  const cut = value.length > LONGEST ? [...value].slice(0, LONGEST).join("") : value;
  return bare(cut);
}

/** A text without the zeros at its end, which no column keeps. @param {string} value */
export function bare(value) {
  return value.replace(/\0+$/, "");
}
