/** Hostile requests in a page, with the ledger in the browser's database. */

import { BrowserStore } from "../../clients/web/store.js";
import { hostile } from "./hostile.mjs";

let stores = 0;

export const result = () => hostile(() => BrowserStore.open(`hostile ${(stores += 1)}`));
