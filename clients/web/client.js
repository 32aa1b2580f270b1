/** The client without a connection: it holds one record, a store and a policy, takes a message and gives replies or a refusal. */

import { blake2b } from "./vendor/noble-hashes/blake2.js";
import { InputError, RefusedError, WireError, hex, join, utf8 } from "./bytes.js";
import { pack } from "./pack.js";
import { philoxWord } from "./philox.js";
import { buildQuery } from "./queries.js";
import { RANDOMIZERS, build, verify } from "./randomizers/index.js";
import { kindsOf, rowOf, schemaOf } from "./record.js";
import { known, lineOf } from "./refusals.js";
import { CLIENT, MAX_LINES, checksum, decode, encode } from "./wire.js";
import { systemWords } from "./words.js";

/** @typedef {import("./wire.js").Request} Request */
/** @typedef {import("./wire.js").Reply} Reply */
/** @typedef {import("./wire.js").Refusal} Refusal */
/** @typedef {import("./store.js").Entry} Entry */
/** @typedef {import("./store.js").Label} Label */
/** @typedef {import("./store.js").Totals} Totals */

/**
 * @typedef {object} Policy What a client accepts, whatever a server asks.
 * @property {number} perRun nano-nats in one run
 * @property {number} life nano-nats for life
 * @property {string[]} [randomizers] all that this client has, unless given
 * @property {number} [leastNano] the least nano-nats of one answer
 * @property {number} [rounds] that it answers in its life
 * @property {number} [bytes] of reports that it keeps
 */

/** @typedef {{place: number, ask: import("./wire.js").Ask, query: import("./queries.js").Query, randomizer: import("./randomizers/finite.js").Finite, kept?: Label, what: string}} Planned */

/**
 * @typedef {object} Sent One answer as a page shows it.
 * @property {number} ask its number in the round
 * @property {number} report
 * @property {string} bits exactly the bits of the report that were sent
 * @property {boolean | null} changed whether the report is another symbol than the record's; null where that means nothing, or is no longer known
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
    const { perRun, life, randomizers = RANDOMIZERS, leastNano = 1_000, rounds = 10_000, bytes = 1 << 20 } = policy;
    this.policy = { perRun, life, randomizers, leastNano, rounds, bytes };
    this.schema = schemaOf(schema ?? kindsOf(record ?? {}));
    /** @type {Set<number>} */
    this.confirmed = new Set();
    /** @type {Map<number, {digest: string, answer: Promise<Entry>}>} requests that wait for the record */
    this.waiting = new Map();
    /** @type {(row: import("./record.js").Row) => void} */
    this.given = () => {};
    /** @type {Promise<import("./record.js").Row>} */
    this.row = new Promise((resolve) => (this.given = resolve));
    if (record) this.give(record);
  }

  /** The record, once. Throws InputError, without the value, for a value of another kind than the schema's. @param {{[column: string]: import("./record.js").Cell}} record */
  give(record) {
    this.given(rowOf(record, this.schema));
  }

  /** The messages that answer one message; none where it is not for this client, or not in the one allowed form. @param {Uint8Array} payload @returns {Promise<Uint8Array[]>} */
  async handle(payload) {
    try {
      const message = this.read(payload);
      if (message.kind === "request") return (await this.answer(message)).messages.map(encode);
      if (message.kind === "receipt") await this.confirm(message);
      if (message.kind === "roll") return [encode(this.hello())];
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
    if (!request.asks.some((ask) => this.isIn(ask.start, ask.stop))) return { messages: [], sent: [], refused: null };
    try {
      const digest = this.digest(request);
      const waits = this.waiting.get(request.round);
      if (waits?.digest === digest) return { messages: [], sent: [], refused: null };
      const { entry, sent } = await this.committed(request, digest, waits !== undefined);
      if (entry.digest !== digest) throw new RefusedError("equivocation", `round ${request.round} was already asked with another request`);
      const wanted = !request.missing.length || request.missing.some(([start, stop]) => this.isIn(start, stop));
      return { messages: wanted ? entry.replies.map(replyOf) : [], sent: sent ?? sentOf(entry), refused: null };
    } catch (error) {
      const refused = error instanceof RefusedError ? error : new RefusedError("failed", String(error));
      return { messages: [this.refusal(request, known(refused.code))], sent: [], refused };
    }
  }

  /** The entry that stands for the round, made if there is none. @param {Request} request @param {string} digest @param {boolean} pending whether another request of the round waits @returns {Promise<{entry: Entry, sent: Sent[] | null}>} */
  async committed(request, digest, pending) {
    const before = await this.store.get(request.run, request.round);
    if (before) return { entry: before, sent: null };
    if (pending) throw new RefusedError("equivocation", `round ${request.round} waits for its answer to another request`);
    const planned = await this.plan(request);
    /** @type {Sent[]} */
    let sent = [];
    const answer = this.row.then(async (row) => {
      const made = this.sample(request, digest, planned, row);
      sent = made.sent;
      return (await this.store.commit(made.entry, (totals) => this.check(totals, planned))) ?? (await this.committed(request, digest, false)).entry;
    });
    this.waiting.set(request.round, { digest, answer });
    try {
      const entry = await answer;
      return { entry, sent: entry.digest === digest && sameReplies(entry, sent) ? sent : null };
    } finally {
      this.waiting.delete(request.round);
    }
  }

  /** The queries to this client and their randomizers, verified and affordable; it reads no record. Throws RefusedError. @param {Request} request @returns {Promise<Planned[]>} */
  async plan(request) {
    /** @type {Planned[]} */
    const planned = [];
    for (const [place, ask] of request.asks.entries()) {
      if (this.isIn(ask.start, ask.stop)) planned.push({ place, ask, ...this.built(ask), what: ask.once && meaning(ask) });
    }
    const totals = await this.store.totals(this.run);
    for (const each of planned) {
      if (each.what) each.kept = await this.store.label(each.ask.once);
      if (each.randomizer.nano < this.policy.leastNano) throw new RefusedError("ceiling", `epsilon ${each.randomizer.epsilon} is too little`);
    }
    this.checkLabels(planned);
    this.check(totals, planned);
    for (const { randomizer } of planned) verify(randomizer);
    return planned;
  }

  /** @param {import("./wire.js").Ask} ask */
  built(ask) {
    const query = buildQuery(ask.query, ask.query_params);
    fits(() => query.fit(this.schema));
    if (!this.policy.randomizers.includes(ask.randomizer)) throw new RefusedError("not-allowed", `${ask.randomizer} is not on this client's list`);
    const randomizer = build(ask.randomizer, ask.randomizer_params);
    const [one, other] = [query.domain, randomizer.domain];
    fits(() => {
      if (one.kind !== other.kind || one.low !== other.low || one.high !== other.high) throw new InputError("the query has other values than the randomizer takes");
    });
    return { query, randomizer };
  }

  /** A label stands for one question, one randomizer and one coin. @param {Planned[]} planned */
  checkLabels(planned) {
    for (const { ask, what, kept, randomizer } of planned) {
      if (kept && randomizer.usesCoins && kept.number !== this.start) throw new RefusedError("equivocation", `the label ${ask.once} has another coin`);
      const same = planned.filter((each) => each.ask.once === ask.once);
      if (what && ((kept && kept.what !== what) || same.some((each) => each.what !== what))) {
        throw new RefusedError("equivocation", `the label ${ask.once} stands for another question`);
      }
    }
  }

  /** What a round costs: a label is paid for once. @param {Planned[]} planned */
  cost(planned) {
    const paid = planned.filter(({ ask, kept }, place) => !ask.once || (!kept && planned.findIndex((each) => each.ask.once === ask.once) === place));
    return paid.reduce((sum, { randomizer }) => sum + randomizer.nano, 0);
  }

  /** Throws RefusedError unless the round can be paid and kept. @param {Totals} totals @param {Planned[]} planned */
  check(totals, planned) {
    const size = planned.reduce((sum, { randomizer }) => sum + randomizer.reportBytes, 0);
    if (totals.rounds >= this.policy.rounds || totals.size + size > this.policy.bytes) throw new RefusedError("ceiling", `${totals.rounds} rounds are kept`);
    const nano = this.cost(planned);
    if (nano > 0 && (totals.run + nano > this.policy.perRun || totals.life + nano > this.policy.life)) {
      throw new RefusedError("budget", `${nano} nano-nats on top of ${totals.run} in this run and ${totals.life} for life`);
    }
  }

  /** Reads the record, and draws. @param {Request} request @param {string} digest @param {Planned[]} planned @param {import("./record.js").Row} row @returns {{entry: Entry, sent: Sent[]}} */
  sample(request, digest, planned, row) {
    /** @type {Map<string, Label>} */
    const labels = new Map();
    /** @type {Sent[]} */
    const sent = [];
    const replies = planned.map(({ place, ask, query, randomizer, kept, what }) => {
      const { run, member, start } = this;
      const cell = randomizer.usesCoins ? randomizer.cellOf(philoxWord(ask.coins, start)) : 0;
      const before = kept ?? labels.get(ask.once);
      const value = before ? 0 : query.value(row);
      const report = before ? before.report : randomizer.respond(value, this.words.word(randomizer.width, request.round, place), cell);
      if (what && !before) labels.set(ask.once, { label: ask.once, what, number: start, report });
      const reports = randomizer.bytes(report);
      const direct = !before && !randomizer.usesCoins && randomizer.domain.kind === "symbols";
      sent.push({ ask: place, report, bits: bitsOf(reports), changed: direct ? report !== value : null });
      return /** @type {Reply} */ ({ kind: "reply", run, round: request.round, member, ask: place, start, width: reports.length, reports });
    });
    const sum = replies.reduce((joined, reply) => joined ^ checksum(reply), 0n);
    const size = replies.reduce((bytes, reply) => bytes + reply.reports.length, 0);
    const [nano, line] = [this.cost(planned), /** @type {import("./wire.js").Line} */ ([request.round, planned.length, sum])];
    return { entry: { run: this.run, round: request.round, digest, nano, size, replies: replies.map(encode), line, labels: [...labels.values()], order: 0 }, sent };
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
    return { run, life, perRun: this.policy.perRun, forLife: this.policy.life, left: Math.min(this.policy.perRun - run, this.policy.life - life) };
  }

  /** The answers of earlier visits, by round: what was sent, never what is true. @returns {Promise<{round: number, nano: number, sent: Sent[]}[]>} */
  async past() {
    return (await this.store.entries(this.run)).map((entry) => ({ round: entry.round, nano: entry.nano, sent: sentOf(entry) }));
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

/** @param {() => void} check */
function fits(check) {
  try {
    check();
  } catch (error) {
    throw error instanceof InputError ? new RefusedError("bad-query", error.message) : error;
  }
}

/** What a label stands for. @param {import("./wire.js").Ask} ask */
function meaning(ask) {
  return hex(blake2b(pack([ask.query, ask.query_params, ask.randomizer, ask.randomizer_params, ask.coins]), { dkLen: 16 }));
}

/** @param {Uint8Array} bytes @returns {Reply} */
function replyOf(bytes) {
  return /** @type {Reply} */ (decode(bytes));
}

/** @param {Entry} entry @returns {Sent[]} */
function sentOf(entry) {
  return entry.replies.map(replyOf).map(({ ask, reports }) => ({ ask, report: reports.reduceRight((sum, byte) => 256 * sum + byte, 0), bits: bitsOf(reports), changed: null }));
}

/** Whether the standing entry is the one that was just drawn, as its reports show. @param {Entry} entry @param {Sent[]} sent */
function sameReplies(entry, sent) {
  return JSON.stringify(sentOf(entry).map(({ report }) => report)) === JSON.stringify(sent.map(({ report }) => report));
}

/** @param {Uint8Array} bytes */
function bitsOf(bytes) {
  return Array.from(bytes, (byte) => byte.toString(2).padStart(8, "0")).join(" ");
}
