/** What a person was shown, by definition: an account of every report that leaves a page, written without the page's own code. Laws are doubles. */

const CLOSE = 1e-5; // a coin so near a threshold decides nothing here
const STEPS = 65536;

/** The ask that a question on the screen stands for, as plain data. */
export function due(poll, place) {
  const { kind, labels, low, high, epsilon, randomizer } = poll.questions[place];
  const column = `q${place + 1}`;
  if (kind === "yes-no") return ["question", { text: `${column} == 1`, spare: [] }, randomizer, { epsilon }];
  if (kind === "labels") return ["category", { column, labels, spare: [] }, randomizer, { epsilon, k: labels.length }];
  return ["bounded", { column, low, high }, randomizer, { epsilon, steps: STEPS }];
}

/** The ask of a later round, or of a game; `given` by the server: an end, or vectors. */
export function later(poll, round, given) {
  const { question, epsilon, bits } = poll.again;
  if (!bits) return ["below", { column: question, end: given.end, missing: STEPS / 2 }, "one-bit-mean", { epsilon, steps: STEPS }];
  if (round === 1) return ["masked-index", { d: bits }, "signed-blocks", { epsilon, k: bits, size: 1 }];
  const open = count(given.free);
  return ["masked-list", { d: bits, r: given.r, free: given.free, asked: given.free }, "signed-blocks", { epsilon, k: 2 ** open + open, size: 1 }];
}

/** Whether an ask of the wire is this one; the width of the words is free, if it is one of the two. */
export function isOne(ask, wanted) {
  const plain = (map) => JSON.stringify([...map].sort(), (_, value) => (typeof value === "bigint" ? Number(value) : value));
  const [query, of, randomizer, law] = wanted;
  const words = Number(ask.randomizer_params.get("word_bits"));
  const same = ask.query === query && ask.randomizer === randomizer && plain(ask.query_params) === plain(Object.entries(of));
  return same && [32, 64].includes(words) && ask.once === "" && plain(ask.randomizer_params) === plain(Object.entries({ ...law, word_bits: words }));
}

/** Whether a report follows from the true answer and the coin, from 0 to 1, by the law that was shown. */
export function follows(kind, epsilon, { answer, coin, report, size, sets }) {
  const odds = Math.exp(epsilon);
  if (kind === "flip") return near(coin, 1 / (1 + odds)) || report === (coin < 1 / (1 + odds) ? 1 - answer : answer);
  if (kind === "other") return near(coin, (size - 1) / (odds + size - 1)) || (report === answer) === coin >= (size - 1) / (odds + size - 1);
  if (kind === "subset") {
    const { order, w, has } = sets;
    const own = (w * odds) / (w * odds + order - w);
    return near(coin, own) || has === coin < own;
  }
  const one = 0.5 + ((2 * answer - 1) * (odds - 1)) / (odds + 1) / 2; // answer from 0 to 1
  return near(coin, one) || report === Number(coin < one);
}

/** The report of a made-up record that is not changed: twice the symbol, and one more for a minus. */
export function truth(bits, round, { x, i, b, y }, { r, free }) {
  if (round === 1) return b ? 2 * i + Number(y < 0) : 2 * bits;
  const open = places(free);
  const listed = 2 ** open.length;
  if (b) return open.includes(i) ? 2 * (listed + open.indexOf(i)) + Number(y < 0) : 2 * (listed + open.length);
  const symbol = open.reduce((sum, place, at) => sum + (((x >> place) & 1) << at), 0);
  return 2 * symbol + Number(y < 0 !== (count(x & r) % 2 === 1));
}

const near = (coin, edge) => Math.abs(coin - edge) < CLOSE;
const places = (vector) => Array.from({ length: 30 }, (_, place) => place).filter((place) => (vector >> place) & 1);
const count = (vector) => places(vector).length;
