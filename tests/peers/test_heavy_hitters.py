"""The published ways to find frequent strings, as populations of our oracles."""

import pytest

from local_dp.api.sweep import Grid, comparison
from local_dp.experiments.peers.heavy_hitters import PUBLISHED, Published
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.protocols.search.heavy_hitters import HeavyHitters


@pytest.mark.parametrize("kind", PUBLISHED)
def test_published_ways_find_most_of_ten_strings(kind: type[Published]) -> None:
    """At least eight of ten, of 8 % each: two that share a hash of eight bits hide each other."""
    protocol = kind(share=0.08, bits=16)
    population = protocol.synthetic(100_000, 1)
    oracle = PopulationOracle(population, KeyedNoise(1), 1, 4.0)
    result = run(protocol.algorithm(4.0, 100_000), oracle)
    shares = protocol.shares(population)
    assert sum(string in shares for string in result.strings) >= 8


def test_a_comparison_has_both() -> None:
    cases = comparison(HeavyHitters(bits=16), Grid(runs=20, tier="population")).cases
    assert [case.protocol.name for case in cases] == [
        "heavy-hitters",
        "tree-histogram",
        "count-mean-sketch",
    ]
