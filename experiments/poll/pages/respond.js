/** The respondent's page: questions, one answer each, then exactly the bits that left the phone. */

import { at, say, cleared, stacked } from "./dom.js";
import { answers, field } from "./forms.js";
import { report } from "./coin.js";
import { RefusedError, words } from "./client/index.js";
import { epsilon } from "./phrases.js";
import { LIMITS, Session } from "./session.js";

/** @typedef {import("./session.js").State} State */

const STATUS = {
  idle: ["Nothing has left your phone yet.", ""],
  elsewhere: ["Another tab of this browser speaks to the server. This tab shows the same report.", ""],
  joining: ["Your phone joins the poll.", ""],
  waiting: ["Your answers wait on your phone for the server's question. Keep this page open.", ""],
  sent: ["Sent. Keep this page open until the server confirms.", ""],
  confirmed: ["Done. The server has stored your report. You can close this page.", "good"],
  offline: ["No connection. Your phone tries again by itself and sends the same bits.", "bad"],
  closed: ["The poll is closed. Thank you.", "good"],
  late: ["The poll is closed. Your phone sent nothing.", "bad"],
  full: ["The poll has no place left. Your phone sent nothing.", "bad"],
};

/** @param {Session} session */
function drawStatus(session) {
  const status = at("status"), { refused, dropped, sent } = session;
  const [text, colour] = refused.length && !sent ? [`Your phone refused, and sent nothing. ${words(refused[refused.length - 1])}`, "bad"] : STATUS[session.state];
  const later = sent && refused.length ? ` Your phone refused another request, and sent nothing new. ${words(refused[refused.length - 1])}` : "";
  say("status", text + later + (dropped.length ? ` ${words(dropped[dropped.length - 1])}` : ""));
  status.className = `status ${colour}`;
}

/** @param {Session} session */
function drawBudget(session) {
  const { cost, spent: { run, life } } = session;
  const ahead = session.sent ? 0 : cost;
  at("budget").hidden = false;
  const lone = session.poll.questions.length === 1;
  say("cost", session.sent ? `This poll has cost \u03b5 = ${epsilon(run)}.` : `${lone ? "The question costs" : "All questions together cost"} \u03b5 = ${epsilon(cost)}${session.poll.again ? ", with a second question that may follow about your number" : ""}. A smaller \u03b5 means more privacy.`);
  for (const [name, spent, most, what] of /** @type {[string, number, number, string][]} */ ([["run", run, LIMITS.perRun, "for this poll"], ["life", life, LIMITS.life, "for all polls of this address, in this browser"]])) {
    const bar = at(`${name}-bar`);
    stacked(bar, [[spent / most, "bar-spent"], [ahead / most, "bar-now"]]);
    const text = `Left ${what}: ${epsilon(Math.max(0, most - spent))} of ${epsilon(most)}${ahead ? `; ${epsilon(Math.max(0, most - spent - ahead))} after you send` : ""}.`;
    bar.setAttribute("aria-label", text);
    say(`${name}-text`, text);
  }
}

/** @param {Session} session */
function drawSent(session) {
  const { sent, member } = session, list = at("reports");
  at("sent").dataset.place = member ? String(member.client.start) : "";
  if (!sent || list.childElementCount === sent.length) return;
  const isFirst = at("sent").hidden, keepsAnswers = sent.some(({ answer }) => answer !== null);
  at("form").hidden = true;
  at("sent").hidden = false;
  say("sent-note", keepsAnswers ? "Your answer and the coin are on this screen only. They are gone when you close or reload the page." : "Your phone kept these bits. It did not keep your answer or the coin.");
  list.replaceChildren(...sent.map(report));
  if (isFirst) at("sent-title").focus();
}

/** @param {Session} session */
function drawForm(session) {
  const { poll } = session;
  const [only] = poll.questions;
  say("title", poll.title);
  document.title = poll.title;
  say("lead", poll.questions.length === 1 && only.text === poll.title ? "One question. Your phone randomizes your answer before it sends it." : `${poll.questions.length} questions. Your phone randomizes each answer before it sends it.`);
  cleared("questions", "").append(...poll.questions.map((question, place) => field(question, place)));
  at("form").hidden = session.sent !== null;
}

/** @param {Session} session */
function listen(session) {
  const form = /** @type {HTMLFormElement} */ (at("form"));
  form.addEventListener("submit", event => {
    event.preventDefault();
    const { answers: given, missing, why } = answers(form, session.poll.questions);
    say("gap", why);
    if (missing >= 0) return at(`q${missing}-0`).focus();
    void session.answer(given);
  });
  at("again").addEventListener("click", () => {
    say("again-note", "Nothing new was sent. Your phone has one report, and repeats the same bits until the server has them. They count once.");
  });
  session.addEventListener("change", () => draw(session));
}

/** @param {Session} session */
function draw(session) {
  const mayAnswer = session.state === "idle" && !session.refused.length;
  for (const control of at("form").querySelectorAll("input, button")) control.toggleAttribute("disabled", !mayAnswer);
  drawStatus(session);
  drawBudget(session);
  drawSent(session);
}

try {
  const session = await Session.open();
  drawForm(session);
  listen(session);
  draw(session);
} catch (error) {
  say("title", "This poll cannot be shown");
  say("status", error instanceof RefusedError ? `Your phone refused, and sent nothing. ${words(error.code)}` : "The poll does not answer. It may be over, or the link is incomplete.");
  at("status").className = "status bad";
}
