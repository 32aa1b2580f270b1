/** What a member says, keeps and sends for requests that a server should not send: the same code in Node and in a browser. */

import { Client } from "../../clients/web/client.js";
import { Party, newKey, publicKey } from "../../clients/web/envelope.js";
import { Member } from "../../clients/web/member.js";
import { MemoryStore } from "../../clients/web/store.js";
import { decode, encode, topic } from "../../clients/web/wire.js";

const RUN = "class";
const SERVER = newKey();
const HERE = topic(RUN, "req", "g0");
export const SCRIPT = "<script>document.title = 'taken'</script>";

function ask(changes = {}) {
  const query_params = new Map(Object.entries({ text: "cheated == 1", spare: [] }));
  const randomizer_params = new Map(Object.entries({ epsilon: 0.5, word_bits: 32n }));
  return { query: "question", query_params, randomizer: "binary-rr", randomizer_params, start: 0, stop: 9, coins: new Uint8Array(16), once: "", ...changes };
}

const costing = (epsilon) => ask({ randomizer_params: new Map(Object.entries({ epsilon, word_bits: 32n })) });
const asking = (text) => ask({ query_params: new Map(Object.entries({ text, spare: [] })) });
const request = (asks, changes = {}) => ({ kind: "request", run: RUN, round: 2, asks, missing: [], ...changes });

/** The server's envelope of a message, or what `by` makes of it. */
function sealed(message, { key = SERVER, where = HERE, run = RUN } = {}) {
  const bytes = message instanceof Uint8Array ? message : encode(message);
  return new Party(run, publicKey(key), key, () => null).seal(where, bytes);
}

/** The request with its round in a longer form than it needs. */
function longer() {
  const bytes = [...encode(request([ask()]))];
  const at = bytes.findIndex((_, place) => String.fromCharCode(...bytes.slice(place, place + 5)) === "round") + 5;
  return Uint8Array.from([...bytes.slice(0, at), 0xcc, ...bytes.slice(at)]);
}

const labels = [SCRIPT, "no"];
const scripted = ask({
  query: "category",
  query_params: new Map(Object.entries({ column: "name", labels, spare: [] })),
  randomizer: "grr",
  randomizer_params: new Map(Object.entries({ epsilon: 0.5, word_bits: 32n, k: 2n })),
});

/** By name: the envelopes that come one after another, and the policy where it is not the usual one. */
const CASES = {
  "epsilon above the policy": [[sealed(request([costing(1.000001)]))]],
  "asks that are too much together": [[sealed(request([ask(), ask(), ask()]))]],
  "a spent budget": [[sealed(request([ask()])), sealed(request([ask()], { round: 3 })), sealed(request([costing(1e-6)], { round: 4 }))]],
  "an unknown randomizer": [[sealed(request([ask({ randomizer: "truth" })]))]],
  "a randomizer that is not on the list": [[sealed(request([scripted]))], { randomizers: ["binary-rr"] }],
  "an unknown query": [[sealed(request([ask({ query: "horoscope" })]))]],
  "a malformed question": [[sealed(request([asking("cheated = 1; alert(1)")]))]],
  "a column of another table": [[sealed(request([asking("wealth > 3")]))]],
  "less than the least": [[sealed(request([costing(0.00001)]))], { leastNano: 100_000_000 }],
  "no more rounds": [[sealed(request([ask()]))], { rounds: 0 }],
  "another coin in the same round": [[sealed(request([ask()])), sealed(request([ask({ coins: new Uint8Array(16).fill(1) })]))]],
  "another question in the same round": [[sealed(request([ask()])), sealed(request([asking("cheated == 0")]))]],
  "a replay of another run": [[sealed(request([ask()], { run: "other" }))]],
  "a replay of another run's envelope": [[sealed(request([ask()]), { run: "other" })]],
  "a replay under another topic": [[sealed(request([ask()]), { where: topic(RUN, "req", "all") })]],
  "another server's signature": [[sealed(request([ask()]), { key: newKey() })]],
  "one bit of the signature": [[sealed(request([ask()])).map((byte, at) => (at === 40 ? byte ^ 1 : byte))]],
  unsigned: [[encode(request([ask()]))]],
  oversized: [[sealed(new Uint8Array((1 << 20) + 1))]],
  "not canonical": [[sealed(longer())]],
  "a member's own kind": [[sealed({ kind: "gone", run: RUN, member: "client-0" })]],
  "not a message": [[sealed(new Uint8Array([0xc1]))]],
  "a script in a label": [[sealed(request([scripted]))]],
  "a script in a question": [[sealed(request([asking(`name == "${SCRIPT}"`)]))]],
};

/** For each case: what was refused in which words, the kinds of what was sent, what was spent by the last message, and what the page was told of the asks. */
export async function hostile(newStore = () => new MemoryStore()) {
  const results = {};
  for (const [name, [envelopes, policy]] of Object.entries(CASES)) {
    const store = await newStore();
    const record = { cheated: 1n, name: "no" };
    const client = new Client({ run: RUN, member: "client-0", start: 0, store, record, policy: { perRun: 1e9, life: 1e9, ...policy } });
    const member = new Member({ url: "", group: "g0", client, envelopes: Party.member(RUN, publicKey(SERVER), newKey()) });
    const refused = [];
    const asked = [];
    const sent = [];
    member.addEventListener("refused", ({ detail }) => refused.push(detail));
    member.addEventListener("asked", ({ detail }) => asked.push(...detail.asks.map(({ params }) => params)));
    member.line = { connected: true, publish: (_, envelope) => sent.push(decode(envelope.slice(64)).kind) };
    let before = 0;
    for (const envelope of envelopes) {
      before = (await store.totals(RUN)).life;
      await member.hear(HERE, envelope);
    }
    results[name] = { refused, sent, spent: (await store.totals(RUN)).life - before, asked };
  }
  return results;
}
