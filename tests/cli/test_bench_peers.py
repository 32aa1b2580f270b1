"""`local-dp bench --peers`: the fastest peer and its ratio, the tables, the figure, what is refused, and the variances of ours that it prints."""

import math
from pathlib import Path

import pytest

from local_dp.experiments.bench import peers as bench_peers
from local_dp.experiments.bench.peers import Row, describe, speed_figure
from local_dp.experiments.lab.figures import save
from local_dp.experiments.peers import accuracy
from local_dp.experiments.peers.accuracy import PAIRS, closed_form
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.runs.command import local_dp

ROWS = [Row("a: clients", 6.0, {"opendp": 2.0, "pure-ldp": 12.0}), Row("b: server", 3.0, {})]


def test_the_best_peer_is_the_fastest() -> None:
    """The ratio is to the fastest of them, also where it is ahead of ours; without a peer there is none."""
    assert (ROWS[0].best, ROWS[0].ratio, ROWS[1].best, ROWS[1].ratio) == ("pure-ldp", 0.5, "", None)


def test_the_tables_and_the_figure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every row is printed, with and without a peer; the figure has a curve for each library with rows."""
    monkeypatch.setattr(bench_peers, "variances", lambda: [accuracy.Variance("grr", 8.0, 8.1, {"opendp": 7.9})])
    monkeypatch.setattr(bench_peers, "claims", list)
    words = describe(ROWS, 100)
    assert all(word in words for word in ("a: clients", "pure-ldp", "0.5", "b: server", "opendp 7.9", "epsilon exact"))
    figure = speed_figure(ROWS)
    assert [(curve.label, list(curve.x), list(curve.y)) for curve in figure.curves] == [("ours", [0, 1], [6, 3]), ("pure-ldp", [0], [12]), ("opendp", [0], [2])]
    save(figure, tmp_path / "peers.png")
    assert (tmp_path / "peers.png").stat().st_size > 1000


def test_what_cannot_be_compared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any peer the command says what to install; a figure without the comparison has nothing to draw."""
    monkeypatch.setattr(bench_peers, "installed", lambda library: False)
    refused = local_dp("bench", "--peers")
    assert refused.returncode != 0
    assert "local-dp[peers]" in refused.stderr
    refused = local_dp("bench", "--figure", "speeds.png")
    assert refused.returncode != 0
    assert "--peers" in refused.stderr


def _check_variance(oracle: str, epsilon: float) -> None:
    """The squared error of 2,000 surveys is within 3.9 % of the closed form at epsilon 1. Raises AssertionError.

    2,000 sums of 15 squares that are near normal deviate by sqrt(2 / 30,000) = .8 %: 4.75 deviations have probability 2e-6, twelve-fold below 1e-4 in all.
    """
    measured = accuracy._of_ours(RANDOMIZERS.build(oracle, {"epsilon": epsilon, "k": accuracy.K}))
    assert abs(measured / closed_form(oracle) - 1) < 4.75 * math.sqrt(2 / (accuracy.SURVEYS * (accuracy.K - 1)))


@pytest.mark.parametrize("oracle", PAIRS)
def test_the_variances_told_are_the_closed_forms(oracle: str) -> None:
    """Ours have the closed form that is printed beside them; at 4 % less epsilon they have not."""
    _check_variance(oracle, 1.0)
    with pytest.raises(AssertionError):
        _check_variance(oracle, 0.96)
