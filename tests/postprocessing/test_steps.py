"""Post-processing steps: nearest laws and ascending sequences, and likeliest laws with their
bias."""

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.postprocessing import steps
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.window import SquareWave
from local_dp.tallies import Tally
from tests.support.inputs.refusals import refuse


def test_the_simplex_is_the_nearest() -> None:
    """No other law is nearer to the estimates than the projection: 200 of them, some without a
    positive entry but one."""
    generator = np.random.default_rng(1)
    for _ in range(200):
        value = generator.normal(
            scale=generator.choice([0.05, 0.5, 5.0]), size=int(generator.integers(2, 9))
        )
        nearest = steps.onto_simplex(value)
        assert nearest.sum() == pytest.approx(1)
        assert nearest.min() >= 0
        others = generator.dirichlet(np.full(len(value), 0.5), 50)
        assert ((others - value) ** 2).sum(axis=1).min() >= ((nearest - value) ** 2).sum() - 1e-12


def test_isotonic_is_the_nearest() -> None:
    """No ascending sequence of 2,000 drawn around it is nearer, by weighted squares."""
    generator = np.random.default_rng(2)
    value, weights = generator.normal(size=6), np.arange(6, 0, -1)
    nearest = steps.ascending(value * weights, weights)
    assert np.all(np.diff(nearest) >= 0)
    others = np.sort(nearest + generator.normal(scale=0.3, size=(2000, 6)), axis=1)
    assert ((others - value) ** 2 @ weights).min() >= (nearest - value) ** 2 @ weights


def laws(randomizer: FiniteChannel) -> Floats:
    """Pr[cell, report | value], shape (values, reports)."""
    return np.stack([report_law(randomizer, value) for value in range(randomizer.domain.size)])


def drawn(randomizer: FiniteChannel, law: Floats, n: int, seed: int) -> Tally:
    counts = np.random.default_rng(seed).multinomial(n, law @ laws(randomizer))
    return Tally(counts.reshape(randomizer.cells, randomizer.alphabet))


@pytest.mark.parametrize(
    "randomizer",
    [GRR(1.0, k=5), Hadamard(1.0, k=5), SquareWave(1.0, steps=7)],
    ids=lambda each: each.name,
)
def test_reports_in_exact_proportion_give_the_law_back(randomizer: FiniteChannel) -> None:
    """Where the reports are exactly as a law says, that law is the likeliest: found to 1e-3."""
    law = 1.0 / np.arange(1, randomizer.domain.size + 1)
    law /= law.sum()
    counts = np.rint(law @ laws(randomizer) * 2.0**40).astype(np.int64)
    result = steps.ExpectationMaximisation(gain=1e-13, rounds=1 << 18)(
        randomizer, Tally(counts.reshape(randomizer.cells, randomizer.alphabet))
    )
    np.testing.assert_allclose(result.law, law, atol=1e-3)


def test_it_is_the_maximum() -> None:
    """No direction to another law raises the likelihood (Karush, Kuhn and Tucker: no entry of the
    gradient is above 1)."""
    randomizer = GRR(0.5, k=4)
    tally = drawn(randomizer, np.array([0.9, 0.1, 0.0, 0.0]), 400, 3)
    result = steps.ExpectationMaximisation(gain=1e-15, rounds=1 << 18)(randomizer, tally)
    frequencies = tally.counts.ravel() / tally.n
    chances = laws(randomizer)
    gradient = chances @ (frequencies / (result.law @ chances))
    assert gradient.max() < 1 + 1e-5
    assert result.law.min() >= 0
    assert result.law.sum() == pytest.approx(1)
    assert result.log_likelihood == pytest.approx(frequencies @ np.log(result.law @ chances))


def test_smoothing_finds_a_smooth_law_of_numbers() -> None:
    """From 20,000 reports by the square wave, the smoothed law of a bell is nearer to the truth in
    Wasserstein distance than the spiky unsmoothed one."""
    randomizer = SquareWave(1.0)
    law = np.exp(-(((np.arange(64) / 63 - 0.4) / 0.15) ** 2) / 2)
    law /= law.sum()
    tally = drawn(randomizer, law, 20_000, 5)
    smooth, plain = (
        steps.ExpectationMaximisation(smooth=smooth, gain=1e-8)(randomizer, tally).law
        for smooth in (True, False)
    )
    far = [float(abs(np.cumsum(each - law)).sum()) / 63 for each in (smooth, plain)]
    assert far[0] < far[1]
    assert far[0] < 0.02
    assert abs(smooth @ np.arange(64) / 63 - randomizer.estimate(tally).value) < 0.03


def test_nothing_to_work_on_is_refused() -> None:
    oracle = GRR(1.0, k=3)
    refuse(
        ("nobody answered", lambda: steps.ExpectationMaximisation()(oracle, oracle.empty())),
        ("rounds", lambda: steps.ExpectationMaximisation(rounds=0)),
        ("gain", lambda: steps.ExpectationMaximisation(gain=0.0)),
    )
