/** The sentences of the pages: chances, costs, refusals. Each is one thought. */

const NANO = 1e9;

/** @typedef {import("./session.js").Question} Question */
/** @typedef {import("./methods.js").Chance} Chance */

/** @param {number} nano nano-nats @returns {string} */
export const epsilon = nano => Number((nano / NANO).toPrecision(3)).toString();

/** A share as "27 of 100 cases", of more cases where it is close to none or all. @param {number} share */
export function cases(share) {
  let of = 100;
  while (Math.min(share, 1 - share) * of < 9.5 && of < 1e6) of *= 10;
  return `${Math.round(of * share).toLocaleString("en")} of ${of.toLocaleString("en")} cases`;
}

/** @param {number} share @returns {string} */
export function percent(share) {
  const number = 100 * share, text = Math.abs(number) < 0.1 ? Number(number.toPrecision(1)).toString() : number.toFixed(1).replace(/\.0$/, "");
  return `${text.replace("-", "\u2212")}\u00a0%`;
}

/** What the phone does with an answer. @param {Chance} chance @param {Question} question */
export function chanceOf({ kind, share, size }, { labels, low, high }) {
  switch (kind) {
    case "flip":
      return `In ${cases(share)} your phone will say the opposite, and nobody can know when.`;
    case "label":
      return `In ${cases(share)} your phone will name another answer, and nobody can know when.`;
    case "subset":
      return `Your phone sends ${size} of the ${labels.length} answers. Yours is among them in ${cases(share)}, and nobody can know when.`;
    case "bit":
      return `Your phone sends one bit. It is 1 in ${cases(share)} for the number ${low}, in ${cases(1 - share)} for ${high}, and in between for others.`;
  }
}

/** How many times as likely one answer may make a report. @param {number} nano nano-nats */
export function times(nano) {
  const growth = Math.exp(nano / NANO);
  return growth < 10 ? growth.toFixed(1) : Math.ceil(growth).toLocaleString("en");
}

/** The guarantee of one question. @param {number} nano */
export function ratio(nano) {
  return `What is sent is at most ${times(nano)} times as likely under one answer as under any other (\u03b5 = ${epsilon(nano)}).`;
}
