/** A value as the labels that a category may list it under, digit by digit as in Python. */

import { exactly } from "./rational.js";

const DIGITS = 17;

/**
 * The labels of a value that is not missing. `numbered`: the labels are 0, 1, 2, ..., and a truth value counts as a number.
 * @param {NonNullable<import("./record.js").Cell>} cell
 * @param {boolean} numbered
 */
export function labelsOf(cell, numbered) {
  if (typeof cell === "boolean") return [numbered ? String(Number(cell)) : cell ? "True" : "False"];
  if (typeof cell === "number") return labelsOfNumber(cell);
  return [String(cell)];
}

/** All digits of a whole number, 17 digits as C prints "%.17g", the fewest as Python prints them, and True for 1, False for 0. @param {number} value */
function labelsOfNumber(value) {
  if (!Number.isFinite(value)) return [value > 0 ? "inf" : value < 0 ? "-inf" : "nan"];
  if (value === 0) return ["0", "0.0", "False"];
  const [digits, power] = Math.abs(value).toExponential().split("e");
  const short = printed(value < 0, digits.replace(".", ""), Number(power), DIGITS - 1);
  const labels = [printed(value < 0, ...significant(Math.abs(value)), DIGITS), /[.e]/.test(short) ? short : `${short}.0`];
  return [...labels, ...(Number.isInteger(value) ? [BigInt(value).toString()] : []), ...(value === 1 ? ["True"] : [])];
}

/**
 * Digits with the power of ten of the first, with an exponent from `most` places on.
 * @param {boolean} negative
 * @param {string} digits
 * @param {number} exponent
 * @param {number} most
 */
function printed(negative, digits, exponent, most) {
  const sign = negative ? "-" : "";
  const [first, rest] = [digits[0], digits.slice(1)];
  if (exponent < -4 || exponent >= most) {
    const power = `${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
    return `${sign}${first}${rest && `.${rest}`}e${power}`;
  }
  if (exponent < 0) return `${sign}0.${"0".repeat(-exponent - 1)}${digits}`;
  const padded = digits.padEnd(exponent + 1, "0");
  const fraction = padded.slice(exponent + 1);
  return `${sign}${padded.slice(0, exponent + 1)}${fraction && `.${fraction}`}`;
}

/**
 * Seventeen digits of a number, ties to even, without zeros at the end; and the power of ten of the first.
 * @param {number} value
 * @returns {[string, number]}
 */
function significant(value) {
  const { num, den } = exactly(value);
  let exponent = Math.floor(Math.log10(value));
  for (;;) {
    const shift = DIGITS - 1 - exponent;
    const [top, bottom] = shift >= 0 ? [num * 10n ** BigInt(shift), den] : [num, den * 10n ** BigInt(-shift)];
    const [digits, rest] = [top / bottom, 2n * (top % bottom)];
    const rounded = rest > bottom || (rest === bottom && digits & 1n) ? digits + 1n : digits;
    const length = rounded.toString().length;
    if (digits.toString().length <= DIGITS && length === DIGITS) return [rounded.toString().replace(/0+$/, ""), exponent];
    exponent += length > DIGITS || digits.toString().length > DIGITS ? 1 : -1;
  }
}
