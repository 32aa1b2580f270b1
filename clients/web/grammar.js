/**
 * A small question language for records: `affairs > 0 and age >= 30`, parsed to data and never evaluated as code.
 * docs/wire.md has the grammar, as does local_dp/queries/grammar.py. Spaces, letters and digits are those of Python.
 */

import { InputError, characters } from "./bytes.js";

const MAX_LENGTH = 2000;
const MAX_DEPTH = 50;
const SPACE = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const BLANK = new RegExp(`^${SPACE}*$`, "u");
const TOKEN = new RegExp(
  `${SPACE}*(?:(?<number>(?:\\p{Nd}+\\.?\\p{Nd}*|\\.\\p{Nd}+)(?:[eE][+-]?\\p{Nd}+)?)|(?<text>"[^"]*"|'[^']*')` +
    "|`(?<quoted>[^`]+)`|(?<word>[\\p{L}\\p{Nl}\\p{No}_][\\p{L}\\p{N}_]*)|(?<symbol><=|>=|==|!=|[\\][<>()+*/,-]))",
  "uy",
);
const COMPARATORS = ["<", "<=", ">", ">=", "==", "!="];
const MIRRORED = new Map([["<", ">"], ["<=", ">="], [">", "<"], [">=", "<="]]);
const FUNCTIONS = ["year", "month", "lower"];
const RESERVED = ["and", "or", "not", "true", "false", "True", "False", "TRUE", "FALSE"]; // no names of columns, unless they are quoted

/** @typedef {{column: string}} Column As a question, a column of truth values. */
/** @typedef {{number: bigint | number} | {text: string}} Value A bigint was written as a whole number. */
/** @typedef {{call: string, of: Column}} Call */
/** @typedef {{first: Operand, rest: [string, Operand][]}} Arithmetic Computed from the left in doubles. */
/** @typedef {Column | Value | Call | Arithmetic} Operand */
/** @typedef {{left: Operand, comparator: string, right: Operand}} Comparison A column is on its left side. */
/** @typedef {{left: Operand, among: Value[]}} Among */
/** @typedef {{missing: Operand}} Missing */
/** @typedef {{not: Expression}} Not */
/** @typedef {{both: [Expression, Expression]}} Both */
/** @typedef {{either: [Expression, Expression]}} Either */
/** @typedef {Column | Comparison | Among | Missing | Not | Both | Either} Expression */

/** The question as data. Throws InputError that shows where it stops making sense. @param {string} question @returns {Expression} */
export function parse(question) {
  const parser = new Parser(question);
  const expression = parser.asked(parser.either());
  if (parser.kind) throw parser.fail("'and', 'or' or the end");
  return expression;
}

/** @param {Expression | Operand} part @returns {part is Exclude<Expression, Column>} */
const isQuestion = (part) => ["left", "missing", "not", "both", "either"].some((name) => name in part);

/** Whether an operand reads a column. @param {Operand} operand @returns {boolean} */
function named(operand) {
  if ("rest" in operand) return named(operand.first) || operand.rest.some(([, part]) => named(part));
  return "column" in operand || "call" in operand;
}

/** A whole number stays whole where a column could hold it: as a double, 2^53 + 1 would equal 2^53. @param {string} token @returns {bigint | number} */
function numberOf(token) {
  const plain = token.replace(/\p{Nd}/gu, digitOf);
  return /^[0-9]+$/.test(plain) && BigInt(plain) < 1n << 64n ? BigInt(plain) : Number(plain);
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
    this.called = false; // whether the last name may be that of a function
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

  /** @param {string} token */
  expect(token) {
    if (!this.accept(token)) throw this.fail(`'${token}'`);
  }

  /** The part, which must be a question. @param {Expression | Operand} part @returns {Expression} */
  asked(part) {
    if (!("column" in part) && !isQuestion(part)) throw this.fail(`one of ${COMPARATORS.join(" ")} in is`);
    return part;
  }

  /** Parts joined by "or"; "and" binds more closely. In parentheses it may be an operand. @returns {Expression | Operand} */
  either() {
    return this.joined("or", (...either) => ({ either }), () => this.both());
  }

  /** @returns {Expression | Operand} */
  both() {
    return this.joined("and", (...both) => ({ both }), () => this.negation());
  }

  /** @param {string} word @param {(left: Expression, right: Expression) => Expression} pair @param {() => Expression | Operand} part */
  joined(word, pair, part) {
    let whole = part();
    while (this.kind === "word" && this.token === word) {
      const left = this.asked(whole);
      this.advance();
      whole = pair(left, this.asked(part()));
    }
    return whole;
  }

  /** @returns {Expression | Operand} */
  negation() {
    this.depth += 1;
    if (this.depth > MAX_DEPTH) throw new InputError(`the question nests deeper than ${MAX_DEPTH}; simplify it`);
    const expression = this.accept("not") ? { not: this.asked(this.negation()) } : this.comparison();
    this.depth -= 1;
    return expression;
  }

  /** @returns {Expression | Operand} */
  comparison() {
    const left = this.sum();
    if (isQuestion(left)) return left;
    if (this.kind === "symbol" && COMPARATORS.includes(this.token)) {
      const comparator = this.token;
      this.advance();
      return this.compared(left, comparator, this.sum());
    }
    if (this.kind !== "word" || !["not", "in", "is"].includes(this.token)) return left;
    if (!named(left)) throw this.fail("a comparison of a column");
    const [isNull, inverted] = [this.accept("is"), this.accept("not")];
    this.expect(isNull ? "null" : "in");
    const found = isNull ? { missing: left } : { left, among: this.values() };
    return inverted ? { not: found } : found;
  }

  /** With a column on its left side. @param {Operand} left @param {string} comparator @param {Expression | Operand} right @returns {Comparison} */
  compared(left, comparator, right) {
    if (isQuestion(right) || !(named(left) || named(right))) throw this.fail("a column on one side");
    return named(left) ? { left, comparator, right } : { left: right, comparator: MIRRORED.get(comparator) ?? comparator, right: left };
  }

  /** @returns {Expression | Operand} */
  sum() {
    return this.chain(() => this.chain(() => this.factor(), "*/"), "+-");
  }

  /** @param {() => Expression | Operand} part @param {string} signs @returns {Expression | Operand} */
  chain(part, signs) {
    const first = part();
    /** @type {[string, Operand][]} */
    const rest = [];
    while (this.kind === "symbol" && signs.includes(this.token)) {
      const sign = this.token;
      this.number(first);
      this.advance();
      rest.push([sign, this.number(part())]);
    }
    return rest.length ? { first: this.number(first), rest } : first;
  }

  /** The part, which must be something to compute with. @param {Expression | Operand} part @returns {Operand} */
  number(part) {
    if (isQuestion(part) || "text" in part) throw this.fail("a number or a column");
    return part;
  }

  /** @returns {Expression | Operand} */
  factor() {
    if (this.accept("(")) {
      const inside = this.either();
      this.expect(")");
      return inside;
    }
    const name = this.column();
    if (!name) return this.value();
    if (!this.called || !this.accept("(")) return name;
    const of = this.column();
    if (!of) throw this.fail("a column");
    this.expect(")");
    return { call: name.column, of };
  }

  /** @returns {Column | null} */
  column() {
    if (this.kind !== "quoted" && (this.kind !== "word" || RESERVED.includes(this.token))) return null;
    const column = this.token;
    this.called = this.kind === "word" && FUNCTIONS.includes(column);
    this.advance();
    return { column };
  }

  values() {
    this.expect("[");
    const values = [this.value()];
    while (this.accept(",")) values.push(this.value());
    this.expect("]");
    return values;
  }

  /** @returns {Value} */
  value() {
    const negative = this.accept("-");
    const value = this.kind === "number" ? { number: numberOf(this.token) } : negative ? null : this.plain();
    if (!value) throw this.fail("a column, a number or a text in quotes");
    this.advance();
    return negative && "number" in value ? { number: -value.number } : value;
  }

  /** @returns {Value | null} */
  plain() {
    if (this.kind === "text") return { text: this.token.slice(1, -1) };
    return this.kind === "word" && ["true", "false"].includes(this.token) ? { number: this.token === "true" ? 1n : 0n } : null;
  }
}
