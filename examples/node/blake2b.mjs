// BLAKE2b (RFC 7693) without a key, with a digest of any length: node:crypto has the digest of 64 bytes alone, and a shorter one is not its beginning.

const MASK = (1n << 64n) - 1n;
const IV = [
  0x6a09e667f3bcc908n, 0xbb67ae8584caa73bn, 0x3c6ef372fe94f82bn, 0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n, 0x9b05688c2b3e6c1fn, 0x1f83d9abfb41bd6bn, 0x5be0cd19137e2179n,
];
const ORDERS = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => [...row].map((digit) => parseInt(digit, 16)));
const COLUMNS = [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15], [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14]];

const turned = (word, by) => ((word >> by) | (word << (64n - by))) & MASK;

function compress(state, block, count, last) {
  const words = Array.from({ length: 16 }, (_, at) => block.readBigUInt64LE(8 * at));
  const v = [...state, ...IV];
  v[12] ^= count;
  if (last) v[14] ^= MASK;
  for (let round = 0; round < 12; round++) {
    const order = ORDERS[round % 10];
    COLUMNS.forEach(([a, b, c, d], at) => {
      for (const [word, first, second] of [[words[order[2 * at]], 32n, 24n], [words[order[2 * at + 1]], 16n, 63n]]) {
        v[a] = (v[a] + v[b] + word) & MASK;
        v[d] = turned(v[d] ^ v[a], first);
        v[c] = (v[c] + v[d]) & MASK;
        v[b] = turned(v[b] ^ v[c], second);
      }
    });
  }
  return state.map((word, at) => word ^ v[at] ^ v[at + 8]);
}

/** The digest of `data`, `size` bytes. */
export function blake2b(data, size) {
  let state = [...IV];
  state[0] ^= 0x01010000n ^ BigInt(size);
  const blocks = Math.max(1, Math.ceil(data.length / 128));
  for (let at = 0; at < blocks; at++) {
    const block = Buffer.alloc(128);
    block.set(data.subarray(128 * at, 128 * at + 128));
    const last = at === blocks - 1;
    state = compress(state, block, BigInt(last ? data.length : 128 * (at + 1)), last);
  }
  const digest = Buffer.alloc(64);
  state.forEach((word, at) => digest.writeBigUInt64LE(word, 8 * at));
  return digest.subarray(0, size);
}
