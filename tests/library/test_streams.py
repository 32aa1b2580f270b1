"""No two draws share a stream: the words of all pairs of (round, ask, label, width, seed or secret) differ, and so do those of clients within one draw."""

from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
import pytest

from local_dp.arrays import Words
from local_dp.noise import COINS, Draw, KeyedNoise, Noise, SystemNoise, stream_key

DRAWS = [
    *(Draw(round, ask) for round, ask in product((0, 1, 2, 11, 111), (0, 1, 2, 11))),
    *(Draw(round, ask, memo) for round, ask, memo in product((0, 3), (0, 3), ("a", "b", "a b", "ask 0", "0", "a0"))),
]
WIDTHS = (8, 16, 32, 64)
CLIENTS = 512


def stream(which: Draw) -> tuple[object, ...]:
    """What a stream belongs to: a label is one stream in all rounds and asks, which is what it is for."""
    return ("label", which.memo) if which.memo else ("ask", which.round, which.ask)


def drawn(noise: Noise) -> Iterator[tuple[tuple[object, ...], bytes]]:
    for which, bits in product(DRAWS, WIDTHS):
        yield (*stream(which), bits), np.asarray(noise.words(which, 0, CLIENTS, bits)).tobytes()


SOURCES: dict[str, Callable[[int], Noise]] = {"keyed": KeyedNoise, "labels": lambda seed: SystemNoise(seed.to_bytes(32, "big"))}


@pytest.mark.parametrize("source", SOURCES)
def test_streams_differ_where_anything_differs(source: str) -> None:
    """512 words of every pair: two equal ones of different streams would be 512 equal bytes or more by chance, 2^-4096."""
    seen: dict[bytes, tuple[object, ...]] = {}
    for seed in (0, 1, 11):
        for owner, words in drawn(SOURCES[source](seed)):
            if owner[0] == "ask" and source == "labels":
                assert words not in seen  # the operating system's own entropy never repeats
            assert seen.setdefault(words, (seed, *owner)) == (seed, *owner), "two streams have the same words"
            for other in (words[: len(words) // 2], words[len(words) // 2 :]):
                assert seen.setdefault(other, (seed, *owner)) == (seed, *owner), "a stream holds a part of another"


@pytest.mark.parametrize("source", SOURCES)
def test_clients_of_one_draw_have_words_of_their_own(source: str) -> None:
    """Words are a function of the client's number alone, whichever chunk asks, and the 64-bit words of 4,096 clients are all different."""
    noise = SOURCES[source](5)
    for which in (Draw(0, 0, "label"), *(() if source == "labels" else (Draw(2, 1),))):
        whole: Words = noise.words(which, 0, 4096, 64)
        assert len(np.unique(whole)) == 4096
        assert np.array_equal(noise.words(which, 1000, 3000, 64), whole[1000:3000])


def test_purposes_have_streams_of_their_own() -> None:
    """Public coins, private words of every width, and the rest of tied words: one key each, for any draw and seed."""
    purposes = (COINS, *(f"noise-{bits}" for bits in WIDTHS), "noise-tied", "noise-16-tied")
    keys = {(purpose, seed, stream(which)): which.key(purpose, seed) for purpose, seed, which in product(purposes, (0, 1), DRAWS)}
    assert len(set(keys.values())) == len(keys)
    assert all(one != other for one, other in combinations([stream_key("a", seed, index) for seed, index in product((0, 1, 10), (0, 1, 10))], 2))
