/** Hostile requests in Node: prints what became of them as JSON. */

import { hostile } from "./hostile.mjs";

console.log(JSON.stringify(await hostile()));
