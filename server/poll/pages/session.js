/** A respondent's part in one poll: questions, policy, budget, key, and the member on the bus. It draws nothing. */

import { BrowserStore, Member, Party, RefusedError, newKey, publicKey, hex, unhex } from "./client/index.js";
import { LIMITS, Respondent } from "./respondent.js";
import { pollOf } from "./shown.js";

/** @typedef {import("./shown.js").Question} Question */
/** @typedef {import("./shown.js").Poll} Poll */
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
/** @typedef {"idle" | "elsewhere" | "joining" | "waiting" | "sent" | "confirmed" | "offline" | "closed" | "late" | "full"} State */

/** @typedef {{member: string, group: string, start: number, record?: import("./game.js").Example}} Place */

const ROUND = 1;
const [SOON, SLOWEST] = [500, 5000]; // milliseconds between two attempts to join

export class Session extends EventTarget {
  /** @param {Poll} poll @param {BrowserStore} store @param {Uint8Array} key */
  constructor(poll, store, key) {
    super();
    this.poll = poll;
    this.store = store;
    this.key = key;
    this.client = new Respondent(poll, store);
    /** @type {State} */
    this.state = poll.open ? "idle" : "late";
    /** @type {string[]} codes of the requests that it did not answer */
    this.refused = [];
    /** @type {string[]} codes of the messages that it did not read */
    this.dropped = [];
    /** @type {Sent[] | null} */
    this.sent = null;
    this.spent = { run: 0, life: 0 };
    this.joins = false;
    /** @type {Member | null} */
    this.member = null;
    /** @type {import("./game.js").Example | null} the record of a game */
    this.record = null;
    this.others = new BroadcastChannel(`local-dp ${poll.run}`); // other tabs of this browser
    this.others.onmessage = event => this.heed(event.data);
  }

  /** The poll of this address. Throws RefusedError where the page cannot take part in it, and other errors where there is none. */
  static async open() {
    const poll = pollOf(await (await fetch("poll.json")).json());
    const session = new Session(poll, await BrowserStore.open(), keyOf(poll.run));
    await session.remember();
    if (!session.sent) session.judge();
    return session;
  }

  /** Refuses what its policy forbids before anybody is bothered with a question. */
  judge() {
    const { run, life } = this.spent, { cost } = this.poll;
    if (run + cost > LIMITS.perRun || life + cost > LIMITS.life) this.refuse("budget", ROUND);
  }

  /** What was sent and spent before, in this tab or in another one. */
  async remember() {
    const sent = await this.client.told();
    this.spent = await this.store.totals(this.poll.run);
    if (sent.length) {
      this.sent = sent;
      if (["idle", "joining", "waiting"].includes(this.state)) this.state = "sent";
      void this.join(null);
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
    this.become("joining");
    await this.remember();
    if (!this.sent) await this.join(answers);
  }

  /** @param {number[] | null} answers null: answered before */
  async join(answers) {
    if (this.joins) return;
    this.joins = true;
    const { poll, client, key } = this;
    const place = await this.place();
    if (!place) return;
    client.take(place.member, place.start);
    this.record = place.record ?? null;
    if (answers) client.say(answers, place.record);
    const url = new URL("bus", document.baseURI);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    this.member = new Member({ url: url.href, group: place.group, client, envelopes: Party.member(poll.run, unhex(poll.server), key) });
    this.listen(this.member);
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

  /** @param {Member} member */
  listen(member) {
    const on = (/** @type {string} */ type, /** @type {(detail: any) => void} */ act) => {
      member.addEventListener(type, event => act(/** @type {CustomEvent} */ (event).detail));
    };
    on("state", state => this.follow(state));
    on("answered", () => {
      if (this.state !== "confirmed") this.state = "sent";
      this.others.postMessage("sent");
      void this.remember();
    });
    on("refused", ({ code, round }) => this.refuse(code, round));
    on("confirmed", () => {
      this.become("confirmed");
      this.others.postMessage("confirmed");
      void this.remember();
    });
    on("ended", () => void this.remember().then(() => this.become(this.sent ? "closed" : "late")));
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
