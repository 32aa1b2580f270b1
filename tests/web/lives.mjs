/** The lives of many members of one run: the same code in Node and in a page. */

import { Client, Member, Party, unhex } from "../../clients/web/index.js";

/** Resolves once each has given its account, with what each sent, by round. @param newStore an empty store for a member */
export function lives({ url, run, server, members }, newStore) {
  const live = async ({ member, group, start, key, yes }) => {
    const store = await newStore(member);
    const client = new Client({ run, member, start, store, policy: { perRun: 2e9, life: 2e9 }, record: { yes: BigInt(yes) } });
    const one = new Member({ url, group, client, ...(server && { envelopes: Party.member(run, unhex(server), unhex(key)) }) });
    const answers = {};
    const refused = [];
    one.addEventListener("answered", ({ detail }) => (answers[detail.round] = detail.sent.map(({ report }) => report)));
    one.addEventListener("refused", ({ detail }) => refused.push(detail.code));
    return new Promise((resolve) => {
      one.addEventListener("ended", ({ detail }) =>
        resolve({ answers, refused, confirmed: [...client.confirmed].sort(), account: detail.rounds.map(([round, reports]) => [round, reports]) }),
      );
      one.start();
    });
  };
  return Promise.all(members.map(live));
}
