"""Random words: keyed noise for simulations, operating-system entropy for private runs, public
coins for protocols.

Randomness is an argument everywhere in this library: a randomizer is a deterministic function of a
value and of the words drawn here.
"""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial, reduce
from hashlib import blake2b, shake_256
from operator import or_
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from local_dp.arrays import Bools, Ints, Words
from local_dp.errors import InputError

SEED_BITS = 64
COINS = "coins"
_SECRET = 32  # bytes
_SHAKE_WORDS = 1 << 10  # words to a block of derived private words
_WIDTHS: dict[int, np.dtype[Any]] = {bits: np.dtype(f"<u{bits // 8}") for bits in (8, 16, 32, 64)}
_WORDS_PER_BLOCK = 4  # Philox 4x64: one counter value yields four 64-bit words
# of a stream, and of another one that is seldom needed
Keys: TypeAlias = tuple[bytes, Callable[[], bytes]]
_LAST = 1 << 56  # the value of the least first byte: multiples of it have no other bytes
_TIED = 1 << 18  # words of a block in which undecided words are numbered together


def stream_key(label: str, seed: int, index: int = 0) -> bytes:
    """The 128-bit Philox key of one stream: a hash of (label, seed, index), so that no two streams
    share a key."""
    return blake2b(f"local-dp {label} {seed} {index}".encode(), digest_size=16).digest()


def keyed_generator(label: str, seed: int) -> np.random.Generator:
    """numpy's generator on the Philox stream of (label, seed)."""
    key = int.from_bytes(stream_key(label, seed), "little")
    return np.random.Generator(np.random.Philox(key=key))


class _Key(ISeedSequence):
    """A key as a seed sequence: with `key=`, numpy would first read entropy for an unused seed, in
    four times the time."""

    def __init__(self, key: bytes) -> None:
        self.words = np.frombuffer(key, _WIDTHS[64])

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> NDArray[Any]:
        return self.words  # a Philox asks for two of 64 bits


def philox_words(key: bytes, start: int, stop: int, bits: int = 64) -> Words:
    """Words start..stop of the Philox stream of `key`, 8, 16, 32 or 64 bits each; word i depends on
    (key, i) alone. About 1.7 ns a 64-bit word."""
    per_block = _WORDS_PER_BLOCK * (64 // bits)
    first = start // per_block
    blocks = -(-stop // per_block) - first
    # from one number numpy would make it in four times the time
    counter = np.array((first, 0, 0, 0), _WIDTHS[64])
    seed: Any = _Key(key)  # numpy's types know only its own kind of seed
    generator = np.random.Philox(seed, counter=counter)
    raw = np.asarray(generator.random_raw(blocks * _WORDS_PER_BLOCK), dtype=_WIDTHS[64])
    words: Words = raw.view(_WIDTHS[bits])
    skip = start - first * per_block
    return words[skip : skip + stop - start]


@dataclass(frozen=True)
class Leading:
    """The first byte or two of uniform 64-bit words, and the whole words at `places`, where the
    first bytes leave open what the word decides."""

    first: Words
    places: Ints
    whole: Words

    def below(self, cut: int) -> Bools:
        """True where each word is below a cut, by first bytes of 8 bits."""
        below: Bools = self.first < np.uint8(cut >> 56)
        below[self.places] = self.whole < np.uint64(cut)
        return below

    def below_at(self, cut: int, places: Ints) -> Bools:
        below: Bools = self.first[places] < np.uint8(cut >> 56)
        if cut % _LAST and len(self.places):
            numbers = np.searchsorted(self.places, places)
            whole = np.take(self.whole, numbers, mode="clip")
            places_of_cut = np.take(self.places, numbers, mode="clip")
            below = np.where(places_of_cut == places, whole < np.uint64(cut), below)
        return below


def ties(cuts: Collection[int]) -> Callable[[Words], Bools]:
    """Whether a first byte is that of a cut with more than this byte."""
    tops = np.array([cut >> 56 for cut in cuts if cut % _LAST], dtype=np.uint8)
    return lambda first: reduce(
        or_, (first == top for top in tops), np.zeros(len(first), dtype=np.bool_)
    )


def leading_words(
    keys: Keys, start: int, stop: int, bits: int, is_open: Callable[[Words], Bools]
) -> Leading:
    """The words start..stop of a stream by their first 8 or 16 bits, and whole where these bits are
    not decided by them: `is_open`.

    First bits are of the stream of the first key. The other bits of an undecided word are of the
    second stream, at its number among the undecided words of its block. They are independent of all
    first bits. So word i depends on (keys, `is_open`, i) alone, and words are independent and
    uniform.
    """
    first = philox_words(keys[0], start, stop, bits)
    places = np.flatnonzero(is_open(first))
    if not len(places):
        return Leading(first, places, np.zeros(0, dtype=np.uint64))
    key = keys[1]()
    whole: Words = first[places].astype(np.uint64) << np.uint64(64 - bits)
    for block in range(start - start % _TIED, stop, _TIED):
        low, high = np.searchsorted(places, (block - start, block + _TIED - start)).tolist()
        if low < high:
            number = block + (
                int(np.count_nonzero(is_open(philox_words(keys[0], block, start, bits))))
                if block < start
                else 0
            )
            whole[low:high] |= philox_words(key, number, number + high - low) >> np.uint64(bits)
    return Leading(first, places, whole)


@dataclass(frozen=True)
class Draw:
    """Which words: those of one ask of one round, or, in a simulation under a label in `label`,
    those shared by every ask under that label."""

    round: int
    ask: int = 0
    label: str = ""

    def key(self, purpose: str, seed: int) -> bytes:
        """The key of this draw's stream under a seed; `COINS` is the purpose of public coins, under
        the server's coin seed."""
        if self.label:
            return stream_key(f"{purpose} once {self.label}", seed)
        return stream_key(f"{purpose} ask {self.ask}", seed, self.round)


class Noise(Protocol):
    """The source of the clients' private words."""

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        """The `bits`-wide uniform words start..stop of a draw, shape (stop - start,)."""
        ...


@dataclass(frozen=True)
class KeyedNoise:
    """Simulation noise: word i of a draw is a function of (seed, draw, i) and the width alone.
    Reproducible, therefore NOT private."""

    seed: int

    def __post_init__(self) -> None:
        if (
            isinstance(self.seed, bool)
            or not isinstance(self.seed, int | np.integer)
            or not 0 <= self.seed < 1 << SEED_BITS
        ):
            raise InputError(
                f"seed is {self.seed!r:.80}; give a whole number from 0 to 2^{SEED_BITS} - 1"
            )

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        # a stream of its own for each width: a 64-bit word of one client never holds the 32-bit
        # word of another
        return philox_words(which.key(f"noise-{bits}", self.seed), start, stop, bits)

    def leading(
        self, which: Draw, start: int, stop: int, bits: int, is_open: Callable[[Words], Bools]
    ) -> Leading:
        """`leading_words` of a draw. For simulations alone: the time that it takes depends on the
        words."""
        first, rest = {8: ("noise-8", "noise-tied"), 16: ("noise-16", "noise-16-tied")}[bits]
        keys = (which.key(first, self.seed), partial(which.key, rest, self.seed))
        return leading_words(keys, start, stop, bits, is_open)


class SystemNoise:
    """Private noise: the operating system's entropy, never seeded, never repeated. A label has no
    words: what is kept of an answer is the answer."""

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        _check_unlabelled(which)
        return np.frombuffer(os.urandom((stop - start) * bits // 8), _WIDTHS[bits])


def fresh() -> bytes:
    """32 bytes that are never the same twice, in place of a digest."""
    return os.urandom(_SECRET)


class StoreNoise:
    """Private noise of a client with a store: words derived from the store's `secret` of 32 bytes
    and from all that an answer depends on.

    It has no words of its own, only those of `bound`. So copies of a store answer the same request
    by the same bytes where records, code and earlier rounds are the same. Words never meet another
    value, another question or another code.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != _SECRET:
            raise InputError(f"the secret of a store has {_SECRET} bytes, not {len(secret)}")
        self._secret = secret

    def bound(self, *inputs: bytes) -> "BoundNoise":
        """The words for the reply to one request; `inputs` are all that it depends on, and the same
        for all its asks, which `Draw.ask` separates."""
        what = b"".join(len(each).to_bytes(8) + each for each in inputs)
        return BoundNoise(blake2b(what, key=self._secret, digest_size=_SECRET).digest())


@dataclass(frozen=True, repr=False)
class BoundNoise:
    """The words of all asks of one request: each (round, ask, width) is a stream of its own,
    expanded by SHAKE-256."""

    secret: bytes

    @property
    def history(self) -> bytes:
        """A digest of its inputs, from which no word can be computed."""
        return blake2b(key=self.secret, digest_size=_SECRET, person=b"history").digest()

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        _check_unlabelled(which)
        first = start // _SHAKE_WORDS
        last = -(-stop // _SHAKE_WORDS)
        size = _SHAKE_WORDS * bits // 8
        name = f"{which.round} {which.ask} {bits}"
        blocks = b"".join(
            shake_256(self.secret + f"{name} {block}".encode()).digest(size)
            for block in range(first, last)
        )
        skip = start - first * _SHAKE_WORDS
        return np.frombuffer(blocks, dtype=_WIDTHS[bits])[skip : skip + stop - start]


def _check_unlabelled(which: Draw) -> None:
    if which.label:
        raise ValueError("private words of a label would meet other records")


def public_coins(key: bytes, start: int, stop: int) -> Words:
    """The 64-bit public coin of each client start..stop, known to everyone with the request that
    contains `key`."""
    return philox_words(key, start, stop, 64)
