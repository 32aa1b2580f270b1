"""The aggregate tier: tallies drawn from their law, held to the law of simulated clients by chi-square tests at ALPHA = 1e-6."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Counts
from local_dp.interaction import run
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.queries.cells import Cell
from local_dp.queries.numbers import STEPS
from local_dp.queries.tables import Bounded
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.signs.prefix_signs import PrefixSigns
from local_dp.records import Records
from local_dp.tallies import Tally
from local_dp.verification.decoding import law_of
from tests.support.inputs.builders import small, with_law
from tests.support.inputs.randomizers import built_in
from tests.support.long import short

ALPHA = 1e-6


def goodness(counts: Counts, law: np.ndarray) -> float:
    """The chi-square p-value of counts against a law, entries with fewer than 10 expected counts merged into one."""
    observed, expected = counts.ravel(), law.ravel() * counts.sum()
    rare = expected < 10
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] == 0:
        assert observed[-1] == 0, "something impossible was reported"
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected, sum_check=False).pvalue)


def same_law(first: Counts, second: Counts) -> float:
    """The chi-square p-value that two tallies have one law, entries with fewer than 10 reports together merged into one."""
    table = np.stack([first.ravel(), second.ravel()])
    rare = table.sum(axis=0) < 10
    table = np.column_stack([table[:, ~rare], table[:, rare].sum(axis=1)])
    table = table[:, table.sum(axis=0) > 0]
    return 1.0 if table.shape[1] == 1 else float(stats.chi2_contingency(table, correction=False).pvalue)


def simulated(randomizer: FiniteChannel, held: dict[int, int]) -> Counts:
    """The tally of simulated clients that hold these values."""
    values = np.repeat(list(held), list(held.values()))
    n = len(values)
    cells = randomizer.cells_of(public_coins(stream_key("coins", 5, 1), 0, n))
    words = randomizer.draw(KeyedNoise(5), Draw(1), 0, n)
    return randomizer.tally(randomizer.respond(values, words, cells), cells).counts


@pytest.mark.parametrize("epsilon", short([0.1, 1.0, 5.0], lambda each: each == 1))
def test_drawn_tallies_have_the_law_of_simulated_ones(epsilon: float) -> None:
    """For every randomizer, draw_tally and respond-then-tally both fit the exact law of the cohort's values, and each other."""
    generator = np.random.default_rng(3)
    for randomizer in built_in(epsilon):
        low, high = randomizer.domain.low, randomizer.domain.high
        held = {low: 40_000, (low + high) // 2: 20_000, high: 30_000} if high - low > 1 else {low: 40_000, high: 50_000}
        drawn, answered = randomizer.draw_tally(held, generator).counts, simulated(randomizer, held)
        n = sum(held.values())
        law = sum(count / n * law_of(randomizer, value) for value, count in held.items())
        assert drawn.sum() == answered.sum() == n
        for p in (goodness(drawn, np.asarray(law)), goodness(answered, np.asarray(law)), same_law(drawn, answered)):
            assert p > ALPHA, f"{randomizer.name}, epsilon {epsilon}: p = {p}"


@dataclass(frozen=True)
class TooPrivate(GRR):
    """Draws its tally at 0.9 epsilon."""

    def draw_tally(self, value_counts: Any, generator: np.random.Generator) -> Tally:
        return GRR(0.9 * self.epsilon, k=self.k).draw_tally(value_counts, generator)


@dataclass(frozen=True)
class OneCell(Hadamard):
    """Draws every public coin as 0."""

    def draw_tally(self, value_counts: Any, generator: np.random.Generator) -> Tally:
        tally = super().draw_tally(value_counts, generator)
        tally.counts[0] += tally.counts[1:].sum(axis=0)
        tally.counts[1:] = 0
        return tally


@pytest.mark.parametrize("twin", [TooPrivate(1.0, k=8), OneCell(1.0, k=8)])
def test_a_wrong_law_is_noticed(twin: FiniteChannel) -> None:
    """A tally drawn at another epsilon or in the wrong cells fails the chi-square test."""
    held = {0: 40_000, 3: 50_000}
    assert same_law(twin.draw_tally(held, np.random.default_rng(3)).counts, simulated(twin, held)) < ALPHA


class Both:
    """Puts the same questions to both tiers, the aggregate one at `factor` times epsilon, and answers as the population tier does."""

    def __init__(self, population: Population, epsilon: float, factor: float = 1.0) -> None:
        self.by_client = PopulationOracle(population, KeyedNoise(4), 4, epsilon)
        self.by_law = AggregateOracle(population, np.random.default_rng(4), factor * epsilon)
        self.factor = factor
        self.pairs: list[tuple[Tally, Tally]] = []

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        changed = [replace(query, randomizer=replace(query.randomizer, epsilon=self.factor * query.randomizer.epsilon)) for query in queries]
        tallies = self.by_client.answer(queries)
        self.pairs += zip(tallies, self.by_law.answer(tuple(changed)), strict=True)
        return tallies


def pairs_of(name: str, clients: int, epsilon: float, factor: float = 1.0) -> list[tuple[Tally, Tally]]:
    """The tallies of one run of a protocol: simulated, and drawn from their law."""
    both = Both(small(name).synthetic(clients, 4), epsilon, factor)
    run(small(name).algorithm(epsilon, clients), both)
    return both.pairs


@pytest.mark.parametrize("name", with_law())
@pytest.mark.parametrize("epsilon", short([0.5, 1.0, 3.0], lambda each: each == 1))
def test_the_aggregate_oracle_has_the_law_of_the_population(name: str, epsilon: float) -> None:
    """For every protocol, each tally of the aggregate tier has the law of the population tier's."""
    for first, second in pairs_of(name, 100_000, epsilon):
        assert first.n == second.n
        assert same_law(first.counts, second.counts) > ALPHA


@pytest.mark.parametrize("name", with_law())
def test_an_aggregate_oracle_at_another_epsilon_is_noticed(name: str) -> None:
    """The same comparison fails when one side runs at 1.5 times the epsilon."""
    assert min(same_law(first.counts, second.counts) for first, second in pairs_of(name, 400_000, 2.0, 1.5)) < ALPHA


def test_many_kinds_of_record_have_their_tally_in_closed_form() -> None:
    """Pr[report] over 1,000 kinds of record is the law of the values times the channel, exactly; few kinds, or public coins, are drawn value by value."""
    generator = np.random.default_rng(4)
    kinds, shares = Records({"v": generator.normal(size=1000)}), generator.random(1000)
    many, query, randomizer = Finite(kinds, shares.tolist(), 5000, 1), Bounded("v", -2.0, 2.0), OneBitMean(1.0, steps=STEPS)
    law = many.tally_law(query, randomizer)
    assert law is not None
    expected = many.law(query) @ (randomizer.channel().astype(np.float64) / randomizer.total)
    assert law[0] == pytest.approx(expected, abs=1e-12)
    assert Finite(kinds.take(slice(0, 100)), shares[:100].tolist(), 5000, 1).tally_law(query, randomizer) is None
    assert many.tally_law(Cell("v", tuple(np.linspace(-2, 2, 600).tolist())), PrefixSigns(1.0, k=602)) is None


def test_the_aggregate_estimate_covers_the_truth_as_often_as_it_says() -> None:
    """Over 4,000 runs, 95 % intervals cover the truth within the binomial limits of failure probability ALPHA."""
    randomizer, generator, covered = BinaryRR(1.0), np.random.default_rng(6), 0
    for _ in range(4000):
        ones = int(generator.binomial(5000, 0.3))
        low, high = randomizer.estimate(randomizer.draw_tally({0: 5000 - ones, 1: ones}, generator)).interval()
        covered += bool(low <= 0.3 <= high)
    assert stats.binomtest(covered, 4000, 0.95).pvalue > ALPHA
