/** Public coins: the words of a Philox 4x64-10 stream, known to everyone with the request that contains its key. */

const MASK = (1n << 64n) - 1n;
const [M0, M1] = [0xd2e7470ee14c6c93n, 0xca5a826395121157n];
const [W0, W1] = [0x9e3779b97f4a7c15n, 0xbb67ae8584caa73bn];
const ROUNDS = 10;

/** Word number `index` of the stream of a key of 16 bytes, as numpy's Philox gives it. @param {Uint8Array} key @param {number} index */
export function philoxWord(key, index) {
  const view = new DataView(key.buffer, key.byteOffset, 16);
  let [k0, k1] = [view.getBigUint64(0, true), view.getBigUint64(8, true)];
  let [x0, x1, x2, x3] = [BigInt(Math.floor(index / 4)) + 1n, 0n, 0n, 0n]; // numpy counts up before it draws
  for (let round = 0; round < ROUNDS; round += 1) {
    const [p0, p1] = [M0 * x0, M1 * x2];
    [x0, x1, x2, x3] = [(p1 >> 64n) ^ x1 ^ k0, p1 & MASK, (p0 >> 64n) ^ x3 ^ k1, p0 & MASK];
    [k0, k1] = [(k0 + W0) & MASK, (k1 + W1) & MASK];
  }
  return [x0, x1, x2, x3][index % 4];
}
