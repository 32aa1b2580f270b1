/** The client of a page: it answers the questions that the page shows and no others, and remembers for the screen what it sent. */

import { Client, RefusedError, build, decode } from "./client/index.js";
import { philoxWord } from "./client/philox.js";
import { asked, reports } from "./game.js";
import { bits, coin, meaning } from "./methods.js";

/** @typedef {import("./session.js").Poll} Poll */
/** @typedef {import("./session.js").Question} Question */
/** @typedef {import("./session.js").Sent} Sent */
/** @typedef {import("./client/wire.js").Ask} Ask */
/** @typedef {import("./methods.js").Randomizer} Randomizer */

const YES = /** @type {const} */ ({ kind: "yes-no", labels: ["no", "yes"] });

/** Parameters of JSON as those of a message: a whole number is a bigint, except epsilon. @param {Record<string, any>} params @returns {Map<string, any>} */
export function parameters(params) {
  return new Map(Object.entries(params).map(([name, value]) => [name, Number.isInteger(value) && name !== "epsilon" ? BigInt(value) : value]));
}

/** A name and its parameters as text, however their numbers are written. @param {string} name @param {Map<string, any>} params */
function written(name, params) {
  const plain = (/** @type {string} */ _, /** @type {any} */ value) => (typeof value === "bigint" ? Number(value) : value);
  return JSON.stringify([name, ...[...params].sort(([one], [other]) => (one < other ? -1 : 1))], plain);
}

/** What a question of the page asks, as text. @param {Question} question */
function described({ query, query_params: params, randomizer, randomizer_params: law }) {
  return written(query, parameters(params)) + written(randomizer, parameters(law));
}

export class Respondent extends Client {
  /** @param {Poll} poll @param {import("./client/store.js").Store} store @param {import("./client/client.js").Policy} policy */
  constructor(poll, store, policy) {
    /** @type {{[column: string]: "text" | "number" | "whole"}} */
    const schema = poll.again?.bits ? { x: "whole", i: "whole", b: "whole", y: "whole" } : {};
    for (const { name, kind } of poll.questions) schema[name] = kind === "labels" ? "text" : "number";
    super({ run: poll.run, member: "", start: 0, store, policy, schema });
    this.poll = poll;
    this.shown = new Set(poll.questions.map(described));
    /** @type {number[] | null} */
    this.answers = null;
    /** @type {Map<string, {ask: Ask, randomizer: Randomizer, cell: number}>} what was drawn in this tab, by round and number */
    this.drawn = new Map();
  }

  /** Its place in the run. @param {string} member @param {number} start */
  take(member, start) {
    this.member = member;
    this.start = start;
  }

  /** Each label by its place, each number by itself; or the record of a game. @param {number[]} answers @param {import("./game.js").Example} [record] */
  say(answers, record) {
    this.answers = answers;
    if (record) return this.give({ ...record });
    const cells = this.poll.questions.map(({ name, kind, labels }, place) => [name, kind === "labels" ? labels[answers[place]] : answers[place]]);
    this.give(Object.fromEntries(cells));
  }

  /** Refuses what is not on the page, before the record is read. @param {Ask} ask @param {number} round */
  built(ask, round) {
    const made = super.built(ask, round);
    if (made.randomizer.nano > this.policy.perRun) throw new RefusedError("budget", "one answer costs more than the whole poll may");
    const isShown = this.shown.has(written(ask.query, ask.query_params) + written(ask.randomizer, ask.randomizer_params));
    const isFirst = round === 1 && this.poll.questions.length > 0;
    if (isFirst ? !isShown : round > this.poll.rounds || !this.announced(ask)) throw new RefusedError("bad-query", "the request asks what the page does not show");
    return made;
  }

  /** The question in words of a round that the poll has announced: a threshold of the number, or a round of the game; empty for others. @param {Ask} ask */
  announced(ask) {
    const { query, query_params: params, randomizer, randomizer_params: law } = ask, { again, questions } = this.poll;
    if (again?.bits) return asked(again, ask);
    const found = questions.find(({ name }) => name === again?.question);
    const isAnnounced = found && query === "below" && params.get("column") === found.name && randomizer === "one-bit-mean";
    return isAnnounced && Number(law.get("epsilon")) === again?.epsilon ? `${found.text} Is your number below ${params.get("end")}?` : "";
  }

  /** @param {number} round @param {number} place @param {Ask} ask @param {number} value @param {import("./client/randomizers/finite.js").Finite} randomizer */
  draw(round, place, ask, value, randomizer) {
    const cell = randomizer.usesCoins ? randomizer.cellOf(philoxWord(ask.coins, this.start)) : 0;
    this.drawn.set(`${round} ${place}`, { ask, randomizer, cell });
    return super.draw(round, place, ask, value, randomizer);
  }

  /** What was just sent in a round, with the coins. @param {number} round @param {import("./client/client.js").Sent[]} sent @returns {Sent[]} */
  fresh(round, sent) {
    return sent.flatMap(({ ask: place, report, bits: bytes, drawn }) => {
      const from = this.drawn.get(`${round} ${place}`);
      if (!from) return [];
      const { text, question, answer } = this.about(round, place, from, drawn?.value ?? 0);
      const told = meaning(from.randomizer, question, report, from.cell), fell = drawn && coin(from.randomizer, drawn.value, drawn.word);
      return { text, question, answer: drawn && answer, bytes, bits: bits(from.randomizer, report), meaning: told, coin: fell };
    });
  }

  /** What was asked, and the true answer. @param {number} round @param {number} place @param {{ask: Ask, randomizer: Randomizer}} from @param {number} value */
  about(round, place, { ask, randomizer }, value) {
    const { questions, again } = this.poll;
    if (again?.bits) return { text: asked(again, ask), question: { kind: "record", labels: reports(ask) }, answer: Number(randomizer.encode(value)) };
    if (round > 1) return { text: this.announced(ask), question: YES, answer: Number(value > 0) };
    return { text: questions[place].text, question: questions[place], answer: this.answers && this.answers[place] };
  }

  /** What was sent in an earlier visit, or by another tab. @param {import("./client/store.js").Entry} entry @param {Question[]} questions @returns {Sent[]} */
  static kept(entry, questions) {
    return entry.replies.map((reply, place) => {
      const { reports } = /** @type {import("./client/wire.js").Reply} */ (decode(reply)), first = entry.round === 1, question = first ? questions[place] : YES;
      const bytes = Array.from(reports, byte => byte.toString(2).padStart(8, "0")).join(" ");
      if (!questions.length) return { text: "The game", question: YES, answer: null, bytes, bits: bytes, meaning: "a report of the game", coin: null };
      const [name, params] = first ? [questions[place].randomizer, questions[place].randomizer_params] : ["one-bit-mean", { epsilon: 1 }];
      const randomizer = build(name, parameters(params)), report = reports.reduceRight((sum, byte) => 256 * sum + byte, 0);
      const told = randomizer.usesCoins ? "a set of answers" : meaning(randomizer, question, report, 0);
      const text = first ? questions[place].text : "The second question";
      return { text, question, answer: null, bytes, bits: bits(randomizer, report), meaning: told, coin: null };
    });
  }
}
