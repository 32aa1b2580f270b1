// Joins a run with the members that a file of JSON describes: node join.mjs members.json
//
// {"broker": "mqtt://127.0.0.1:1883", "run": "class-1", "server": "its public key in hex, or null in an unsigned run", "policy": {"perRun": 1000000000},
//  "members": [{"member": "client-7", "group": "g0", "start": 7, "record": {"cheated": ["whole", "1"]}, "key": "a private key in hex", "store": "client-7.store"}]}
//
// Prints a line for each member when its run is over: how many rounds it answered, and how many of them the server confirmed.

import { readFileSync } from "node:fs";
import { Client } from "./client.mjs";
import { envelopes, UNSIGNED } from "./envelopes.mjs";
import { serve } from "./member.mjs";
import { Store } from "./store.mjs";

/** The address of a broker: mqtt://[user:password@]host[:port], or mqtt+unix://[user:password@]/path. */
function address(url) {
  const [, unix, user, password, place] = /^mqtt(\+unix)?:\/\/(?:([^:@/]*)(?::([^@/]*))?@)?(.+)$/.exec(url) ?? [];
  if (!place) throw new Error(`cannot use the broker ${url}; write mqtt://host:port`);
  const [host, port] = place.split(":");
  const where = unix ? { path: decodeURIComponent(place) } : { host, port: Number(port ?? 1883) };
  return { where, user: user && decodeURIComponent(user), password: password && decodeURIComponent(password) };
}

/** A record from JSON, in which numbers are text. */
export function recordOf(cells) {
  const made = { number: Number, whole: BigInt, truth: Boolean, date: String, text: String };
  const number = (value) => (value === "inf" ? Infinity : value === "-inf" ? -Infinity : Number(value));
  const read = ([type, value]) => [type, value === null ? null : type === "number" ? number(value) : made[type](value)];
  return Object.fromEntries(Object.entries(cells).map(([name, cell]) => [name, read(cell)]));
}

async function main(file) {
  const { broker, run, server, policy, members } = JSON.parse(readFileSync(file, "utf8"));
  await Promise.all(
    members.map(async ({ member, group, start, record, key, store }) => {
      const client = new Client({ run, member, start, record: recordOf(record), store: new Store(store), policy });
      const sealed = server ? envelopes(run, Buffer.from(server, "hex"), Buffer.from(key, "hex")) : UNSIGNED;
      await serve({ client, group, broker: address(broker), envelopes: sealed });
      console.log(`${member}: ${client.store.entries(run).length} rounds answered, ${client.confirmed.size} confirmed`);
    }),
  );
}

if (process.argv[1] === new URL(import.meta.url).pathname) await main(process.argv[2]);
