/** Many seeded polls and request scripts against the page's own modules, in Node: two tabs on one store, reloads, races. Prints what left against the rules. */

import { readFileSync } from "node:fs";
import { Draws, ask, beside, padded, poll, unclear, wrong } from "./hostile.mjs";
import { due, follows, isOne, later, truth } from "./shown.mjs";

const { folder, seeds, first } = JSON.parse(readFileSync(0, "utf8"));
const at = (name) => import(`file://${folder}/${name}`);
const { CLIENT, InputError, MemoryStore, RefusedError, build, decode, encode, hex } = await at("client/index.js");
const { Respondent } = await at("respondent.js");
const { pollOf } = await at("shown.js");
const META = { "yes-no": "flip", number: "bit" };
const MOST = 2 ** 32 - 1;
const figures = { scripts: 0, unclear: 0, honest: 0, reports: 0, later: 0, games: 0, refused: 0, sent: 0, violations: [] };
const tick = () => new Promise((resolve) => setImmediate(resolve));

/** Slow at random, as a browser's database is. */
class Slow extends MemoryStore {
  constructor(draws) {
    super();
    this.draws = draws;
  }

  async wait() {
    for (let left = this.draws.below(3); left; left -= 1) await tick();
  }

  async get(...key) {
    await this.wait();
    return super.get(...key);
  }

  async commit(...step) {
    await this.wait();
    return super.commit(...step);
  }
}

/** A tab with its page, its person's answers and its coins. Without answers it was reloaded. */
class Tab {
  constructor(script, raw, isFresh) {
    const { draws, store, start } = script;
    this.raw = raw;
    this.client = new Respondent(pollOf(structuredClone(raw)), store);
    this.client.take("p", start);
    this.coins = new Map();
    this.client.words = { private: true, word: (width, round, place) => this.word(draws, width, `${round} ${place}`) };
    this.isFresh = isFresh;
    if (!isFresh) return;
    script.fresh.push(this);
    this.answers = raw.questions.map(({ kind, labels, low, high }) => {
      return kind === "number" ? low + draws.unit() * (high - low) : draws.below(kind === "labels" ? labels.length : 2);
    });
    this.record = { x: draws.below(256), i: draws.below(8), b: draws.below(2), y: draws.of([-1, 1]) };
    this.client.say(this.answers, raw.again?.bits ? this.record : undefined);
  }

  word(draws, width, key) {
    const drawn = BigInt(Math.floor(draws.unit() * 2 ** 32)) * (width === 64 ? 1n << 32n : 1n);
    this.coins.set(key, [...(this.coins.get(key) ?? []), Number(drawn) / 2 ** width]);
    return drawn;
  }
}

/** One script, and the account of what leaves. */
class Script {
  constructor(seed) {
    this.seed = seed;
    this.draws = new Draws(seed);
    this.store = new Slow(this.draws);
    this.start = this.draws.below(100);
    this.reports = new Map();
    this.fresh = [];
    this.isHonest = this.draws.chance(0.3);
  }

  fault(what) {
    figures.violations.push(`${this.seed}: ${what}`);
  }

  async play() {
    const { draws } = this, made = poll(draws, `run${this.seed}`), raw = draws.chance(0.5) ? padded(draws, made) : made;
    const other = this.isHonest || draws.chance(0.6) ? raw : this.otherwise(raw);
    this.tabs = [new Tab(this, raw, true), new Tab(this, other, true)];
    await (this.isHonest ? this.behave() : this.attack());
    for (let left = 40; left; left -= 1) await tick();
    await this.judge();
  }

  /** The same poll in other words, or another one under its name. */
  otherwise(raw) {
    const other = this.draws.chance(0.7) ? poll(this.draws, raw.run) : structuredClone(raw);
    other.questions.forEach((each) => (each.text = `${each.text} Really?`));
    return other;
  }

  ask(wanted) {
    const [, , randomizer, law] = wanted, params = Object.entries(law).map(([name, value]) => [name, name === "epsilon" ? value : BigInt(value)]);
    return ask(this.draws, wanted, build(randomizer, new Map(params)).wordBits);
  }

  first(raw) {
    return raw.questions.map((_, place) => this.ask(due(raw, place)));
  }

  /** A round after the first, or one of a game. */
  next(raw, round) {
    return this.ask(later(raw, round, { end: this.draws.of([1, 4.5, 9]), r: this.draws.below(256), free: this.draws.of([0, 1, 3, 12]) }));
  }

  send(tab, round, asks, isAwaited) {
    let message;
    try {
      message = decode(encode({ kind: "request", run: tab.raw.run, round, asks, missing: [] }), CLIENT);
    } catch {
      return null;
    }
    const answer = tab.client.answer(message).then((made) => this.note(tab, message, made));
    return isAwaited ? answer : null;
  }

  async behave() {
    const { draws } = this, [tab, beside] = this.tabs, { questions, again } = tab.raw;
    const round = again?.bits ? 1 + draws.below(2) : 1, asks = again?.bits ? [this.next(tab.raw, round)] : this.first(tab.raw);
    await this.send(tab, round, asks, true);
    await this.send(draws.of([tab, beside]), round, asks, true);
    if (draws.chance(0.3)) this.tabs[1] = new Tab(this, tab.raw, false);
    const isAsked = again && !again.bits;
    if (isAsked) {
      const cohorts = [[0, 10], [10, 50], [50, 100]].map(([start, stop]) => ({ ...this.next(tab.raw, 2), start, stop }));
      await this.send(tab, draws.of([2, 3, 4]), cohorts, true);
    }
    const due = questions.length + Number(Boolean(again));
    if (this.reports.size !== due) this.fault(`an honest script has ${this.reports.size} of ${due} reports`);
    figures.honest += 1;
  }

  async attack() {
    const { draws } = this, [one, other] = this.tabs.map(({ raw }) => raw);
    if (!one.again?.bits && other.again?.question && draws.chance(0.7)) {
      await this.send(this.tabs[0], 1, this.first(one), true);
      for (const round of [2, 3]) this.send(this.tabs[1], round, [this.next(other, 2)]); // both at once
    }
    for (let left = 2 + draws.below(10); left; left -= 1) {
      const place = draws.below(2), tab = this.tabs[place], { raw } = tab, round = draws.of([1, 2, 2, 3, 7, MOST]), isGame = Boolean(raw.again?.bits);
      const step = draws.below(10);
      if (step === 0) this.tabs[place] = new Tab(this, raw, false);
      else if (isGame) this.send(tab, round, this.moves(raw, round, step));
      else if (step < 4) await this.send(tab, step < 3 ? 1 : round, this.first(raw), false);
      else if (step < 7) this.send(tab, draws.of([1, 1, 1, round]), wrong(draws, this.first(raw)));
      else this.send(tab, step === 7 ? 1 : round, this.thresholds(raw, step));
      if (draws.chance(0.6)) for (let turns = 8; turns; turns -= 1) await tick();
    }
  }

  moves(raw, round, step) {
    const asks = Array.from({ length: step === 1 ? 2 : 1 }, () => this.next(raw, round > 2 ? 2 : step === 2 ? 3 - round : round));
    return step > 7 ? wrong(this.draws, asks) : step === 7 ? asks.map(beside) : asks;
  }

  thresholds(raw, step) {
    const { draws } = this, number = raw.questions.findIndex(({ kind }) => kind === "number");
    const again = raw.again ?? { question: `q${number + 1}`, epsilon: draws.of([0.1, 1]) };
    const asks = Array.from({ length: draws.of([1, 1, 1, 2, 6]) }, () => this.next({ ...raw, again }, 2));
    return step === 9 && draws.chance(0.5) ? wrong(draws, asks) : asks;
  }

  /** What has just left. @param {Tab} tab */
  note(tab, message, { messages, refused }) {
    if (refused) figures.refused += 1;
    for (const each of messages.filter(({ kind }) => kind === "reply")) {
      const key = `${each.round} ${each.ask}`, bits = hex(each.reports), before = this.reports.get(key);
      if (before && before.bits !== bits) this.fault(`two reports to ${key}`);
      if (each.round > 1 && !tab.raw.again?.bits && !this.store.kept.has(`${tab.raw.run} 1`)) this.fault("a later round comes first");
      const report = { tab, round: each.round, place: each.ask, ask: message.asks[each.ask], bits, value: parseInt(bits, 16) };
      if (!before) this.reports.set(key, report);
      this.check(report);
    }
  }

  /** The ask that a page shows, or has announced, for this place of a round. */
  wanted({ questions, again }, round, place, got) {
    const given = (name) => Number(got.query_params.get(name)), isGame = Boolean(again?.bits);
    if (round === 1 && !isGame) return questions[place] ? due({ questions }, place) : null;
    return again && !(isGame && round > 2) ? later({ again }, round, { end: given("end"), r: given("r"), free: given("free") }) : null;
  }

  /** Whether the ask is one that the tab has shown, and the report one by the shown law of a tab that drew it. */
  check({ tab, round, place, ask: got, value }) {
    const of = (raw) => this.wanted(raw, round, place, got), wanted = of(tab.raw), same = JSON.stringify(wanted);
    if (!wanted || !isOne(got, wanted)) return this.fault(`round ${round} answers what is not shown, ask ${place}`);
    const drew = this.fresh.filter(({ raw }) => JSON.stringify(of(raw)) === same);
    const fits = (each) => (each.coins.get(`${round} ${place}`) ?? []).some((coin) => this.law(each, coin, round, place, wanted, got, value));
    if (!drew.some(fits)) this.fault(`a report of round ${round}, ask ${place}, is not by the shown law`);
  }

  law({ raw, answers, record, client }, coin, round, place, [query, of, randomizer, { epsilon }], got, value) {
    if (query === "below") {
      const number = raw.questions.findIndex((_, at) => `q${at + 1}` === of.column);
      return follows("bit", epsilon, { answer: Number(answers[number] < of.end), coin, report: value });
    }
    if (randomizer === "signed-blocks" ? !raw.again?.bits : !raw.questions[place]) return false; // a tab of another poll
    if (randomizer === "signed-blocks") {
      const size = 2 * Number(got.randomizer_params.get("k")) + 1;
      return follows("other", epsilon, { answer: truth(raw.again.bits, round, record, of), coin, report: value, size });
    }
    const answer = answers[place], { kind, low, high, labels } = raw.questions[place];
    if (kind === "number") return follows("bit", epsilon, { answer: (answer - low) / (high - low), coin, report: value });
    if (randomizer !== "subset-selection") return follows(META[kind] ?? "other", epsilon, { answer, coin, report: value, size: labels?.length });
    const page = build(randomizer, got.randomizer_params), has = page.weight(value, answer, client.cell(got, page)) === page.inner.held;
    return follows("subset", epsilon, { answer, coin, report: value, sets: { order: page.alphabet, w: page.inner.w, has } });
  }

  /** All reports together, and what the tabs say of them. */
  async judge() {
    const all = [...this.reports.values()], pages = this.tabs.map(({ raw }) => raw);
    const sum = (list) => list.reduce((total, epsilon) => total + epsilon, 0), most = (of) => Math.max(...pages.map(of)) + 1e-9;
    const paid = (list) => sum(list.map(({ ask: got }) => Number(got.randomizer_params.get("epsilon"))));
    const isWhole = ({ questions }) => [0, questions.length].includes(all.filter(({ round }) => round === 1).length);
    const plays = ({ tab }) => tab.raw.again?.bits, second = all.filter((report) => report.round > 1 || plays(report));
    if (paid(second) > most(({ again }) => again?.epsilon ?? 0)) this.fault(`later rounds cost ${paid(second)}`);
    const whole = ({ questions, again }) => sum(questions.map(({ epsilon }) => epsilon)) + (again?.epsilon ?? 0);
    if (paid(all) > most(whole)) this.fault(`all rounds cost ${paid(all)}`);
    const firsts = all.filter((report) => report.round === 1 && !plays(report));
    const isDone = ({ tab: { raw } }) => firsts.length === raw.questions.length && firsts.every(({ place, ask: got }) => isOne(got, due(raw, place)));
    if (!second.every((report) => plays(report) || isDone(report))) this.fault("a later round follows other questions than those on its page");
    if (!all.some(plays) && !pages.some(isWhole)) this.fault("a part of the questions is answered");
    figures.scripts += 1;
    figures.reports += all.length;
    figures.games += second.filter(plays).length;
    figures.later += second.filter((report) => !plays(report)).length;
    this.tabs.push(new Tab(this, this.otherwise(pages[0]), false));
    for (const tab of this.tabs) await this.read(tab, all);
  }

  /** "What your phone sent", in a tab. */
  async read(tab, all) {
    const told = await tab.client.told();
    if (told.length !== all.length) return this.fault(`a tab shows ${told.length} of ${all.length} reports`);
    for (const each of told) {
      figures.sent += 1;
      const found = all.find((report) => !report.read?.has(tab) && this.words(report).includes(each.text) && parseInt(each.bits, 2) === report.value);
      if (!found) return this.fault(`a tab shows ${each.text} ${each.bits}`);
      (found.read ??= new Set()).add(tab);
      if (!tab.isFresh && (each.answer !== null || each.coin)) this.fault("a reload shows an answer");
    }
  }

  /** The texts of a report: one, or two if two tabs with other words raced. */
  words({ round, place, ask: got }) {
    const end = Number(got.query_params.get("end"));
    return this.tabs.slice(0, 2).flatMap(({ raw: { questions, again } }) => {
      if (again?.bits) return [round === 1 ? "Round 1: which bit of r does your label show?" : this.list(got)];
      if (round === 1) return questions[place] ? [questions[place].text] : [];
      const about = questions.find((_, at) => `q${at + 1}` === again?.question);
      return about ? [`${about.text} Is your number below ${end}?`] : [];
    });
  }

  list({ query_params: given }) {
    const bits = (name) => Array.from({ length: 8 }, (_, place) => (Number(given.get(name)) >> place) & 1);
    const open = bits("free").flatMap((bit, place) => (bit ? [place] : []));
    return `Round 2: with b = 0, what is x at the places ${open.join(", ")}, and does the label fit r = ${bits("r").join("")}? With b = 1, which open bit does it show?`;
  }
}

for (const [kind, made] of unclear(new Draws(first), 10)) {
  try {
    pollOf(JSON.parse(JSON.stringify(made)));
    figures.violations.push(`an unclear poll is shown, kind ${kind}: ${JSON.stringify(made)}`);
  } catch (error) {
    figures.unclear += 1;
    if (!(error instanceof RefusedError || (error instanceof InputError && /^[^.]+\.$/.test(error.message)))) throw error;
  }
}
for (let seed = first; seed < first + seeds; seed += 1) await new Script(seed).play();
console.log(JSON.stringify({ ...figures, violations: figures.violations.slice(0, 20), faults: figures.violations.length }));
