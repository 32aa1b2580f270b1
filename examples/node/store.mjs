// What a client keeps for life: a line of JSON for each answered round, on the disk before anything is sent.

import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { Refused } from "./questions.mjs";

export class Store {
  /** In the file `path`; without one, in memory, for tests alone. */
  constructor(path = null) {
    this._all = [];
    this.path = path;
    if (path && existsSync(path)) this._all = readFileSync(path, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));
  }

  get(run, round) {
    return this._all.find((entry) => entry.run === run && entry.round === round);
  }

  /** The answered rounds of a run, in the order of the answers. */
  entries(run) {
    return this._all.filter((entry) => entry.run === run);
  }

  commit(entry) {
    if (this.broken) throw new Refused("store"); // nobody knows how much was written
    if (this.path) {
      try {
        const file = openSync(this.path, "a", 0o600);
        writeSync(file, JSON.stringify(entry) + "\n");
        fsyncSync(file);
        closeSync(file);
      } catch {
        this.broken = true;
        throw new Refused("store");
      }
    }
    this._all.push(entry);
  }

  /** What was spent in a run, in nano-nats. */
  spent(run) {
    return this.entries(run).reduce((sum, { charge }) => sum + charge, 0);
  }

  get life() {
    return this._all.reduce((sum, { charge }) => sum + charge, 0);
  }

  get rounds() {
    return this._all.length;
  }

  /** Bytes of reports. */
  get kept() {
    return this._all.reduce((sum, { bytes }) => sum + bytes, 0);
  }
}
