// A client: one record, its ledger and its answers. It touches no network: bytes in, bytes out.

import { randomBytes } from "node:crypto";
import { checksum, encode, pack } from "./messages.mjs";
import { queryOf, Refused, settled } from "./questions.mjs";
import { publicCoin, randomizerOf, respond, verify, width } from "./randomizers.mjs";

const TEXTS = { budget: "this costs more than is left of the budget", equivocation: "this round was asked in another way before" };
export const POLICY = { perRun: 1_000_000_000, life: 1_000_000_000, least: 1_000, rounds: 10_000, kept: 1 << 20, allowed: null };

/** A word of 32 or 64 bits from the operating system's entropy. */
const drawn = (ask, bits) => BigInt("0x" + randomBytes(bits / 8).toString("hex"));

export class Client {
  /** `store` keeps entries for ever (store.mjs); `draw(ask, bits)` gives a uniform word of 32 or 64 bits. */
  constructor({ run, member, start, record, store, policy = {}, draw = drawn }) {
    Object.assign(this, { run, member, start, stop: start + 1, store, draw, policy: { ...POLICY, ...policy } });
    this.record = settled(record);
    this.confirmed = new Set();
  }

  /** The messages that answer a request, in order. */
  handle(request) {
    const mine = request.asks.map((ask, place) => ({ ...ask, place })).filter(({ start, stop }) => start <= this.start && this.start < stop);
    if (!mine.length) return [];
    try {
      const asked = this._identity(request);
      let entry = this.store.get(request.run, request.round);
      if (!entry) {
        entry = this._answered(request, mine, asked);
        this.store.commit(entry); // durable before anything is sent
      } else if (entry.asked !== asked) throw new Refused("equivocation");
      const wanted = !request.missing.length || request.missing.some(([start, stop]) => start <= this.start && this.start < stop);
      return wanted ? entry.replies.map((reply) => Buffer.from(reply, "hex")) : [];
    } catch (error) {
      const code = error instanceof Refused ? error.code : "failed";
      const { run, round } = request;
      return [encode({ run, kind: "refusal", round, member: this.member, start: this.start, stop: this.stop, code, text: TEXTS[code] ?? "" })];
    }
  }

  /** The request without `missing`. */
  _identity({ run, round, asks }) {
    return pack([run, round, asks.map((ask) => new Map(Object.entries(ask)))]).toString("hex");
  }

  _answered(request, mine, asked) {
    const plans = mine.map((ask) => this._planned(ask));
    const charge = plans.reduce((sum, { randomizer }) => sum + Number(randomizer.nano), 0);
    this._check(request.run, plans, charge);
    for (const { randomizer } of plans) verify(randomizer);
    const { run, round } = request;
    const replies = plans.map(({ ask, query, randomizer }) => {
      const word = this.draw(ask.place, randomizer.bits === 64 ? 64 : 32) >> BigInt(randomizer.bits === 64 ? 0 : 32 - randomizer.bits);
      const coin = randomizer.rows > 1 ? publicCoin(ask.coins, this.start) : 0n;
      const report = respond(randomizer, query.value(this.record), word, coin); // the first look at the record
      const reports = Buffer.alloc(width(randomizer));
      reports.writeUIntLE(report, 0, reports.length);
      return { run, kind: "reply", round, member: this.member, ask: ask.place, start: this.start, width: reports.length, reports };
    });
    const sum = replies.map(checksum).reduce((all, each) => all ^ each, 0n).toString();
    return { run, round, asked, charge, reports: plans.length, checksum: sum, bytes: this._bytes(plans), replies: replies.map((reply) => encode(reply).toString("hex")) };
  }

  _planned(ask) {
    const query = queryOf(ask.query, ask.query_params, this.record);
    if (this.policy.allowed && !this.policy.allowed.includes(ask.randomizer)) throw new Refused("not-allowed");
    const randomizer = randomizerOf(ask.randomizer, ask.randomizer_params);
    const same = ["kind", "low", "high"].every((part) => query.domain[part] === randomizer.domain[part]);
    if (!same) throw new Refused("bad-query");
    if (ask.once) throw new Refused("failed"); // this client keeps no labels
    return { ask, query, randomizer };
  }

  _bytes(plans) {
    return plans.reduce((sum, { randomizer }) => sum + width(randomizer), 0);
  }

  _check(run, plans, charge) {
    const { policy, store } = this;
    const few = plans.every(({ randomizer }) => randomizer.nano >= policy.least);
    if (store.rounds >= policy.rounds || store.kept + this._bytes(plans) > policy.kept || !few) throw new Refused("ceiling");
    if (store.spent(run) + charge > policy.perRun || store.life + charge > policy.life) throw new Refused("budget");
  }

  /** Notes a round that the server has stored. */
  confirm({ run, round, accepted }) {
    const entry = this.store.get(run, round);
    const own = entry && accepted.some(([start, stop, sum]) => start === this.start && stop === this.stop && String(sum) === entry.checksum);
    if (own) this.confirmed.add(`${run} ${round}`);
  }

  /** The account of a run. */
  account(run) {
    const rounds = this.store.entries(run).slice(-(1 << 14)).map((entry) => [entry.round, entry.reports, BigInt(entry.checksum)]);
    return encode({ run, kind: "account", member: this.member, rounds });
  }
}
