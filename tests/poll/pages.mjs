/** The part of a respondent's page that needs no page: run in Node, in a folder with the files as they are served. */

import { readFileSync } from "node:fs";

const { folder, poll, requests, record } = JSON.parse(readFileSync(0, "utf8"));
const at = (name) => import(`file://${folder}/${name}`);
const { MemoryStore, build, decode, unhex } = await at("client/index.js");
const { Respondent, parameters } = await at("respondent.js");
const { chance } = await at("methods.js");
const { chanceOf } = await at("phrases.js");

for (const question of poll.questions) question.labels = question.kind === "yes-no" ? ["no", "yes"] : (question.labels ?? []);
const store = new MemoryStore();
const client = new Respondent(poll, store, { perRun: Math.round(1e9 * poll.epsilon), life: 32e9 });
client.take("p0", 0);
client.say([1, 1, 7], record);
const answers = [];
for (const request of requests.map((each) => decode(unhex(each)))) {
  const { refused, sent } = await client.answer(request);
  answers.push(refused ? refused.code : client.fresh(request.round, sent));
}
const [entry] = await store.entries(poll.run);
const chances = poll.questions.map((question) => chanceOf(chance(build(question.randomizer, parameters(question.randomizer_params))), question));
console.log(JSON.stringify({ answers, chances, kept: entry ? Respondent.kept(entry, poll.questions) : [], budget: await client.budget() }));
