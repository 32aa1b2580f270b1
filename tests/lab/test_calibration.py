"""The intervals' check: shown as they are, and not shown where an interval or a search says something else."""

from dataclasses import replace

import pytest

from local_dp.experiments.lab import calibration
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.experiments.lab.minimal_clients import MinimalClients, minimal_clients


def test_the_intervals_are_what_they_say() -> None:
    """Wilson's interval holds 95 % over all rates, and the search's is as wide as the information says, about the known count."""
    check = intervals_check()
    assert check.shown, check.evidence


def _too_narrow(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calibration, "wilson", lambda right, runs: wilson(right, runs, 1.6448536269514722))


def _never_wrong(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calibration, "wilson", lambda right, runs: (0.0, 1.0))


def _searched(patch: pytest.MonkeyPatch, **changed: int) -> None:
    def search(*arguments: object, **settings: object) -> MinimalClients:
        return replace(minimal_clients(*arguments, **settings), **changed)  # type: ignore[arg-type]

    patch.setattr(calibration, "minimal_clients", search)


def _a_count_below(patch: pytest.MonkeyPatch) -> None:
    _searched(patch, n=980)


def _half_as_wide(patch: pytest.MonkeyPatch) -> None:
    _searched(patch, low=980, high=1020)


@pytest.mark.parametrize("spoil", [_too_narrow, _never_wrong, _a_count_below, _half_as_wide])
def test_wrong_intervals_are_not_shown(spoil: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 90 %, one that holds everything, a count 2 % too low and an interval of less than its width are found."""
    spoil(monkeypatch)  # type: ignore[operator]
    assert not intervals_check().shown
