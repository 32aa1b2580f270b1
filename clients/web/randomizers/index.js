/** Every randomizer of this client by name, and the check of its loss before it is used. */

import { InputError, RefusedError, hex } from "../bytes.js";
import { pack } from "../pack.js";
import { compare, expEpsilon, fraction } from "../rational.js";
import { BinaryRR } from "./binary-rr.js";
import { GRR } from "./grr.js";
import { OneBitMean } from "./one-bit-mean.js";
import { SignedBlocks } from "./signed-blocks.js";
import { SubsetSelection } from "./subset-selection.js";

/** @typedef {import("./finite.js").Finite} Randomizer */
/** @typedef {import("./finite.js").Parameters} Parameters */

/** @type {{[name: string]: new (params: Parameters) => Randomizer}} */
const KINDS = { "binary-rr": BinaryRR, grr: GRR, "one-bit-mean": OneBitMean, "signed-blocks": SignedBlocks, "subset-selection": SubsetSelection };
export const RANDOMIZERS = Object.keys(KINDS);
const MAX_ENTRIES = 1 << 22; // of a channel: some seconds of a slow phone

const KEPT = 16; // randomizers that are not built again
/** @type {Map<string, Randomizer>} */
const recent = new Map();

/**
 * The randomizer, not verified; nobody can change it. Throws RefusedError("unknown-randomizer" or "bad-parameters").
 * @param {string} name
 * @param {Parameters} params
 * @returns {Randomizer}
 */
export function build(name, params) {
  if (!Object.hasOwn(KINDS, name)) throw new RefusedError("unknown-randomizer", `there is no randomizer named ${name}`);
  const key = `${name} ${hex(pack(params))}`;
  const randomizer = recent.get(key) ?? frozen(name, params);
  recent.delete(key);
  recent.set(key, randomizer);
  if (recent.size > KEPT) recent.delete(recent.keys().next().value ?? "");
  return randomizer;
}

/** @param {string} name @param {Parameters} params @returns {Randomizer} */
function frozen(name, params) {
  try {
    const randomizer = new KINDS[name](params);
    Object.freeze(randomizer.channel);
    return Object.freeze(randomizer);
  } catch (error) {
    if (error instanceof InputError) throw new RefusedError("bad-parameters", `${name}: ${error.message}`);
    throw error;
  }
}

/**
 * The largest ratio of two weights of one report, by enumeration in whole numbers. Throws RefusedError("unverifiable" or "too-much").
 * @param {import("./finite.js").Channel} channel
 */
export function worstRatio(channel) {
  const { domain, alphabet, total } = channel;
  const size = domain.high - domain.low + 1;
  if (size * alphabet > MAX_ENTRIES) throw new RefusedError("too-much", `a channel of ${size * alphabet} entries`);
  const [most, least] = [new Array(alphabet).fill(0n), new Array(alphabet).fill(total)];
  for (let value = domain.low; value <= domain.high; value += 1) {
    let sum = 0n;
    for (let report = 0; report < alphabet; report += 1) {
      const weight = channel.weight(report, value);
      if (weight > most[report]) most[report] = weight;
      if (weight < least[report]) least[report] = weight;
      sum += weight;
    }
    if (sum !== total) throw new RefusedError("unverifiable", `the weights of value ${value} do not sum to the whole`);
  }
  let worst = fraction(1n);
  for (let report = 0; report < alphabet; report += 1) {
    if (least[report] <= 0n) throw new RefusedError("unverifiable", "a report that some value never sends reveals that value");
    const ratio = fraction(most[report], least[report]);
    if (compare(ratio, worst) > 0) worst = ratio;
  }
  return worst;
}

/** @type {WeakSet<Randomizer>} */
const verified = new WeakSet();

/** Throws RefusedError unless the enumerated loss is at most the charged one. @param {Randomizer} randomizer */
export function verify(randomizer) {
  if (verified.has(randomizer)) return;
  if (compare(worstRatio(randomizer.channel), expEpsilon(randomizer.nano)) > 0) {
    throw new RefusedError("unverifiable", `${randomizer.name} reveals more than epsilon ${randomizer.epsilon}`);
  }
  verified.add(randomizer);
}
