"""Rank errors of quantiles by this library's protocol, at the level of the reports' law."""

from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.interaction import run
from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.search.quantiles import Located, Quantiles
from local_dp.queries.cells import Below
from local_dp.queries.query import STEPS
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.prefix_signs import PrefixSigns
from local_dp.tallies import Tally

BINS = 1024
Finder: TypeAlias = Callable[[Floats, float, int, float, np.random.Generator], int]


@cache
def laws() -> dict[str, Floats]:
    """Laws on the symbols of a grid of 1,024 intervals, nobody outside: flat, a bell, whole numbers
    13 intervals apart with a heavy one, a long tail."""
    place = np.arange(BINS) / BINS
    bell = np.exp(-(((place - 0.3) / 0.1) ** 2) / 2)
    whole = np.where(np.arange(BINS) % 13 == 5, bell, 0.0)
    whole[5 + 13 * 20] += 0.1 * whole.sum()
    shapes = {
        "uniform": np.ones(BINS),
        "bell": np.exp(-(((place - 0.4) / 0.15) ** 2) / 2),
        "whole, an atom": whole,
        "skewed": np.exp(-20 * place),
    }
    none = [0.0]
    return {
        name: np.concatenate([none, shape / shape.sum(), none]) for name, shape in shapes.items()
    }


def rank_error(law: Floats, share: float, symbol: int) -> float:
    """How far the share lies outside the ranks of the symbol."""
    heights = np.concatenate([[0.0], np.cumsum(law)])
    above = float(heights[symbol + 1])
    return max(0.0, float(heights[symbol]) - share, share - above - 1e-12)


class LawOracle:
    """Answers the protocol's queries with tallies drawn from the law of reports of clients whose
    symbols are drawn from `law`."""

    def __init__(self, protocol: Quantiles, law: Floats, generator: np.random.Generator) -> None:
        self.edges = protocol.grid.edges
        self.law = law
        self.heights = np.cumsum(law)
        self.generator = generator

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        return tuple(self._answer(query) for query in queries)

    def _answer(self, query: LocalQuery) -> Tally:
        n, randomizer = len(query.cohort), query.randomizer
        if isinstance(query.query, Below):
            assert isinstance(randomizer, OneBitMean)
            share = float(self.heights[int(np.searchsorted(self.edges, query.query.end))])
            chance = (randomizer.base + randomizer.slope * STEPS * share) / randomizer.total
            ones = int(self.generator.binomial(n, min(chance, 1.0)))
            return Tally(np.array([[n - ones, ones]]))
        assert isinstance(randomizer, PrefixSigns)
        reports = _report_law(randomizer, self.law.tobytes())
        return Tally(self.generator.multinomial(n, reports.ravel()).reshape(reports.shape))


@cache
def _report_law(randomizer: PrefixSigns, law: bytes) -> Floats:
    shares = np.frombuffer(law)
    flip = randomizer.flip / randomizer.total
    ones = np.zeros(randomizer.cells)
    for value in np.flatnonzero(shares):
        ones += shares[value] * randomizer.encode(np.array(value), np.arange(randomizer.cells))
    ones = flip + (1 - 2 * flip) * ones
    return np.stack([1 - ones, ones], axis=1) / randomizer.cells


def located(
    protocol: Quantiles, law: Floats, n: int, epsilon: float, generator: np.random.Generator
) -> Located:
    return run(protocol.algorithm(epsilon, n), LawOracle(protocol, law, generator))


def by_protocol(rounds: str) -> Finder:
    """The library's protocol, `rounds` one, several or best."""

    def find(
        law: Floats, share: float, n: int, epsilon: float, generator: np.random.Generator
    ) -> int:
        protocol = Quantiles(at=(str(share),), bins=len(law) - 2, rounds=rounds)
        return located(protocol, law, n, epsilon, generator).symbol[0]

    return find


def upper_error(find: Finder, law: Floats, runs: int, *, share: float) -> float:
    """The rank error that 95 % of the runs of 100,000 clients keep, at epsilon 1."""
    generator = np.random.default_rng(7)
    symbols = (find(law, share, 100_000, 1.0, generator) for _ in range(runs))
    errors = [rank_error(law, share, symbol) for symbol in symbols]
    return float(np.quantile(errors, 0.95))
