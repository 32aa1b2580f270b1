/** What the server has really seen: the reports as bits, in the order of their arrival, on demand. */

import { make } from "./dom.js";

/** @typedef {import("./card.js").Question} Question */

export class Wall {
  /** @param {string} id */
  constructor(id) {
    this.cells = make("div", { class: "wall", id, role: "img" });
    this.note = make("p", { class: "soft" });
    this.body = make("div", { hidden: true }, this.note, this.cells);
    this.button = make("button", { type: "button", "aria-expanded": "false", "aria-controls": id }, "Show what the server has seen");
    this.button.addEventListener("click", () => this.toggle());
    this.element = make("div", {}, make("div", { class: "buttons" }, this.button), this.body);
    /** @type {Question | null} */
    this.question = null;
    this.drawn = -1;
  }

  toggle() {
    const open = this.body.toggleAttribute("hidden") === false;
    this.button.setAttribute("aria-expanded", String(open));
    this.button.textContent = open ? "Hide what the server has seen" : "Show what the server has seen";
    if (this.question) this.draw(this.question);
  }

  /** @param {Question} question */
  draw(question) {
    this.question = question;
    const { reports, count } = question;
    if (this.body.hasAttribute("hidden") || this.drawn === count) return;
    this.drawn = count;
    const one = reports.every(bits => bits.length === 1), ones = reports.filter(bits => bits === "1").length;
    this.cells.classList.toggle("long", !one && reports.some(bits => bits.length > 4));
    this.note.textContent = `${count.toLocaleString("en")} reports${reports.length < count ? `; the last ${reports.length.toLocaleString("en")} are here` : ""}. Each may be flipped, and nobody can know which.`;
    this.cells.setAttribute("aria-label", one ? `${ones} ones and ${reports.length - ones} zeros` : `${reports.length} reports`);
    this.cells.replaceChildren(...reports.map(bits => make("span", { class: one ? (bits === "1" ? "one" : "zero") : "zero" }, bits)));
  }
}
