"""`shuffled` is shown as it stands; wrong accounts and wrong histograms in their place are not."""

from typing import Any

import pytest

from local_dp.experiments.claims.local.shuffled import runs
from local_dp.experiments.claims.local.shuffled.claim import EXPERIMENT
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.shuffle import accountant
from local_dp.shuffle.histogram import BlanketHistogram
from local_dp.shuffle.pair import Pair
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    assert found().verdict == "shown", lost(found())
    place = next(place for place, point in enumerate(QUICK.points) if isinstance(point, runs.Errors))
    assert QUICK.measure(place) == QUICK.right(place)


def test_too_many_clones_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other client a clone: a bound below what real data sets lose."""
    monkeypatch.setattr(accountant, "variation_ratio", lambda local: accountant.cloned(local, 1.0))
    assert "no upper bound is too low" in lost(found(runs.Enumerated))


def test_a_lower_bound_that_is_none_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lower bound of a pair whose delta is a fifth larger."""
    least = Pair.epsilon_at_least
    monkeypatch.setattr(Pair, "epsilon_at_least", lambda pair, groups, delta, most: least(pair, groups, 0.8 * delta, most))
    assert "no lower one too high" in lost(found(runs.Enumerated))


def test_too_small_a_blanket_is_not_what_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimate that forgets what the blanket adds is biased, and errs more than its closed form."""
    right_estimate = BlanketHistogram.estimate

    def forgets(histogram: BlanketHistogram, tally: Any) -> Any:
        made = right_estimate(histogram, tally)
        return type(made)(made.value + histogram.tries * histogram.share, made.standard_error, made.n)

    monkeypatch.setattr(BlanketHistogram, "estimate", forgets)
    assert "as its closed form says" in lost(found(runs.MANY))


def test_no_shuffler_is_no_gain(monkeypatch: pytest.MonkeyPatch) -> None:
    """One report at the epsilon of all of them has the local model's error."""
    monkeypatch.setattr(runs, "single_message", lambda name, k, target: GRR(target.epsilon, k=k))
    assert "a curator errs least" in lost(found(runs.ONE))
