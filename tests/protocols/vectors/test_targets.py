"""The mean of the clients themselves, or of the law that they come from: the interval of each holds
as often as it says, by every randomizer."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import local_dp as ldp
from local_dp.bounds.best import report_laws
from local_dp.bounds.means import TARGETS, best_mean, mean_variances
from local_dp.conformance import conform_intervals
from local_dp.errors import InputError
from local_dp.populations.finite import Finite, Population, rounding_law
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import NO_COIN
from local_dp.randomizers.registry import made_for
from local_dp.randomizers.table import FINEST, NumberTable
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.long import short
from tests.support.wrong import wrong

DITHER = "local_dp.domains:Domain.discretize"
NUMBERS = ["one-bit-mean", "piecewise", "hybrid", "staircase", "discrete-laplace"]
NUMBERS += ["bounded-laplace", "square-wave", "piecewise(steps=20)"]
SHAPES = {
    "middle": Records({"value": np.full(7, 0.5017)}),
    "ends": Records({"value": np.array([0.0, 0.0, 1.0])}),
    "spread": Records({"value": np.arange(40) / 39}),
}


@wrong(
    "local_dp.protocols.surveys.target:of_records",
    "variance / n",
    "variance / (4 * n)",
    "a quarter of the noise is taken for all",
    at="records-spread-4.0-piecewise",
)
@pytest.mark.parametrize("name", short(NUMBERS, lambda name: name == "piecewise"))
@pytest.mark.parametrize("epsilon", short([0.3, 1.0, 4.0, 8.0], lambda epsilon: epsilon == 4))
@pytest.mark.parametrize("shape", short(SHAPES, lambda shape: shape == "spread"))
@pytest.mark.parametrize("of", TARGETS)
def test_means_are_covered_by_every_randomizer(
    of: str, shape: str, epsilon: float, name: str
) -> None:
    def people(seed: int) -> Population:
        return Finite(SHAPES[shape], np.ones(len(SHAPES[shape])), 2000, seed)

    conform_intervals(Mean(of=of, randomizer=name), epsilon, 2000, 400, people=people)


@wrong(DITHER, "np.floor(places + shift)", "np.floor(places)", "down", at="population-16.0")
@pytest.mark.parametrize("epsilon", [0.1, 16.0])
@pytest.mark.parametrize("of", TARGETS)
def test_a_wide_range_does_not_show(of: str, epsilon: float) -> None:
    """10^6 equal numbers near a bound of [0, 1e6], by the exact law of the reports: in 500 runs the
    intervals miss no more often than a coverage of .94 does with probability 1e-7."""
    protocol, runs = Mean(column="v", low=0.0, high=1e6, of=of), 500
    ask = protocol.algorithm(epsilon, 10**6)
    channel = ask.queries[0].randomizer
    assert isinstance(channel, FiniteChannel)
    for value in (7.0, 10.0, 1e6 - 7):
        values, chances = rounding_law(ask.queries[0].query, Records({"v": np.array([value])}))
        law = chances[0] @ report_laws(channel, values[0])
        tallies = np.random.default_rng(1).multinomial(10**6, law / law.sum(), (runs, 1))
        ends = np.array([ask.decode((Tally(each),)).interval() for each in tallies])
        misses = np.sum((ends[:, 0] > value) | (ends[:, 1] < value))
        assert misses <= stats.binom.isf(1e-7, runs, 0.06)


def test_the_truth_is_of_the_numbers_themselves() -> None:
    for tier in ("population", "aggregate"):
        truth = ldp.mean({"v": [7.0] * 2000}, "v", bounds=(0, 1e6), tier=tier, seed=1).truth
        assert truth == pytest.approx(7, rel=1e-9)


def test_the_best_is_the_least_of_all_that_are_computed() -> None:
    """Its worst variance is that of its table; no randomizer of numbers has 1 % less. Of a
    population it is one bit."""
    for epsilon in (0.5, 4.0):
        variances = mean_variances(epsilon, "records")
        best = variances[best_mean(epsilon, "records")]
        assert best_mean(epsilon) == "one-bit-mean"
        for name in ("piecewise", "hybrid", "discrete-laplace"):
            randomizer = made_for(name, epsilon, steps=FINEST)
            assert isinstance(randomizer, NumberTable)
            worst = float(randomizer.variances.max())
            assert worst >= best / 1.0101
            assert variances.get(name, worst) == pytest.approx(worst, rel=1e-5)


@wrong(
    "local_dp.randomizers.table:NumberTable.respond",
    "< level",
    "<= level",
    "a number is rounded up too often",
)
def test_a_finer_lattice_keeps_the_loss_and_the_mean() -> None:
    """Each row is a mixture of two of the table's: with its mean exactly, and its ratio at most.
    All words together give each report as often as its weight says."""
    narrow = replace(made_for("piecewise", 1.0, steps=256), word_bits=16)
    words = np.arange(1 << 16, dtype=np.uint32)
    for value in (0, 1, 130, 255, 256):
        reports = narrow.respond(np.full(len(words), value), words, NO_COIN)
        assert isinstance(narrow, NumberTable)
        counts = np.bincount(reports, minlength=narrow.alphabet)
        assert np.array_equal(counts, narrow.rows(np.array([value]), 0)[0])
    randomizer = made_for("piecewise", 1.0, steps=1024)
    assert isinstance(randomizer, NumberTable)
    weights = randomizer.channel()
    ratio = exact_ratio(randomizer)
    assert float((weights.max(axis=0) / weights.min(axis=0)).max()) == pytest.approx(float(ratio))
    assert float(np.log(float(ratio))) <= 1.0
    assert randomizer.coarse is not None
    means = weights / 2.0**64 @ randomizer.coarse.decoded
    np.testing.assert_allclose(means, np.arange(1025) / 1024, atol=1e-9)


@wrong(
    "local_dp.oracles.local.oracles:AggregateOracle._draw",
    "self.population.latest = (query.query, nothing)",
    "pass",
    "the truth beside an estimate is that of other clients",
)
def test_no_truth_is_shown_of_clients_who_were_not_drawn() -> None:
    """Tallies of many different rows are drawn from the law of the reports: the average of the
    clients themselves is not known then, and that of their population is."""
    table = {"v": np.arange(600) / 7}
    how: dict[str, Any] = {"resample": True, "clients": 5000, "seed": 1}
    cases: tuple[tuple[Any, Any, bool], ...] = (
        ("records", "aggregate", False),
        ("records", "population", True),
        ("population", "aggregate", True),
    )
    for of, tier, is_known in cases:
        result = ldp.mean(table, "v", bounds=(0, 100), of=of, tier=tier, **how)
        data = result.to_dict()["result"]
        assert (data["truth"] is not None, data["true_error"] is not None) == (is_known, is_known)


def test_the_target_decides_error_truth_and_reason() -> None:
    table = {"value": np.linspace(0, 1, 1000)}
    records, law = (
        ldp.run("mean", table, bounds=(0, 1), epsilon=4.0, seed=1, of=of).to_dict()
        for of in TARGETS
    )
    assert records["rounds"][0]["randomizers"][0]["name"] == "hybrid"
    assert law["rounds"][0]["randomizers"][0]["name"] == "one-bit-mean"
    assert records["result"]["explanation"] == (
        "hybrid: 6.9 times fewer people than one-bit-mean here."
    )
    errors = [each["result"]["standard_error"] for each in (records, law)]
    assert errors[0] < 0.5 * errors[1]
    alike = Tally(np.full((1, 4), 50))
    kinds = (Frequency(k=4, randomizer="grr", of=of) for of in TARGETS)
    shares = [kind.algorithm(4.0, 200).decode((alike,)).standard_error for kind in kinds]
    assert (shares[0] < 0.5 * shares[1]).all()
    people = Mean().synthetic(50, 1)
    own = float(np.mean(people.batch(0, 50)["value"]))
    assert float(Mean().truth(people)) == pytest.approx(own, abs=1e-4)
    assert float(Mean(of="population").truth(people)) == pytest.approx(0.3, abs=1e-4)
    for name in ("grr", "discrete-gaussian", "binary-rr"):
        with pytest.raises(InputError):
            Mean(randomizer=name).algorithm(1.0, 10)
    with pytest.raises(InputError, match="leave out"):
        Mean(by="group", labels=("a", "b"), randomizer="hybrid")
