/** Answers to questions of the question language (grammar.js) about a record, by Kleene's three-valued logic. */

import { InputError } from "./bytes.js";
import { Day, dateOf, likeADate } from "./dates.js";
import { bare } from "./record.js";

/** @typedef {import("./grammar.js").Expression} Expression */
/** @typedef {import("./grammar.js").Operand} Operand */
/** @typedef {import("./record.js").Schema} Schema */
/** @typedef {import("./record.js").Row} Row */
/** @typedef {import("./record.js").Cell} Cell */

/**
 * Throws InputError unless each column exists, and like is compared with like. It reads no record.
 * @param {Expression} expression
 * @param {Schema} schema
 */
export function checkColumns(expression, schema) {
  if ("not" in expression) return checkColumns(expression.not, schema);
  if ("both" in expression) return expression.both.forEach((part) => checkColumns(part, schema));
  if ("either" in expression) return expression.either.forEach((part) => checkColumns(part, schema));
  if ("missing" in expression) return void kindOf(expression.missing, schema);
  if ("column" in expression) {
    if (columnOf(expression.column, schema) !== "truth") throw new InputError(`column ${JSON.stringify(expression.column)} has no truth values; compare it`);
    return;
  }
  const left = kindOf(expression.left, schema);
  if ("among" in expression) return expression.among.forEach((value) => checkPair(left, "==", value, schema));
  checkPair(left, expression.comparator, expression.right, schema);
}

/** @param {string} kind of the left side @param {string} comparator @param {Operand} right @param {Schema} schema */
function checkPair(kind, comparator, right, schema) {
  const text = "text" in right ? right.text : null;
  const other = kind === "date" && text !== null && dateOf(text) ? "date" : kindOf(right, schema);
  if (kind !== other) throw new InputError(`${kind} is compared with ${other}; compare like with like, and dates with a text such as 2020-06-01`);
  const ordered = !["==", "!="].includes(comparator);
  if (kind === "text" && ordered && text !== null && likeADate(text)) throw new InputError("a column of texts is in no order of dates; declare it as dates");
}

/** What an operand is compared as. @param {Operand} operand @param {Schema} schema @returns {"number" | "text" | "date"} */
function kindOf(operand, schema) {
  if ("text" in operand) return "text";
  if ("call" in operand) {
    const wanted = operand.call === "lower" ? "text" : "date";
    if (kindOf(operand.of, schema) !== wanted) throw new InputError(`${operand.call}() takes a column of the kind ${wanted}`);
    return wanted === "text" ? "text" : "number";
  }
  if ("rest" in operand) {
    const parts = [operand.first, ...operand.rest.map(([, part]) => part)];
    if (parts.some((part) => kindOf(part, schema) !== "number")) throw new InputError("arithmetic takes numbers");
  }
  const kind = "column" in operand ? columnOf(operand.column, schema) : "number";
  return kind === "text" || kind === "date" ? kind : "number";
}

/** The kind of a column. @param {any} column @param {Schema} schema */
export function columnOf(column, schema) {
  const kind = schema.get(column);
  if (kind === undefined) throw new InputError(`no column ${JSON.stringify(column)}; there are ${[...schema.keys()].join(", ")}`);
  return kind;
}

/** 1 for yes, 0 for no, -1 where a missing value leaves it open. @param {Expression} expression @param {Row} row @returns {-1 | 0 | 1} */
export function answer(expression, row) {
  if ("not" in expression) {
    const part = answer(expression.not, row);
    return part < 0 ? -1 : part ? 0 : 1;
  }
  if ("both" in expression) {
    const parts = expression.both.map((part) => answer(part, row));
    return parts.includes(0) ? 0 : parts.includes(-1) ? -1 : 1;
  }
  if ("either" in expression) {
    const parts = expression.either.map((part) => answer(part, row));
    return parts.includes(1) ? 1 : parts.includes(-1) ? -1 : 0;
  }
  if ("missing" in expression) return valueOf(expression.missing, row) === null ? 1 : 0;
  if ("column" in expression) return row.get(expression.column) ? 1 : 0; // a truth value is never missing
  const left = valueOf(expression.left, row);
  if (!("among" in expression)) return compared(left, expression.comparator, valueOf(expression.right, row));
  const each = expression.among.map((value) => compared(left, "==", valueOf(value, row)));
  return left === null ? -1 : each.includes(1) ? 1 : 0;
}

/** The value of an operand, null where it is missing. @param {Operand} operand @param {Row} row @returns {Cell} */
function valueOf(operand, row) {
  if ("column" in operand) return row.get(operand.column) ?? null;
  if ("number" in operand) return operand.number;
  if ("text" in operand) return bare(operand.text);
  if ("call" in operand) return called(operand.call, valueOf(operand.of, row));
  const total = operand.rest.reduce((sum, [sign, part]) => computed(sum, sign, asDouble(valueOf(part, row))), asDouble(valueOf(operand.first, row)));
  return Number.isNaN(total) ? null : total;
}

/** @param {Cell} cell */
const asDouble = (cell) => (cell === null ? NaN : Number(cell));

/** NaN where the result is no finite number. @param {number} one @param {string} sign @param {number} other */
function computed(one, sign, other) {
  const result = sign === "+" ? one + other : sign === "-" ? one - other : sign === "*" ? one * other : one / other;
  return Number.isFinite(result) ? result : NaN;
}

/** @param {string} name @param {Cell} cell @returns {Cell} */
function called(name, cell) {
  if (cell === null) return null;
  if (name === "lower") return Array.from(String(cell), lowered).join("");
  return Number(name === "year" ? String(cell).slice(0, 4) : String(cell).slice(5, 7));
}

/** Latin, Greek and Cyrillic letters, which all versions of Unicode give the same lower case, if that is one letter. @param {string} letter */
const lowered = (letter) => (letter < "\u0530" && letter.toLowerCase().length === 1 ? letter.toLowerCase() : letter);

/** @param {Cell} one @param {string} comparator @param {Cell} other @returns {-1 | 0 | 1} */
function compared(one, comparator, other) {
  if (one === null || other === null) return -1;
  const sign = typeof one === "string" || one instanceof Day ? order(String(one), date(one, other)) : difference(one, /** @type {any} */ (other));
  const holds = { "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0, "==": sign === 0, "!=": sign !== 0 }[comparator];
  return holds ? 1 : 0;
}

/** The other side as text, in the form of a date beside one. @param {Cell} one @param {Cell} other */
const date = (one, other) => String(one instanceof Day ? (dateOf(String(other)) ?? other) : other);

/**
 * The sign of a difference: exact between whole numbers, by doubles where one is a fraction.
 * @param {bigint | number | boolean} one
 * @param {bigint | number | boolean} other
 */
function difference(one, other) {
  const isExact = typeof one !== "number" && typeof other !== "number";
  const [a, b] = isExact ? [BigInt(one), BigInt(other)] : [Number(one), Number(other)];
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The sign by which texts sort, by code points. @param {string} one @param {string} other */
function order(one, other) {
  const [a, b] = [[...one], [...other]];
  for (let place = 0; place < Math.min(a.length, b.length); place += 1) {
    if (a[place] !== b[place]) return /** @type {number} */ (a[place].codePointAt(0)) < /** @type {number} */ (b[place].codePointAt(0)) ? -1 : 1;
  }
  return Math.sign(a.length - b.length);
}
