/** The respondent's page: questions, one answer each, then exactly the bits that left the phone. */

import { at, say, stacked } from "./dom.js";
import { answers, field } from "./forms.js";
import { report } from "./coin.js";
import { InputError, RefusedError, words } from "./client/index.js";
import { dealt } from "./game.js";
import { epsilon, ratio } from "./phrases.js";
import { LIMITS } from "./respondent.js";
import { Session } from "./session.js";

/** @typedef {import("./session.js").State} State */

const STATUS = {
  idle: ["Nothing has left your phone yet.", ""],
  elsewhere: ["Another tab of this browser speaks to the server. This tab shows the same report.", ""],
  joining: ["Your phone joins the poll.", ""],
  waiting: ["Your answers wait on your phone for the server's question. Keep this page open.", ""],
  playing: ["Your phone waits for its round of the game. Keep this page open.", ""],
  sent: ["Sent. Keep this page open until the server confirms.", ""],
  confirmed: ["Done. The server has stored your report. You can close this page.", "good"],
  kept: ["Done. The server has stored your report. Keep this page open: a second question may follow.", "good"],
  offline: ["No connection. Your phone tries again by itself and sends the same bits.", "bad"],
  closed: ["The poll is closed. Thank you.", "good"],
  late: ["The poll is closed. Your phone sent nothing.", "bad"],
  full: ["The poll has no place left. Your phone sent nothing.", "bad"],
};

const REFUSED = "Your phone refused, and sent nothing.";
const GAME = "This is a game. The server deals your phone a made-up record, so it knows the record: it is about nobody, and not private. ";
const HERE = "Your answer and the coin are on this screen only. They are gone when you close or reload the page.";
const COIN = "The coin is on this screen only. It is gone when you close or reload the page. The server knows the record, and not the coin.";
const KEPT = "Your phone kept these bits. It did not keep your answer or the coin.";

/** @param {Session} session */
function drawStatus(session) {
  const status = at("status"), { refused, dropped, sent } = session;
  const last = refused.length ? words(refused[refused.length - 1]) : "";
  const [text, colour] = last && !sent ? [`${REFUSED} ${last}`, "bad"] : STATUS[phase(session)];
  const later = sent && last ? ` Your phone refused another request, and sent nothing new. ${last}` : "";
  say("status", text + later + (dropped.length ? ` ${words(dropped[dropped.length - 1])}` : ""));
  status.className = `status ${colour}`;
}

/** What is true of the poll, and of its second rounds. @param {Session} session */
function phase({ state, poll: { again, questions }, sent }) {
  if (again?.bits) return state === "waiting" ? "playing" : state;
  return state === "confirmed" && again && sent?.length === questions.length ? "kept" : state;
}

/** @param {Session} session */
function drawBudget(session) {
  const { poll: { cost, questions, again }, spent: { run, life } } = session;
  const ahead = session.sent ? 0 : cost, what = again?.bits ? "The game costs" : questions.length === 1 ? "The question costs" : "All questions together cost";
  const second = again && !again.bits ? `, with a second question that may follow (\u03b5 = ${epsilon(again.nano)})` : "";
  at("budget").hidden = false;
  const before = `${what} \u03b5 = ${epsilon(cost)}${second}. A smaller \u03b5 means more privacy.`;
  say("cost", session.sent ? `This poll has cost \u03b5 = ${epsilon(run)}.` : before);
  drawBar("run", run, ahead, LIMITS.perRun, "for this poll");
  drawBar("life", life, ahead, LIMITS.life, "for all polls of this address, in this browser");
}

/** @param {string} name @param {number} spent @param {number} ahead what sending will cost @param {number} most @param {string} what */
function drawBar(name, spent, ahead, most, what) {
  const bar = at(`${name}-bar`), left = (/** @type {number} */ gone) => epsilon(Math.max(0, most - gone));
  const text = `Left ${what}: ${left(spent)} of ${epsilon(most)}${ahead ? `; ${left(spent + ahead)} after you send` : ""}.`;
  stacked(bar, [[spent / most, "bar-spent"], [ahead / most, "bar-now"]]);
  bar.setAttribute("aria-label", text);
  say(`${name}-text`, text);
}

/** @param {Session} session */
function drawSent(session) {
  const { sent, member, poll } = session, list = at("reports");
  at("sent").dataset.place = member ? String(member.client.start) : "";
  if (!sent || list.childElementCount === sent.length) return;
  const isFirst = at("sent").hidden, keepsAnswers = sent.some(({ answer }) => answer !== null);
  at("form").hidden = true;
  at("sent").hidden = false;
  say("sent-note", !keepsAnswers ? KEPT : poll.again?.bits ? COIN : HERE);
  list.replaceChildren(...sent.map(report));
  if (isFirst) at("sent-title").focus();
}

/** @param {Session} session */
function drawForm(session) {
  const { poll } = session, game = poll.again?.bits, one = poll.questions.length === 1;
  say("title", poll.title);
  document.title = poll.title;
  const count = game ? GAME : `${one ? "One question" : `${poll.questions.length} questions`}. `;
  say("lead", `${count}Your phone randomizes ${game ? "its report" : "each answer"} before it sends it.`);
  if (game) say("record", `${poll.again?.rule} Your phone reports once, in round 1 or in round 2. ${ratio(poll.cost)}`);
  say("send", game ? "Take part" : one ? "Send my answer" : "Send my answers");
  at("questions").replaceChildren(...poll.questions.map((question, place) => field(question, place, poll.again)));
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
  const { record, poll } = session;
  if (record) say("record", dealt(record, poll.again?.bits ?? 0).join(". "));
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
  const gone = "The poll does not answer. It may be over, or the link is incomplete.";
  say("status", error instanceof InputError ? `${error.message} ${REFUSED}` : error instanceof RefusedError ? `${REFUSED} ${words(error.code)}` : gone);
  at("status").className = "status bad";
}
