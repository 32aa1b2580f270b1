/** Reports of many respondents, and all reports of narrow words: prints them as JSON for the cases on standard input. */

import { readFileSync } from "node:fs";
import { RefusedError } from "../../clients/web/bytes.js";
import { philoxWord } from "../../clients/web/philox.js";
import { BinaryRR } from "../../clients/web/randomizers/binary-rr.js";
import { build, verify } from "../../clients/web/randomizers/index.js";
import { systemWords } from "../../clients/web/words.js";

/** Words of developers in a hurry, each wrong in its way. */
const SOURCES = {
  right: (width) => systemWords.word(width),
  constant: (width) => 1n << BigInt(width - 1),
  modulo: (width) => (BigInt(crypto.getRandomValues(new Uint8Array(1))[0] % 100) << BigInt(width)) / 100n, // "a percentage"
};

/** Its threshold is computed in floats, and rounded against privacy. */
class FloatRR extends BinaryRR {
  prepare() {
    this.other = BigInt(Math.floor(2 ** this.wordBits / (1 + Math.exp(this.epsilon))));
  }
}

const randomizerOf = ({ name, params }) => build(name, new Map(Object.entries(params).map(([key, value]) => [key, key === "epsilon" ? value : BigInt(value)])));

/** One report of each respondent, whose values take turns. */
function drawn(each) {
  const randomizer = randomizerOf(each);
  verify(randomizer);
  const reports = [];
  for (let client = 0; client < each.respondents; client += 1) {
    const cell = randomizer.usesCoins ? randomizer.cellOf(philoxWord(new Uint8Array(16).fill(7), client)) : 0;
    const word = randomizer.leading(SOURCES[each.source](randomizer.width));
    reports.push(randomizer.sample(each.values[client % each.values.length], word, cell));
  }
  return reports;
}

/** Whether the reports of all words are as many as the weights say, for every value and coin. */
function enumerated(each) {
  const randomizer = randomizerOf(each);
  for (let cell = 0; cell < randomizer.cells; cell += 1) {
    for (let value = randomizer.domain.low; value <= randomizer.domain.high; value += 1) {
      const counts = new Array(randomizer.alphabet).fill(0n);
      for (let word = 0n; word < randomizer.total; word += 1n) counts[randomizer.sample(value, word, cell)] += 1n;
      if (counts.join() !== randomizer.law(value, cell).join()) return `${each.name} ${value} ${cell}: ${counts} instead of ${randomizer.law(value, cell)}`;
    }
  }
  return "";
}

/** The code by which a randomizer with a threshold in floats is refused before its use. */
function floats({ params }) {
  try {
    verify(new FloatRR(new Map([["epsilon", params.epsilon]])));
  } catch (error) {
    if (error instanceof RefusedError) return error.code;
    throw error;
  }
  return "";
}

const DOES = { drawn, enumerated, floats };
console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map((each) => DOES[each.do](each))));
