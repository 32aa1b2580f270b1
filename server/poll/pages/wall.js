/** What the server has really seen: the stored reports as bits, on demand. */

import { make } from "./dom.js";

const SHOW = "Show what the server has seen", HIDE = "Hide what the server has seen";

export class Wall {
  /** @param {number} place of the question */
  constructor(place) {
    this.place = place;
    this.cells = make("div", { class: "wall", id: `wall-${place}`, role: "img", "aria-label": "No report yet" });
    this.note = make("p", { class: "soft" });
    this.body = make("div", { hidden: true }, this.note, this.cells);
    this.button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": `wall-${place}` }, SHOW);
    this.button.addEventListener("click", () => this.toggle());
    this.element = make("div", {}, make("div", { class: "buttons" }, this.button), this.body);
    this.answered = 0;
    this.drawn = -1;
    this.busy = false;
  }

  get open() {
    return !this.body.hasAttribute("hidden");
  }

  toggle() {
    this.body.toggleAttribute("hidden");
    this.button.setAttribute("aria-expanded", String(this.open));
    this.button.textContent = this.open ? HIDE : SHOW;
    void this.fetch();
  }

  /** @param {number} answered */
  follow(answered) {
    this.answered = answered;
    void this.fetch();
  }

  async fetch() {
    if (!this.open || this.busy || this.drawn === this.answered) return;
    this.busy = true;
    try {
      const answer = await fetch(`reports?question=${this.place}`);
      if (answer.ok) this.draw(await answer.json());
    } catch {
      this.note.textContent = "The server does not answer.";
    } finally {
      this.busy = false;
    }
  }

  /** @param {{answered: number, bits: number, reports: string[]}} seen */
  draw({ answered, bits, reports }) {
    this.drawn = answered;
    const ones = reports.filter(each => each === "1").length;
    const many = (/** @type {number} */ count, /** @type {string} */ what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
    const some = reports.length < answered ? ` Here are ${reports.length.toLocaleString("en")} of them.` : "";
    this.note.textContent = `${many(answered, "report")} of ${many(bits, "bit")}.${some} Chance changed some, and nobody can know which.`;
    this.cells.classList.toggle("long", bits > 1);
    this.cells.setAttribute("aria-label", bits === 1 ? `${ones} ones and ${reports.length - ones} zeros` : `${reports.length} reports`);
    this.cells.replaceChildren(...reports.map(each => make("span", { class: each === "1" ? "one" : "zero" }, each)));
  }
}
