/** Members of a run in a page, each with a ledger in the browser's database; and what these ledgers do. */

import { BrowserStore, Client, Member, decode, encode, givenWords, hex } from "../../clients/web/index.js";
import { lives } from "./lives.mjs";

export const result = (run) => lives(run, (member) => BrowserStore.open(`ledger of ${member}`));

const asked = (changes) => {
  const params = { query_params: new Map([["text", "yes == 1"]]), randomizer_params: new Map([["epsilon", 1]]) };
  return { query: "question", randomizer: "binary-rr", start: 0, stop: 9, coins: new Uint8Array(16), once: "", ...params, ...changes };
};
const request = (round, changes) => encode({ kind: "request", run: "kept", round, asks: [asked(changes)], missing: [] });

const OTHER = { coins: new Uint8Array(16).fill(1) };

/** A client of the one store, that would draw these words. */
async function client(...words) {
  const store = await BrowserStore.open("kept");
  return new Client({ run: "kept", member: "m", start: 0, store, policy: { perRun: 2e9, life: 2e9 }, record: { yes: 1n }, words: givenWords(words) });
}

/** What clients of one store answer to requests at the same time, in hexadecimal digits or as the code of a refusal, and what is then spent. */
async function together(...given) {
  const answers = await Promise.all(given.map(async ([word, round, changes]) => (await client(word)).handle(request(round, changes))));
  const told = answers.map(([bytes]) => (decode(bytes).kind === "refusal" ? decode(bytes).code : hex(bytes)));
  return { told, spent: (await (await client()).store.totals("kept")).life };
}

const FLIPS = 0n;
const KEEPS = (1n << 32n) - 1n;

export const first = () => together([FLIPS, 1], [KEEPS, 1], [KEEPS, 1]);
export const again = () => together([KEEPS, 1], [KEEPS, 1, OTHER]);
export const beyond = () => together([FLIPS, 2], [KEEPS, 3], [KEEPS, 4]);
export const account = async () => (await (await client()).account()).rounds.map(([round]) => round);

const soon = () => new Promise((resolve) => setTimeout(resolve, 300));

/** The states of the same member in two pages, before and after the first is closed. Nobody listens at their address. */
export async function twice() {
  const one = async () => new Member({ url: "ws://127.0.0.1:9", group: "g0", client: await client() });
  const [first, second] = [await one(), await one()];
  first.start();
  await soon();
  second.start();
  await soon();
  const before = [first.state, second.state];
  await first.stop();
  await soon();
  const after = second.state;
  await second.stop();
  return [...before, after];
}
