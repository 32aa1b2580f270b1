"""Expectation maximisation of reports: the maximum of the likelihood, what it costs in bias, and that nothing runs it by itself."""

import numpy as np
import pytest
from scipy import optimize

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.postprocessing.likelihood import ExpectationMaximisation
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.window import SquareWave
from local_dp.tallies import Tally


def laws(randomizer: FiniteChannel) -> Floats:
    """Pr[cell, report | value], shape (values, reports)."""
    return np.stack([report_law(randomizer, value) for value in range(randomizer.domain.size)])


def drawn(randomizer: FiniteChannel, law: Floats, n: int, seed: int) -> Tally:
    """A tally of n clients whose values have this law."""
    counts = np.random.default_rng(seed).multinomial(n, law @ laws(randomizer))
    return Tally(counts.reshape(randomizer.cells, randomizer.alphabet))


@pytest.mark.parametrize("randomizer", [GRR(1.0, k=5), Hadamard(1.0, k=5), SquareWave(1.0, steps=7)], ids=lambda each: each.name)
def test_reports_in_exact_proportion_give_the_law_back(randomizer: FiniteChannel) -> None:
    """Where the reports are exactly as a law says, that law is the likeliest: found to 1e-3."""
    law = 1.0 / np.arange(1, randomizer.domain.size + 1)
    law /= law.sum()
    counts = np.rint(law @ laws(randomizer) * 2.0**40).astype(np.int64)
    found = ExpectationMaximisation(gain=1e-13, rounds=1 << 18)(randomizer, Tally(counts.reshape(randomizer.cells, randomizer.alphabet)))
    np.testing.assert_allclose(found.law, law, atol=1e-3)


def test_it_is_the_maximum() -> None:
    """No direction to another law raises the likelihood (Karush, Kuhn and Tucker: no entry of the gradient is above 1), and a solver finds no better."""
    randomizer = GRR(0.5, k=4)
    tally = drawn(randomizer, np.array([0.9, 0.1, 0.0, 0.0]), 400, 3)
    found = ExpectationMaximisation(gain=1e-15, rounds=1 << 18)(randomizer, tally)
    seen, chances = tally.counts.ravel() / tally.n, laws(randomizer)
    gradient = chances @ (seen / (found.law @ chances))
    assert gradient.max() < 1 + 1e-5
    assert found.law.min() >= 0
    assert found.law.sum() == pytest.approx(1)
    solved = optimize.minimize(lambda z: -float(seen @ np.log(np.exp(z) / np.exp(z).sum() @ chances)), np.zeros(4), tol=1e-12)
    assert found.log_likelihood >= -solved.fun - 1e-9  # the solver stays inside: it may be a little lower


@pytest.mark.long
def test_it_is_biased_and_the_estimate_is_not() -> None:
    """Of a symbol that nobody holds, the likeliest share is above 0 on average, by more than 6 of its own standard errors; the plain estimate's is not."""
    randomizer, law = GRR(1.0, k=3), np.array([0.5, 0.5, 0.0])
    tallies = [drawn(randomizer, law, 500, seed) for seed in range(500)]
    plain = np.array([randomizer.estimate(tally).value[2] for tally in tallies])
    likeliest = np.array([ExpectationMaximisation(gain=1e-8)(randomizer, tally).law[2] for tally in tallies])
    error = plain.std() / np.sqrt(len(tallies))
    assert abs(plain.mean()) < 4 * error  # normal tail at 4: 6e-5
    assert likeliest.mean() > 6 * error


def test_smoothing_finds_a_smooth_law_of_numbers() -> None:
    """From 20,000 reports by the square wave, the smoothed law of a bell is nearer to the truth in Wasserstein distance than the spiky unsmoothed one."""
    randomizer = SquareWave(1.0)
    law = np.exp(-(((np.arange(64) / 63 - 0.4) / 0.15) ** 2) / 2)
    law /= law.sum()
    tally = drawn(randomizer, law, 20_000, 5)
    smooth, plain = (ExpectationMaximisation(smooth=smooth, gain=1e-8)(randomizer, tally).law for smooth in (True, False))
    far = [float(abs(np.cumsum(each - law)).sum()) / 63 for each in (smooth, plain)]
    assert far[0] < far[1]
    assert far[0] < 0.02
    assert abs(smooth @ np.arange(64) / 63 - randomizer.estimate(tally).value) < 0.03


def test_nothing_to_work_on_is_refused() -> None:
    """No report, no rounds, no gain."""
    with pytest.raises(InputError, match="nobody answered"):
        ExpectationMaximisation()(GRR(1.0, k=3), GRR(1.0, k=3).empty())
    with pytest.raises(InputError, match="rounds"):
        ExpectationMaximisation(rounds=0)
    with pytest.raises(InputError, match="gain"):
        ExpectationMaximisation(gain=0.0)
