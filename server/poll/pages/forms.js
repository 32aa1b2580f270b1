/** The questions as a form, and the answers typed into it. */

import { make } from "./dom.js";
import { chanceOf, epsilon, ratio } from "./phrases.js";

/** @typedef {import("./session.js").Question} Question */

/** One question with its answers and chances. @param {Question} question @param {number} place @param {import("./shown.js").Again | null} again */
export function field(question, place, again) {
  const note = `note-${place}`, follows = again?.question === question.name;
  return make(
    "fieldset",
    { "aria-describedby": note },
    make("legend", {}, question.text),
    question.kind === "number" ? numeric(question, place) : choices(question, place),
    make("p", { class: "chance", id: note }, chanceOf(question.chance, question)),
    make("p", { class: "soft" }, ratio(question.nano)),
    ...(follows ? [make("p", { class: "soft" }, `Later your phone may report whether this is below a threshold (\u03b5 = ${epsilon(again.nano)}).`)] : []),
  );
}

/** @param {Question} question @param {number} place */
function choices(question, place) {
  const places = [...question.labels.keys()];
  if (question.kind === "yes-no") places.reverse(); // yes first
  const tiles = places.map(at => {
    const button = make("input", { type: "radio", name: `q${place}`, value: at, id: `q${place}-${at}`, required: true });
    return make("label", { class: "choice" }, button, make("span", {}, question.labels[at]));
  });
  return make("div", { class: question.labels.length === 2 ? "choices two" : "choices" }, ...tiles);
}

/** @param {Question} question @param {number} place */
function numeric(question, place) {
  const { low, high } = question;
  const range = { type: "number", min: low, max: high, step: "any", inputmode: low < 0 ? "text" : "decimal" };
  const input = make("input", { ...range, name: `q${place}`, id: `q${place}-0`, required: true, autocomplete: "off", "aria-label": question.text });
  return make("div", { class: "number" }, input, make("span", { class: "soft" }, `a number from ${low} to ${high}`));
}

/**
 * The answer to each question, or the place of the first without one and the reason.
 * A label is answered by its place in the list.
 * @param {HTMLFormElement} form
 * @param {Question[]} questions
 * @returns {{answers: number[], missing: number, why: string}}
 */
export function answers(form, questions) {
  const given = new FormData(form);
  const values = questions.map((question, place) => read(question, given.get(`q${place}`)));
  const missing = values.findIndex(value => value === null);
  const question = questions[missing];
  const range = question?.kind === "number" ? ` with a number from ${question.low} to ${question.high}` : "";
  const why = question ? `Please answer question ${missing + 1}${range}. Nothing was sent.` : "";
  return { answers: values.map(value => value ?? 0), missing, why };
}

/** @param {Question} question @param {FormDataEntryValue | null} text */
function read(question, text) {
  if (text === null || text === "") return null;
  const value = Number(text);
  const [low, high] = question.kind === "number" ? [question.low, question.high] : [0, question.labels.length - 1];
  return Number.isFinite(value) && value >= low && value <= high ? value : null;
}
