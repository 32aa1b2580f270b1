/** The sentences of the pages: chances, costs, refusals. Each is one thought. */

const NANO = 1e9;

/** @typedef {import("./session.js").Question} Question */
/** @typedef {import("./session.js").Chance} Chance */

/** @param {number} nano nano-nats @returns {string} */
export const epsilon = nano => Number((nano / NANO).toPrecision(3)).toString();

/** A share as "27 of 100" or, where it is small, "4 of 1,000". @param {number} share */
export function cases(share) {
  const of = share === 0 || (share >= 0.095 && share <= 0.905) ? 100 : 1000;
  return `${Math.round(of * share).toLocaleString("en")} of ${of.toLocaleString("en")} cases`;
}

/** @param {number} share @returns {string} */
export const percent = share => `${(100 * share).toFixed(1).replace(/\.0$/, "").replace("-", "\u2212")} %`;

/** What the phone does with an answer. @param {Chance} chance @param {Question} question */
export function chanceOf(chance, question) {
  switch (chance.kind) {
    case "flip":
      return `In ${cases(chance.share)} your phone will say the opposite, and nobody can know when.`;
    case "label":
      return `In ${cases(chance.share)} your phone will name another answer, and nobody can know when.`;
    case "subset":
      return `Your phone sends ${chance.size} of the ${question.labels.length} answers. Yours is among them in ${cases(1 - chance.share)}, and nobody can know when.`;
    case "bit":
      return `Your phone sends one bit. It is 1 in ${cases(chance.share)} for the least number, and in ${cases(1 - chance.share)} for the greatest. Nobody can know your number.`;
  }
}

/** The guarantee of one question. @param {number} nano */
export function ratio(nano) {
  const times = Math.exp(nano / NANO);
  return `What is sent is at most ${times < 10 ? times.toFixed(1) : Math.ceil(times).toLocaleString("en")} times as likely under one answer as under any other (\u03b5 = ${epsilon(nano)}).`;
}

/** Why the phone did not answer, by the code of the refusal. */
const REFUSALS = {
  budget: "This poll asks for more than the privacy budget that you have left.",
  store: "Your browser cannot write to its storage. Without it your phone cannot keep count of your budget. A private window may be the reason.",
  ceiling: "This poll asks too often, or for answers that are too large.",
  equivocation: "The poll asked the same round before, in another way. Two ways together could reveal your answer.",
  "unknown-query": "The poll asks for something that this page does not know.",
  "unknown-randomizer": "The poll wants a randomizer that this page does not know.",
  "not-allowed": "The poll wants a randomizer that is not on your phone's list.",
  "bad-parameters": "The poll's randomizer has parameters that make no sense.",
  "bad-query": "The question does not fit the answer that you gave.",
  evidence: "Nobody has proven how much this randomizer reveals.",
  "too-much": "To check this poll would take more work than your phone does.",
  unverifiable: "Your phone computed the chances, and they reveal more than the poll says.",
  "wrong-signature": "A message came that the poll's server did not sign. Somebody on the way may have changed it.",
  "wrong-run": "A message came that belongs to another poll.",
  "bad-message": "A message came that is no request: malformed, too long, or of another version.",
  "other-question": "The request asks for something other than the questions on this page.",
  failed: "The poll asks in a way that your phone cannot answer.",
};

/** @param {string} code @returns {string} */
export function refusal(code) {
  const known = /** @type {Record<string, string>} */ (REFUSALS);
  return Object.hasOwn(known, code) ? known[code] : REFUSALS.failed;
}

export const codes = Object.keys(REFUSALS);
