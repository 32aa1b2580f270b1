"""Random words: keyed noise for simulations, operating-system entropy for private runs, public coins for protocols.

Randomness is an argument everywhere in this library: a randomizer is a deterministic function of a value and of the words drawn here.
"""

import os
from dataclasses import dataclass
from hashlib import blake2b, shake_256
from typing import Protocol

import numpy as np

from local_dp.arrays import Words
from local_dp.errors import InputError

SEED_BITS = 64
_SHAKE_WORDS = 1 << 10  # words to a block of the private stream of a label
_WORDS_PER_BLOCK = 4  # Philox 4x64: one counter value yields four 64-bit words


def stream_key(label: str, seed: int, index: int = 0) -> bytes:
    """The 128-bit Philox key of one stream: a hash of (label, seed, index), so that no two streams share a key."""
    return blake2b(f"local-dp {label} {seed} {index}".encode(), digest_size=16).digest()


def philox_words(key: bytes, start: int, stop: int, bits: int = 64) -> Words:
    """Words start..stop of the Philox stream of `key`, 16, 32 or 64 bits each; word i depends on (key, i) alone. About 1.7 ns a 64-bit word."""
    per_block = _WORDS_PER_BLOCK * (64 // bits)
    first = start // per_block
    blocks = -(-stop // per_block) - first
    generator = np.random.Philox(key=int.from_bytes(key, "little"), counter=first)
    raw = np.asarray(generator.random_raw(blocks * _WORDS_PER_BLOCK), dtype="<u8")
    words: Words = raw.view(f"<u{bits // 8}")
    skip = start - first * per_block
    return words[skip : skip + stop - start]


@dataclass(frozen=True)
class Draw:
    """Which words: those of one ask of one round, or, where `once` names one, those that every ask under that label has in common."""

    round: int
    ask: int = 0
    once: str = ""

    def key(self, label: str, seed: int) -> bytes:
        """The key of this draw's stream under a seed."""
        return stream_key(f"{label} once {self.once}", seed) if self.once else stream_key(f"{label} ask {self.ask}", seed, self.round)


class Noise(Protocol):
    """Where the clients' private words come from."""

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        """The `bits`-wide uniform words start..stop of a draw, shape (stop - start,): the same ones for ever under a `once` label."""
        ...


@dataclass(frozen=True)
class KeyedNoise:
    """Simulation noise: word i of a draw is a function of (seed, draw, i) and the width alone. Reproducible, therefore NOT private."""

    seed: int

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << SEED_BITS:
            raise InputError(f"seed is {self.seed}; give a whole number from 0 to 2^{SEED_BITS} - 1")

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        # a stream of its own for each width: a 64-bit word of one client never holds the 32-bit word of another
        return philox_words(which.key(f"noise-{bits}", self.seed), start, stop, bits)


class SystemNoise:
    """Private noise: the operating system's entropy, never seeded, never repeated; under a `once` label, expanded from a secret of that label by SHAKE-256."""

    def __init__(self) -> None:
        self._secrets: dict[str, bytes] = {}

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        if not which.once:
            return np.frombuffer(os.urandom((stop - start) * bits // 8), dtype=f"<u{bits // 8}")
        secret = self._secrets.setdefault(which.once, os.urandom(32))
        first, last = start // _SHAKE_WORDS, -(-stop // _SHAKE_WORDS)
        size = _SHAKE_WORDS * bits // 8
        blocks = b"".join(shake_256(secret + f"{bits} {block}".encode()).digest(size) for block in range(first, last))
        skip = start - first * _SHAKE_WORDS
        return np.frombuffer(blocks, dtype=f"<u{bits // 8}")[skip : skip + stop - start]


def public_coins(key: bytes, start: int, stop: int) -> Words:
    """The 64-bit public coin of each client start..stop: known to everybody who holds the request that carries `key`."""
    return philox_words(key, start, stop, 64)
