"""Theorem 5.1 as printed and as corrected: the exact success of non-adaptive learners, the
experiment's verdict, and what would make it "not shown"."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from local_dp.bounds.masked_parity import coset_tolerance, success_bound
from local_dp.experiments.claims.local.theorem_5_1 import (
    EXPERIMENT,
    Biased,
    Printed,
    Sweep,
    Threshold,
    TwoRounds,
    printed_tolerance,
)
from local_dp.experiments.lab.parts import Rows
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.masked.population import Concept
from local_dp.masked.statistical import (
    NonadaptiveLearner,
    Spectrum,
    bent_learner,
    coset_learner,
    exact_success,
    hidden_set,
    random_learner,
    spectrum,
    two_round_learner,
)
from local_dp.oracles.statistical.oracles import StatisticalQuery
from tests.support.runs.shared import Once


def played(learner: NonadaptiveLearner, d: int) -> tuple[Fraction, Fraction]:
    """The learner's exact success against the midpoint oracle, and the success that its hidden set
    certifies."""
    spectra = tuple(spectrum(query, d) for query in learner.queries)
    return exact_success(learner, spectra), 1 - Fraction(int(hidden_set(spectra).sum()), 2 << d)


@pytest.mark.parametrize(
    ("d", "success"),
    [(4, Fraction(1, 2)), (5, 1), (6, Fraction(1, 2)), (7, 1), (8, 1), (9, 1), (10, 1)],
)
def test_the_bent_learner_refutes_the_printed_theorem(d: int, success: Fraction) -> None:
    """At tau = 2^(-2d/3), d + 1 fixed queries (d + 2 for odd d) learn every one of the 2^(d+1)
    concepts for d = 5 and d > 6, and guess the mask at 4 and 6."""
    learner = bent_learner(d, printed_tolerance(d))
    assert isinstance(learner, Nonadaptive)
    assert len(learner.queries) == d + 1 + d % 2 < 2**d - 1
    assert played(learner, d)[0] == success


@pytest.mark.parametrize(("d", "k"), [(6, 0), (8, 4), (8, 8), (7, 4), (9, 8)])
def test_the_coset_family_flips_at_its_threshold(d: int, k: int) -> None:
    """2^(d-k) coset queries go from success 1/2 at tau = 2^(-k/2-1) to 1 just below, where the
    bound 1/2 + q / (8 tau^2 2^d) reaches 1: it is tight."""
    at = coset_tolerance(k)
    assert played(coset_learner(d, at, k), d)[0] == Fraction(1, 2)
    assert played(coset_learner(d, at * (1 - 1e-9), k), d)[0] == 1
    assert 2 ** (d - k) == pytest.approx(4 * at**2 * 2**d)


def test_partial_families_meet_the_bound_too() -> None:
    """With any number of cosets the success is the corrected bound exactly, up to the billionth by
    which the tolerance is below its threshold."""
    for cosets in (0, 1, 3, 8, 16):
        tolerance = coset_tolerance(4) * (1 - 1e-9)
        success, certificate = played(coset_learner(8, tolerance, 4, cosets), 8)
        assert success == certificate == Fraction(1, 2) + Fraction(cosets, 32)
        assert float(success) == pytest.approx(success_bound(8, cosets, tolerance), abs=1e-8)


def test_random_functions_refute_it_too() -> None:
    """At d = 8 and tau = 2^(-16/3) a random Boolean function reveals Pr[|S| > 2 tau 256] = 0.417 of
    all masks on average, S a sum of 256 signs. The mean of 15 functions is within five standard
    errors (0.04 each) of that, failure probability below 1e-6; 64 functions reveal all (limits 3.1,
    E4)."""
    tolerance = 2 ** (-16 / 3)
    learners = (random_learner(8, tolerance, 1, 1000 * seed) for seed in range(15))
    shares = [2 * float(played(learner, 8)[1]) - 1 for learner in learners]
    bound = tolerance * 256
    subsets = sum(math.comb(256, ones) for ones in range(257) if abs(128 - ones) > bound)
    tail = subsets / 2**256
    assert tail == pytest.approx(0.417, abs=1e-3)
    assert abs(sum(shares) / 15 - tail) < 5 * 0.04 / math.sqrt(15)
    assert played(random_learner(8, tolerance, 64, 1), 8)[0] == 1


def test_a_learner_that_reads_the_wrong_coset_loses() -> None:
    """The exact success is a measurement: the bent learner with its dual function forgotten falls
    from 1 to 1/2 at d = 8."""
    right = bent_learner(8, 0.02)

    def decode(answers: tuple[float, ...]) -> Concept:
        concept = right.decode(answers)
        return Concept(8, concept.r, int(answers[-1] < 0))

    wrong: Nonadaptive[StatisticalQuery, float, Concept] = Nonadaptive(right.queries, decode)
    assert played(wrong, 8)[0] == Fraction(136, 256)  # the dual is +1 for 136 of the 256 strings
    assert isinstance(two_round_learner(8), Adaptive)


@pytest.fixture(scope="module")
def rows(once: Once) -> Rows[Any, Any]:
    points = [point for point in EXPERIMENT.points("quick") if point != Printed(16)]
    return once.measured(
        "theorem-5-1", EXPERIMENT, points, lambda point: EXPERIMENT.measure(point, 3)
    )


@pytest.mark.long
def test_the_experiment_shows_its_claim(rows: Rows[Any, Any]) -> None:
    """The quick run shows every statement and prints the certificates' statements; the full run has
    the same kinds of points."""
    finding = EXPERIMENT.conclude(rows, "quick")
    assert [check.evidence for check in finding.checks if not check.shown] == []
    assert finding.verdict == "shown"
    assert {type(point) for point in EXPERIMENT.points("full")} == {
        type(point) for point in EXPERIMENT.points("quick")
    }


def setting(place: int, **values: Any) -> Callable[[Any], Any]:
    return lambda m: replace(
        m,
        settings=[
            replace(each, **values) if number == place else each
            for number, each in enumerate(m.settings)
        ],
    )


@pytest.mark.long
@pytest.mark.parametrize(("place", "change"), [
    (Printed(8), setting(0, success="511/512")), (Printed(4), setting(0, success="1")),
    (Biased(20), lambda m: replace(m, wins={**m.wins, "up": 99})),
    (Sweep(6, "random functions"), setting(5, success="1", certified="3/4")),
    (Threshold(8, 2), setting(1, success="1")),
    (Threshold(8, 2), lambda m: replace(m, check=replace(m.check, valid=False))),
    (Printed(10), lambda m: replace(m, check=replace(m.check, forgeries_accepted=1))),
    (TwoRounds(8), lambda m: replace(m, wins=511)),
])  # fmt: skip
def test_a_wrong_measurement_is_not_shown(
    rows: Rows[Any, Any], place: Any, change: Callable[[Any], Any]
) -> None:
    """If a learner lost where it should win, won where it should lose, or a certificate misbehaved,
    the verdict is "not shown"."""
    assert place in dict(rows)
    swaps = [(point, change(m) if point == place else m) for point, m in rows]
    assert EXPERIMENT.conclude(swaps, "quick").verdict == "not shown"


@pytest.mark.long
@pytest.mark.parametrize(
    "answers",
    [lambda whole, a: whole.centre + (1 - 2 * a) * whole.half, lambda whole, a: whole.centre],
)
def test_a_wrong_adversary_is_not_shown(
    rows: Rows[Any, Any], answers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An oracle that hides nothing lets learners exceed their certificates, and one that hides more
    than is legal lets the bent learner lose."""
    monkeypatch.setattr(Spectrum, "answers", answers)
    again = [
        (p, p.measure(3) if p == Printed(8) or (isinstance(p, Sweep) and p.d == 6) else m)
        for p, m in rows
    ]
    assert EXPERIMENT.conclude(again, "quick").verdict == "not shown"


@pytest.mark.long
def test_a_wrong_theorem_is_not_shown(
    rows: Rows[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "local_dp.experiments.claims.local.theorem_5_1.success_bound",
        lambda d, q, tau: (1 + success_bound(d, q, tau)) / 2 - 0.25,
    )
    again = [(p, p.measure(3) if isinstance(p, Sweep) and p.d == 6 else m) for p, m in rows]
    assert EXPERIMENT.conclude(again, "quick").verdict == "not shown"
