"""Frequent strings among 2^32, found without a list of them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from local_dp.bounds.frequencies import heavy_hitters_clients, level_lengths
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.table import Rows
from local_dp.protocols.search.heavy_hitters import Found, HeavyHitters, HeavyHittersAsked
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.subsets import HashedPrefix, KeptPrefix, Prefix, strings_of
from local_dp.records import Records

N = 1_000_000
TWO_PERCENT = HeavyHitters()


def found(protocol: HeavyHitters, clients: int, seed: int) -> Found:
    oracle = PopulationOracle(protocol.synthetic(clients, seed), KeyedNoise(seed), seed, 1.0)
    return run(protocol.algorithm(1.0, clients), oracle)


def exact(protocol: HeavyHitters, clients: int, seed: int) -> bool:
    """Whether the frequent strings were found, and no other."""
    return set(found(protocol, clients, seed).strings.tolist()) == set(protocol.frequent(protocol.synthetic(clients, seed)))


@pytest.mark.long
def test_ten_strings_of_two_percent_are_found() -> None:
    """A million clients at epsilon 1: in three runs all ten strings of 2^32 and no other; the promised count is below that, and half a million find fewer."""
    assert heavy_hitters_clients(1.0, 32, 0.02, 0.05) < N
    assert all(exact(TWO_PERCENT, N, seed) for seed in range(3))
    assert not exact(TWO_PERCENT, N // 2, 0)


@pytest.mark.parametrize(("runs", "least"), [(1, 1), pytest.param(5, 4, marks=pytest.mark.long)])
def test_four_levels_find_what_they_promise(runs: int, least: int) -> None:
    """Strings of 56 bits, by four levels: with the promised clients for strings of 9 %, in so many runs exactly those (at 95 %: fails with .003 and .02)."""
    protocol = HeavyHitters(bits=56, share=0.09)
    assert level_lengths(56) == (20, 32, 44, 56)
    assert sum(exact(protocol, protocol.clients(1.0), seed) for seed in range(runs)) >= least


def test_text_is_its_bytes() -> None:
    """Text of up to four bytes is distinct and shown again, longer text counts by its first bytes, nothing by zeros."""
    words = np.array(["the", "then", "thence", "é", ""])
    strings = strings_of(words, 32)
    assert strings.tolist() == [0x74686500, 0x7468656E, 0x7468656E, 0xC3A90000, 0]
    assert HeavyHitters(text=True).shown(strings) == ["the", "then", "then", "é", "(missing)"]
    assert HeavyHitters(bits=12).shown(np.array([255], dtype=np.uint64)) == ["0x0ff"]
    prefixes = Prefix("w", 32, 8)(Records({"w": words}))
    assert prefixes.tolist() == [0x74, 0x74, 0x74, 0xC3, 0]
    hashed = HashedPrefix("w", 32, 32, 18, 12345)
    np.testing.assert_array_equal(hashed(Records({"w": words})), hashed.of(strings))


def test_words_of_a_table_are_found() -> None:
    """The two frequent words of a table are found among rare ones, with their shares; a missing word needs a policy."""
    generator = np.random.default_rng(0)
    rare = [f"{word:04x}" for word in generator.integers(0, 1 << 16, 30_000)]
    table = Records({"word": np.array(["milk"] * 40_000 + ["tea"] * 30_000 + rare)[generator.permutation(100_000)]})
    protocol = HeavyHitters(column="word", share=0.2).for_table(Launch(table, False))
    assert protocol.text
    result = run(protocol.algorithm(2.0, 100_000), PopulationOracle(Rows(table), KeyedNoise(1), 1, 2.0))
    assert protocol.shown(result.strings) == ["milk", "tea"]
    assert protocol.true_error(result, Rows(table)) < 0.05
    json.dumps(protocol.describe(result), allow_nan=False)
    with pytest.raises(InputError, match="missing=category"):
        protocol.for_table(Launch(Records({"word": np.array(["milk", ""])}), False))
    with pytest.raises(InputError, match="not whole"):
        replace(protocol, column="x").for_table(Launch(Records({"x": np.array([0.5])}), False))


@pytest.mark.parametrize(("epsilon", "runs", "least", "part"), [pytest.param(1.0, 3, 2, 3, marks=pytest.mark.long), (4.0, 40, 32, 3), (8.0, 40, 32, 30)])
def test_several_rounds_find_what_they_promise(epsilon: float, runs: int, least: int, part: int) -> None:
    """With the clients asked for, all ten strings of 2^32 and no other in nearly every run (below 32 of 40 at 95 %: 5e-4); with a part, in fewer."""
    protocol = HeavyHittersAsked()

    def exactly(clients: int) -> int:
        total = 0
        for seed in range(runs):
            population = protocol.synthetic(clients, seed)
            oracle = PopulationOracle(population, KeyedNoise(seed), seed, epsilon)
            result = run(protocol.algorithm(epsilon, clients), oracle)
            assert len(oracle.rounds) == len(protocol.schedule(epsilon).lengths(32)) == (2 if epsilon < 2 else 4)
            total += set(result.strings.tolist()) == set(protocol.frequent(population))
        return total

    n = protocol.clients(epsilon)
    assert exactly(n) >= least
    assert exactly(n // part) < least


def test_a_kept_prefix_has_its_code() -> None:
    """The place of the prefix that is continued, then the bits that follow; what continues none has the last code. Hostile lists are refused."""
    query = KeptPrefix("s", 8, 6, 2, 6, ("0", "5", "f"))
    strings = np.arange(256)
    places = {0x0: 0, 0x5: 1, 0xF: 2}
    expected = [places[string >> 4] * 4 + (string >> 2 & 3) if string >> 4 in places else 63 for string in strings.tolist()]
    assert query.values(Records({"s": strings})).tolist() == expected
    for kept in ((), ("5", "0"), ("5", "5"), ("10",), ("-1",), ("x",), tuple(f"{each:x}" for each in range(16))):
        with pytest.raises(InputError, match="prefix"):
            KeptPrefix("s", 8, 6, 2, 6, kept)
