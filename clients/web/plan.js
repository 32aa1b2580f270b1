/** What a request would have a client do: queries and randomizers, verified and affordable. It is made without the record. */

import { blake2b } from "./vendor/noble-hashes/blake2.js";
import { InputError, RefusedError, hex } from "./bytes.js";
import { pack } from "./pack.js";
import { buildQuery } from "./queries.js";
import { build, verify } from "./randomizers/index.js";

/** @typedef {import("./wire.js").Ask} Ask */
/** @typedef {import("./store.js").Label} Label */
/** @typedef {import("./store.js").Totals} Totals */

/**
 * @typedef {object} Policy What a client accepts, whatever a server asks.
 * @property {number} perRun nano-nats in one run
 * @property {number} life nano-nats for life
 * @property {string[] | null} [randomizers] all that this client has, unless given
 * @property {number} [leastNano] the least nano-nats of one answer
 * @property {number} [rounds] that it answers in its life
 * @property {number} [bytes] of reports that it keeps
 */

/** @typedef {{place: number, ask: Ask}} Placed One ask to the client, and its number in the round. */
/** @typedef {{query: import("./queries.js").Query, randomizer: import("./randomizers/finite.js").Finite}} Built */
/** @typedef {{what: string, kept: Label | undefined, first: boolean}} Memo `what` its label stands for, or empty; the outcome under it; whether it is new. */
/** @typedef {Placed & Built & Memo} Planned */

/**
 * The asks of a request to one client. Throws RefusedError, the same for every record.
 * @param {import("./wire.js").Request} request
 * @param {import("./client.js").Client} client whose `built` makes the query and the randomizer of each ask
 * @returns {Promise<Planned[]>}
 */
export async function plan(request, client) {
  const asks = [...request.asks.entries()].flatMap(([place, ask]) => (client.isIn(ask.start, ask.stop) ? [{ place, ask }] : []));
  const made = await client.built(asks, request.round);
  /** @type {Planned[]} */
  const planned = asks.map((each, at) => ({ ...each, ...made[at], what: meaning(each.ask), kept: undefined, first: false }));
  const totals = await client.store.totals(client.run);
  for (const each of planned) each.kept = each.what ? await client.store.label(each.ask.once) : undefined;
  for (const { randomizer } of planned) {
    if (randomizer.nano < client.policy.leastNano) throw new RefusedError("ceiling", `epsilon ${randomizer.epsilon} is too little`);
  }
  checkLabels(planned, client.start);
  check(planned, totals, client.policy);
  for (const { randomizer } of planned) verify(randomizer);
  return planned;
}

/**
 * Throws RefusedError("equivocation") unless each label stands for one question, one randomizer and one key of coins.
 * @param {Planned[]} planned
 * @param {number} start
 */
function checkLabels(planned, start) {
  /** @type {Map<string, string>} */
  const meanings = new Map();
  for (const each of planned.filter(({ what }) => what)) {
    const { ask, what, kept, randomizer } = each;
    each.first = !kept && !meanings.has(ask.once);
    const before = kept?.what ?? meanings.get(ask.once) ?? what;
    if (before !== what || (kept && randomizer.usesCoins && kept.number !== start)) {
      throw new RefusedError("equivocation", `the label ${ask.once} stands for another question`);
    }
    meanings.set(ask.once, what);
  }
}

/** Throws RefusedError unless the round can be paid and kept. @param {Planned[]} planned @param {Totals} totals @param {Required<Policy>} policy */
export function check(planned, totals, { perRun, life, rounds, bytes }) {
  if (totals.rounds >= rounds || totals.size + sizeOf(planned) > bytes) throw new RefusedError("ceiling", `${totals.rounds} rounds are kept`);
  const nano = costOf(planned);
  if (nano > 0 && !(totals.run + nano <= perRun && totals.life + nano <= life)) {
    throw new RefusedError("budget", `${nano} nano-nats on top of ${totals.run} in this run and ${totals.life} for life`);
  }
}

/** What the round costs, in nano-nats: a label is paid for once. @param {Planned[]} planned */
export function costOf(planned) {
  return planned.reduce((sum, { what, first, randomizer }) => sum + (!what || first ? randomizer.nano : 0), 0);
}

/** The bytes of its reports, and of the outcomes that new labels keep. @param {Planned[]} planned */
export function sizeOf(planned) {
  return planned.reduce((sum, { first, randomizer }) => sum + randomizer.reportBytes * (first ? 2 : 1), 0);
}

/**
 * The query and the randomizer of an ask, which fit the columns and each other. Throws RefusedError.
 * @param {Ask} ask
 * @param {import("./record.js").Schema} schema
 * @param {Required<Policy>} policy
 * @returns {Built}
 */
export function built(ask, schema, policy) {
  const query = buildQuery(ask.query, ask.query_params);
  fits(() => query.fit(schema));
  if (policy.randomizers && !policy.randomizers.includes(ask.randomizer)) throw new RefusedError("not-allowed", `${ask.randomizer} is not on the list`);
  const randomizer = build(ask.randomizer, ask.randomizer_params);
  const [one, other] = [query.domain, randomizer.domain];
  fits(() => {
    const isOfKind = one.kind === other.kind || (one.kind === "symbols" && other.kind === "levels");
    const isSame = isOfKind && one.low === other.low && one.high === other.high;
    if (!isSame) throw new InputError("the query has other values than the randomizer takes");
  });
  return { query, randomizer };
}

/** @param {() => void} check */
function fits(check) {
  try {
    check();
  } catch (error) {
    throw error instanceof InputError ? new RefusedError("bad-query", error.message) : error;
  }
}

/** What the label of an ask stands for; empty without one. @param {Ask} ask */
function meaning(ask) {
  if (!ask.once) return "";
  return hex(blake2b(pack([ask.query, ask.query_params, ask.randomizer, ask.randomizer_params, ask.coins]), { dkLen: 16 }));
}
