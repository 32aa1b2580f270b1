/** Why a request is not answered: the codes and lines that go over the wire, and what a page says to its person. */

/** The line of each code, as Python's clients write it. @type {{[code: string]: string}} */
const LINES = {
  budget: "round {round} costs more than this client's budget has left for it",
  store: "this client cannot read or write its store of spent budget; see its own messages",
  ceiling: "round {round} exceeds this client's ceiling of rounds or bytes, or asks for less epsilon than its least",
  equivocation: "round {round} of run {run}, or a label in it, was asked before with something else; give it a name of its own",
  "unknown-query": "this client lacks a query of {queries}; install its package there",
  "unknown-randomizer": "this client lacks a randomizer of {randomizers}; install its package there",
  "not-allowed": "a randomizer of {randomizers} is not on this client's list; ask by another, or --allow it there",
  "bad-parameters": "this client accepts no such parameter of {queries} or {randomizers}; correct it",
  "bad-query": "{queries} does not fit the columns of this client's table, or the values that {randomizers} takes; correct the question, or its schema",
  "other-code": "this client has other code of {queries} or {randomizers} than the server; give both the same file or package",
  evidence: "this client does not accept the evidence for the loss of {randomizers}; use a verified randomizer",
  "too-much": "to build and verify {randomizers} is more work than this client does for one request, or in its life",
  unverifiable: "{randomizers} failed the verification; `local-dp audit` on the client's machine shows why",
  failed: "round {round} cannot be answered",
};

/** What a page says. The last ones never become a message: their sender is unknown, or means somebody else. @type {{[code: string]: string}} */
const WORDS = {
  budget: "This question costs more privacy than your budget has left.",
  store: "This browser cannot store what was spent. So it answers nothing.",
  ceiling: "This request is beyond the limits of this page: too many rounds, too many bytes, or too little epsilon for an answer that means anything.",
  equivocation: "The server asked the same round twice, with different contents. Two answers could reveal more than one, so only the first counts.",
  "unknown-query": "The server asks for something that this page does not know.",
  "unknown-randomizer": "The server wants the answer randomized in a way that this page does not know.",
  "not-allowed": "The server wants the answer randomized in a way that is not on this page's list.",
  "bad-parameters": "A question has a number that cannot be right, or cannot be read.",
  "bad-query": "The server asks something that this page does not show.",
  "other-code": "The server asks by code that this page does not have.",
  evidence: "Nothing proves the privacy of this randomizer, so this page does not use it.",
  "too-much": "To verify this randomizer is more work than this page does.",
  unverifiable: "The enumerated channel reveals more than the request says. So this page does not use it.",
  failed: "This page cannot answer the request.",
  forged: "A message came without the server's signature. It was dropped unread.",
  oversized: "A message was larger than any message may be. It was dropped unread.",
  "other-run": "A message of another run came. It was dropped.",
  malformed: "A message came that is not in the one allowed form. It was dropped.",
};

export const CODES = Object.keys(LINES);
const NAMED = 3; // names in a line

/** @param {string} code */
export function known(code) {
  return Object.hasOwn(LINES, code) ? code : "failed";
}

/** The line of a refusal. @param {string} code @param {import("./wire.js").Request} request */
export function lineOf(code, request) {
  /** @type {{[field: string]: string}} */
  const fields = {
    run: request.run,
    round: String(request.round),
    queries: names(request.asks.map((ask) => ask.query)),
    randomizers: names(request.asks.map((ask) => ask.randomizer)),
  };
  return LINES[code].replace(/\{(\w+)\}/g, (_, field) => fields[field]);
}

/** What a page says for a code, or for the fault of a message that was dropped. @param {string} code */
export function words(code) {
  return Object.hasOwn(WORDS, code) ? WORDS[code] : WORDS.malformed;
}

/** @param {string[]} all */
function names(all) {
  const distinct = [...new Set(all)];
  return distinct.slice(0, NAMED).join(", ") + (distinct.length > NAMED ? ` and ${distinct.length - NAMED} more` : "");
}
