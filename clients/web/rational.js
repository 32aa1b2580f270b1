/** Exact arithmetic: fractions of bigints, e^epsilon as a fraction just below it, and sizes of numbers as Python's have them. */

import { InputError } from "./bytes.js";

export const NANO = 1_000_000_000;
export const MAX_EPSILON = 24;

/** @typedef {{num: bigint, den: bigint}} Fraction With a positive denominator; not always in lowest terms. */

/** @param {bigint} num @param {bigint} [den] @returns {Fraction} */
export function fraction(num, den = 1n) {
  return { num, den };
}

/** @param {Fraction} a @param {Fraction} b */
export const plus = (a, b) => fraction(a.num * b.den + b.num * a.den, a.den * b.den);
/** @param {Fraction} a @param {Fraction} b */
export const minus = (a, b) => fraction(a.num * b.den - b.num * a.den, a.den * b.den);
/** @param {Fraction} a @param {Fraction} b */
export const times = (a, b) => fraction(a.num * b.num, a.den * b.den);

/** The quotient. The divisor is positive. @param {Fraction} a @param {Fraction} b */
export const over = (a, b) => fraction(a.num * b.den, a.den * b.num);

/** Negative, 0 or positive as a is below, equal to or above b. @param {Fraction} a @param {Fraction} b */
export function compare(a, b) {
  const difference = a.num * b.den - b.num * a.den;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Rounded up. @param {Fraction} value */
export function ceil({ num, den }) {
  return num >= 0n ? (num + den - 1n) / den : -(-num / den);
}

/** Rounded down. @param {Fraction} value */
export function floor({ num, den }) {
  return -ceil({ num: -num, den });
}

/** The fraction that a double is, exactly. @param {number} value finite @returns {Fraction} */
export function exactly(value) {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, Math.abs(value));
  const word = bits.getBigUint64(0);
  const exponent = Number(word >> 52n);
  const digits = (word & ((1n << 52n) - 1n)) | (exponent ? 1n << 52n : 0n);
  const shift = (exponent || 1) - 1075;
  const size = shift >= 0 ? fraction(digits << BigInt(shift)) : fraction(digits, 1n << BigInt(-shift));
  return value < 0 ? fraction(-size.num, size.den) : size;
}

/** The double next to a fraction above 0, ties to even: as Python's float(Fraction). @param {Fraction} value @returns {number} */
export function toDouble({ num, den }) {
  let shift = num.toString(2).length - den.toString(2).length - 54; // leaves 54 or 55 bits
  shift = Math.max(shift, -1074);
  const [top, bottom] = shift >= 0 ? [num, den << BigInt(shift)] : [num << BigInt(-shift), den];
  const digits = top / bottom;
  return Number((digits << 1n) | (top % bottom ? 1n : 0n)) * 2 ** (shift - 1); // Number rounds a bigint to even; the last bit is sticky
}

/**
 * epsilon (nats) as whole nano-nats, rounded down (towards privacy). Throws InputError unless 1e-9 <= epsilon <= 24.
 * @param {any} epsilon a bigint or a number
 */
export function nanoEpsilon(epsilon) {
  if (typeof epsilon !== "bigint" && typeof epsilon !== "number") throw new InputError(`epsilon is no number; give one in (0, ${MAX_EPSILON}]`);
  const nats = Number(epsilon);
  if (!(nats >= 1 / NANO && nats <= MAX_EPSILON)) throw new InputError(`epsilon is ${nats}; it must lie between 1e-9 and ${MAX_EPSILON} nats`);
  return Math.floor(nats * NANO + 1e-3); // 1e-12 nats: absorbs the error of products such as 0.7 * 1e9
}

const DIGITS = 60; // of e^epsilon, as in Python
const GUARD = 10n ** 110n;
const SIDE = fraction(10n ** 50n - 1n, 10n ** 50n);
/** @type {Map<number, Fraction>} */
const known = new Map();

/**
 * A fraction just below e^epsilon (relative gap 1e-50; none for 0): thresholds computed from it never exceed epsilon.
 * @param {number} nano
 * @returns {Fraction}
 */
export function expEpsilon(nano) {
  if (nano === 0) return fraction(1n);
  const before = known.get(nano);
  if (before) return before;
  const value = times(rounded(exponential(BigInt(nano))), SIDE);
  known.set(nano, value);
  return value;
}

/** e^(nano / 1e9) in units of 1 / GUARD, too small by fewer than a thousand of them: the series of the number. @param {bigint} nano */
function exponential(nano) {
  let [sum, term] = [GUARD, GUARD];
  for (let step = 1n; term > 0n; step += 1n) {
    term = (term * nano) / (BigInt(NANO) * step);
    sum += term;
  }
  return sum;
}

/**
 * A number of units of 1 / GUARD in 60 significant digits. No e^x of these x lies so near to the middle of two that the units missed matter.
 * @param {bigint} units
 */
function rounded(units) {
  const step = 10n ** BigInt(units.toString().length - DIGITS);
  return fraction(((units + step / 2n) / step) * step, GUARD);
}
