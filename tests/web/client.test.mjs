/** What a client does and does not do, apart from vectors: run by `node --test`. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, MemoryStore, RefusedError, build, decode, describe, encode } from "../../clients/web/index.js";
import { givenWords, hex, percent, systemWords, verify, worstRatio } from "../../clients/web/index.js";
import { pack, Reader } from "../../clients/web/pack.js";
import { BinaryRR } from "../../clients/web/randomizers/binary-rr.js";
import { compare, expEpsilon, exactly, fraction, toDouble } from "../../clients/web/rational.js";

const POLICY = { perRun: 2e9, life: 2e9 };
const KEEPS = (1n << 32n) - 1n;

function request(changes = {}, round = 1) {
  const params = { query_params: new Map([["text", "yes == 1"]]), randomizer_params: new Map([["epsilon", 1]]) };
  const ask = { query: "question", randomizer: "binary-rr", start: 0, stop: 9, coins: new Uint8Array(16), once: "", ...params, ...changes };
  return { kind: "request", run: "r", round, asks: [ask], missing: [] };
}

const client = (changes = {}) => new Client({ run: "r", member: "m", start: 0, store: new MemoryStore(), policy: POLICY, record: { yes: 1n }, ...changes });
const codeOf = (answer) => answer.refused?.code;

test("a reply leaves after its charge is stored", async () => {
  const order = [];
  class Slow extends MemoryStore {
    async commit(entry, check) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      const standing = await super.commit(entry, check);
      order.push("stored");
      return standing;
    }
  }
  await client({ store: new Slow() }).answer(request());
  order.push("sent");
  assert.deepEqual(order, ["stored", "sent"]);
});

test("a roll is answered by the members that it names, or by all", async () => {
  const say = async (missing) => (await client({ start: 7 }).handle(encode({ kind: "roll", run: "r", missing }))).map((bytes) => decode(bytes).kind);
  assert.deepEqual(await say([]), ["hello"]);
  assert.deepEqual(await say([[0, 3], [7, 9]]), ["hello"]);
  assert.deepEqual(await say([[0, 7], [8, 9]]), []);
});

test("a store that fails refuses, and nothing is sent", async () => {
  class Broken extends MemoryStore {
    async commit() {
      throw new RefusedError("store");
    }
  }
  const { messages } = await client({ store: new Broken() }).answer(request());
  assert.deepEqual(messages.map(({ kind, code }) => [kind, code]), [["refusal", "store"]]);
});

test("a refusal does not wait for the record, and an answer does", async () => {
  const waiting = client({ record: undefined, schema: { yes: "whole" } });
  const refused = await Promise.race([waiting.answer(request({ query: "horoscope" })), new Promise((resolve) => setTimeout(resolve, 200, null))]);
  assert.equal(codeOf(refused), "unknown-query");
  let answered = false;
  const answer = waiting.answer(request()).then((found) => ((answered = true), found));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.equal(answered, false);
  assert.deepEqual((await waiting.answer(request())).messages, [], "the same request waits once");
  assert.equal(codeOf(await waiting.answer(request({ stop: 8 }))), "equivocation", "another one is refused meanwhile");
  waiting.give({ yes: 1n });
  assert.equal((await answer).messages.length, 1);
});

test("refusals are the same for every record, and no word is drawn for them", async () => {
  const [dear, elsewhere] = [{ randomizer_params: new Map([["epsilon", 3]]) }, { query_params: new Map([["text", "no == 1"]]) }];
  for (const changes of [{ query: "horoscope" }, { randomizer: "truth" }, dear, elsewhere]) {
    const texts = [];
    for (const yes of [0n, 1n]) texts.push((await client({ record: { yes }, words: givenWords([]) }).handle(encode(request(changes)))).map(hex).join());
    assert.equal(texts[0], texts[1]);
    assert.equal(decode((await client().handle(encode(request(changes))))[0]).kind, "refusal");
  }
});

test("an answer is drawn once, and kept by the store that has it", async () => {
  const store = new MemoryStore();
  const first = await client({ store, words: givenWords([0n]) }).handle(encode(request()));
  const again = await client({ store, words: givenWords([KEEPS]), record: { yes: 0n } }).handle(encode(request()));
  assert.deepEqual(first.map(hex), again.map(hex));
  assert.equal((await store.totals("r")).life, 1e9);
  const made = { ...(await store.get("r", 1)), replies: [] };
  assert.equal((await store.commit(made, () => {})).replies.length, 1, "the first entry stands");
});

test("a page that knows better refuses what it does not show", async () => {
  class Careful extends Client {
    built(asks, round) {
      if (asks.length !== 1 || asks[0].ask.query_params.get("text") !== "yes == 1") throw new RefusedError("bad-query");
      return super.built(asks, round);
    }
  }
  const careful = new Careful({ run: "r", member: "m", start: 0, store: new MemoryStore(), policy: POLICY, record: { yes: 1n } });
  assert.equal(codeOf(await careful.answer(request({ query_params: new Map([["text", "yes == 0"]]) }))), "bad-query");
  const { asks: [one], ...rest } = request();
  assert.equal(codeOf(await careful.answer({ ...rest, asks: [one, one] })), "bad-query", "it sees the whole round");
  assert.equal((await careful.answer(request())).messages.length, 1);
});

test("a policy that is no number allows nothing", async () => {
  for (const policy of [{ perRun: NaN, life: 2e9 }, { perRun: 2e9, life: undefined }]) assert.equal(codeOf(await client({ policy }).answer(request())), "budget");
});

test("a channel that loses more than it costs is refused, before any word is drawn", async () => {
  class Loose extends BinaryRR {
    prepare() {
      super.prepare();
      this.other -= this.other / 1000n;
    }
  }
  assert.throws(() => verify(new Loose(new Map([["epsilon", 1]]))), { code: "unverifiable" });
  class Careless extends Client {
    async built(asks, round) {
      return (await super.built(asks, round)).map((made) => ({ ...made, randomizer: new Loose(new Map([["epsilon", 1]])) }));
    }
  }
  const careless = new Careless({ run: "r", member: "m", start: 0, store: new MemoryStore(), policy: POLICY, record: { yes: 1n }, words: givenWords([]) });
  assert.equal(codeOf(await careless.answer(request())), "unverifiable");
  assert.throws(() => worstRatio({ domain: { low: 0, high: 1 }, alphabet: 2, total: 4n, weight: () => 1n }), { code: "unverifiable" }, "rows that are no law");
  assert.throws(() => worstRatio({ domain: { low: 0, high: 1 }, alphabet: 2, total: 4n, weight: (w, u) => (w === u ? 4n : 0n) }), { code: "unverifiable" });
  assert.throws(() => worstRatio({ domain: { low: 0, high: 4095 }, alphabet: 4096, total: 4n, weight: () => 1n }), { code: "too-much" });
});

test("the enumerated loss of every randomizer is at most its cost, and next to it", () => {
  for (const [name, params] of [["binary-rr", {}], ["grr", { k: 7n }], ["one-bit-mean", { steps: 100n }], ["subset-selection", { k: 12n }]]) {
    for (const epsilon of [0.001, 0.5, 1, 4, 8]) {
      const randomizer = build(name, new Map(Object.entries({ epsilon, ...params })));
      const worst = worstRatio(randomizer.channel);
      assert.ok(compare(worst, expEpsilon(randomizer.nano)) <= 0, name);
      assert.ok(compare(worst, expEpsilon(randomizer.nano - Math.ceil(1000))) > 0, `${name} ${epsilon}: within a millionth`);
    }
  }
});

test("a page sees the coin that was used, and after a reload the bits alone", async () => {
  const store = new MemoryStore();
  const { sent } = await client({ store, words: givenWords([5n]) }).answer(request());
  assert.deepEqual(sent, [{ ask: 0, report: 0, bits: "00000000", drawn: { value: 1, word: 5n, edge: 1155094610n, total: 1n << 32n } }]);
  assert.deepEqual(await client({ store }).past(), [{ round: 1, nano: 1e9, asks: undefined, sent: [{ ...sent[0], drawn: null }] }]);
  const [shown] = describe(request(), 0);
  assert.deepEqual([shown.nano, percent(shown.odds), percent(shown.odds, 2)], [1e9, 27, 26.89]);
});

test("what is kept shows no answer", async () => {
  const texts = [];
  for (const yes of [0n, 1n]) {
    const store = new MemoryStore();
    await client({ store, record: { yes }, words: givenWords([yes === 0n ? 0n : KEEPS]) }).answer(request()); // both report 1
    texts.push(JSON.stringify([...store.kept], (_, value) => (typeof value === "bigint" ? String(value) : value)));
  }
  assert.equal(texts[0], texts[1]);
});

test("every number and text is packed and read alike", () => {
  const limits = { containers: 99, mapLength: 99, arrayLength: 99, text: 99999 };
  for (let step = 0; step < 2000; step += 1) {
    const word = systemWords.word(64) >> (systemWords.word(32) % 64n);
    for (const value of [word, -(word >> 1n), "é".repeat(Number(word % 300n)), new Uint8Array(Number(word % 300n)), Number(word) / 3]) {
      const reader = new Reader(pack(value), limits);
      assert.deepEqual(reader.read(), value);
      assert.ok(reader.canonical);
    }
  }
});

test("doubles are exact fractions, and fractions the nearest doubles", () => {
  for (let step = 0; step < 2000; step += 1) {
    const double = Number(systemWords.word(64)) / Number(systemWords.word(32) + 1n);
    const { num, den } = exactly(double);
    assert.equal(toDouble(fraction(num, den)), double);
    assert.equal(toDouble(fraction(3n * (num << 60n) + 1n, 3n * (den << 60n))), double);
  }
});
