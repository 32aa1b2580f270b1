"""The search for the least number of clients, on success curves that are known; `local-dp coverage least-counts` repeats it."""

import math

import numpy as np
import pytest

from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.errors import InputError
from local_dp.experiments.lab.coverage.searches import SuccessCurve, all_right
from local_dp.experiments.lab.minimal_clients import exact_recovery, minimal_clients
from local_dp.masked.protocols import MaskedParityLearner


@pytest.mark.parametrize("guess", [20, 1_640, 300_000])
def test_search_finds_a_known_count_from_any_guess(guess: int) -> None:
    """From guesses 80 times too low and 180 times too high the answer is within 12 % of the truth: 4.9 standard errors, failure probability 1e-6 each."""
    curve = all_right(1)
    found = minimal_clients(curve.drawn(np.random.default_rng(1)), guess, trials=20_000)
    assert found.n == pytest.approx(curve.truth, rel=0.12)


def coverage(curve: SuccessCurve, truth: float, trials: int, repetitions: int) -> tuple[int, float]:
    """How many of the intervals hold the truth, and the mean of n / truth - 1."""
    drawn = [curve.drawn(np.random.default_rng(seed)) for seed in range(repetitions)]
    runs = [minimal_clients(successes, round(0.7 * truth), trials=trials) for successes in drawn]
    return sum(found.low <= truth <= found.high for found in runs), float(np.mean([found.n / truth for found in runs])) - 1


@pytest.mark.parametrize("decisions", [1, pytest.param(20, marks=pytest.mark.long), pytest.param(65, marks=pytest.mark.long)])
def test_intervals_cover(decisions: int) -> None:
    """Of 400 intervals at least 355 cover the truth (Pr[Binomial(400, .95) < 355] < 1e-6) and the bias is below 2 %; nine tenths of them, wrong twins, fail."""
    curve = all_right(decisions)
    covered, bias = coverage(curve, curve.truth, 2500, 400)
    assert covered >= 355
    assert abs(bias) < 0.02
    shifted, _ = coverage(curve, 1.1 * curve.truth if decisions > 1 else 1.35 * curve.truth, 2500, 100)
    assert shifted < 89


def test_ends_follow_the_count_and_the_runs() -> None:
    """Of about 20 clients the ends are given to a tenth; sixteen times the runs give about a quarter of the interval."""
    generator = np.random.default_rng(6)
    found = minimal_clients(lambda n, runs: int(generator.binomial(runs, 1 - normal_tail(math.sqrt(n / 12)))), 20, trials=40_000)
    assert found.low < 12 * normal_quantile(0.1) ** 2 < found.high
    assert {found.low, found.high} != {round(found.low), round(found.high)}
    assert found.high - found.low < 2
    few, many = (minimal_clients(all_right(1).drawn(np.random.default_rng(3)), 1600, trials=trials) for trials in (2_000, 32_000))
    assert (many.high - many.low) < 0.4 * (few.high - few.low)
    assert many.trials >= 32_000


def test_flat_success_is_refused() -> None:
    with pytest.raises(InputError, match="does not reach"):
        minimal_clients(lambda n, runs: runs // 2, 100, trials=200)
    with pytest.raises(InputError, match="guess"):
        minimal_clients(lambda n, runs: runs, 1)


def test_recovery_counts_exact_concepts() -> None:
    """`exact_recovery` counts runs that find the concept: all with plenty of clients, about 2^-5 with hardly any, reproducibly."""
    protocol = MaskedParityLearner(d=4)
    assert exact_recovery(protocol, 1.0, 5)(20_000, 40) == 40
    assert exact_recovery(protocol, 1.0, 5)(4, 200) < 40
    assert exact_recovery(protocol, 1.0, 6)(1000, 100) == exact_recovery(protocol, 1.0, 6)(1000, 100)
