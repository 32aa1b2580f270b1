// Envelopes: 64 bytes of Ed25519 signature before each message, valid for one run and one topic.

import { createPrivateKey, createPublicKey, sign, verify } from "node:crypto";
import { blake2b } from "./blake2b.mjs";
import { MOST } from "./messages.mjs";

const PRIVATE = Buffer.from("302e020100300506032b657004220420", "hex"); // the DER forms of raw keys
const PUBLIC = Buffer.from("302a300506032b6570032100", "hex");
const SIGNATURE = 64;

const publicOf = (raw) => createPublicKey({ key: Buffer.concat([PUBLIC, raw]), format: "der", type: "spki" });
const privateOf = (raw) => createPrivateKey({ key: Buffer.concat([PRIVATE, raw]), format: "der", type: "pkcs8" });

export const UNSIGNED = { seal: (topic, message) => message, open: (topic, envelope) => envelope };

/** A member's envelopes in a run of the server with this public key. Keys are 32 bytes. */
export function envelopes(run, server, own) {
  const [speaker, key] = [publicOf(server), privateOf(own)];
  const tag = Buffer.concat([Buffer.from("local-dp envelope 1\0"), blake2b(Buffer.concat([server, Buffer.from(run)]), 32)]);
  const statement = (topic, message) => {
    const where = Buffer.from(topic);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(where.length);
    return Buffer.concat([tag, length, where, message]);
  };
  return {
    seal: (topic, message) => Buffer.concat([sign(null, statement(topic, message), key), message]),
    /** The message, or null where the server has not signed it. */
    open(topic, envelope) {
      if (envelope.length <= SIGNATURE || envelope.length > SIGNATURE + MOST) return null;
      const message = envelope.subarray(SIGNATURE);
      return verify(null, statement(topic, message), speaker, envelope.subarray(0, SIGNATURE)) ? message : null;
    },
  };
}
