"""One value, one report."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from local_dp.bounds.tails import normal_quantile
from local_dp.errors import InputError
from local_dp.loss import Pure, exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, chunk_digest, round_digest
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Rows
from local_dp.queries.tables import Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.records import Records
from tests.support.wrong import wrong

LABELS = tuple("abcdef")
SYMBOLS = np.random.default_rng(3).integers(0, len(LABELS), 3000)


@wrong(
    "local_dp.api.randomize:LocalRandomizer._reports",
    "randomizer.simulated(noise, _ASK, start, values, cells)",
    "randomizer.simulated(noise, Draw(2, 0), start, values, cells)",
    "a report that is made alone is another than a run makes by the same words",
    at="grr",
)
@pytest.mark.parametrize("name", ["grr", "oue", "hadamard", "olh", "pgr"])
def test_it_gives_what_a_run_gives(name: str) -> None:
    """Under a seed, the reports of a run's clients with these values, and its estimate."""
    own = ldp.randomizer(name, k=len(LABELS), epsilon=2)
    reports = own.privatize(SYMBOLS, seed=5)
    people = Rows(Records({"label": np.array(LABELS)[SYMBOLS]}))
    query = LocalQuery(Category("label", LABELS), own.randomizer, Cohort(0, len(SYMBOLS)))
    oracle = PopulationOracle(people, KeyedNoise(5), 5, 2.0)
    (tally,) = oracle.answer((query,))
    plain = reports["report"] if own.randomizer.uses_coins else reports
    assert round_digest([chunk_digest(own.randomizer, plain)]) == oracle.rounds[0].digest
    estimate = own.estimate(reports)
    assert np.array_equal(estimate.value, own.randomizer.estimate(tally).value)


SOME = {
    "grr": (SYMBOLS, {"k": 6}),
    "hadamard": (SYMBOLS.tolist(), {"k": 6}),
    "piecewise": (SYMBOLS / 8, {}),
    "sampled-signs": (np.stack([SYMBOLS / 8 - 0.3, SYMBOLS / 10], axis=1), {"d": 2}),
}


@pytest.mark.parametrize("name", SOME)
def test_reports_by_entropy_are_estimated(name: str) -> None:
    """By the system's entropy no two calls agree; the estimate is within as many standard errors as
    chance allows with probability 1e-9, and one report alone is estimated too."""
    values, parameters = SOME[name]
    own = ldp.randomizer(name, epsilon=4.0, **parameters)
    reports = own.privatize(values)
    assert not np.array_equal(reports, own.privatize(values))
    estimate = own.estimate(reports)
    numbers: Any = np.asarray(values)
    truth = np.bincount(numbers) / len(numbers) if "k" in parameters else numbers.mean(axis=0)
    away = normal_quantile(1e-9 / 12) * estimate.standard_error + 1e-4  # of the lattice
    assert (abs(estimate.value - truth) < away).all()
    assert own.estimate(own.privatize(values[0])).n == 1


def test_law_and_loss_are_exact() -> None:
    own = ldp.randomizer(GRR, k=3, epsilon=0.5)
    assert own.loss() == Pure(500_000_000)
    law = own.law()
    assert law.shape == (3, 3)
    growth = Fraction(law.max()) / Fraction(law.min())
    assert 0 <= exp_epsilon(500_000_000) - growth < 1e-6
    assert np.allclose(law.sum(axis=1), 1)
    assert ldp.randomizer("hadamard", k=3).law().sum(axis=(1, 2)) == pytest.approx(1)
    assert own.audit().holds
    with pytest.raises(InputError, match="are not listed"):
        ldp.randomizer("oue", k=10).law()


@pytest.mark.parametrize(
    ("which", "values"),
    [
        (("grr", {"k": 4}), 4),
        (("grr", {"k": 4}), 2.0),
        (("grr", {"k": 4}), "7"),
        (("grr", {"k": 4}), [[1]]),
        (("piecewise", {}), 1.25),
        (("piecewise", {}), float("nan")),
        (("nearest-direction", {"d": 2}), [0.9, 0.9]),
        (("nearest-direction", {"d": 2}), [0.9]),
    ],
)
def test_what_is_no_value_is_refused_without_it(which: Any, values: Any) -> None:
    own = ldp.randomizer(which[0], **which[1])
    with pytest.raises(InputError, match="a value is not") as refusal:
        own.privatize(values)
    for each in np.ravel(values):
        assert str(each) not in str(refusal.value).replace("0 to 1", "").replace("-1 to 1", "")


def test_what_is_no_report_is_refused() -> None:
    own = ldp.randomizer("grr", k=4)
    for reports, words in (([5], "impossible"), (["a"], "no reports"), ([[1]], "no reports")):
        with pytest.raises(InputError, match=words):
            own.estimate(reports)
    with pytest.raises(InputError, match="nobody answered"):
        own.estimate(own.privatize([]))
    with pytest.raises(InputError, match="for a randomizer that is made"):
        ldp.randomizer(GRR(1.0, k=3), k=4)
