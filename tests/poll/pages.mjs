/** The part of a respondent's page that needs no page: run in Node, in a folder with the files as they are served. */

import { readFileSync } from "node:fs";

const { folder, poll, requests, record } = JSON.parse(readFileSync(0, "utf8"));
const at = (name) => import(`file://${folder}/${name}`);
const { MemoryStore, decode, unhex } = await at("client/index.js");
const { Respondent } = await at("respondent.js");
const { pollOf } = await at("shown.js");
const { chanceOf } = await at("phrases.js");

const shown = pollOf(poll);
const store = new MemoryStore();
const client = new Respondent(shown, store);
client.take("p0", 0);
client.say([1, 1, 7], record);
const answers = [];
let before = 0;
for (const request of requests.map((each) => decode(unhex(each)))) {
  const { refused } = await client.answer(request);
  const told = await client.told();
  answers.push(refused ? refused.code : told.slice(before));
  before = told.length;
}
const chances = shown.questions.map((question) => chanceOf(question.chance, question));
console.log(JSON.stringify({ answers, chances, kept: await new Respondent(shown, store).told(), budget: await client.budget() }, text));

/** Maps and bigints as plain data. */
function text(_, value) {
  return typeof value === "bigint" ? Number(value) : value instanceof Map ? Object.fromEntries(value) : value;
}
