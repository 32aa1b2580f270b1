/** The presenter's page: it follows the poll's state and draws it anew after each change. */

import { at, cleared, make, say } from "./dom.js";
import { Card } from "./card.js";

/** @typedef {import("./card.js").Question} Question */
/**
 * @typedef {object} State the poll as the server knows it: public numbers, and reports that are public
 * @property {string} title
 * @property {"open" | "closed" | "failed"} phase
 * @property {string} status
 * @property {string} link
 * @property {number} joined
 * @property {number} answered
 * @property {Question[]} questions
 * @property {string[]} promises
 * @property {string} again what may be asked next; empty: nothing
 * @property {string[]} slow the steps of one made-up respondent
 */

/** @type {Card[]} */
const cards = [];
let step = 0;

/** @param {State} state */
function draw(state) {
  document.title = `${state.answered} answers: ${state.title}`;
  say("title", state.title);
  say("status", state.status);
  say("answered", state.answered.toLocaleString("en"));
  say("joined", `${state.answered === 1 ? "answer" : "answers"}; ${state.joined.toLocaleString("en")} joined`);
  const link = /** @type {HTMLAnchorElement} */ (at("link"));
  if (link.textContent !== state.link && /^https?:/.test(state.link)) {
    link.textContent = state.link;
    link.href = state.link;
  }
  while (cards.length < state.questions.length) {
    const card = new Card(cards.length);
    cards.push(card);
    at("cards").append(card.section);
  }
  state.questions.forEach((question, place) => cards[place].draw(question));
  const promises = at("promises");
  if (promises.childElementCount !== state.promises.length) promises.replaceChildren(...state.promises.map(text => make("p", {}, text)));
  const over = state.phase !== "open";
  at("close").toggleAttribute("disabled", over);
  at("ask-again").hidden = !state.again || over;
  say("ask-again", state.again || "Ask again");
  at("slow").hidden = !state.slow.length;
  drawSteps(state.slow);
}

/** @param {string[]} steps */
function drawSteps(steps) {
  const list = at("steps");
  if (list.childElementCount === Math.min(step + 1, steps.length)) return;
  list.replaceChildren(...steps.slice(0, step + 1).map((text, place) => make("li", { "aria-current": place === step && "step" }, text)));
  at("step").toggleAttribute("disabled", step + 1 >= steps.length);
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
at("step").addEventListener("click", () => {
  step += 1;
  if (last) drawSteps(last.slow);
});
addEventListener("resize", () => last && draw(last));

const events = new EventSource("state");
events.onmessage = event => {
  last = /** @type {State} */ (JSON.parse(event.data));
  if (last.phase !== "open") events.close();
  draw(last);
};
events.onerror = () => {
  if (last?.phase === "open" || !last) say("status", "No connection to the poll. This page tries again by itself.");
};
