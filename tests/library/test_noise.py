"""Noise: keyed words are a function of (seed, round, client, width) alone, pinned for ever by golden vectors; private words never repeat."""

import os
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.errors import InputError
from local_dp.noise import Draw, KeyedNoise, SystemNoise, public_coins, stream_key
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import chunks
from tests.support import golden

WIDTHS = (32, 64)


@settings(max_examples=200, deadline=None)
@given(
    seed=st.integers(0, 2**64 - 1),
    round=st.integers(1, 2**31),
    start=st.integers(0, 2**40),
    cuts=st.lists(st.integers(1, 37), min_size=1, max_size=8),
    bits=st.sampled_from(WIDTHS),
)
def test_a_clients_word_does_not_depend_on_who_is_drawn_with_it(seed: int, round: int, start: int, cuts: list[int], bits: int) -> None:
    """However clients are cut into chunks, each gets the same word."""
    noise, stop = KeyedNoise(seed), start + sum(cuts)
    whole = noise.words(Draw(round), start, stop, bits)
    ends = [start + sum(cuts[:place]) for place in range(len(cuts) + 1)]
    parts = [noise.words(Draw(round), low, high, bits) for low, high in pairwise(ends)]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert [int(noise.words(Draw(round), client, client + 1, bits)[0]) for client in range(start, stop)] == whole.tolist()
    assert (whole.dtype, len(noise.words(Draw(round), start, start, bits))) == (np.dtype(f"<u{bits // 8}"), 0)


@settings(max_examples=100, deadline=None)
@given(start=st.integers(0, 500), length=st.integers(0, 500), size=st.integers(1, 100))
def test_chunks_cover_once_and_at_fixed_places(start: int, length: int, size: int) -> None:
    cut = list(chunks(start, start + length, size))
    assert [client for low, high in cut for client in range(low, high)] == list(range(start, start + length))
    assert all(low // size == (high - 1) // size for low, high in cut)


def test_golden_words_and_coins() -> None:
    assert (golden.words(), golden.coins()) == (golden.kept()["words"], golden.kept()["coins"])
    written = golden.kept()
    assert set(written["reports"]) == set(RANDOMIZERS.built_in)
    assert list(written["messages"]) == [message.kind for message in golden.MESSAGES]


@pytest.mark.parametrize("name", RANDOMIZERS.built_in)
def test_golden_reports(name: str) -> None:
    """The first clients' report bytes at epsilon 1 and seed 1, written down for every built-in randomizer."""
    assert golden.reports(name) == golden.kept()["reports"].get(name), "new values: python -m tests.support.golden"


def test_streams_do_not_meet() -> None:
    """Words of neighbouring seeds and rounds, of both widths, and public coins share no aligned 8-byte word among 2^15 each (chance below 1e-7)."""
    n = 1 << 15
    streams = [
        KeyedNoise(seed).words(Draw(round), 0, 2 * n if bits == 32 else n, bits).view("<u8") for seed in (0, 1, 2) for round in (1, 2, 3) for bits in WIDTHS
    ]
    streams += [public_coins(stream_key(label, seed, index), 0, n) for label in ("coins", "population", "masks") for seed in (0, 1) for index in (0, 1)]
    drawn = np.concatenate(streams)
    assert len(np.unique(drawn)) == len(drawn) == len(streams) * n
    assert len({stream_key(label, seed, index) for label in ("noise", "coins") for seed in range(50) for index in range(50)}) == 5000
    halves = KeyedNoise(1).words(Draw(1), 0, 256, 64).view("<u4")
    assert not set(halves.tolist()) & set(KeyedNoise(1).words(Draw(1), 0, 512, 32).tolist())


@pytest.mark.parametrize("bits", WIDTHS)
def test_keyed_words_are_uniform(bits: int) -> None:
    """The mean of 2^20 words, in each of the bits, is a half within 5.1 standard deviations (failure 32e-6 / 64 a bit, 2e-5 in all, at a fixed seed)."""
    words = KeyedNoise(9).words(Draw(1), 0, 1 << 20, bits)
    shares = np.array([((words >> words.dtype.type(bit)) & words.dtype.type(1)).mean() for bit in range(bits)])
    assert abs(shares - 0.5).max() < 5.1 * 0.5 / 1024


def test_system_noise_is_fresh_and_seeds_are_of_64_bits() -> None:
    """Operating-system words never repeat, also in a forked process, and take no seed."""
    noise = SystemNoise()
    first, second = noise.words(Draw(1), 0, 1000, 64), noise.words(Draw(1), 0, 1000, 64)
    assert len(np.unique(np.concatenate([first, second]))) == 2000
    assert (noise.words(Draw(1), 5, 9, 32).dtype, len(noise.words(Draw(1), 5, 9, 32))) == (np.dtype("<u4"), 4)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, noise.words(Draw(1), 0, 4, 64).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 32) != noise.words(Draw(1), 0, 4, 64).tobytes()
    os.close(reading)
    os.close(writing)
    with pytest.raises(TypeError):
        SystemNoise(1)  # type: ignore[arg-type]
    for seed in (-1, 2**64, 2**70):
        with pytest.raises(InputError, match="seed"):
            KeyedNoise(seed)
