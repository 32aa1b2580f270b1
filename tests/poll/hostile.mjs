/** Seeded random polls and request scripts, most of them hostile: generators without the page's own code. */

const EPSILONS = [0.5, 1, 6];
const TEXTS = ["Did you ever cheat?", "Do you like tea?", "Which one?", "How many hours?", "Are you well?"];

/** A generator of one script: the same numbers for the same seed. */
export class Draws {
  constructor(seed) {
    this.state = (seed * 2654435761) >>> 0;
  }

  unit() {
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let word = Math.imul(this.state ^ (this.state >>> 15), this.state | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  }

  below(size) {
    return Math.floor(this.unit() * size);
  }

  chance(share) {
    return this.unit() < share;
  }

  of(list) {
    return list[this.below(list.length)];
  }
}

function question(draws) {
  const about = { text: draws.of(TEXTS), epsilon: draws.of(EPSILONS) };
  const kind = draws.of(["yes-no", "labels", "number"]);
  if (kind === "yes-no") return { ...about, kind, randomizer: "binary-rr" };
  if (kind === "number") return { ...about, kind, low: draws.of([0, -1, 0.5]), high: draws.of([10, 12.25]), randomizer: "one-bit-mean" };
  return { ...about, kind, labels: ["red", "green", "blue", "1", "None", "\u00e9", "x y"].slice(0, draws.of([2, 7])), randomizer: draws.of(["grr", "subset-selection"]) };
}

/** A poll that an honest server could describe. */
export function poll(draws, run) {
  const about = { version: 2, run, server: "", title: "A poll", open: true, people: 100 };
  if (draws.chance(0.15)) return { ...about, questions: [], again: { epsilon: draws.of([3, 5, 8]), bits: 8, rule: "A rule." } };
  const questions = Array.from({ length: 1 + draws.below(4) }, () => question(draws));
  const spare = () => 8 - questions.reduce((sum, { epsilon }) => sum + epsilon, 0);
  while (spare() < 0) questions.forEach((each) => (each.epsilon = each.epsilon === 6 ? 1 : 0.5));
  const number = questions.findIndex(({ kind }) => kind === "number");
  const asks = number >= 0 && draws.chance(0.7) && spare() >= questions[number].epsilon;
  return { ...about, questions, again: asks ? { question: `q${number + 1}`, epsilon: questions[number].epsilon } : null };
}

const one = (draws, made) => draws.of(made.questions);
/** Changes of a poll that no page may show: each is refused. A change returns false where the poll has no place for it. */
const UNCLEAR = [
  (draws, made) => doubled(draws, made, (label) => label),
  (draws, made) => doubled(draws, made, (label) => `${label} `),
  (draws, made) => doubled(draws, made, (label) => `${label}\u200b`),
  (draws, made) => doubled(draws, made, (label) => `${label}\0`),
  (draws, made) => doubled(draws, made, (label) => label.normalize("NFD"), "\u00e9"),
  (draws, made) => doubled(draws, made, () => " "),
  (draws, made) => doubled(draws, made, () => "\u202eder"),
  (draws, made) => doubled(draws, made, () => "long".repeat(100)),
  (draws, made) => doubled(draws, made, () => 7),
  (draws, made) => put(one(draws, made), "text", draws.of(["", " ", "\u200b", null, 3, ["a"], {}])),
  (draws, made) => put(one(draws, made), "epsilon", draws.of(["1", null, 0, -1, 25, [1], {}, true, 1e-12])),
  (draws, made) => put(one(draws, made), "kind", draws.of(["constructor", "__proto__", "record", null, "text"])),
  (draws, made) => put(one(draws, made), "randomizer", draws.of(["signed-blocks", "truth", "constructor", null])),
  (draws, made) => put(made.questions.find(({ kind }) => kind === "yes-no"), "randomizer", draws.of(["grr", "one-bit-mean"])),
  (draws, made) => put(made.questions.find(({ kind }) => kind === "number"), "low", draws.of([1e9, "0", null, [0], -1e200])),
  (draws, made) => put(made.questions.find(({ kind }) => kind === "number"), "high", draws.of([-2, "9", undefined])),
  (draws, made) => put(made.questions.find(({ kind }) => kind === "labels"), "labels", draws.of(["ab", [], ["a"], null, { length: 2 }])),
  (draws, made) => put(made.again, "epsilon", draws.of(["1", null, -5, 0, 25, [1], true])),
  (draws, made) => !made.again?.bits && put(made.again, "question", draws.of(["q9", "x", null, 3, "__proto__"])),
  (draws, made) => !made.again?.bits && put(made.again, "question", `q${1 + made.questions.findIndex(({ kind }) => kind !== "number")}`),
  (draws, made) => !made.again?.bits && put(made.again, "bits", 8),
  (draws, made) => made.again?.bits && put(made.again, "bits", draws.of([-1, 0, 2.5, 40, "8", true])),
  (draws, made) => put(made, "title", draws.of(["", null, 7])),
  (draws, made) => put(made, "questions", draws.of([[], null, "q", {}])) && !made.again?.bits,
];
/** Changes that show nothing: a page ignores them. */
const UNSEEN = [
  (draws, made) => made.questions.forEach((each) => Object.assign(each, { query: "question", query_params: { text: "q1 == 1", spare: [] }, randomizer_params: { epsilon: 0.1 } })),
  (draws, made) => made.questions.forEach((each) => (each.name = "q1")),
  (draws, made) => put(made, "rounds", 1e9),
  (draws, made) => put(made, "epsilon", 100),
  (draws, made) => made.questions.forEach((each) => (each.nano = 1)),
  (draws, made) => put(made.again, "rounds", 6),
];

function put(target, name, value) {
  if (target) target[name] = value;
  return Boolean(target);
}

function doubled(draws, made, change, from) {
  const found = made.questions.find(({ kind, labels }) => kind === "labels" && (!from || labels.includes(from)));
  if (found) found.labels = [...found.labels, change(from ?? draws.of(found.labels))];
  return Boolean(found);
}

/** The same poll, with data that no screen shows. */
export function padded(draws, made) {
  const copy = structuredClone(made);
  draws.of(UNSEEN)(draws, copy);
  return copy;
}

/** Each kind of unclear poll, some times: its number and the poll. */
export function* unclear(draws, times) {
  for (const [kind, change] of UNCLEAR.entries()) {
    for (let left = times; left;) {
      const made = poll(draws, "unclear");
      if (!change(draws, made)) continue;
      left -= 1;
      yield [kind, made];
    }
  }
}

/** An ask as the wire has it, of `due` or `later`; whole numbers as either kind of number. */
export function ask(draws, [query, of, randomizer, law], width) {
  const number = (value) => (Number.isInteger(value) && draws.chance(0.5) ? BigInt(value) : value);
  const whole = (name, value) => (["missing", "d", "r", "free", "asked"].includes(name) ? BigInt(value) : number(value));
  const query_params = new Map(Object.entries(of).map(([name, value]) => [name, typeof value === "number" ? whole(name, value) : value]));
  const randomizer_params = new Map(Object.entries({ ...law, word_bits: width }).map(([name, value]) => [name, name === "epsilon" ? number(value) : BigInt(value)]));
  const coins = Uint8Array.from({ length: 16 }, () => draws.below(256));
  return { query, query_params, randomizer, randomizer_params, start: 0, stop: 100, coins, once: "" };
}

const other = (target, field, name, value) => ({ ...target, [field]: new Map([...target[field], [name, value]]) });
/** The same round of a game, about other bits than the open ones. */
export const beside = (each) => (each.query_params.has("asked") ? other(each, "query_params", "asked", each.query_params.get("asked") << 1n) : each);
/** Changes of one ask, each of which makes it another one. */
const WRONG = [
  (draws, each) => ({ ...each, once: "label" }),
  (draws, each) => other(each, "randomizer_params", "epsilon", draws.of([0.2, 2, 6.5, 20])),
  (draws, each) => other(each, "randomizer_params", "word_bits", 24n),
  (draws, each) => other(each, "randomizer_params", "extra", 1n),
  (draws, each) => other(each, "query_params", "extra", "x"),
  (draws, each) => (each.query_params.has("spare") ? other(each, "query_params", "spare", ["missing"]) : other(each, "query_params", "spare", [])),
  (draws, each) => (each.query_params.has("column") ? other(each, "query_params", "column", draws.of(["q0", "q5", "x", "name"])) : other(each, "query_params", "text", "q1 == 0")),
  (draws, each) => (each.query_params.has("labels") ? other(each, "query_params", "labels", [...each.query_params.get("labels")].reverse()) : { ...each, query: "category" }),
  (draws, each) => (each.query_params.has("low") ? other(each, "query_params", "high", 1e6) : { ...each, randomizer: "one-bit-mean" }),
  (draws, each) => ({ ...each, query: "below" }),
  (draws, each) => (each.query_params.has("missing") ? other(each, "query_params", "missing", 0n) : { ...each, query: "horoscope" }),
];

/** Asks of round one, changed in one way. */
export function wrong(draws, asks) {
  const at = draws.below(asks.length), all = [...asks];
  switch (draws.below(8)) {
    case 0:
      return Array.from({ length: 1 + draws.below(8) }, () => all[at]);
    case 1:
      return all.reverse();
    case 2:
      return all.slice(0, at);
    case 3:
      return [...all, all[at]];
    case 4:
      all[at] = { ...all[at], query: all[0].query, query_params: all[0].query_params };
      return all;
    case 5:
      return [{ ...all[at], start: 50 }, ...all];
    default:
      all[at] = draws.of(WRONG)(draws, all[at]);
      return all;
  }
}
