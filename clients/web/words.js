/** Random words of a client. A source gives so many whole words of 32 or 64 bits for one ask; a private one never repeats itself. */

/**
 * @typedef {object} Words
 * @property {boolean} private whether nobody else can compute them
 * @property {(width: 32 | 64, round: number, ask: number) => bigint} word
 */

/** The entropy of the browser or of Node. @type {Words} */
export const systemWords = {
  private: true,
  word(width) {
    const bytes = crypto.getRandomValues(new Uint8Array(width / 8)); // the least significant first, as Python reads its entropy
    return bytes.reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  },
};

/** Words that are given, one after another: for vectors and tests alone. @param {Iterable<bigint>} words @returns {Words} */
export function givenWords(words) {
  const rest = [...words];
  return {
    private: true,
    word() {
      const next = rest.shift();
      if (next === undefined) throw new RangeError("no words are left");
      return next;
    },
  };
}
