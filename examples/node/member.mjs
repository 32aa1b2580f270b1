// A member on the bus: hello after each connection, answers, the account at the end. It connects again, with jitter, until the run is over.

import { UNSIGNED } from "./envelopes.mjs";
import { decode, Dropped, encode } from "./messages.mjs";
import { Connection } from "./mqtt.mjs";

const VERSION = "ldp/1";
const SLOT = 100; // milliseconds after a request, at a multiple of which a reply leaves
const PARTING = 300;

/** Resolves when the run is over. */
export function serve({ client, group, broker, envelopes = UNSIGNED }) {
  const { run, member } = client;
  const topic = (leaf) => `${VERSION}/${run}/${leaf}/${group}/${member}`;
  const hello = encode({ run, kind: "hello", member, start: client.start, stop: client.stop, private: true });
  const gone = [topic("gone"), envelopes.seal(topic("gone"), encode({ run, kind: "gone", member }))];
  const called = ({ missing }) => !missing || missing.some(([start, stop]) => start < client.stop && client.start < stop);
  return new Promise((resolve) => {
    let over = false;
    const join = () => {
      const send = (leaf, message) => connection.publish(topic(leaf), envelopes.seal(topic(leaf), message));
      const take = (where, envelope) => {
        const came = performance.now();
        const bytes = envelopes.open(where, envelope);
        const message = bytes && read(bytes);
        if (!message || message.run !== run || over) return;
        if (message.kind === "roll") called(message) && send("hello", hello);
        else if (message.kind === "receipt") client.confirm(message);
        else if (message.kind === "request") {
          const answers = client.handle(message);
          const left = SLOT - ((performance.now() - came) % SLOT);
          setTimeout(() => answers.forEach((answer) => send("rep", answer)), left);
        } else {
          over = true;
          send("rep", client.account(run));
          setTimeout(() => connection.end(), PARTING);
        }
      };
      const lost = () => (over ? resolve() : setTimeout(join, 100 + 900 * Math.random()));
      const filters = [group, "all"].map((name) => `${VERSION}/${run}/req/${name}`);
      const connection = new Connection(
        { ...broker, identifier: `${run}-${member}`, filters, will: gone },
        { joined: () => send("hello", hello), message: take, lost },
      );
    };
    join();
  });
}

function read(bytes) {
  try {
    return decode(bytes);
  } catch (error) {
    if (error instanceof Dropped) return null;
    throw error;
  }
}
