/** Generalised randomized response of a signed symbol or nothing, in blocks of a Hadamard matrix (Chen, Kairouz, Ozgur 2020). */

import { InputError } from "../bytes.js";
import { Finite, read, wholeNumber } from "./finite.js";
import { GRR } from "./grr.js";

/**
 * Names the block of the client's symbol, and its sign times H[row, place in the block] for a public row; or nothing. Blocks of one symbol need no coin.
 *
 * Privacy: T / s <= e^eps for every row, as for `grr`. Cost: log2 (2 G + 1) bits for G blocks.
 */
export class SignedBlocks extends Finite {
  /** @param {import("./finite.js").Parameters} params */
  constructor(params) {
    const of = read(params, ["epsilon", "word_bits", "k", "size"]);
    super("signed-blocks", of("epsilon"), of("word_bits"));
    this.k = wholeNumber("k", of("k"), 1, 1, 4096);
    this.cells = wholeNumber("size", of("size"), 1, 1, 2 * this.k - 1);
    if (this.cells & (this.cells - 1)) throw new InputError(`size is ${this.cells}; give a power of two`);
    this.alphabet = 2 * Math.ceil(this.k / this.cells) + 1;
    this.domain = { kind: "signed symbols", low: -this.k, high: this.k };
    this.inner = new GRR(new Map([["epsilon", of("epsilon")], ["word_bits", BigInt(this.asked)], ["k", BigInt(this.alphabet)]]));
    this.wordBits = this.inner.wordBits;
  }

  get channel() {
    return this.inner;
  }

  /** The true report: 2 g for + and 2 g + 1 for - in block g, the last one for nothing. @param {number} value @param {number} [cell] */
  encode(value, cell = 0) {
    if (value === 0) return this.alphabet - 1;
    const symbol = Math.abs(value) - 1;
    let minus = Number(value < 0);
    for (let common = cell & symbol & (this.cells - 1); common; common &= common - 1) minus ^= 1;
    return 2 * Math.floor(symbol / this.cells) + minus;
  }

  /** Below it another report is sent. */
  edge() {
    return this.inner.edge();
  }

  /** @param {number} value @param {bigint} word @param {number} cell */
  sample(value, word, cell = 0) {
    return this.inner.sample(this.encode(value, cell), word);
  }

  /** @param {number} report @param {number} value @param {number} cell */
  weight(report, value, cell = 0) {
    return this.inner.weight(report, this.encode(value, cell));
  }
}
