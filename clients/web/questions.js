/**
 * A small question language for records: `affairs > 0 and age >= 30`, parsed to data and never evaluated as code.
 *
 *     question    = conjunction { "or" conjunction }
 *     conjunction = negation { "and" negation }
 *     negation    = "not" negation | "(" question ")" | comparison
 *     comparison  = column ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) ( number | "text" | column )
 *
 * A comparison with a missing value has no answer, and three-valued logic (Kleene) carries that on. Spaces, letters and digits are those of Python.
 */

import { InputError, characters } from "./bytes.js";
import { bare } from "./record.js";

const MAX_LENGTH = 2000;
const MAX_DEPTH = 50;
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const BLANK = new RegExp(`^${SPACE}*$`, "u");
const TOKEN = new RegExp(
  `${SPACE}*(?:(?<number>-?(?:\\p{Nd}+\\.?\\p{Nd}*|\\.\\p{Nd}+)(?:[eE][+-]?\\p{Nd}+)?)|(?<text>"[^"]*"|'[^']*')` +
    "|`(?<quoted>[^`]+)`|(?<word>[\\p{L}\\p{Nl}\\p{No}_][\\p{L}\\p{N}_]*)|(?<symbol><=|>=|==|!=|<|>|\\(|\\)))",
  "uy",
);
const COMPARATORS = ["<", "<=", ">", ">=", "==", "!="];

/** @typedef {{column: string}} Column */
/** @typedef {Column | {number: bigint | number} | {text: string}} Operand A bigint was written as a whole number. */
/** @typedef {{left: Column, comparator: string, right: Operand}} Comparison */
/** @typedef {{not: Expression}} Not */
/** @typedef {{both: [Expression, Expression]}} Both */
/** @typedef {{either: [Expression, Expression]}} Either */
/** @typedef {Comparison | Not | Both | Either} Expression */
/** @typedef {import("./record.js").Schema} Schema */
/** @typedef {import("./record.js").Row} Row */

/** The question as data. Throws InputError that shows where it stops making sense. @param {string} question @returns {Expression} */
export function parse(question) {
  const parser = new Parser(question);
  const expression = parser.either();
  if (parser.kind) throw parser.fail("'and', 'or' or the end");
  return expression;
}

/**
 * Throws InputError unless each column exists, and text is compared with text alone. It reads no record.
 * @param {Expression} expression
 * @param {Schema} schema
 */
export function checkColumns(expression, schema) {
  if ("not" in expression) return checkColumns(expression.not, schema);
  if ("both" in expression) return expression.both.forEach((part) => checkColumns(part, schema));
  if ("either" in expression) return expression.either.forEach((part) => checkColumns(part, schema));
  const { left, right } = expression;
  const texts = [left, right].map((each) => ("column" in each ? kindOf(each.column, schema) === "text" : "text" in each));
  if (texts[0] !== texts[1]) throw new InputError(`column ${JSON.stringify(left.column)} is compared with another kind; compare like with like`);
}

/** @param {string} column @param {Schema} schema */
function kindOf(column, schema) {
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
    const [one, other] = expression.both.map((part) => answer(part, row));
    return one === 0 || other === 0 ? 0 : one === 1 && other === 1 ? 1 : -1;
  }
  if ("either" in expression) {
    const [one, other] = expression.either.map((part) => answer(part, row));
    return one === 1 || other === 1 ? 1 : one === 0 && other === 0 ? 0 : -1;
  }
  return compared(expression, row);
}

/** @param {Comparison} comparison @param {Row} row @returns {-1 | 0 | 1} */
function compared({ left, comparator, right }, row) {
  const one = row.get(left.column) ?? null;
  const other = "column" in right ? (row.get(right.column) ?? null) : "text" in right ? bare(right.text) : right.number;
  if (one === null || (other === null && "column" in right)) return -1;
  const sign = typeof one === "string" ? order(one, /** @type {string} */ (other)) : difference(one, /** @type {any} */ (other));
  const holds = { "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0, "==": sign === 0, "!=": sign !== 0 }[comparator];
  return holds ? 1 : 0;
}

/**
 * The sign of a difference: exact between whole numbers, by doubles where one is a fraction.
 * @param {bigint | number | boolean} one
 * @param {bigint | number | boolean} other
 */
function difference(one, other) {
  if (typeof one !== "number" && typeof other !== "number") {
    const [a, b] = [BigInt(one), BigInt(other)];
    return a < b ? -1 : a > b ? 1 : 0;
  }
  const [a, b] = [Number(one), Number(other)];
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

/** A whole number stays whole where a column could hold it: as a double, 2^53 + 1 would equal 2^53. @param {string} token @returns {bigint | number} */
function numberOf(token) {
  const plain = token.replace(/\p{Nd}/gu, digitOf);
  const value = Number(plain);
  return /^-?[0-9]+$/.test(plain) && Math.abs(value) < 2 ** 63 ? BigInt(plain) : value;
}

/** The value of a decimal digit of any script: digits come in runs from 0 to 9. @param {string} digit */
function digitOf(digit) {
  const code = /** @type {number} */ (digit.codePointAt(0));
  let first = code;
  while (first > 0 && /\p{Nd}/u.test(String.fromCodePoint(first - 1))) first -= 1;
  return String((code - first) % 10);
}

/** Recursive descent over the tokens, as deep as MAX_DEPTH. */
class Parser {
  /** @param {string} question */
  constructor(question) {
    if (characters(question) > MAX_LENGTH) throw new InputError(`the question has ${characters(question)} characters; ${MAX_LENGTH} is the most`);
    this.question = question;
    this.position = 0;
    this.depth = 0;
    this.kind = "";
    this.token = "";
    this.advance();
  }

  /** @param {string} wanted */
  fail(wanted) {
    const found = this.kind ? JSON.stringify(this.token) : "the end";
    return new InputError(`cannot read the question ${JSON.stringify(this.question)}: expected ${wanted}, found ${found}`);
  }

  advance() {
    [this.kind, this.token] = ["", ""];
    if (BLANK.test(this.question.slice(this.position))) return;
    TOKEN.lastIndex = this.position;
    const match = TOKEN.exec(this.question);
    const found = match && Object.entries(match.groups ?? {}).find(([, token]) => token !== undefined);
    if (!found) {
      [this.kind, this.token] = ["character", [...this.question.slice(this.position).trimStart()][0] ?? ""];
      throw this.fail("a column, a number, a text or a comparison");
    }
    [this.kind, this.token] = found;
    this.position = TOKEN.lastIndex;
  }

  /** @param {string} token */
  accept(token) {
    const here = (this.kind === "word" || this.kind === "symbol") && this.token === token;
    if (here) this.advance();
    return here;
  }

  /** Parts joined by "or"; "and" binds more closely. @returns {Expression} */
  either() {
    /** @type {Expression | null} */
    let expression = null;
    for (;;) {
      let part = this.negation();
      while (this.accept("and")) part = { both: [part, this.negation()] };
      expression = expression === null ? part : { either: [expression, part] };
      if (!this.accept("or")) return expression;
    }
  }

  /** @returns {Expression} */
  negation() {
    this.depth += 1;
    if (this.depth > MAX_DEPTH) throw new InputError(`the question nests deeper than ${MAX_DEPTH}; simplify it`);
    const expression = this.inner();
    this.depth -= 1;
    return expression;
  }

  /** @returns {Expression} */
  inner() {
    if (this.accept("not")) return { not: this.negation() };
    if (!this.accept("(")) return this.comparison();
    const expression = this.either();
    if (!this.accept(")")) throw this.fail("')'");
    return expression;
  }

  /** @returns {Comparison} */
  comparison() {
    const left = this.column();
    if (left === null) throw this.fail("a column");
    if (this.kind !== "symbol" || !COMPARATORS.includes(this.token)) throw this.fail(`one of ${COMPARATORS.join(" ")}`);
    const comparator = this.token;
    this.advance();
    return { left, comparator, right: this.operand() };
  }

  /** @returns {Column | null} */
  column() {
    const named = this.kind === "quoted" || (this.kind === "word" && !["and", "or", "not"].includes(this.token));
    if (!named) return null;
    const column = this.token;
    this.advance();
    return { column };
  }

  /** @returns {Operand} */
  operand() {
    const column = this.column();
    if (column) return column;
    if (this.kind !== "number" && this.kind !== "text") throw this.fail("a number, a text in quotes or a column");
    const operand = this.kind === "number" ? { number: numberOf(this.token) } : { text: this.token.slice(1, -1) };
    this.advance();
    return operand;
  }
}
