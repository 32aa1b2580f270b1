/** A request in the form that a page shows: questions, costs, and the chances of the coin that is really used. */

import { RefusedError } from "./bytes.js";
import { build } from "./randomizers/index.js";

/**
 * @typedef {object} Described One ask of a request.
 * @property {number} ask its number in the round
 * @property {string} query
 * @property {{[name: string]: any}} params of the query: `text` of a question, `labels` of a category, `low` and `high` of a number
 * @property {string} randomizer
 * @property {number} nano what it costs, in nano-nats
 * @property {{changed: bigint, total: bigint} | null} odds of a report that is another symbol than the truth: `changed` in `total`, exactly; null where that
 *   means nothing, or the randomizer is not known
 */

/**
 * The asks that concern a client, as data and text alone: a page writes them as text.
 * @param {import("./wire.js").Request} request
 * @param {number} client
 * @returns {Described[]}
 */
export function describe(request, client) {
  return request.asks.flatMap((ask, place) => {
    if (client < ask.start || client >= ask.stop) return [];
    const { nano, odds } = coin(ask);
    return [{ ask: place, query: ask.query, params: Object.fromEntries(ask.query_params), randomizer: ask.randomizer, nano, odds }];
  });
}

/** @param {import("./wire.js").Ask} ask */
function coin(ask) {
  try {
    const randomizer = build(ask.randomizer, ask.randomizer_params);
    const { kind, low } = randomizer.domain;
    const direct = kind === "symbols" && !randomizer.usesCoins;
    return { nano: randomizer.nano, odds: direct ? { changed: randomizer.total - randomizer.weight(low, low), total: randomizer.total } : null };
  } catch (error) {
    if (error instanceof RefusedError) return { nano: 0, odds: null };
    throw error;
  }
}

/** A chance in percent with so many decimals, for people. @param {{changed: bigint, total: bigint}} odds @param {number} [decimals] */
export function percent({ changed, total }, decimals = 0) {
  const scale = 10n ** BigInt(decimals);
  return Number((changed * 200n * scale + total) / (2n * total)) / Number(scale);
}
