/** The client of a page: it answers the questions that the page shows and no others, and remembers the coin for the screen. */

import { Client, RefusedError, build, decode, systemWords } from "./client/index.js";
import { philoxWord } from "./client/philox.js";
import { bits, coin, meaning } from "./methods.js";

/** @typedef {import("./session.js").Question} Question */
/** @typedef {import("./session.js").Sent} Sent */

/** Parameters of JSON as those of a message: a whole number is a bigint, except epsilon. @param {Record<string, any>} params @returns {Map<string, any>} */
export function parameters(params) {
  return new Map(Object.entries(params).map(([name, value]) => [name, Number.isInteger(value) && name !== "epsilon" ? BigInt(value) : value]));
}

/** A name and its parameters as text, however their numbers are written. @param {string} name @param {Map<string, any>} params */
function written(name, params) {
  const plain = (/** @type {string} */ _, /** @type {any} */ value) => (typeof value === "bigint" ? Number(value) : value);
  return JSON.stringify([name, ...[...params].sort(([one], [other]) => (one < other ? -1 : 1))], plain);
}

export class Respondent extends Client {
  /** @param {string} run @param {Question[]} questions @param {import("./client/store.js").Store} store @param {import("./client/client.js").Policy} policy */
  constructor(run, questions, store, policy) {
    /** @type {Map<string, bigint>} the words that were drawn, by round and ask */
    const drawn = new Map();
    const words = {
      private: true,
      word(/** @type {32 | 64} */ width, /** @type {number} */ round, /** @type {number} */ ask) {
        const word = systemWords.word(width, round, ask);
        drawn.set(`${round} ${ask}`, word);
        return word;
      },
    };
    const schema = Object.fromEntries(questions.map(({ name, kind }) => [name, kind === "labels" ? /** @type {const} */ ("text") : /** @type {const} */ ("number")]));
    super({ run, member: "", start: 0, store, policy, schema, words });
    this.questions = questions;
    this.drawn = drawn;
    /** @type {number[] | null} */
    this.answers = null;
    /** @type {(Sent & {report: number})[]} the answers of this tab, for the screen */
    this.fresh = [];
  }

  /** Its place in the run. @param {string} member @param {number} start */
  take(member, start) {
    this.member = member;
    this.start = start;
  }

  /** @param {number[]} answers */
  say(answers) {
    this.answers = answers;
    this.give(this.record(answers));
  }

  /** @param {number[]} answers */
  record(answers) {
    return Object.fromEntries(this.questions.map(({ name, kind, labels }, place) => [name, kind === "labels" ? labels[answers[place]] : answers[place]]));
  }

  /** Refuses what is not on the page, before the record is read. @param {import("./client/wire.js").Request} request */
  async plan(request) {
    const planned = await super.plan(request);
    const shown = new Set(this.questions.map(each => written(each.query, parameters(each.query_params)) + written(each.randomizer, parameters(each.randomizer_params))));
    for (const { ask } of planned) {
      const asked = written(ask.query, ask.query_params) + written(ask.randomizer, ask.randomizer_params);
      if (!shown.has(asked)) throw new RefusedError("bad-query", "the request asks what the page does not show");
    }
    return planned;
  }

  /**
   * Draws as any client, and notes the coins for the screen.
   * @param {import("./client/wire.js").Request} request
   * @param {string} digest
   * @param {import("./client/client.js").Planned[]} planned
   * @param {import("./client/record.js").Row} row
   */
  sample(request, digest, planned, row) {
    const made = super.sample(request, digest, planned, row);
    this.fresh = planned.map(({ place, ask, query, randomizer }, at) => {
      const { report, bits: bytes } = made.sent[at], cell = randomizer.usesCoins ? randomizer.cellOf(philoxWord(ask.coins, this.start)) : 0;
      const word = (this.drawn.get(`${request.round} ${place}`) ?? 0n) >> BigInt(randomizer.width - randomizer.wordBits);
      const told = meaning(randomizer, this.questions[place], report, cell);
      return { report, answer: this.answers?.[place] ?? null, bytes, bits: bits(randomizer, report), meaning: told, coin: coin(randomizer, query.value(row), word) };
    });
    return made;
  }

  /** What was just sent, if this tab drew it: another tab may have been faster. @param {import("./client/client.js").Sent[]} sent @returns {Sent[] | null} */
  shown(sent) {
    const isMine = sent.length === this.fresh.length && sent.every(({ report }, place) => report === this.fresh[place].report);
    return isMine ? this.fresh : null;
  }

  /** What was sent in an earlier visit. @param {import("./client/store.js").Entry} entry @param {Question[]} questions @returns {Sent[]} */
  static kept(entry, questions) {
    return entry.replies.map((reply, place) => {
      const { reports } = /** @type {import("./client/wire.js").Reply} */ (decode(reply)), question = questions[place];
      const randomizer = /** @type {any} */ (build(question.randomizer, parameters(question.randomizer_params)));
      const report = reports.reduceRight((sum, byte) => 256 * sum + byte, 0);
      const bytes = Array.from(reports, byte => byte.toString(2).padStart(8, "0")).join(" ");
      return { answer: null, bytes, bits: bits(randomizer, report), meaning: randomizer.usesCoins ? "a set of answers" : meaning(randomizer, question, report, 0), coin: null };
    });
  }
}
