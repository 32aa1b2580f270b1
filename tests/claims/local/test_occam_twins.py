"""Wrong exponential mechanisms, put in the place of the shipped one, lose the verdict of `occam`."""

from dataclasses import replace

import numpy as np
import pytest

from local_dp.bounds.curator import occam_examples_printed
from local_dp.curator.selection.exponential import ExponentialChoice, ExponentialMechanism, Labelled, decay_of
from local_dp.draws import Draws
from local_dp.experiments.claims.local import occam
from local_dp.experiments.claims.local.occam import Privacy, Size, Sizes
from local_dp.experiments.lab.claim import of_kind
from tests.support.long import short
from tests.support.runs.shared import Once

pytestmark = pytest.mark.long
SIZE = Size("realizable", 1.0, 0.16, 300)
right_choice = ExponentialMechanism.release


def sizes() -> list[tuple[Size, Sizes]]:
    return [(SIZE, SIZE.measure(5))]


def best(mechanism: ExponentialMechanism[Labelled], examples: Labelled, draws: Draws) -> int:
    return int(np.argmax(np.asarray(mechanism.score(examples))))


def blind(mechanism: ExponentialMechanism[Labelled], examples: Labelled, draws: Draws) -> int:
    return draws.below(len(np.asarray(mechanism.score(examples))))


def cautious(mechanism: ExponentialMechanism[Labelled], examples: Labelled, draws: Draws) -> int:
    return right_choice(replace(mechanism, epsilon=mechanism.epsilon / 2), examples, draws)


@pytest.mark.parametrize("choose", short([best, blind, cautious], lambda choose: choose is cautious))
def test_a_choice_that_is_not_the_mechanisms_is_not_shown(choose: object, once: Once, monkeypatch: pytest.MonkeyPatch) -> None:
    """Always the best, any at all, or at half the epsilon: at the measured size these succeed more or less often than 90 %."""
    assert occam._check_sizes(of_kind(once.measured("occam-size", occam.EXPERIMENT, [SIZE], lambda point: SIZE.measure(5)), Size)).shown
    monkeypatch.setattr(ExponentialMechanism, "release", choose)
    assert not occam._check_sizes(sizes()).shown


def test_a_dropped_sensitivity_factor_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights e^(eps score) instead of e^(eps score / 2): the enumerated loss is above epsilon."""
    points = [Privacy(name, 1.0) for name in ("parities", "thresholds")]
    assert occam._check_privacy([(point, point.measure(5)) for point in points]).shown
    monkeypatch.setattr(ExponentialChoice, "decay", property(lambda mechanism: decay_of(mechanism.loss.nano) ** 2))
    assert not occam._check_privacy([(point, point.measure(5)) for point in points]).shown


def test_a_printed_size_that_is_too_small_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the printed size is below the proven one, and its runs fail: the check is a run, not one formula against another."""
    monkeypatch.setattr(occam, "occam_examples_printed", lambda *arguments: occam_examples_printed(*arguments) // 10)
    least = sizes()
    assert least[0][1].printed_successes < 0.5 * SIZE.trials
    assert not occam._check_printed(least).shown
