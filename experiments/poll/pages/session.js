/** A respondent's part in one poll: the page's own copy of the methods, its policy, its budget, and its member on the bus. */

/**
 * @typedef {object} Question
 * @property {string} text
 * @property {"choice" | "number"} kind
 * @property {string[]} labels of a choice
 * @property {number} low of a number
 * @property {number} high
 * @property {number} nano what it costs, in nano-nats, computed here
 */
/** @typedef {{kind: "flip" | "label" | "subset" | "bit", share: number, size?: number}} Chance share: of the less likely outcome */
/**
 * @typedef {object} Sent what left the phone for one question; answer and coin are null after a reload
 * @property {number | null} answer
 * @property {string} bits
 * @property {string} meaning of the bits, in words
 * @property {number | null} coin from 0 to 1
 * @property {number | null} threshold below it the coin falls into the first zone
 * @property {[string, string]} zones
 */
/** @typedef {"idle" | "elsewhere" | "joining" | "waiting" | "sent" | "confirmed" | "offline" | "closed" | "late" | "full"} State */

export class Session extends EventTarget {}
