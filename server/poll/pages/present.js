/** The presenter's page: it follows the poll's state and draws it anew after each change. */

import { at, make, say } from "./dom.js";
import { Card } from "./card.js";
import { epsilon, times } from "./phrases.js";
import { examine } from "./shown.js";
import { Slow } from "./slow.js";

/** @typedef {import("./card.js").Question} Question */
/** @typedef {{title: string, question: string, steps: string[], text: string, beside: string}} Second */
/**
 * @typedef {object} State the poll as the server knows it: public numbers alone
 * @property {string} title
 * @property {"open" | "again" | "playing" | "closed" | "failed"} phase
 * @property {string} status
 * @property {string} link
 * @property {number} joined how many phones have a place
 * @property {number} here how many are connected
 * @property {number} epsilon of all questions together
 * @property {number | null} until when it closes by itself, in seconds of 1970
 * @property {boolean} private
 * @property {Question[]} questions
 * @property {[string, string]} offer the button of a second round, and what it would show; each may be empty
 * @property {boolean} game whether it is a game, without questions
 * @property {Second | null} again the second question so far, or the game
 * @property {boolean} [slow] whether one made-up respondent is shown
 */

const ENDED = ["closed", "failed"];
/** @type {Card[]} */
const cards = [];
let slow = false;

/** @param {number} seconds of 1970 */
const clock = seconds => new Date(1000 * seconds).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** @param {State} state */
function draw(state) {
  const { game, joined, here } = state, over = ENDED.includes(state.phase), [button, outlook] = state.offer;
  const answered = game ? joined : Math.max(0, ...state.questions.map(question => question.answered));
  document.title = `${answered} ${game ? "phones" : "answers"}: ${state.title}`;
  say("title", state.title);
  say("status", state.status + (state.until && !over ? ` It closes at ${clock(state.until)}.` : ""));
  say("answered", answered.toLocaleString("en"));
  const what = game ? "phones" : `${answered === 1 ? "answer" : "answers"}; ${joined.toLocaleString("en")}`;
  say("joined", `${what} joined, ${here.toLocaleString("en")} connected`);
  drawLink(state.link);
  for (let place = cards.length; place < state.questions.length; place += 1) {
    cards.push(new Card(place));
    at("second").before(cards[place].section);
  }
  state.questions.forEach((question, place) => cards[place].draw(question));
  const promises = at("promises");
  if (!promises.childElementCount) promises.append(...promised(state).map(text => make("p", {}, text)));
  at("close").toggleAttribute("disabled", over);
  at("close").hidden = game && state.phase !== "open";
  for (const id of ["close", "sure-yes"]) if (game) say(id, "Start the game");
  if (game) say("sure-title", "Start the game?");
  say("sure-what", game ? "Nobody can join after that." : "Nobody can answer after that. The results are stored.");
  at("ask-again").hidden = !button;
  say("ask-again", button);
  say("outlook", outlook);
  if (state.again) drawSecond(state.again);
  if (state.slow && !slow) void showSlow();
}

/** Rounds that depend on each other: thresholds of a median, or a game. @param {Second} second */
function drawSecond({ title, question, steps, text, beside }) {
  at("second").hidden = false;
  say("second-title", title);
  say("second-question", question);
  say("median", text);
  say("beside", beside);
  at("thresholds").replaceChildren(...steps.map(line => make("li", {}, line)));
}

/** @param {string} address of the respondents' page: shown, and linked if it is of the web */
function drawLink(address) {
  const link = /** @type {HTMLAnchorElement} */ (at("link"));
  if (link.textContent === address || !/^https?:/.test(address)) return;
  link.textContent = address;
  link.href = address;
}

/** @param {State} state */
function promised(state) {
  const nano = Math.round(1e9 * state.epsilon);
  if (!state.private) return ["This is a rehearsal with a seed. Everybody with the seed can compute each answer, so nothing is promised."];
  if (state.game) {
    return [
      "The server dealt each phone a made-up record, and knows it. Such a record is about nobody, and it is not private.",
      `Each phone randomizes its one report by its own coin. It is at most ${times(nano)} times as likely under one record as under another (\u03b5 = ${epsilon(nano)}).`,
      "The class finds the rule from these reports alone.",
    ];
  }
  return [
    "Each phone randomizes its answers by its own coin, before it sends them.",
    `All reports of one person are at most ${times(nano)} times as likely under one set of answers as under another (\u03b5 = ${epsilon(nano)}).`,
    "The server stores these reports, and no address. One key counts once.",
    "Not promised: that nobody answers with two devices, and that people answer honestly.",
    "Not promised: that this page is honest. People trust the code that it sends to their phones, or use another client.",
  ];
}

async function showSlow() {
  slow = true;
  const poll = await (await fetch("poll.json")).json();
  new Slow(examine(poll.questions[0], 0));
}

/** @param {string} what */
async function command(what) {
  const answer = await fetch(what, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }).catch(() => null);
  say("said", answer?.ok ? "Done." : "The server did not accept that. Look at its terminal.");
}

/** @type {State | null} */
let last = null;
const sure = /** @type {HTMLDialogElement} */ (at("sure"));
at("close").addEventListener("click", () => sure.showModal());
at("sure-no").addEventListener("click", () => sure.close());
at("sure-yes").addEventListener("click", () => {
  sure.close();
  void command("close");
});
at("ask-again").addEventListener("click", () => void command("again"));
addEventListener("resize", () => last && draw(last));

const events = new EventSource("state");
events.onmessage = (/** @type {MessageEvent} */ event) => {
  last = /** @type {State} */ (JSON.parse(event.data));
  if (ENDED.includes(last.phase)) events.close();
  draw(last);
};
events.onerror = () => {
  if (!last || !ENDED.includes(last.phase)) say("status", "No connection to the poll. This page tries again by itself.");
};
