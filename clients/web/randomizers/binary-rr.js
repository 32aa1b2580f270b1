/** Binary randomized response (Warner 1965). */

import { read } from "./finite.js";
import { GRR } from "./grr.js";

/**
 * Reports the true bit with probability e^eps / (e^eps + 1), rounded towards privacy: randomized response of two symbols.
 *
 * Privacy: Pr[w | u] / Pr[w | u'] = (2^m - s) / s <= e^eps for the weight s of the opposite. Cost: 1 bit.
 */
export class BinaryRR extends GRR {
  /** @param {import("./finite.js").Parameters} params */
  constructor(params) {
    read(params, ["epsilon", "word_bits"]);
    super(new Map([...params, ["k", 2n]]), "binary-rr");
  }
}
