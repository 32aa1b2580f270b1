/** Generalised randomized response of a signed symbol or nothing, in blocks of a Hadamard matrix (Chen, Kairouz, Ozgur 2020). */

import { InputError } from "../bytes.js";
import { Coded, read, wholeNumber } from "./finite.js";
import { GRR } from "./grr.js";

/**
 * Names the block of the client's symbol, and its sign times H[row, place in the block] for a public row; or nothing. Blocks of one symbol need no coin.
 *
 * Privacy: T / s <= e^eps for every row, as for `grr`. Cost: log2 (2 G + 1) bits for G blocks.
 * @extends {Coded<GRR>}
 */
export class SignedBlocks extends Coded {
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

  /** The true report: 2 g for + and 2 g + 1 for - in block g, the last one for nothing. @param {number} value @param {number} [cell] */
  encode(value, cell = 0) {
    if (value === 0) return this.alphabet - 1;
    const symbol = Math.abs(value) - 1;
    let minus = Number(value < 0);
    for (let common = cell & symbol & (this.cells - 1); common; common &= common - 1) minus ^= 1;
    return 2 * Math.floor(symbol / this.cells) + minus;
  }
}
