/** The presenter's page: it follows the poll's state and draws it anew after each change. */

import { at, make, say } from "./dom.js";
import { Card } from "./card.js";
import { epsilon, times } from "./phrases.js";
import { Slow } from "./slow.js";

/** @typedef {import("./card.js").Question} Question */
/** @typedef {{question: string, steps: string[], text: string}} Second */
/**
 * @typedef {object} State the poll as the server knows it: public numbers alone
 * @property {string} title
 * @property {"open" | "again" | "closed" | "failed"} phase
 * @property {string} status
 * @property {string} link
 * @property {number} joined how many phones have a place
 * @property {number} here how many are connected
 * @property {number} epsilon of all questions together
 * @property {number | null} until when it closes by itself, in seconds of 1970
 * @property {boolean} private
 * @property {Question[]} questions
 * @property {string} outlook what a second question would show; empty where it cannot be asked
 * @property {Second | null} again the second question so far
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
  const answered = Math.max(0, ...state.questions.map(question => question.answered)), over = ENDED.includes(state.phase);
  document.title = `${answered} answers: ${state.title}`;
  say("title", state.title);
  say("status", state.status + (state.until && !over ? ` It closes at ${clock(state.until)}.` : ""));
  say("answered", answered.toLocaleString("en"));
  say("joined", `${answered === 1 ? "answer" : "answers"}; ${state.joined.toLocaleString("en")} joined, ${state.here.toLocaleString("en")} connected`);
  drawLink(state.link);
  for (let place = cards.length; place < state.questions.length; place += 1) {
    cards.push(new Card(place));
    at("second").before(cards[place].section);
  }
  state.questions.forEach((question, place) => cards[place].draw(question));
  const promises = at("promises");
  if (!promises.childElementCount) promises.append(...promised(state).map(text => make("p", {}, text)));
  at("close").toggleAttribute("disabled", over);
  at("ask-again").hidden = !state.outlook;
  say("outlook", state.outlook);
  if (state.again) drawSecond(state.again);
  if (state.slow && !slow) void showSlow();
}

/** The median by thresholds, each chosen after the answers to the ones before. @param {Second} second */
function drawSecond({ question, steps, text }) {
  at("second").hidden = false;
  say("second-question", question);
  say("median", text);
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
  new Slow(poll.questions[0]);
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
