/** The vectors in Node: prints the faults as JSON. */

import { readFile } from "node:fs/promises";
import { faults } from "./vectors.mjs";

console.log(JSON.stringify(await faults((name) => readFile(new URL(`../../docs/vectors/${name}`, import.meta.url), "utf8"))));
