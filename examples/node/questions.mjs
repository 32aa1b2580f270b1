// Queries: the value of a record, or a refusal. A record has a [type, value] for each column: "number", "whole" (a BigInt), "truth", "text"; null is missing.

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

/** A record as a client keeps it: texts are cut, end before their last zeros, and are missing if they are empty. */
export function settled(record) {
  const cut = (text) => letters(text).slice(0, LONGEST).join("").replace(/\0+$/, "") || null;
  return new Map(Object.entries(record).map(([name, [type, value]]) => [name, [type, type === "text" && value !== null ? cut(value) : value]]));
}

function column(record, name) {
  return record.get(name) ?? refuse("bad-query");
}

// the grammar

const SPACE = "[\\u0009-\\u000d\\u001c-\\u0020\\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]*";
const LETTER = "_\\p{L}\\p{Nl}\\p{No}";
const TOKEN = new RegExp(
  `${SPACE}(?:(?<number>-?(?:\\p{Nd}+\\.?\\p{Nd}*|\\.\\p{Nd}+)(?:[eE][+-]?\\p{Nd}+)?)|(?<text>"[^"]*"|'[^']*')|\`(?<quoted>[^\`]+)\`` +
    `|(?<word>[${LETTER}][${LETTER}\\p{Nd}]*)|(?<sign><=|>=|==|!=|<|>|\\(|\\))|(?<end>$))`,
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
  const whole = /^-?[0-9]+$/.test(ascii) && Math.abs(Number(ascii)) < 2 ** 63;
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

/** A question as a function of a record: true, false, or null where it is open. */
export function parse(question) {
  const list = tokens(question);
  let depth = 0;
  const is = (kind, token) => list[0].kind === kind && (token === undefined || list[0].token === token);
  const accept = (kind, token) => is(kind, token) && list.shift();
  const isColumn = () => is("quoted") || (is("word") && !["and", "or", "not"].includes(list[0].token));
  const joined = (part, word, decides) => {
    const parts = [part()];
    while (accept("word", word)) parts.push(part());
    return (record) => {
      const answers = parts.map((each) => each(record));
      return answers.includes(decides) ? decides : answers.includes(null) ? null : !decides;
    };
  };
  const either = () => joined(both, "or", true);
  const both = () => joined(negation, "and", false);
  const negation = () => {
    if (++depth > 50) refuse("bad-parameters");
    const made = inner();
    depth--;
    return made;
  };
  const inner = () => {
    if (accept("word", "not")) {
      const part = negation();
      return (record) => {
        const answer = part(record);
        return answer === null ? null : !answer;
      };
    }
    if (accept("sign", "(")) {
      const part = either();
      return accept("sign", ")") ? part : refuse("bad-parameters");
    }
    return comparison();
  };
  const comparison = () => {
    if (!isColumn()) refuse("bad-parameters");
    const left = list.shift().token;
    const holds = is("sign") && Object.hasOwn(COMPARE, list[0].token) ? COMPARE[list.shift().token] : refuse("bad-parameters");
    const right = operand();
    return (record) => {
      const sign = signOf(column(record, left), right(record));
      return sign === null ? null : holds(sign);
    };
  };
  const operand = () => {
    if (isColumn()) {
      const { token } = list.shift();
      return (record) => column(record, token);
    }
    if (!is("number") && !is("text")) refuse("bad-parameters");
    const { kind, token } = list.shift();
    const value = kind === "number" ? literal(token) : ["text", token.slice(1, -1).replace(/\0+$/, "")];
    return () => value;
  };
  const made = either();
  return is("end") ? made : refuse("bad-parameters");
}

/** -1, 0 or 1 where the first value sorts before the second, equals it or sorts after it; null where one is missing. */
function signOf([type, value], [otherType, other]) {
  if ((type === "text") !== (otherType === "text")) refuse("bad-query");
  if (value === null || other === null) return null;
  if (type === "text") {
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
      const place = labels.indexOf(labelOf(type, value, counted));
      return place < 0 ? extra("other") : place;
    },
  };
}

function labelOf(type, value, counted) {
  if (type === "truth") return counted ? String(Number(value)) : value ? "True" : "False";
  if (type !== "number") return String(value);
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  return Number.isInteger(value) ? String(BigInt(value)) : printed(value);
}

/** A double as C prints it by %.17g. */
function printed(value) {
  const [digits, power] = value.toExponential(16).split("e").map((part, at) => (at ? Number(part) : part));
  const short = (text) => text.replace(/\.?0+$/, "");
  if (power >= -4 && power < 17) return short(value.toFixed(Math.max(0, 16 - power)));
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
      if (type === "text") refuse("bad-query");
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
      if (type === "text") refuse("bad-query");
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
