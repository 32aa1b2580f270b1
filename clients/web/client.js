/** The client without a connection: it holds one record, a store and a policy, takes a message and gives replies or a refusal. */

import { blake2b } from "./vendor/noble-hashes/blake2.js";
import { InputError, RefusedError, WireError, hex, join, utf8 } from "./bytes.js";
import { philoxWord } from "./philox.js";
import { built, check, costOf, plan, sizeOf } from "./plan.js";
import { kindsOf, rowOf, schemaOf } from "./record.js";
import { known, lineOf } from "./refusals.js";
import { CLIENT, MAX_LINES, checksum, decode, encode } from "./wire.js";
import { systemWords } from "./words.js";

/** @typedef {import("./wire.js").Request} Request */
/** @typedef {import("./wire.js").Reply} Reply */
/** @typedef {import("./wire.js").Refusal} Refusal */
/** @typedef {import("./store.js").Entry} Entry */
/** @typedef {import("./store.js").Label} Label */
/** @typedef {import("./record.js").Row} Row */
/** @typedef {import("./plan.js").Policy} Policy */
/** @typedef {import("./plan.js").Planned} Planned */

/**
 * @typedef {object} Drawn How a report came about. It is in the memory of the page that drew it, and nowhere else: it shows the person's answer.
 * @property {number} value the true one
 * @property {bigint} word the random word, one of `total`
 * @property {bigint} edge a word below it gives the outcome that `Finite.edge` names
 * @property {bigint} total
 */

/**
 * @typedef {object} Sent One answer as a page shows it.
 * @property {number} ask its number in the round
 * @property {number} report
 * @property {string} bits exactly those that were sent: zeros fill a report up to whole bytes
 * @property {Drawn | null} drawn null for an answer of an earlier visit, or under a label
 */

/**
 * Answers requests for one client of a run.
 *
 * Its own copy of a randomizer gives the cost. The costs of a round are added up, and checked before anything is verified or sampled. Replies, cost and the
 * digest of the request are committed in one step before anything is sent. A refusal never depends on the record: it is decided before the record is read.
 */
export class Client {
  /**
   * @param {object} options
   * @param {string} options.run
   * @param {string} options.member
   * @param {number} options.start the number of this client in the run
   * @param {import("./store.js").Store} options.store
   * @param {Policy} options.policy
   * @param {{[column: string]: import("./record.js").Cell}} [options.record] may be given later, by `give`, if there is a schema
   * @param {{[column: string]: import("./record.js").Kind}} [options.schema]
   * @param {import("./words.js").Words} [options.words]
   */
  constructor({ run, member, start, store, policy, record, schema, words = systemWords }) {
    if (!schema && !record) throw new InputError("give a record or a schema");
    this.run = run;
    this.member = member;
    this.start = start;
    this.store = store;
    this.words = words;
    const { perRun, life, randomizers = null, leastNano = 1_000, rounds = 10_000, bytes = 1 << 20 } = policy;
    this.policy = { perRun, life, randomizers, leastNano, rounds, bytes };
    this.schema = schemaOf(schema ?? kindsOf(record ?? {}));
    /** @type {Set<number>} */
    this.confirmed = new Set();
    /** @type {Map<number, string>} the digests of requests that wait for the record, by round */
    this.waiting = new Map();
    /** @type {(row: Row) => void} */
    this.given = () => {};
    /** @type {Promise<Row>} */
    this.row = new Promise((resolve) => (this.given = resolve));
    if (record) this.give(record);
  }

  /**
   * The record, once. Throws InputError, without the value, for a value of another kind than the schema's.
   * @param {{[column: string]: import("./record.js").Cell}} record
   */
  give(record) {
    this.given(rowOf(record, this.schema));
  }

  /**
   * The messages that answer one message; none where it is not for this client, or not in the one allowed form.
   * @param {Uint8Array} payload
   * @returns {Promise<Uint8Array[]>}
   */
  async handle(payload) {
    try {
      const message = this.read(payload);
      if (message.kind === "request") return (await this.answer(message)).messages.map(encode);
      if (message.kind === "receipt") await this.confirm(message);
      if (message.kind === "roll" && this.isMeant(message)) return [encode(this.hello())];
      if (message.kind === "end") return [encode(await this.account())];
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
    }
    return [];
  }

  /** The message in a payload. Throws WireError for any that is not for this run. @param {Uint8Array} payload */
  read(payload) {
    const message = decode(payload, CLIENT);
    if (message.run !== this.run) throw new WireError("a message of another run", "other-run");
    return message;
  }

  /** Whether a message that may list missing clients is for this one. @param {{missing: import("./wire.js").Span[]}} message */
  isMeant({ missing }) {
    return !missing.length || missing.some(([start, stop]) => this.isIn(start, stop));
  }

  /** @returns {import("./wire.js").Hello} */
  hello() {
    return { kind: "hello", run: this.run, member: this.member, start: this.start, stop: this.start + 1, private: this.words.private };
  }

  /**
   * The replies to a request, the same ones each time it comes; or one refusal; or nothing where this client is not asked, or already waits for its record.
   * @param {Request} request
   * @returns {Promise<{messages: (Reply | Refusal)[], sent: Sent[], refused: RefusedError | null}>}
   */
  async answer(request) {
    const digest = this.digest(request);
    const [isAsked, waits] = [request.asks.some((ask) => this.isIn(ask.start, ask.stop)), this.waiting.get(request.round)];
    if (!isAsked || waits === digest) return { messages: [], sent: [], refused: null };
    try {
      if (waits !== undefined) throw new RefusedError("equivocation", `round ${request.round} waits for its answer to another request`);
      this.waiting.set(request.round, digest);
      const { entry, sent } = await this.committed(request, digest).finally(() => this.waiting.delete(request.round));
      if (entry.digest !== digest) throw new RefusedError("equivocation", `round ${request.round} was already asked with another request`);
      const wanted = this.isMeant(request);
      return { messages: wanted ? entry.replies.map(replyOf) : [], sent, refused: null };
    } catch (error) {
      const refused = error instanceof RefusedError ? error : new RefusedError("failed", String(error));
      return { messages: [this.refusal(request, known(refused.code))], sent: [], refused };
    }
  }

  /**
   * The entry that stands for the round, made if there is none.
   * @param {Request} request
   * @param {string} digest
   * @returns {Promise<{entry: Entry, sent: Sent[]}>}
   */
  async committed(request, digest) {
    const before = await this.store.get(request.run, request.round);
    if (before) return { entry: before, sent: sentOf(before) };
    const planned = await plan(request, this);
    const made = this.sample(request, digest, planned, await this.row);
    const entry = await this.store.commit(made.entry, (totals) => check(planned, totals, this.policy));
    if (!entry) return this.committed(request, digest); // a label was kept meanwhile, by another page
    return { entry, sent: isOf(entry, made.entry) ? made.sent : sentOf(entry) };
  }

  /**
   * The query and the randomizer of each ask, which fit the columns and each other. Throws RefusedError. It sees all asks of a round to this client,
   * so that a page may override it to answer what it shows, as often as it shows it, and nothing else.
   * @param {import("./plan.js").Placed[]} asks
   * @param {number} _round in which they are asked
   * @returns {Promise<import("./plan.js").Built[]>}
   */
  async built(asks, _round) {
    return asks.map(({ ask }) => built(ask, this.schema, this.policy));
  }

  /**
   * Reads the record, and draws.
   * @param {Request} request
   * @param {string} digest
   * @param {Planned[]} planned
   * @param {Row} row
   * @returns {{entry: Entry, sent: Sent[]}}
   */
  sample(request, digest, planned, row) {
    const { run, member, start } = this;
    /** @type {Map<string, Label>} */
    const labels = new Map();
    const answers = planned.map(({ place, ask, query, randomizer, kept, what }) => {
      const before = kept ?? labels.get(ask.once);
      const { report, drawn } = before ? { report: before.report, drawn: null } : this.draw(request.round, place, ask, this.value(request.round, place, query, row), randomizer);
      if (what && !before) labels.set(ask.once, { label: ask.once, what, number: start, report });
      const reports = randomizer.bytes(report);
      /** @type {Reply} */
      const reply = { kind: "reply", run, round: request.round, member, ask: place, start, width: reports.length, reports };
      return { reply, sent: { ask: place, report, bits: bitsOf(reports), drawn } };
    });
    const replies = answers.map(({ reply }) => reply);
    /** @type {import("./wire.js").Line} */
    const line = [request.round, replies.length, replies.reduce((sum, reply) => sum ^ checksum(reply), 0n)];
    const sent = answers.map((each) => each.sent);
    const kept = { nano: costOf(planned), size: sizeOf(planned), replies: replies.map(encode), line, labels: [...labels.values()] };
    return { entry: { run, round: request.round, digest, order: 0, ...kept }, sent };
  }

  /**
   * Of a record; a place between two levels moves to one of them at random, its mean kept.
   * @param {number} round
   * @param {number} place
   * @param {import("./queries.js").Query} query
   * @param {Row} row
   */
  value(round, place, query, row) {
    const value = query.value(row);
    return query.domain.kind === "levels" ? Math.floor(value + Number(this.words.word(32, round, place) % 2n ** 32n) / 2 ** 32) : value;
  }

  /**
   * @param {number} round
   * @param {number} place
   * @param {import("./wire.js").Ask} ask
   * @param {number} value
   * @param {import("./randomizers/finite.js").Finite} randomizer
   * @returns {{report: number, drawn: Drawn}}
   */
  draw(round, place, ask, value, randomizer) {
    const word = randomizer.leading(this.words.word(randomizer.width, round, place));
    const report = randomizer.sample(value, word, this.cell(ask, randomizer));
    return { report, drawn: { value, word, edge: randomizer.edge(value), total: randomizer.total } };
  }

  /** Of the public coin. @param {import("./wire.js").Ask} ask @param {import("./randomizers/finite.js").Finite} randomizer */
  cell(ask, randomizer) {
    return randomizer.usesCoins ? randomizer.cellOf(philoxWord(ask.coins, this.start)) : 0;
  }

  /** Notes a round that the server confirms to have stored. @param {import("./wire.js").Receipt} receipt @returns {Promise<boolean>} */
  async confirm(receipt) {
    const entry = await this.store.get(this.run, receipt.round);
    const sure = receipt.accepted.some(([start, stop, sum]) => start === this.start && stop === this.start + 1 && sum === entry?.line[2]);
    if (sure) this.confirmed.add(receipt.round);
    return sure;
  }

  /** @returns {Promise<import("./wire.js").Account>} */
  async account() {
    const rounds = (await this.store.entries(this.run)).map(({ line }) => line);
    return { kind: "account", run: this.run, member: this.member, rounds: rounds.slice(-MAX_LINES) };
  }

  /** What is spent and left, in nano-nats. */
  async budget() {
    const { run, life } = await this.store.totals(this.run);
    const { perRun, life: forLife } = this.policy;
    return { run, life, perRun, forLife, left: Math.min(perRun - run, forLife - life) };
  }

  /**
   * The answers of earlier visits, by round: the bits that were sent, never the true ones; and the asks, where a page keeps them.
   * @returns {Promise<{round: number, nano: number, asks: any[] | undefined, sent: Sent[]}[]>}
   */
  async past() {
    return (await this.store.entries(this.run)).map((entry) => ({ round: entry.round, nano: entry.nano, asks: entry.asks, sent: sentOf(entry) }));
  }

  /** @param {number} start @param {number} stop */
  isIn(start, stop) {
    return start <= this.start && this.start < stop;
  }

  /** What tells one request from another: all of it but the clients that are asked again. @param {Request} request */
  digest(request) {
    const plain = encode({ ...request, missing: [] });
    return hex(blake2b(join(plain, utf8(`${this.member} ${this.start} ${this.start + 1}`)), { dkLen: 16 }));
  }

  /** @param {Request} request @param {string} code @returns {Refusal} */
  refusal(request, code) {
    const { run, member, start } = this;
    return { kind: "refusal", run, round: request.round, member, start, stop: start + 1, code, text: lineOf(code, request) };
  }
}

/** @param {Uint8Array} bytes @returns {Reply} */
function replyOf(bytes) {
  return /** @type {Reply} */ (decode(bytes));
}

/** What an entry says was sent. @param {Entry} entry @returns {Sent[]} */
function sentOf(entry) {
  return entry.replies.map(replyOf).map(({ ask, reports }) => {
    return { ask, report: reports.reduceRight((sum, byte) => 256 * sum + byte, 0), bits: bitsOf(reports), drawn: null };
  });
}

/** @param {Uint8Array} bytes */
function bitsOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join(" ");
}

/** Whether the standing entry has the replies that were just drawn: then the coin of the one is the other's. @param {Entry} standing @param {Entry} made */
function isOf(standing, made) {
  return standing.digest === made.digest && standing.replies.map(hex).join() === made.replies.map(hex).join();
}
