/** The vectors in Node: prints the faults as JSON; with the argument "changes", also of changed bits. */

import { readFile } from "node:fs/promises";
import { faults } from "./vectors.mjs";

console.log(JSON.stringify(await faults((name) => readFile(new URL(`../../docs/vectors/${name}`, import.meta.url), "utf8"), process.argv[2] === "changes")));
