// Queries: the value of a record, or a refusal. A record has a [type, value] for each column: "number", "whole" (a BigInt), "truth", "date", "text"; null is missing.

import { Double } from "./messages.mjs";

/** The client will not answer, by this code. */
export class Refused extends Error {
  constructor(code) {
    super(code);
    this.code = code;
  }
}

const refuse = (code) => {
  throw new Refused(code);
};
const letters = (text) => [...text];
const STEPS = 65536;
const LONGEST = 256;

/** A record as a client keeps it: dates in one form; texts are cut, end before their last zeros, and are missing if they are empty. */
export function settled(record) {
  const cut = (text) => letters(text).slice(0, LONGEST).join("").replace(/\0+$/, "") || null;
  return new Map(Object.entries(record).map(([name, [type, value]]) => [name, [type, value === null ? null : type === "text" ? cut(value) : type === "date" ? dated(value) : value]]));
}

function column(record, name) {
  return record.get(name) ?? refuse("bad-query");
}

// dates

const ISO = /^(([0-9]{4})-([0-9]{2})-([0-9]{2}))(?:[T ]([0-9]{2}:[0-9]{2})(?:(:[0-9]{2})(\.[0-9]{1,6})?)?)?$/;
const DATE_LIKE = /^ *([0-9]{1,4}\/[0-9]{1,2}\/[0-9]{1,4}|[0-9]{4}[-.][0-9]{1,2}[-.][0-9]{1,2}|[0-9]{1,2}[-.][0-9]{1,2}[-.][0-9]{4})([T, ][^\n]*)?$/;

/** The canonical text of a date, or null if it is none. */
function dated(text) {
  const [, day, year, month, date, minutes = "00:00", seconds = ":00", fraction = ""] = ISO.exec(text) ?? [];
  if (!day || year === "0000" || minutes > "23:59" || minutes.slice(3) > "59" || seconds > ":59") return null;
  const leap = Number(year) % 4 === 0 && (Number(year) % 100 !== 0 || Number(year) % 400 === 0);
  const length = [0, 31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month)];
  if (!(Number(date) >= 1 && Number(date) <= length)) return null;
  const micros = fraction.slice(1).padEnd(6, "0");
  const time = `${minutes}${seconds}${micros === "000000" ? "" : `.${micros}`}`;
  return time === "00:00:00" ? day : `${day}T${time}`;
}

// the grammar

const SPACE = "[\\u0009-\\u000d\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
const LETTER = "_\\p{L}\\p{Nl}\\p{No}";
const TOKEN = new RegExp(
  `${SPACE}(?:(?<number>(?:\\p{Nd}+\\.?\\p{Nd}*|\\.\\p{Nd}+)(?:[eE][+-]?\\p{Nd}+)?)|(?<text>"[^"]*"|'[^']*')|\`(?<quoted>[^\`]+)\`` +
    `|(?<word>[${LETTER}][${LETTER}\\p{Nd}]*)|(?<sign><=|>=|==|!=|[\\][<>()+*/,-])|(?<end>$))`,
  "uy",
);
const COMPARE = {
  "<": (sign) => sign < 0, "<=": (sign) => sign <= 0, ">": (sign) => sign > 0, ">=": (sign) => sign >= 0, "==": (sign) => sign === 0, "!=": (sign) => sign !== 0,
};

/** The decimal digit that a character is: those of category Nd stand in runs of ten, from 0 on. */
function digit(character) {
  let [code, value] = [character.codePointAt(0), 0];
  while (value < 10 && /^\p{Nd}$/u.test(String.fromCodePoint(code - value - 1))) value++;
  return String(value % 10);
}

function literal(token) {
  const ascii = token.replace(/\p{Nd}/gu, digit);
  const whole = /^[0-9]+$/.test(ascii) && BigInt(ascii) < 2n ** 64n;
  return whole ? ["whole", BigInt(ascii)] : ["number", Number(ascii)];
}

function tokens(question) {
  if (letters(question).length > 2000) refuse("bad-parameters");
  const found = [];
  TOKEN.lastIndex = 0;
  for (;;) {
    const match = TOKEN.exec(question) ?? refuse("bad-parameters");
    const [[kind, token]] = Object.entries(match.groups).filter(([, text]) => text !== undefined);
    found.push({ kind, token });
    if (kind === "end") return found;
  }
}

const RESERVED = ["and", "or", "not", "true", "false", "True", "False", "TRUE", "FALSE"];
const MIRRORED = { "<": ">", "<=": ">=", ">": "<", ">=": "<=" };
const COMPUTE = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b };
const FUNCTIONS = {
  year: ["date", (text) => ["number", Number(text.slice(0, 4))], "number"],
  month: ["date", (text) => ["number", Number(text.slice(5, 7))], "number"],
  lower: ["text", (text) => ["text", letters(text).map(lowered).join("")], "text"],
};
const lowered = (letter) => (letter < "\u0530" && letters(letter.toLowerCase()).length === 1 ? letter.toLowerCase() : letter);

/**
 * A question as a function of a record: true, false, or null where it is open. A part of one is {asks: such a function}, or {of: a function of a record that
 * gives a [type, value], named: whether it reads a column}; a column is both; a literal has its `value`.
 */
export function parse(question) {
  const list = tokens(question);
  let depth = 0;
  const wrong = () => refuse("bad-parameters");
  const is = (kind, token) => list[0].kind === kind && (token === undefined || list[0].token === token);
  const accept = (kind, token) => is(kind, token) && list.shift();
  const expect = (kind, token) => accept(kind, token) || wrong();
  const asks = (part) => part.asks ?? wrong();
  const joined = (part, word, decides) => {
    const parts = [part()];
    while (is("word", word) && asks(parts[0]) && list.shift()) asks(parts[parts.push(part()) - 1]);
    if (parts.length === 1) return parts[0];
    return {
      asks(record) {
        const answers = parts.map((each) => each.asks(record));
        return answers.includes(decides) ? decides : answers.includes(null) ? null : !decides;
      },
    };
  };
  const either = () => joined(both, "or", true);
  const both = () => joined(negation, "and", false);
  const inverse = (asked) => ({ asks: (record) => ({ true: false, false: true })[asked(record)] ?? null });
  const negation = () => {
    if (++depth > 50) wrong();
    const made = accept("word", "not") ? inverse(asks(negation())) : comparison();
    depth--;
    return made;
  };
  const comparison = () => {
    const left = sum();
    if (!left.of) return left;
    if (is("sign") && Object.hasOwn(COMPARE, list[0].token)) {
      const { token } = list.shift();
      const right = sum();
      if (!right.of || !(left.named || right.named)) wrong();
      return { asks: left.named ? compared(left, token, right) : compared(right, MIRRORED[token] ?? token, left) };
    }
    if (!["not", "in", "is"].some((word) => is("word", word))) return left;
    if (!left.named) wrong();
    const isNull = accept("word", "is");
    const inverted = accept("word", "not");
    expect("word", isNull ? "null" : "in");
    const found = isNull ? { asks: (record) => left.of(record)[1] === null } : { asks: among(left, values()) };
    return inverted ? inverse(found.asks) : found;
  };
  const sum = () => chain(() => chain(factor, ["*", "/"]), ["+", "-"]);
  const number = (part) => (part.of && !part.isText ? part : wrong());
  const chain = (part, signs) => {
    const first = part();
    const rest = [];
    while (is("sign") && signs.includes(list[0].token)) {
      number(first);
      const compute = COMPUTE[list.shift().token];
      rest.push([compute, number(part())]);
    }
    if (!rest.length) return first;
    const of = (record) => {
      const total = rest.reduce((so, [compute, each]) => finite(compute(so, double(each.of(record)))), double(first.of(record)));
      return ["number", Number.isNaN(total) ? null : total];
    };
    return { of, named: first.named || rest.some(([, each]) => each.named) };
  };
  const isColumn = () => is("quoted") || (is("word") && !RESERVED.includes(list[0].token));
  const factor = () => {
    if (accept("sign", "(")) {
      const part = either();
      expect("sign", ")");
      return part;
    }
    if (!isColumn()) return value();
    const { kind, token } = list.shift();
    if (kind === "word" && Object.hasOwn(FUNCTIONS, token) && accept("sign", "(")) {
      const { token: name } = isColumn() ? list.shift() : wrong();
      expect("sign", ")");
      return { of: (record) => called(FUNCTIONS[token], column(record, name)), named: true };
    }
    return { of: (record) => column(record, token), named: true, asks: (record) => truth(column(record, token)) };
  };
  const values = () => {
    expect("sign", "[");
    const found = [value()];
    while (accept("sign", ",")) found.push(value());
    expect("sign", "]");
    return found;
  };
  const value = () => {
    const negative = accept("sign", "-");
    if (!is("number") && (negative || !(is("text") || is("word", "true") || is("word", "false")))) wrong();
    const { kind, token } = list.shift();
    if (kind === "text") return { of: () => ["text", token.slice(1, -1).replace(/\0+$/, ""), token.slice(1, -1)], isText: true };
    const [type, size] = kind === "number" ? literal(token) : ["whole", token === "true" ? 1n : 0n];
    return { of: () => [type, negative ? -size : size] };
  };
  const made = asks(either());
  return is("end") ? made : wrong();
}

const finite = (result) => (Number.isFinite(result) ? result : NaN);
const kindOf = (type) => (type === "text" || type === "date" ? type : "number");

function double([type, value]) {
  if (kindOf(type) !== "number") refuse("bad-query");
  return value === null ? NaN : Number(value);
}

const truth = ([type, value]) => (type === "truth" ? value : refuse("bad-query"));

function called([takes, made, gives], [type, value]) {
  if (type !== takes) refuse("bad-query");
  return value === null ? [gives, null] : made(value);
}

/** Whether a comparison holds: a function of a record. */
function compared(left, comparator, right) {
  return (record) => {
    const one = left.of(record);
    let other = right.of(record);
    if (one[0] === "date" && right.isText) other = ["date", dated(other[2]) ?? refuse("bad-query")];
    if (kindOf(one[0]) !== kindOf(other[0])) refuse("bad-query");
    if (one[0] === "text" && right.isText && !["==", "!="].includes(comparator) && DATE_LIKE.test(other[2])) refuse("bad-query");
    const sign = signOf(one, other);
    return sign === null ? null : COMPARE[comparator](sign);
  };
}

function among(left, values) {
  const each = values.map((value) => compared(left, "==", value));
  return (record) => {
    const answers = each.map((holds) => holds(record));
    return answers.includes(null) ? null : answers.includes(true);
  };
}

/** -1, 0 or 1 where the first value sorts before the second, equals it or sorts after it; null where one is missing. */
function signOf([type, value], [otherType, other]) {
  if (value === null || other === null) return null;
  if (kindOf(type) !== "number") {
    const [one, two] = [letters(value), letters(other)].map((text) => text.map((letter) => letter.codePointAt(0)));
    const at = one.findIndex((letter, place) => letter !== two[place]);
    return at < 0 ? Math.sign(one.length - two.length) : Math.sign(one[at] - (two[at] ?? -1));
  }
  const doubles = type === "number" || otherType === "number";
  const [one, two] = [value, other].map((each) => (doubles ? Number(each) : BigInt(each)));
  return one < two ? -1 : one > two ? 1 : 0;
}

// the queries

const isText = (value) => typeof value === "string";
const isTexts = (value) => Array.isArray(value) && value.every(isText);
const spare = (known) => (value) => isTexts(value) && value.join() === known.filter((name) => value.includes(name)).join();
const isNumber = (value) => typeof value === "number" || typeof value === "bigint" || value instanceof Double;
const asNumber = (value) => Number(value instanceof Double ? value.value : value);

/** The parameters by name, each checked, those in `defaults` where they are missing. */
export function taken(params, checks, defaults = {}) {
  const given = { ...defaults, ...Object.fromEntries(params) };
  const names = Object.keys(checks);
  const fits = Object.keys(given).length === names.length && names.every((name) => Object.hasOwn(given, name) && checks[name](given[name]));
  return fits ? given : refuse("bad-parameters");
}

function question(params) {
  const { text, spare: more } = taken(params, { text: isText, spare: spare(["missing"]) }, { spare: [] });
  const answer = parse(text);
  return {
    domain: { kind: "symbols", low: 0, high: 1 + more.length },
    value(record) {
      const found = answer(record);
      return found === null ? (more.length ? 2 : 0) : Number(found);
    },
  };
}

function category(params) {
  const { column: name, labels, spare: more } = taken(params, { column: isText, labels: isTexts, spare: spare(["other", "missing"]) }, { spare: [] });
  const size = labels.length + more.length;
  const fits = labels.length > 0 && new Set(labels).size === labels.length && labels.every((label) => letters(label).length <= 1000) && size >= 2 && size <= 4096;
  if (!fits) refuse("bad-parameters");
  const counted = labels.every((label, at) => label === String(at));
  const extra = (symbol) => (more.includes(symbol) ? labels.length + more.indexOf(symbol) : 0);
  return {
    domain: { kind: "symbols", low: 0, high: size - 1 },
    value(record) {
      const [type, value] = column(record, name);
      if (value === null) return extra("missing");
      const own = labelsOf(type, value, counted);
      const place = labels.findIndex((label) => own.includes(label));
      return place < 0 ? extra("other") : place;
    },
  };
}

function labelsOf(type, value, counted) {
  if (type === "truth") return [counted ? String(Number(value)) : value ? "True" : "False"];
  if (type !== "number") return [String(value)];
  if (!Number.isFinite(value)) return [value > 0 ? "inf" : "-inf"];
  const short = printed(value, value.toExponential(), 16);
  const labels = [printed(value, value.toExponential(16), 17), /[.e]/.test(short) ? short : `${short}.0`];
  if (Number.isInteger(value)) labels.push(String(BigInt(value)));
  return value === 1 ? [...labels, "True"] : value === 0 ? [...labels, "False"] : labels;
}

/** A double in the digits of `exponential`: with an exponent from `most` places on, else without zeros at its end. */
function printed(value, exponential, most) {
  const [digits, power] = exponential.split("e").map((part, at) => (at ? Number(part) : part));
  const short = (text) => text.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  if (power >= -4 && power < most) return short(value.toFixed(Math.max(0, digits.replace(/\D/g, "").length - 1 - power)));
  return `${short(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

function bounded(params) {
  const given = taken(params, { column: isText, low: isNumber, high: isNumber });
  const [low, high] = [asNumber(given.low), asNumber(given.high)];
  if (!(Math.abs(low) <= 1e150 && Math.abs(high) <= 1e150 && high - low >= 1e-150)) refuse("bad-parameters");
  return {
    domain: { kind: "levels", low: 0, high: STEPS },
    value(record) {
      const [type, value] = column(record, given.column);
      if (kindOf(type) !== "number") refuse("bad-query");
      const share = value === null ? 0.5 : Math.min(1, Math.max(0, (Number(value) - low) / (high - low)));
      return rounded(share * STEPS);
    },
  };
}

function below(params) {
  const isLevel = (value) => Number.isInteger(value) && value >= 0 && value <= STEPS;
  const { column: name, end, missing } = taken(params, { column: isText, end: isNumber, missing: isLevel });
  if (!(Math.abs(asNumber(end)) <= 1e150)) refuse("bad-parameters");
  return {
    domain: { kind: "levels", low: 0, high: STEPS },
    value(record) {
      const [type, value] = column(record, name);
      if (kindOf(type) !== "number") refuse("bad-query");
      return value === null ? missing : STEPS * Number(Number(value) < asNumber(end));
    },
  };
}

const isVector = (value) => ["number", "bigint"].includes(typeof value) && value >= 0 && BigInt(value) === BigInt.asUintN(64, BigInt(value));

/** The label of an example (x, i, b, y) as the sign of a symbol: `place` counts symbols from 0, or is -1 for none; `turns` inverts the sign. */
function signed(k, place, turns) {
  if (k > 4096) refuse("bad-parameters");
  return {
    domain: { kind: "signed symbols", low: -k, high: k },
    value(record) {
      const cells = ["x", "i", "b", "y"].map((name) => column(record, name));
      if (cells.some(([type]) => type !== "whole" && type !== "truth")) refuse("bad-query");
      const [x, i, b, y] = cells.map(([, value]) => BigInt(value ?? 0));
      return (y < 0n !== turns(x, b) ? -1 : 1) * (place(x, i, b) + 1);
    },
  };
}

function maskedIndex(params) {
  const { d } = taken(params, { d: isDimension });
  return signed(d, (x, i, b) => (b ? Number(i) : -1), () => false);
}

const isDimension = (value) => Number.isInteger(value) && value >= 1 && value <= 64;
const bit = (vector, place) => Number((BigInt(vector) >> BigInt(place)) & 1n);
const setBits = (vector) => Array.from({ length: 64 }, (_, place) => place).filter((place) => bit(vector, place));

function maskedList(params) {
  const { d, r, free, asked } = taken(params, { d: isDimension, r: isVector, free: isVector, asked: isVector }, { free: 0, asked: 0 });
  if ([r, free, asked].some((vector) => BigInt(vector) >> BigInt(d))) refuse("bad-parameters");
  const [open, places] = [setBits(free), setBits(asked)];
  const listed = 2 ** open.length;
  const atPlace = (i) => (places.includes(Number(i)) ? listed + places.indexOf(Number(i)) : -1);
  const place = (x, i, b) => (b ? atPlace(i) : open.reduce((sum, at, order) => sum + bit(x, at) * 2 ** order, 0));
  return signed(listed + places.length, place, (x, b) => !b && setBits(r).filter((at) => bit(x, at)).length % 2 === 1);
}

/** To the nearest whole number, half to even. */
function rounded(value) {
  const floor = Math.floor(value);
  return value - floor === 0.5 ? floor + (floor % 2) : Math.round(value);
}

const QUERIES = { question, category, bounded, below, "masked-index": maskedIndex, "masked-list": maskedList };

/** The query of this name. Throws Refused, also where it does not fit the columns: they are tried with every value missing, which no record changes. */
export function queryOf(name, params, record) {
  if (!Object.hasOwn(QUERIES, name)) refuse("unknown-query");
  const query = QUERIES[name](params);
  query.value(new Map([...record].map(([column, [type]]) => [column, [type, null]])));
  return query;
}
