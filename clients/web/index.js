/** A client of local-dp runs: everything that a page or a program needs. */

export { ForgedError, InputError, RefusedError, WireError, hex, unhex } from "./bytes.js";
export { Client } from "./client.js";
export { describe, percent } from "./describe.js";
export { Envelopes, Party, newKey, publicKey } from "./envelope.js";
export { Member } from "./member.js";
export { QUERY_NAMES, buildQuery } from "./queries.js";
export { RANDOMIZERS, build, verify, worstRatio } from "./randomizers/index.js";
export { CODES, words } from "./refusals.js";
export { BrowserStore, MemoryStore } from "./store.js";
export { CLIENT, EITHER, SERVER, checksum, decode, encode, topic } from "./wire.js";
export { givenWords, systemWords } from "./words.js";
