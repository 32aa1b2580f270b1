/** The client of a page: it answers the questions that the page shows and no others, and describes for the screen what it sent. */

import { Client, RefusedError, build } from "./client/index.js";
import { bits, coin, meaning } from "./methods.js";
import { move, threshold, written } from "./shown.js";

/** @typedef {import("./shown.js").Poll} Poll */
/** @typedef {import("./shown.js").Question} Question */
/** @typedef {import("./session.js").Sent} Sent */
/** @typedef {import("./client/plan.js").Placed} Placed */

/** What a phone allows, in nano-nats: for one poll, and for all polls of this address. @type {{perRun: number, life: number}} */
export const LIMITS = { perRun: 8e9, life: 32e9 };
const LOST = { text: "A question of an earlier version of this page", meaning: "this browser kept the bits, and not the question" };

export class Respondent extends Client {
  /** @param {Poll} poll @param {import("./client/store.js").Store} store */
  constructor(poll, store) {
    /** @type {{[column: string]: "text" | "number" | "whole"}} */
    const schema = poll.again?.bits ? { x: "whole", i: "whole", b: "whole", y: "whole" } : {};
    for (const { name, kind } of poll.questions) schema[name] = kind === "labels" ? "text" : "number";
    const perRun = Math.min(LIMITS.perRun, poll.cost); // no request costs more than the page says
    super({ run: poll.run, member: "", start: 0, store, policy: { ...LIMITS, perRun }, schema });
    this.poll = poll;
    /** @type {number[]} */
    this.answers = [];
    /** @type {Map<number, import("./client/client.js").Sent[]>} what was drawn in this tab, by round */
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
    if (this.poll.again?.bits) return this.give({ ...record });
    const cells = this.poll.questions.map(({ name, kind, labels }, place) => [name, kind === "labels" ? labels[answers[place]] : answers[place]]);
    this.give(Object.fromEntries(cells));
  }

  /** Answers what the page shows, built from it. It refuses anything else before the record is read. @param {Placed[]} asks @param {number} round */
  async built(asks, round) {
    const shown = await this.shown(asks, round), isFirst = shown === this.poll.questions;
    const isOne = (/** @type {Placed} */ { place, ask }, /** @type {number} */ at) => {
      const question = shown[at];
      return question && !ask.once && written(ask) === written(question) && (place === at || !isFirst);
    };
    if (asks.length !== shown.length || !asks.every(isOne)) throw new RefusedError("bad-query", "the request asks what the page does not show");
    const made = await super.built(asks.map(({ place, ask }, at) => ({ place, ask: { ...ask, ...shown[at] } })), round);
    return made.map((each, at) => ({ ...each, question: shown[at] }));
  }

  /** What a round may ask: the questions on the page, once; then the announced one, within its cost. @param {Placed[]} asks @param {number} round */
  async shown(asks, round) {
    const { questions, again } = this.poll;
    if (again?.bits) return asks.map(({ ask }) => move(again, round, ask));
    if (round === 1) return questions;
    const first = await this.store.get(this.run, 1), isAnswered = String(first?.asks?.map(written)) === String(questions.map(written));
    return again && isAnswered ? asks.map(({ ask }) => threshold(questions, again, ask.query_params.get("end"))) : [];
  }

  /**
   * Keeps the questions beside the bits: they are public, and a reload needs them.
   * @param {import("./client/wire.js").Request} request
   * @param {string} digest
   * @param {any[]} planned
   * @param {import("./client/record.js").Row} row
   */
  sample(request, digest, planned, row) {
    const made = super.sample(request, digest, planned, row);
    const asks = planned.map(({ ask, randomizer, question }) => ({ ...question, cell: this.cell(ask, randomizer) }));
    return { ...made, entry: { ...made.entry, asks } };
  }

  /** @param {import("./client/wire.js").Request} request */
  async answer(request) {
    const made = await super.answer(request);
    if (made.sent.length && !this.drawn.has(request.round)) this.drawn.set(request.round, made.sent);
    return made;
  }

  /** All that was sent, in any tab, by the questions that it answers. Answers and coins are of this tab alone. @returns {Promise<Sent[]>} */
  async told() {
    const fall = (/** @type {number} */ round, /** @type {number} */ at) => this.drawn.get(round)?.[at]?.drawn ?? null;
    const past = await this.past();
    return past.flatMap(({ round, asks, sent }) => sent.map((each, at) => this.describe(asks?.[at], { ...each, drawn: fall(round, at) })));
  }

  /** @param {Question & {cell: number} | undefined} question @param {import("./client/client.js").Sent} sent @returns {Sent} */
  describe(question, { ask, report, bits: bytes, drawn }) {
    if (!question) return { ...LOST, question: { kind: "labels", labels: [] }, answer: null, bits: bytes, bytes, coin: null };
    const { kind, text } = question, randomizer = /** @type {any} */ (build(question.randomizer, question.randomizer_params));
    const fell = drawn && coin(randomizer, drawn.value, drawn.word), encoded = kind === "record" && drawn ? randomizer.encode(drawn.value) : drawn?.value;
    const answer = drawn && (kind === "number" ? this.answers[ask] : kind === "yes-no" ? Number(encoded > 0) : encoded);
    return { text, question, answer, bits: bits(randomizer, report), bytes, meaning: meaning(randomizer, question, report, question.cell), coin: fell };
  }
}
