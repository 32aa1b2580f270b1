"""The experiments `parity` and `occam`: verdicts follow the measurements, and
wrong learners and mechanisms lose them."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from local_dp.bounds.curator import (
    occam_examples_printed,
    occam_examples_realizable,
    parity_examples,
)
from local_dp.curator.parity.learner import ParityLearner
from local_dp.curator.selection.exponential import (
    ExponentialChoice,
    ExponentialMechanism,
    Labelled,
    OccamLearner,
    decay_of,
)
from local_dp.draws import Draws
from local_dp.experiments.claims.local import occam, parity
from local_dp.experiments.claims.local.occam import Error, Privacy, Size, Sizes
from local_dp.experiments.lab.parts import Check, Points, Rows
from local_dp.experiments.lab.store import plain
from tests.support.long import short
from tests.support.runs.shared import Once

pytestmark = pytest.mark.long


def shown(checks: list[Check]) -> dict[str, bool]:
    return {check.statement: check.shown for check in checks}


def failed(checks: list[Check], *parts: str) -> bool:
    """Whether exactly the checks that contain one of `parts` are not shown."""
    losses = [statement for statement, good in shown(checks).items() if not good]
    return len(losses) == len(parts) and all(
        any(part in statement for statement in losses) for part in parts
    )


def small_parity() -> Points:
    """The quick points up to d = 8 with fewer trials."""
    points = [
        point if isinstance(point, parity.Privacy) else replace(point, trials=150)
        for point in parity.EXPERIMENT.points("quick")
    ]
    return [
        point
        for point in points
        if (point.n == 2 if isinstance(point, parity.Privacy) else point.d <= 8)
    ]


def checks() -> list[Check]:
    """Of parity, measured anew."""
    rows = [(point, point.measure(3)) for point in small_parity()]
    return parity.EXPERIMENT.conclude(rows, "quick").checks


def test_parity_is_shown_and_a_bound_below_the_curators_is_not(
    once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a small run every statement is shown. Twin: a local bound that grows with d alone loses
    the verdict on the separation."""
    rows = once.measured(
        "parity",
        parity.EXPERIMENT,
        small_parity(),
        lambda point: parity.EXPERIMENT.measure(point, 3),
    )
    assert all(shown(parity.EXPERIMENT.conclude(rows, "quick").checks).values())
    monkeypatch.setattr(parity, "parity_interactive_bound", lambda d, *_: 100.0 * d)
    assert failed(parity.EXPERIMENT.conclude(rows, "quick").checks, "provably takes")


def test_a_learner_that_leaks_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: "exact constants" that keep half of the examples at every epsilon lose the verdict on
    privacy."""
    wrong = ParityLearner(Fraction(1, 2), Fraction(1, 4))
    monkeypatch.setitem(parity.AUDITED, "A with exact constants", lambda epsilon: wrong)
    assert failed(checks(), "loses exactly epsilon", "nor is charged more than epsilon")


def test_a_size_that_is_too_small_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: two thirds of the computed n lose the verdict on success rates."""
    right = parity_examples
    monkeypatch.setattr(
        parity,
        "parity_examples",
        lambda learner, d, success: 2 * right(learner, d, success) // 3,
    )
    assert failed(checks(), "with 90 % at its n")


def test_a_mechanism_that_draws_at_another_epsilon_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twin: at three quarters of epsilon the exponential mechanism returns the parity less often
    than its law says."""
    monkeypatch.setattr(
        parity,
        "OccamLearner",
        lambda hypotheses, epsilon: OccamLearner(hypotheses, 0.75 * epsilon),
    )
    rows = [
        (point, point.measure(3)) for point in small_parity() if isinstance(point, parity.Mechanism)
    ]
    runs: parity.Runs = [(p, each) for p, each in rows if isinstance(each, parity.Searched)]
    assert not parity._check_rates(runs)[0].shown


def small_occam() -> Rows[Any, Any]:
    """The quick points with fewer trials, no more than 1,600 examples for thresholds, measured."""
    points = [
        point if isinstance(point, Privacy) else replace(point, trials=50)
        for point in occam.EXPERIMENT.points("quick")
    ]
    small = [point for point in points if not (isinstance(point, Error) and point.n > 1600)]
    return [(point, occam.EXPERIMENT.read(point, plain(point.measure(3)))) for point in small]


def test_occam_is_shown() -> None:
    finding = occam.EXPERIMENT.conclude(small_occam(), "quick")
    assert finding.verdict == "shown", finding.checks


def test_occam_with_a_wrong_bound_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twin: an agnostic size in 1/alpha, as if some feature were perfect, loses the verdicts that
    rest on it."""
    monkeypatch.setattr(occam, "occam_examples", occam_examples_realizable)
    points = [Size(case, 1.0, alpha, 50) for case in occam.FLIP for alpha in (0.08, 0.16)]
    assert failed(
        occam._check_sizes([(point, point.measure(3)) for point in points]), "at least the least n"
    )


SIZE = Size("realizable", 1.0, 0.16, 300)
right_choice = ExponentialMechanism.release


def sizes() -> list[tuple[Size, Sizes]]:
    return [(SIZE, SIZE.measure(5))]


def best(mechanism: ExponentialMechanism[Labelled], examples: Labelled, draws: Draws) -> int:
    return int(np.argmax(np.asarray(mechanism.score(examples))))


def blind(mechanism: ExponentialMechanism[Labelled], examples: Labelled, draws: Draws) -> int:
    return draws.below(len(np.asarray(mechanism.score(examples))))


def cautious(mechanism: ExponentialMechanism[Labelled], examples: Labelled, draws: Draws) -> int:
    return right_choice(replace(mechanism, epsilon=0.75 * mechanism.epsilon), examples, draws)


@pytest.mark.parametrize(
    "choose", short([best, blind, cautious], lambda choose: choose is cautious)
)
def test_a_choice_that_is_not_the_mechanisms_is_not_shown(
    choose: object, once: Once, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Always the best, any at all, or at three quarters of epsilon: at the least size these succeed
    more or less often than 90 %."""
    rows = once.measured("occam-size", occam.EXPERIMENT, [SIZE], lambda point: SIZE.measure(5))
    assert all(shown(occam._check_sizes(rows)).values())
    monkeypatch.setattr(ExponentialMechanism, "release", choose)
    assert not all(shown(occam._check_sizes(sizes())).values())


def test_the_exact_chance_of_the_best_is_that_of_all_samples() -> None:
    """With two hypotheses and three examples, quadrature finds the sum over all pairs of error
    counts, realizable and agnostic."""
    for case, alpha in (("realizable", 0.3), ("agnostic", 0.2)):
        rates = occam._error_rates(case, alpha)
        weights = [
            [math.comb(3, k) * rate**k * (1 - rate) ** (3 - k) for k in range(4)] for rate in rates
        ]
        chance = sum(
            weights[0][i] * weights[1][j] / (1 + math.exp((i - j) / 2))
            for i in range(4)
            for j in range(4)
        )
        assert occam.best_chosen(case, 1.0, alpha, 3, hypotheses=2) == pytest.approx(
            chance, abs=1e-9
        )


def test_a_dropped_sensitivity_factor_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights e^(eps score) instead of e^(eps score / 2): the enumerated loss is above epsilon."""
    points = [Privacy(name, 1.0) for name in ("parities", "thresholds")]
    assert all(
        shown(occam._check_privacy([(point, point.measure(5)) for point in points])).values()
    )
    monkeypatch.setattr(
        ExponentialChoice, "decay", property(lambda mechanism: decay_of(mechanism.loss.nano) ** 2)
    )
    assert not all(
        shown(occam._check_privacy([(point, point.measure(5)) for point in points])).values()
    )


def test_a_printed_size_that_is_too_small_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the printed size is below the proven one, and the best is seldom chosen with
    it."""
    monkeypatch.setattr(
        occam, "occam_examples_printed", lambda *arguments: occam_examples_printed(*arguments) // 10
    )
    least = sizes()
    assert least[0][1].printed.successes < 0.5 * SIZE.trials
    assert not occam._check_printed(least).shown
