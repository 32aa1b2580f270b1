/** A respondent's part in one poll: questions, policy, budget, key, and the member on the bus. It draws nothing. */

import { BrowserStore, Member, Party, RefusedError, build, newKey, publicKey, hex, unhex, verify } from "./client/index.js";
import { Respondent, parameters } from "./respondent.js";
import { chance } from "./methods.js";

/**
 * @typedef {object} Question
 * @property {string} name of its column
 * @property {string} text
 * @property {"yes-no" | "labels" | "number"} kind
 * @property {string[]} labels of the answers, by their value where it is yes or no
 * @property {number} low of a number
 * @property {number} high
 * @property {number} nano what it costs, in nano-nats, computed here
 * @property {import("./methods.js").Chance} chance computed here
 * @property {string} query
 * @property {Record<string, any>} query_params
 * @property {string} randomizer
 * @property {Record<string, any>} randomizer_params
 */
/**
 * @typedef {object} Sent what left the phone for one question; answer and coin are null after a reload
 * @property {string} text of the question
 * @property {{kind: string, labels: readonly string[]}} question
 * @property {number | null} answer the number, or the place of the label
 * @property {string} bits
 * @property {string} bytes as bits, as they were sent
 * @property {string} meaning of the bits, in words
 * @property {import("./methods.js").Coin | null} coin
 */
/**
 * @typedef {object} Poll as the server describes it
 * @property {string} run
 * @property {string} server its public key
 * @property {string} title
 * @property {boolean} open
 * @property {Question[]} questions
 * @property {number} rounds at the most
 * @property {{epsilon: number, question?: string, bits?: number, rule?: string} | null} again the number that may be asked about once more; or the game
 */
/** @typedef {"idle" | "elsewhere" | "joining" | "waiting" | "sent" | "confirmed" | "offline" | "closed" | "late" | "full"} State */

/** @typedef {{member: string, group: string, start: number, record?: import("./game.js").Example}} Place */

/** What a phone allows, in nano-nats: for one poll, and for all polls of this address. @type {{perRun: number, life: number}} */
export const LIMITS = { perRun: 8e9, life: 32e9 };
const ROUND = 1;
const [SOON, SLOWEST] = [500, 5000]; // milliseconds between two attempts to join

export class Session extends EventTarget {
  /** @param {Poll} poll @param {BrowserStore} store @param {Uint8Array} key */
  constructor(poll, store, key) {
    super();
    this.poll = poll;
    this.store = store;
    this.key = key;
    this.cost = poll.questions.reduce((sum, question) => sum + question.nano, Math.round(1e9 * (poll.again?.epsilon ?? 0)));
    /** @type {State} */
    this.state = poll.open ? "idle" : "late";
    /** @type {string[]} codes of the requests that it did not answer */
    this.refused = [];
    /** @type {string[]} codes of the messages that it did not read */
    this.dropped = [];
    /** @type {Sent[] | null} */
    this.sent = null;
    /** @type {Set<number>} those that are shown */
    this.rounds = new Set();
    this.spent = { run: 0, life: 0 };
    /** @type {Respondent | null} */
    this.client = null;
    /** @type {Member | null} */
    this.member = null;
    /** @type {import("./game.js").Example | null} the record of a game */
    this.record = null;
    this.others = new BroadcastChannel(`local-dp ${poll.run}`); // other tabs of this browser
    this.others.onmessage = event => this.heed(event.data);
  }

  /** The poll of this address. Throws RefusedError where the page cannot take part in it, and other errors where there is none. */
  static async open() {
    const poll = await (await fetch("poll.json")).json();
    for (const question of poll.questions) examine(question);
    const session = new Session(poll, await BrowserStore.open(), keyOf(poll.run));
    await session.remember();
    if (!session.sent) session.judge();
    return session;
  }

  /** Refuses what its policy forbids before anybody is bothered with a question. */
  judge() {
    const { run, life } = this.spent;
    if (run + this.cost > LIMITS.perRun || life + this.cost > LIMITS.life) this.refuse("budget", ROUND);
  }

  /** What was sent and spent before, in this tab or in another one. */
  async remember() {
    const [entry, ...later] = await this.store.entries(this.poll.run);
    this.spent = await this.store.totals(this.poll.run);
    if (entry && !this.sent) {
      this.sent = [entry, ...later].flatMap(each => Respondent.kept(each, this.poll.questions));
      this.rounds = new Set([entry, ...later].map(({ round }) => round));
      if (["idle", "joining", "waiting"].includes(this.state)) this.state = "sent";
      if (!this.client) void this.join(null);
    }
    this.changed();
  }

  /** What another tab of this browser says. @param {"sent" | "confirmed" | "asking"} word */
  heed(word) {
    if (word === "asking" && this.state === "confirmed") this.others.postMessage("confirmed");
    if (word === "confirmed" && this.sent) this.become("confirmed");
    if (word === "sent") void this.remember();
  }

  /** Answers each question, once: a label by its place, a number by itself. @param {number[]} answers */
  async answer(answers) {
    if (this.state !== "idle" || this.sent) return;
    this.state = "joining";
    this.changed();
    await this.remember();
    if (!this.sent) await this.join(answers);
  }

  /** @param {number[] | null} answers null: answered before */
  async join(answers) {
    if (this.client) return;
    const { poll, store, key } = this;
    const perRun = Math.min(LIMITS.perRun, this.cost); // no request costs more than the page said
    const client = new Respondent(poll, store, { ...LIMITS, perRun });
    this.client = client;
    const place = await this.place();
    if (!place) return;
    client.take(place.member, place.start);
    this.record = place.record ?? null;
    if (answers) client.say(answers, place.record);
    const url = new URL("bus", document.baseURI);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.member = new Member({ url: url.href, group: place.group, client, envelopes: Party.member(poll.run, unhex(poll.server), key) });
    this.listen(this.member, client);
    this.member.start();
  }

  /** The place of this browser's key, the same each time; null where there is none. @returns {Promise<Place | null>} */
  async place() {
    const body = JSON.stringify({ key: hex(publicKey(this.key)) });
    for (let pause = SOON; ; pause = Math.min(2 * pause, SLOWEST)) {
      const answer = await fetch("join", { method: "POST", headers: { "Content-Type": "application/json" }, body }).catch(() => null);
      if (answer?.ok) return answer.json();
      if (answer?.status === 409 || answer?.status === 410) return this.become(this.sent ? "closed" : answer.status === 409 ? "full" : "late");
      this.become("offline");
      await new Promise(resolve => setTimeout(resolve, pause * (0.5 + Math.random() / 2)));
    }
  }

  /** @param {Member} member @param {Respondent} client */
  listen(member, client) {
    const on = (/** @type {string} */ type, /** @type {(detail: any) => void} */ act) => {
      member.addEventListener(type, event => act(/** @type {CustomEvent} */ (event).detail));
    };
    on("state", state => this.follow(state));
    on("answered", ({ round, sent }) => {
      const fresh = this.rounds.has(round) ? [] : client.fresh(round, sent);
      if (fresh.length) this.sent = [...(this.sent ?? []), ...fresh];
      if (fresh.length) this.rounds.add(round);
      if (this.state !== "confirmed") this.state = "sent";
      this.others.postMessage("sent");
      void this.remember();
    });
    on("refused", ({ code, round }) => this.refuse(code, round));
    on("spent", ({ run, life }) => {
      this.spent = { run, life };
      this.changed();
    });
    on("confirmed", () => {
      this.become("confirmed");
      this.others.postMessage("confirmed");
      void this.remember();
    });
    on("ended", () => this.become(this.sent ? "closed" : "late"));
  }

  /** @param {string} state of the connection */
  follow(state) {
    if (this.state === "confirmed" || state === "ended") return;
    if (state === "present") this.become(this.sent ? "sent" : "waiting");
    else if (state === "away") this.become("offline");
    else if (state === "elsewhere") this.become("elsewhere");
    if (state === "elsewhere") this.others.postMessage("asking");
  }

  /** @param {string} code @param {number} [round] none: of a message that is no request of this poll */
  refuse(code, round) {
    (round === undefined ? this.dropped : this.refused).push(code);
    this.changed();
  }

  /** @param {State} state @returns {null} */
  become(state) {
    this.state = state;
    this.changed();
    return null;
  }

  changed() {
    this.dispatchEvent(new Event("change"));
  }
}

/** Computes the cost and the chances of a question from its own copy of the method. Throws RefusedError. @param {Question} question */
function examine(question) {
  const randomizer = build(question.randomizer, parameters(question.randomizer_params));
  verify(randomizer);
  question.nano = randomizer.nano;
  question.chance = chance(randomizer);
  if (question.kind === "yes-no") question.labels = ["no", "yes"];
  question.labels ??= [];
}

/** This browser's key in a poll: kept, so that a reload is the same person. Throws RefusedError("store"). @param {string} run */
function keyOf(run) {
  const name = `local-dp key ${run}`;
  try {
    if (!localStorage.getItem(name)) localStorage.setItem(name, hex(newKey()));
    return unhex(localStorage.getItem(name) ?? "");
  } catch (error) {
    throw new RefusedError("store", String(error));
  }
}
