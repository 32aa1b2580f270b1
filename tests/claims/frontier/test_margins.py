"""`margins` is shown as it stands; with a wrong program, checker, bound or vote in its place it is not."""

from typing import Any

import numpy as np
import pytest

from local_dp.bounds.interaction import margin_clients
from local_dp.experiments.claims.frontier.margins import runs
from local_dp.experiments.claims.frontier.margins.claim import EXPERIMENT, fibonacci
from local_dp.hardness import certificates, margins
from local_dp.hardness.certificates import Verdict
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)
    assert "18,110" in found().headline
    assert len(found().certificates) == 8
    assert any("invisible" in note for note in found().notes)
    assert any("33 rounds" in note for note in found().notes)
    assert any("parity by 2.00, " in note or "parity by 2.00 a block" in note for note in found().notes)


def test_a_checker_that_takes_anything_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forgeries that are accepted, and certificates that are not."""
    for valid in (True, False):
        monkeypatch.setattr(runs, "verify_certificate", lambda data, valid=valid: Verdict(valid, ""))
        assert "one altered weight" in lost(found("certificate"))


def test_a_transform_of_the_checker_that_is_wrong_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums without signs."""
    monkeypatch.setattr(certificates, "_transformed", lambda values: [sum(values)] * len(values))
    assert "one altered weight" in lost(found("certificate"))


def test_wrong_prices_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """With b^|S| for b^(|S|/2) both sides of the program still agree, and the matrices and closed forms do not."""
    honest = margins._costs
    monkeypatch.setattr(margins, "_costs", lambda concepts: honest(concepts) ** 2)
    assert "sign matrices" in lost(found("matrix"))
    assert "Parity of one variable" in lost(found("blocks"))


def test_a_law_that_is_not_the_best_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The uniform law bounds odd-max-bit less well than the polynomial does."""

    def uniform(concepts: Any) -> margins.Margin:
        best = margins.margin(concepts)
        return margins.Margin(concepts, np.ones_like(best.law), best.coefficients)

    monkeypatch.setattr(runs, "margin", uniform)
    assert "agree to one part in a million" in lost(found("squares"))


def test_votes_that_are_no_good_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Words turned round, and too few clients for their proof; and a bound that votes beat."""
    honest = runs.advantages
    monkeypatch.setattr(runs, "advantages", lambda *rest: -honest(*rest))
    assert "The vote is right" in lost(found("vote"))
    monkeypatch.setattr(runs, "advantages", honest)
    monkeypatch.setattr(runs, "vote_clients", lambda squared, *rest: int(squared))
    assert "The vote is right" in lost(found("vote"))
    monkeypatch.undo()
    monkeypatch.setattr(runs, "margin_clients", lambda squared, *rest: margin_clients(8 * squared, *rest))
    assert "The vote is right" in lost(found("vote"))


def test_nothing_measured_shows_nothing() -> None:
    """Without measurements the verdict is "not shown"; Fibonacci's numbers begin 1, 1, 2, 3, 5."""
    assert EXPERIMENT.conclude([], "quick").verdict == "not shown"
    assert [fibonacci(k) for k in range(1, 7)] == [1, 1, 2, 3, 5, 8]
