/** The vectors in a page. */

import { BrowserStore, MemoryStore } from "../../clients/web/store.js";
import { faults } from "./vectors.mjs";

const read = async (name) => (await fetch(`/docs/vectors/${name}`)).text();
let stores = 0;

/** @param {"memory" | "browser"} store */
export function result(store) {
  return faults(read, true, store === "memory" ? () => new MemoryStore() : () => BrowserStore.open(`vectors ${(stores += 1)}`));
}
