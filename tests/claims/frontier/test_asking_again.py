"""`asking-again` is shown as it stands; what does not factor, and wrong constants, are not."""

import pytest

from local_dp.arrays import Counts, Floats
from local_dp.bounds.channels import pasting_constant
from local_dp.experiments.claims.frontier.asking_again import claim as asking_again
from local_dp.experiments.claims.frontier.asking_again import runs as asking_again_runs
from local_dp.experiments.claims.frontier.asking_again.claim import EXPERIMENT
from local_dp.hardness.transcripts import Turn, transcript_laws
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)


def test_a_curator_in_the_protocol_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that see all inputs at once do not factor, and break the inequality."""
    found()

    def told(protocol: Turn, inputs: Counts) -> Floats:
        return transcript_laws(protocol, inputs * inputs.all(axis=1, keepdims=True))

    monkeypatch.setattr(asking_again_runs, "transcript_laws", told)
    assert "drawn at random" in lost(found("protocols"))


def test_a_smaller_constant_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of the constant are exceeded by the worst protocol for two clients."""
    monkeypatch.setattr(asking_again, "pasting_constant", lambda clients=None: 0.9 * pasting_constant(clients))
    assert "search" in lost(found())


def test_a_curvature_at_the_other_end_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """c at +1/C in place of -1/C is less than what one report carries."""
    monkeypatch.setattr(asking_again, "affinity_curvature", lambda epsilon: 0.09)
    assert "one person" in lost(found())


def test_reports_of_half_the_epsilon_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halving at half the epsilon does not find the parity with the clients that the formula gives."""
    found()
    monkeypatch.setattr(asking_again_runs, "EPSILON", 0.5)
    monkeypatch.setattr(asking_again_runs, "parity_halving_clients", lambda d, epsilon, beta: 442)
    assert "halving" in lost(found("parity"))


def test_nothing_measured_shows_nothing() -> None:
    """Without measurements the verdict is "not shown"."""
    assert EXPERIMENT.conclude([], "quick").verdict == "not shown"
