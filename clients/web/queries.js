/** The queries that this client answers, by name: maps from a record to a value of a declared domain. */

import { InputError, RefusedError, characters } from "./bytes.js";
import { parse } from "./grammar.js";
import { answer, checkColumns, columnOf } from "./questions.js";
import { labelsOf } from "./labels.js";
import { symbols } from "./randomizers/finite.js";

const STEPS = 1 << 16;
const MAX_SYMBOLS = 4096;
const MAX_LABEL = 1000;
const LARGEST = 1e150;
const SMALLEST = 1e-150;

/** @typedef {import("./schema.js").Parameters} Parameters */
/** @typedef {import("./record.js").Schema} Schema */
/** @typedef {import("./record.js").Row} Row */
/** @typedef {import("./randomizers/finite.js").Domain} Domain */

/** @typedef {{domain: Domain, fit(schema: Schema): void, value(row: Row): number}} Query `fit` throws InputError where the columns are of other kinds. */

/** The query of this name. Throws RefusedError("unknown-query" or "bad-parameters"). @param {string} name @param {Parameters} params @returns {Query} */
export function buildQuery(name, params) {
  if (!Object.hasOwn(QUERIES, name)) throw new RefusedError("unknown-query", `there is no query named ${name}`);
  try {
    return QUERIES[name](params);
  } catch (error) {
    if (error instanceof InputError) throw new RefusedError("bad-parameters", `${name}: ${error.message}`);
    throw error;
  }
}

/** @type {{[name: string]: (params: Parameters) => Query}} */
const QUERIES = { question, category, bounded, below, "masked-index": maskedIndex, "masked-list": maskedList };
export const QUERY_NAMES = Object.keys(QUERIES);

/**
 * 1 where the record answers yes to a question, else 0; with `spare` ("missing",), 2 where a missing value leaves it open.
 * @param {Parameters} params
 * @returns {Query}
 */
function question(params) {
  const { text, spare } = fields(params, { text: "a text", spare: [] });
  if (typeof text !== "string") throw new InputError("a question is text");
  checkSpare(spare, ["missing"]);
  const expression = parse(text);
  const open = spare.length ? 2 : 0;
  return {
    domain: symbols(2 + spare.length),
    fit: (schema) => checkColumns(expression, schema),
    value(row) {
      const found = answer(expression, row);
      return found < 0 ? open : found;
    },
  };
}

/**
 * The position of a value in public labels, then "other" and "missing" of `spare`; without these such a value is the first.
 * @param {Parameters} params
 * @returns {Query}
 */
function category(params) {
  const { column, labels, spare } = fields(params, { column: "a column", labels: "labels", spare: [] });
  checkSpare(spare, ["other", "missing"]);
  checkLabels(labels);
  const size = labels.length + spare.length;
  if (size < 2 || size > MAX_SYMBOLS) throw new InputError(`there are ${size} labels; from 2 to ${MAX_SYMBOLS} can be counted`);
  const numbered = labels.every((/** @type {string} */ label, /** @type {number} */ place) => label === String(place));
  const symbol = (/** @type {string} */ name) => (spare.includes(name) ? labels.length + spare.indexOf(name) : 0);
  /** @type {string | null} */
  let missing = null;
  return {
    domain: symbols(size),
    fit(schema) {
      const kind = columnOf(column, schema);
      missing = kind === "text" ? "" : kind === "number" ? "nan" : null; // what Python prints for a missing number
    },
    value(row) {
      const cell = row.get(column) ?? null;
      const own = cell === null ? [missing] : labelsOf(cell, numbered);
      const place = labels.findIndex((/** @type {string} */ label) => own.includes(label));
      return place >= 0 ? place : symbol(cell === null ? "missing" : "other");
    },
  };
}

/** The place of a number clipped to the public [low, high] on a lattice of 2^16 steps, or between two; a missing one is the midpoint. @param {Parameters} params @returns {Query} */
function bounded(params) {
  const { column, low, high } = fields(params, { column: "a column", low: "a number", high: "a number" });
  for (const bound of [low, high]) checkNumber(bound);
  const range = typeof low === "bigint" && typeof high === "bigint" ? Number(high - low) : Number(high) - Number(low);
  if (!(range >= SMALLEST)) throw new InputError("the bounds are not in order; give numbers with low < high");
  return {
    domain: { kind: "levels", low: 0, high: STEPS },
    fit: (schema) => checkNumeric(column, schema),
    value(row) {
      const cell = row.get(column) ?? null;
      const share = cell === null ? 0.5 : (Number(cell) - Number(low)) / range;
      return Math.min(Math.max(share, 0), 1) * STEPS;
    },
  };
}

/** The level 2^16 where a number lies below `end`, 0 where not, and `missing` where there is none. @param {Parameters} params @returns {Query} */
function below(params) {
  const { column, end, missing } = fields(params, { column: "a column", end: "a number", missing: "a level" });
  checkNumber(end);
  if (typeof missing !== "bigint" || missing < 0n || missing > STEPS) throw new InputError(`the level of a missing number is not from 0 to ${STEPS}`);
  return {
    domain: { kind: "levels", low: 0, high: STEPS },
    fit: (schema) => checkNumeric(column, schema),
    value(row) {
      const cell = row.get(column) ?? null;
      return cell === null ? Number(missing) : STEPS * Number(Number(cell) < Number(end));
    },
  };
}

/** Of an example of masked parity with b = 1: its label, +1 or -1, at the place i; nothing where b = 0. @param {Parameters} params @returns {Query} */
function maskedIndex(params) {
  const { d } = fields(params, { d: "a number of bits" });
  return signed(Number(bitsOf(d)), (example) => (example.b === 1n ? Number(example.i) : -1));
}

/**
 * Of an example of masked parity with b = 0: its label times (-1)^<r, x>, at the symbol that the bits `free` of x make. With b = 1: its label at the place of
 * i in `asked`, after these symbols; nothing where i is not asked for.
 * @param {Parameters} params
 * @returns {Query}
 */
function maskedList(params) {
  const { d, r, free, asked } = fields(params, { d: "a number of bits", r: "a vector of bits", free: 0n, asked: 0n });
  for (const vector of [r, free, asked]) {
    if (typeof vector !== "bigint" || vector < 0n || vector >> bitsOf(d)) throw new InputError("a vector is not of d bits");
  }
  const [open, places] = [placesOf(free), placesOf(asked)];
  const listed = 2 ** open.length;
  const place = (/** @type {Example} */ { x, i, b }) => {
    if (b === 0n) return open.reduce((sum, bit, at) => sum + (Number((x >> bit) & 1n) << at), 0);
    return places.includes(i) ? listed + places.indexOf(i) : -1;
  };
  return signed(listed + places.length, place, ({ x, b }) => b === 0n && placesOf(x & r).length % 2 === 1);
}

/** @typedef {{x: bigint, i: bigint, b: bigint, y: bigint}} Example */

/**
 * The label of an example as the sign of one of k symbols.
 * @param {number} k
 * @param {(example: Example) => number} place from 0; below, there is nothing to say
 * @param {(example: Example) => boolean} [turns] whether the sign is the opposite of the label's
 * @returns {Query}
 */
function signed(k, place, turns = () => false) {
  if (k > MAX_SYMBOLS) throw new InputError(`there are ${k} symbols; up to ${MAX_SYMBOLS} can be counted`);
  return {
    domain: { kind: "signed symbols", low: -k, high: k },
    fit(schema) {
      for (const column of ["x", "i", "b", "y"]) {
        if (!["whole", "truth"].includes(columnOf(column, schema))) throw new InputError(`column ${column} has no whole numbers`);
      }
    },
    value(row) {
      const [x, i, b, y] = ["x", "i", "b", "y"].map((column) => BigInt(/** @type {bigint} */ (row.get(column))));
      const example = { x: BigInt.asUintN(64, x), i, b, y };
      const symbol = Math.min(place(example), k - 1) + 1;
      return y < 0n !== turns(example) ? -symbol : symbol;
    },
  };
}

/** @param {any} d */
function bitsOf(d) {
  if (typeof d !== "bigint" || d < 1n || d > 64n) throw new InputError("d is not from 1 to 64");
  return d;
}

/** The places of the bits that are set. @param {bigint} vector */
function placesOf(vector) {
  return [...vector.toString(2)].flatMap((bit, at, all) => (bit === "1" ? [BigInt(all.length - 1 - at)] : [])).reverse();
}

/**
 * The parameters, of which those with a usual value may be left out. Throws InputError.
 * @param {Parameters} params
 * @param {{[name: string]: any}} usual a text says what is missing
 */
function fields(params, usual) {
  for (const name of params.keys()) if (!Object.hasOwn(usual, name)) throw new InputError(`there is no parameter ${JSON.stringify(name)}`);
  /** @type {{[name: string]: any}} */
  const given = {};
  for (const [name, value] of Object.entries(usual)) {
    if (!params.has(name) && typeof value === "string") throw new InputError(`the parameter ${name} is missing; give ${value}`);
    given[name] = params.get(name) ?? value;
  }
  return given;
}

/** @param {any} value */
function checkNumber(value) {
  const isNumber = typeof value === "bigint" || typeof value === "number";
  if (!isNumber || !(Math.abs(Number(value)) <= LARGEST)) throw new InputError("a bound is no number within 1e150");
}

/** @param {any} column @param {Schema} schema */
function checkNumeric(column, schema) {
  const kind = columnOf(column, schema);
  if (kind === "text" || kind === "date") throw new InputError(`column ${JSON.stringify(column)} is a ${kind}; this query needs numbers`);
}

/** @param {any} spare @param {string[]} known */
function checkSpare(spare, known) {
  const inOrder = Array.isArray(spare) && JSON.stringify(spare) === JSON.stringify(known.filter((name) => spare.includes(name)));
  if (!inOrder) throw new InputError(`the extra symbols are none of ${known.join(", ")}, in this order`);
}

/** @param {any} labels */
function checkLabels(labels) {
  if (!Array.isArray(labels) || !labels.length || !labels.every((label) => typeof label === "string")) throw new InputError("there are no labels");
  if (new Set(labels).size !== labels.length) throw new InputError("the labels are not distinct");
  if (labels.some((label) => characters(label) > MAX_LABEL)) throw new InputError(`a label has more than ${MAX_LABEL} characters`);
}
