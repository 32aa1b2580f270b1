"""The intervals that experiments state, against laws that are known, and the check that repeats them; `local-dp coverage` has them all."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from local_dp.errors import InputError
from local_dp.experiments.lab import calibration
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.intervals import about, about_log, quantile, quantile_coverage, quantile_ranks, relative_error, slope, wilson
from local_dp.experiments.lab.minimal_clients import minimal_clients
from local_dp.experiments.lab.statistics import ratio


@pytest.mark.parametrize(("n", "share"), [(50, 0.9), (300, 0.9), (2000, 0.9), (41, 0.5), (500, 0.05)])
def test_order_statistics_enclose_a_quantile_as_often_as_binomials_say(n: int, share: float) -> None:
    """Pr[r <= Binomial < s] by scipy is within 1 % of 95 %, its tails between 1 and 4 %; ranks one nearer to the middle on both sides enclose less."""
    r, s = quantile_ranks(n, share)
    law = stats.binom(n, share)
    assert quantile_coverage(n, share, (r, s)) == pytest.approx(law.cdf(s - 1) - law.cdf(r - 1), abs=1e-10)
    assert abs(quantile_coverage(n, share, (r, s)) - 0.95) <= 0.01
    assert all(0.01 <= tail <= 0.04 for tail in (law.cdf(r - 1), law.sf(s - 1)))
    assert quantile_coverage(n, share, (r + 1, s - 1)) < quantile_coverage(n, share, (r, s))


def test_quantile_of_a_sample() -> None:
    """Of 1..100 in any order the 90 % quantile is 90 and the ends are the ranks'; of too few values no interval is stated."""
    values = np.random.default_rng(1).permutation(np.arange(1.0, 101.0)).tolist()
    low, high = quantile_ranks(100, 0.9)
    assert quantile(values, 0.9) == (90, low, high)
    with pytest.raises(InputError, match="too few"):
        quantile(values[:20], 0.9)


def test_ratios_slopes_and_normal_intervals() -> None:
    """By hand for two samples, with Satterthwaite's degrees of freedom; it turns over with the samples, and certain ones have no width."""
    top, bottom = [2.0, 3.0, 4.0, 3.0], [1.0, 2.0, 3.0, 2.0]
    errors = [float(np.std(part, ddof=1) / 2 / np.mean(part)) for part in (top, bottom)]
    squares = [error**2 for error in errors]
    degrees = sum(squares) ** 2 / sum(square**2 / 3 for square in squares)
    value, low, high = ratio(top, bottom).stated
    half = stats.t.isf(0.025, degrees) * np.sqrt(sum(squares))
    assert value == 1.5
    assert np.allclose(np.log([low, high]), [np.log(1.5) - half, np.log(1.5) + half])
    assert np.allclose(ratio(bottom, top).stated, (1 / value, 1 / high, 1 / low))
    assert ratio([2.0, 2.0], [1.0, 1.0]).stated == (2.0, 2.0, 2.0)
    x = np.array([0.0, 1.0, 2.0, 5.0])
    assert slope(x, 3 - 0.5 * x, np.full(4, 0.1)) == pytest.approx((-0.5, 0.1 / np.sqrt(np.sum((x - 2) ** 2))))
    assert np.allclose(np.log(about_log(2.0, 0.3)), about(np.log(2.0), 0.3))
    assert relative_error([1.0, 3.0]) == pytest.approx(0.5)


def test_the_intervals_are_what_they_say() -> None:
    """Wilson's interval holds 95 % over all rates, and the search's is as wide as the information says, about the known count."""
    check = intervals_check()
    assert check.shown, check.evidence


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("wilson", lambda right, runs: wilson(right, runs, 1.6448536269514722)), ("wilson", lambda right, runs: (0.0, 1.0))),
        ("minimal_clients", lambda *arguments, **settings: replace(minimal_clients(*arguments, **settings), n=980)),
        ("minimal_clients", lambda *arguments, **settings: replace(minimal_clients(*arguments, **settings), low=980, high=1020)),
    ],
)
def test_wrong_intervals_are_not_shown(name: str, wrong: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 90 %, one that holds everything, a count 2 % too low and an interval of less than its width are found."""
    monkeypatch.setattr(calibration, name, wrong)
    assert not intervals_check().shown
