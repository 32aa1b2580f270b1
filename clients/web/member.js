/** A client on the bus: MQTT 3.1.1 over a WebSocket. It says hello, answers requests, and gives its account when the run ends. */

import "./platform.js";
import mqtt from "./vendor/mqtt/mqtt.esm.js";
import { ForgedError, WireError } from "./bytes.js";
import { describe } from "./describe.js";
import { Envelopes } from "./envelope.js";
import { words } from "./refusals.js";
import { EVERYBODY, MAX_BYTES, encode, topic } from "./wire.js";

const SLOT = 100; // milliseconds: an answer leaves at the end of a slot, so that its time says nothing about the record
const PARTING = 300; // milliseconds from the last message to the end of the connection: some brokers drop what is undelivered then
const KEEPALIVE = 30; // seconds
const [FIRST_RETRY, SLOWEST_RETRY] = [200, 5000]; // milliseconds
const ENVELOPE = 64 + MAX_BYTES;

/** @typedef {import("./wire.js").Request} Request */

/**
 * @typedef {object} Connection
 * @property {string} url ws:// or wss://
 * @property {string} group
 * @property {import("./client.js").Client} client
 * @property {Envelopes} [envelopes] unsigned unless given
 * @property {string} [username]
 * @property {string} [password]
 * @property {(url: string, protocols: string[]) => unknown} [socket] makes a WebSocket where the platform has none
 */

/**
 * One member of a run. It connects again by itself, with jitter; what was sent meanwhile is lost, and the server asks again.
 *
 * Events, with their `detail`: "state" ("elsewhere", "connecting", "present", "away", "ended"); "asked" {round, asks, again}, asks by `describe`;
 * "answered" {round, sent, again};
 * "refused" {code, text, round}, where nothing was charged; "spent" (the budget, in nano-nats); "confirmed" {round}; "ended" (the account).
 */
export class Member extends EventTarget {
  /** @param {Connection} connection */
  constructor({ url, group, client, envelopes = new Envelopes(), username, password, socket }) {
    super();
    this.url = url;
    this.client = client;
    this.envelopes = envelopes;
    this.group = group;
    this.login = { ...(username !== undefined && { username }), ...(password !== undefined && { password }), ...(socket && { createWebsocket: socket }) };
    /** @type {import("./vendor/mqtt/mqtt.esm.js").Client | null} */
    this.line = null;
    this.state = "new";
    this.pause = FIRST_RETRY;
    /** @type {Set<number>} rounds that were answered since this page was opened */
    this.answered = new Set();
    /** @type {() => void} */
    this.part = () => {};
  }

  /** Connects, and stays. Of several pages with the same member one is connected; the others wait until it is closed, where the browser has locks. */
  start() {
    const locks = globalThis.navigator?.locks;
    if (!locks) return this.connect();
    this.become("elsewhere");
    const parted = new Promise((resolve) => (this.part = () => resolve(null)));
    const hold = () => {
      this.connect();
      return parted;
    };
    locks.request(`local-dp ${this.client.run} ${this.client.member}`, hold).catch(() => this.connect()); // a browser may forbid locks
    return this;
  }

  connect() {
    const will = this.where("gone");
    const gone = this.envelopes.seal(will, encode({ kind: "gone", run: this.client.run, member: this.client.member }));
    this.become("connecting");
    this.line = mqtt.connect(this.url, {
      clientId: `${this.client.run}-${this.client.member}`, // a new connection ends a dead one of the same page
      protocolVersion: 4,
      clean: true,
      keepalive: KEEPALIVE,
      resubscribe: false,
      queueQoSZero: false,
      timerVariant: "native", // the other one makes a worker of a text, which a strict page forbids
      reconnectPeriod: FIRST_RETRY,
      will: { topic: will, payload: gone, qos: 0, retain: false },
      ...this.login,
    });
    this.line.on("connect", () => this.subscribe());
    this.line.on("close", () => this.lost());
    this.line.on("error", () => {}); // a close follows
    this.line.on("message", (where, envelope) => void this.hear(where, envelope));
    return this;
  }

  /** Leaves the run. @returns {Promise<void>} */
  stop() {
    const line = this.line;
    this.line = null;
    this.part();
    return new Promise((resolve) => (line ? line.end(false, () => resolve()) : resolve()));
  }

  subscribe() {
    const { run } = this.client;
    this.line?.subscribe([topic(run, "req", this.group), topic(run, "req", EVERYBODY)], { qos: 0 }, (error, granted) => {
      if (error || granted?.some(({ qos }) => qos > 2)) return this.become("away");
      this.pause = FIRST_RETRY;
      this.say("hello", encode(this.client.hello()));
      return this.become("present");
    });
  }

  lost() {
    if (!this.line) return;
    this.pause = Math.min(2 * this.pause, SLOWEST_RETRY);
    this.line.options.reconnectPeriod = this.pause * (0.5 + Math.random() / 2); // not all at once, after a broker's restart
    if (this.state === "present") this.become("away");
  }

  /** One message from the bus. Whatever is wrong with it ends here, in words. @param {string} where @param {Uint8Array} envelope */
  async hear(where, envelope) {
    try {
      if (envelope.length > ENVELOPE) throw new WireError(`${envelope.length} bytes`, "oversized");
      await this.obey(this.client.read(this.envelopes.open(where, new Uint8Array(envelope))));
    } catch (error) {
      if (error instanceof ForgedError) this.refuse("forged");
      else if (error instanceof WireError) this.refuse(error.code);
      else this.refuse("failed");
    }
  }

  /** @param {import("./wire.js").Message} message */
  async obey(message) {
    if (message.kind === "request") return this.answer(message);
    if (message.kind === "roll") return this.client.isMeant(message) ? this.say("hello", encode(this.client.hello())) : undefined;
    if (message.kind === "receipt" && (await this.client.confirm(message))) return this.tell("confirmed", { round: message.round });
    if (message.kind === "end") return this.end();
  }

  /** @param {Request} request */
  async answer(request) {
    const came = performance.now();
    const asks = describe(request, this.client.start);
    if (!asks.length) return;
    const again = this.answered.has(request.round);
    this.tell("asked", { round: request.round, asks, again });
    const { messages, sent, refused } = await this.client.answer(request);
    if (refused) this.refuse(refused.code, request.round);
    if (!messages.length) return;
    const took = performance.now() - came;
    await rest(SLOT * Math.max(1, Math.ceil(took / SLOT)) - took);
    for (const message of messages) this.say("rep", encode(message));
    if (refused) return;
    this.answered.add(request.round);
    this.tell("answered", { round: request.round, sent, again });
    this.tell("spent", await this.client.budget());
  }

  async end() {
    const account = await this.client.account();
    this.say("rep", encode(account));
    await rest(PARTING);
    await this.stop();
    this.become("ended");
    this.tell("ended", account);
  }

  /** @param {string} code @param {number} [round] */
  refuse(code, round) {
    this.tell("refused", { code, text: words(code), round });
  }

  /** @param {string} leaf */
  where(leaf) {
    return topic(this.client.run, leaf, this.group, this.client.member);
  }

  /** Hands a message to the broker; without a connection it is dropped, as the network might have done. @param {string} leaf @param {Uint8Array} message */
  say(leaf, message) {
    const where = this.where(leaf);
    if (this.line?.connected) this.line.publish(where, this.envelopes.seal(where, message), { qos: 0 });
  }

  /** @param {string} state */
  become(state) {
    if (this.state !== state) this.tell("state", (this.state = state));
  }

  /** @param {string} type @param {any} detail */
  tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** @param {number} milliseconds @returns {Promise<void>} */
function rest(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
