// Randomizers: thresholds in exact rational arithmetic, reports from uniform words, and the check of each channel before it is used.

import { Double } from "./messages.mjs";
import { Refused, taken } from "./questions.mjs";

const NANO = 1_000_000_000n;
const ceil = (over, under) => (over + under - 1n) / under;

/** The whole number nearest to a quotient, half to even. */
function nearest(over, under) {
  const [floor, rest] = [over / under, 2n * (over % under)];
  return floor + BigInt(rest > under || (rest === under && floor % 2n === 1n));
}

/** e^(nano / 1e9) to 60 significant digits, as [whole number, power of ten that divides it]. */
function exp60(nano) {
  const one = 10n ** 130n;
  let [sum, term] = [0n, one];
  for (let at = 1n; term > 0n; at++) {
    sum += term;
    term = (term * nano) / (NANO * at);
  }
  const digits = BigInt(sum.toString().length);
  return [nearest(sum, 10n ** (digits - 60n)), 190n - digits];
}

/** E, a rational just below e^epsilon: [over, under]. */
function growth(nano) {
  const [digits, power] = exp60(nano);
  return [digits * (10n ** 50n - 1n), 10n ** (50n + power)];
}

/** nano-nats of an epsilon. */
export function nanoOf(epsilon) {
  return epsilon >= 1e-9 && epsilon <= 24 ? BigInt(Math.floor(epsilon * 1e9 + 1e-3)) : refuse("bad-parameters");
}

function refuse(code) {
  throw new Refused(code);
}

function flipWeight(nano, total) {
  const [over, under] = growth(nano);
  return ceil(total * under, under + over);
}

const isWhole = (least, most) => (value) => Number.isInteger(value) && value >= least && value <= most;
const COMMON = {
  epsilon: (value) => (value instanceof Double ? Number.isFinite(value.value) : typeof value === "number"),
  word_bits: (value) => isWhole(1, 32)(value) || value === 64,
};

/** epsilon in nano-nats, the whole of the words, and the other parameters. */
function opened(params, checks = {}, defaults = {}) {
  const given = taken(params, { ...COMMON, ...checks }, defaults);
  const nano = nanoOf(given.epsilon instanceof Double ? given.epsilon.value : given.epsilon);
  return { ...given, nano, bits: given.word_bits, total: 1n << BigInt(given.word_bits) };
}

const symbols = (k) => ({ kind: "symbols", low: 0, high: k - 1 });

// Each has steps(value, row): the intervals of words, in order, as [length, report]. The report of a word is that of its interval.

function binaryRR(params) {
  const { nano, bits, total } = opened(params);
  const flip = flipWeight(nano, total);
  if (2n * flip >= total) refuse("bad-parameters");
  const steps = (value) => [[flip, 1 - value], [total - flip, value]];
  return { nano, bits, total, domain: symbols(2), reports: 2, rows: 1, weights: { flip }, steps };
}

function grr(params) {
  const { nano, bits, total, k } = opened(params, { k: isWhole(2, 4096) }, { k: 2 });
  const [over, under] = growth(nano);
  const other = ceil(total * under, over + BigInt(k - 1) * under);
  const truth = total - BigInt(k - 1) * other;
  if (truth <= other) refuse("bad-parameters");
  const steps = (value) => Array.from({ length: k }, (_, at) => [at < k - 1 ? other : truth, (value + 1 + at) % k]);
  return { nano, bits, total, domain: symbols(k), reports: k, rows: 1, weights: { other, truth }, steps };
}

function oneBitMean(params) {
  const { nano, bits, total, steps: lattice } = opened(params, { steps: isWhole(1, 1 << 20) }, { steps: 65536 });
  const slope = (total - 2n * flipWeight(nano, total)) / BigInt(lattice);
  const base = (total - slope * BigInt(lattice)) / 2n;
  if (slope < 1n) refuse("bad-parameters");
  const steps = (value) => {
    const ones = base + slope * BigInt(value);
    return [[ones, 1], [total - ones, 0]];
  };
  return { nano, bits, total, domain: { kind: "levels", low: 0, high: lattice }, reports: 2, rows: 1, weights: { base, slope }, steps };
}

function signedBlocks(params) {
  const { k, size, epsilon, word_bits } = opened(params, { k: isWhole(1, 4096), size: isWhole(1, 8191) }, { k: 1, size: 1 });
  if (!isBinary(size) || size >= 2 * k) refuse("bad-parameters");
  const blocks = Math.ceil(k / size);
  const inner = grr(new Map([["epsilon", epsilon], ["word_bits", word_bits], ["k", 2 * blocks + 1]]));
  const isOdd = (number) => number.toString(2).replaceAll("0", "").length % 2;
  const code = (value, row) => {
    const symbol = Math.abs(value) - 1;
    return value === 0 ? 2 * blocks : 2 * Math.floor(symbol / size) + (isOdd(row & symbol % size) ^ (value < 0));
  };
  const domain = { kind: "signed symbols", low: -k, high: k };
  return { ...inner, domain, rows: size, weights: { blocks, ...inner.weights }, steps: (value, row) => inner.steps(code(value, row)) };
}

function subsetSelection(params) {
  const { nano, bits, total, k } = opened(params, { k: isWhole(2, 1024) }, { k: 2 });
  const [over, under] = growth(nano);
  const [order, w] = bestBlocks(over, under, k);
  const [sets, own] = [BigInt(order), BigInt(w)];
  const other = ceil(total * under, own * over + (sets - own) * under);
  const held = (total - (sets - own) * other) / own;
  const rest = total - own * held - (sets - own) * other;
  if (held <= other + rest) refuse("bad-parameters");
  const codes = w === 1 ? [Array.from({ length: k }, (_, value) => value)] : fieldOrder(order) === order ? products(order) : cycles(order);
  const binary = isBinary(order);
  const steps = (value, row) =>
    Array.from({ length: order }, (_, rank) => {
      const code = codes[row][value];
      return [rank < w ? held : rank < order - 1 ? other : other + rest, binary ? code ^ rank : (code - rank + order) % order];
    });
  return { nano, bits, total, domain: symbols(k), reports: order, rows: codes.length, weights: { order, w, multipliers: codes.length, held, other }, steps };
}

const isBinary = (number) => (number & (number - 1)) === 0;

function fieldOrder(k) {
  const isPrime = (number) => Array.from({ length: Math.floor(Math.sqrt(number)) - 1 }, (_, at) => at + 2).every((part) => number % part);
  while (!isBinary(k) && !isPrime(k)) k++;
  return k;
}

/** The double nearest to a quotient of positive whole numbers, as a quotient: its 53 leading bits. */
function asDouble(over, under) {
  let power = BigInt(over.toString(2).length - under.toString(2).length - 53);
  let scaled = () => (power < 0n ? [over << -power, under] : [over, under << power]);
  if (scaled()[0] / scaled()[1] >= 1n << 53n) power++;
  const digits = nearest(...scaled());
  return power < 0n ? [digits, 1n << -power] : [digits << power, 1n];
}

/** The order K and the size w of the sets, of least variance. */
function bestBlocks(over, under, k) {
  const [g, unit] = asDouble(over, under);
  const order = fieldOrder(k);
  const middle = Number((BigInt(order) * unit) / (g + unit));
  const sizes = [[k, 1], ...(order > k ? [[k, 2]] : []), ...[middle, middle + 1].filter((w) => w >= 2 && w < order).map((w) => [order, w])];
  const variance = ([sets, w]) => {
    const [K, own, many] = [BigInt(sets), BigInt(w), BigInt(k)];
    const all = own * g + (K - own) * unit; // p = own g / all, r = (own - p) / (K - 1), over the common denominator
    const common = all * (K - 1n);
    const [p, r] = [own * g * (K - 1n), own * all - own * g];
    const seen = r * many + (p - r); // k l, over the common denominator
    return [seen * (common * many - seen), many * (p - r) * (p - r)]; // k l (1 - l) / (p - r)^2
  };
  return sizes.reduce((best, size) => {
    const [[a, b], [c, d]] = [variance(size), variance(best)];
    return a * d < c * b ? size : best;
  });
}

/** Row a: g^a times each element of the field. */
function products(order) {
  const binary = isBinary(order);
  const times = (last, by) => (binary ? (2 * last < order ? 2 * last : (2 * last) ^ by) : (last * by) % order);
  for (let by = binary ? order + 1 : 2; ; by += binary ? 2 : 1) {
    const powers = [1];
    for (let last = times(1, by); last !== 1; last = times(last, by)) powers.push(last);
    if (powers.length === order - 1) {
      const log = new Map(powers.map((element, at) => [element, at]));
      return powers.map((_, a) => Array.from({ length: order }, (_, element) => (element ? powers[(a + log.get(element)) % (order - 1)] : 0)));
    }
  }
}

function cycles(k) {
  return Array.from({ length: k - 1 }, (_, row) => {
    const places = Array(k).fill(0);
    for (let j = 0; j < k - 1; j++) places[(row + (j % 2 ? (j + 1) / 2 : k - 1 - j / 2)) % (k - 1)] = j + 1;
    return places;
  });
}

const RANDOMIZERS = { "binary-rr": binaryRR, grr, "one-bit-mean": oneBitMean, "signed-blocks": signedBlocks, "subset-selection": subsetSelection };

/** The randomizer of this name. Throws Refused. */
export function randomizerOf(name, params) {
  return Object.hasOwn(RANDOMIZERS, name) ? RANDOMIZERS[name](params) : refuse("unknown-randomizer");
}

/** Throws Refused unless, for each row, no report is more than e^epsilon times as likely for one value as for another. Of a lattice, the ends are enough. */
export function verify({ nano, total, domain, rows, reports, steps }) {
  const [over, under] = growth(nano);
  const values = domain.kind === "levels" ? [domain.low, domain.high] : Array.from({ length: domain.high - domain.low + 1 }, (_, at) => domain.low + at);
  for (let row = 0; row < rows; row++) {
    const least = Array(reports).fill(total);
    const most = Array(reports).fill(0n);
    for (const value of values) {
      const weights = Array(reports).fill(0n);
      for (const [length, report] of steps(value, row)) weights[report] += length;
      if (weights.reduce((sum, weight) => sum + weight) !== total) refuse("unverifiable");
      weights.forEach((weight, report) => {
        least[report] = weight < least[report] ? weight : least[report];
        most[report] = weight > most[report] ? weight : most[report];
      });
    }
    if (most.some((weight, report) => weight * under > over * least[report])) refuse("unverifiable");
  }
}

/** The report of a value, for a word of `bits` bits and a public coin. It looks at every interval, whatever the word. */
export function respond(randomizer, value, word, coin) {
  let [end, found] = [0n, 0];
  for (const [length, report] of randomizer.steps(value, Number(coin % BigInt(randomizer.rows))).reverse()) {
    end += length;
    if (word < randomizer.total - end + length) found = report;
  }
  return found;
}

export const width = ({ reports }) => (reports <= 1 << 8 ? 1 : 2);

const [M0, M1] = [0xd2e7470ee14c6c93n, 0xca5a826395121157n];
const [W0, W1] = [0x9e3779b97f4a7c15n, 0xbb67ae8584caa73bn];
const MASK = (1n << 64n) - 1n;

/** The public coin of a client. */
export function publicCoin(key, client) {
  let [k0, k1] = [key.readBigUInt64LE(0), key.readBigUInt64LE(8)];
  let x = [BigInt(client) / 4n + 1n, 0n, 0n, 0n];
  for (let round = 0; round < 10; round++) {
    const [first, second] = [M0 * x[0], M1 * x[2]];
    x = [(second >> 64n) ^ x[1] ^ k0, second & MASK, (first >> 64n) ^ x[3] ^ k1, first & MASK];
    [k0, k1] = [(k0 + W0) & MASK, (k1 + W1) & MASK];
  }
  return x[Number(BigInt(client) % 4n)];
}
