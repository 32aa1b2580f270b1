/**
 * Signed envelopes: 64 bytes of Ed25519 signature before each message, which is read only if its speaker signed it.
 *
 * The signature covers a tag, the digest of the run (its name and its server's key), the topic and the message: it is invalid elsewhere. Keys are 32 bytes.
 */

import * as ed25519 from "./vendor/noble-ed25519/index.js";
import { blake2b } from "./vendor/noble-hashes/blake2.js";
import { sha512 } from "./vendor/noble-hashes/sha2.js";
import { ForgedError, bigEndian, join, utf8 } from "./bytes.js";
import { MAX_BYTES } from "./wire.js";

/** The public key of a private one. */
export { getPublicKey as publicKey } from "./vendor/noble-ed25519/index.js";
ed25519.hashes.sha512 = sha512; // WebCrypto has no Ed25519 in a page without TLS

const TAG = utf8("local-dp envelope 1\0");
export const SIGNATURE = 64;
export const KEY = 32;

/** Envelopes of a run without keys: everybody on the broker may speak for anybody. */
export class Envelopes {
  /** @param {string} topic @param {Uint8Array} message @returns {Uint8Array} */
  seal(topic, message) {
    return message;
  }

  /**
   * The message. Throws ForgedError, before anything of it is read, unless the topic's speaker signed it.
   * @param {string} topic
   * @param {Uint8Array} envelope
   * @returns {Uint8Array}
   */
  open(topic, envelope) {
    return envelope;
  }
}

/** One party: it signs with its private key `own` in the run of the server with the public key `server`; `speaker` gives the signer of each topic. */
export class Party extends Envelopes {
  /** @param {string} run @param {Uint8Array} server @param {Uint8Array} own @param {(topic: string) => Uint8Array | null} speaker */
  constructor(run, server, own, speaker) {
    super();
    this.head = join(TAG, blake2b(join(server, utf8(run)), { dkLen: 32 }));
    this.own = own;
    this.speaker = speaker;
  }

  /** A member accepts its server's messages alone. @param {string} run @param {Uint8Array} server @param {Uint8Array} own */
  static member(run, server, own) {
    return new Party(run, server, own, () => server);
  }

  /** @param {string} topic @param {Uint8Array} message */
  seal(topic, message) {
    return join(ed25519.sign(this.statement(topic, message), this.own), message);
  }

  /** @param {string} topic @param {Uint8Array} envelope */
  open(topic, envelope) {
    const key = this.speaker(topic);
    if (key === null || key.length !== KEY || envelope.length <= SIGNATURE || envelope.length > SIGNATURE + MAX_BYTES) {
      throw new ForgedError("no signed message of a speaker of this topic");
    }
    const message = envelope.slice(SIGNATURE);
    if (!valid(envelope.slice(0, SIGNATURE), this.statement(topic, message), key)) {
      throw new ForgedError("a message without its speaker's signature for this run and topic");
    }
    return message;
  }

  /** @param {string} topic @param {Uint8Array} message */
  statement(topic, message) {
    const where = utf8(topic);
    return join(this.head, bigEndian(BigInt(where.length), 4), where, message);
  }
}

/** Whether it is a signature by RFC 8032, as libsodium checks it. @param {Uint8Array} signature @param {Uint8Array} message @param {Uint8Array} key */
function valid(signature, message, key) {
  try {
    return ed25519.verify(signature, message, key, { zip215: false });
  } catch {
    return false;
  }
}

/** A private key, from the browser's entropy. */
export function newKey() {
  return crypto.getRandomValues(new Uint8Array(KEY));
}
