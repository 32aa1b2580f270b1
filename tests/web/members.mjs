/** Members of a run in Node: the run and the members are on standard input. */

import { readFileSync } from "node:fs";
import { MemoryStore } from "../../clients/web/index.js";
import { lives } from "./lives.mjs";

console.log(JSON.stringify(await lives(JSON.parse(readFileSync(0, "utf8")), () => new MemoryStore())));
process.exit(0);
