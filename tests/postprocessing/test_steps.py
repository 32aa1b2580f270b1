"""Post-processing steps: what they return, and what they cost in bias, exactly, over all tallies of a few clients."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import optimize

from local_dp.arrays import Floats
from local_dp.postprocessing import steps
from local_dp.protocols.vectors.workload import Symbols, workload_of
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.window import SquareWave
from local_dp.tallies import Estimate, Tally
from tests.support.inputs.refusals import refuse

ORACLE = GRR(1.0, k=3)
N = 30
FLAT, ONE, STEEP = np.array([1.0, 1, 1]) / 3, np.array([1.0, 0, 0]), np.array([0.6, 0.4, 0.0])


def every_tally(law: Floats) -> Iterator[tuple[float, Estimate]]:
    """The estimate of every tally of N clients, with its exact probability."""
    p, q = ORACLE.truth / ORACLE.total, ORACLE.other / ORACLE.total
    seen = q + (p - q) * law
    for a in range(N + 1):
        for b in range(N + 1 - a):
            c = N - a - b
            chance = math.comb(N, a) * math.comb(N - a, b) * float(seen[0] ** a * seen[1] ** b * seen[2] ** c)
            yield chance, ORACLE.estimate(Tally(np.array([[a, b, c]])))


def prefixes(estimate: Estimate) -> Estimate:
    return Estimate(np.cumsum(estimate.value), estimate.standard_error, estimate.n)


def bias(step: steps.Step | None, law: Floats, sums: bool = False) -> Floats:
    """What the step adds to the truth on average: exact."""
    mean, truth = np.zeros(len(law)), np.cumsum(law) if sums else law
    for chance, estimate in every_tally(law):
        shown = prefixes(estimate) if sums else estimate
        mean += chance * (shown.value if step is None else step(shown))
    return mean - truth


def test_without_a_step_there_is_no_bias() -> None:
    """The estimates of the randomizer are unbiased for every law, and a projection that is linear leaves them so."""
    margins = workload_of(("marginals-1",), Symbols(("a",), (("x", "y", "z"),)))[1]
    for law in (FLAT, ONE, STEEP):
        assert bias(None, law) == pytest.approx(np.zeros(3), abs=1e-7)
        assert bias(None, law, sums=True) == pytest.approx(np.zeros(3), abs=1e-7)
        assert bias(steps.Consistent(margins), law) == pytest.approx(np.zeros(3), abs=1e-7)


def test_the_simplex_raises_what_is_rare() -> None:
    """Nobody's symbols gain what everybody's loses, some part of a standard error; all alike: nothing, by symmetry."""
    error = float(ORACLE.estimate(Tally(np.array([[10, 10, 10]]))).standard_error[0])
    for step in (steps.SimplexProjection(), steps.NormSub()):
        added = bias(step, ONE)
        assert added.sum() == pytest.approx(0, abs=1e-9)
        assert 0.1 * error < added[1] < error
        assert added[1] == pytest.approx(added[2])
        assert added[0] < -0.1 * error
        assert bias(step, FLAT) == pytest.approx(np.zeros(3), abs=1e-9)


def test_a_cut_loses_what_is_small() -> None:
    """A share of 0.4 among 30 reports is often cut away; with no threshold but 0, what nobody holds gains."""
    assert bias(steps.BaseCut(), STEEP)[1] < -0.1
    assert bias(steps.BaseCut(deviations=1e-9), ONE)[1] > 0.05


def test_monotone_goes_up_and_isotonic_less() -> None:
    """Prefix sums whose truth is flat at 0.6, 1 and 1: monotone is above isotonic everywhere, and isotonic's bias is the smaller one at the steep start."""
    up, level = bias(steps.Monotone(), STEEP, sums=True), bias(steps.Isotonic(), STEEP, sums=True)
    assert np.all(up >= level - 1e-12)
    assert up[1] > level[1] + 1e-3
    assert abs(level[0]) < 0.05


def test_norm_sub_is_the_projection() -> None:
    """By its own steps it reaches the nearest law, which no other law is nearer than: 200 estimates, some without a positive entry but one."""
    generator = np.random.default_rng(1)
    for _ in range(200):
        value = generator.normal(scale=generator.choice([0.05, 0.5, 5.0]), size=int(generator.integers(2, 9)))
        estimate = Estimate(value, np.ones_like(value), 10)
        nearest = steps.onto_simplex(value)
        assert steps.NormSub()(estimate) == pytest.approx(nearest, abs=1e-9)
        assert nearest.sum() == pytest.approx(1)
        assert nearest.min() >= 0
        others = generator.dirichlet(np.full(len(value), 0.5), 50)
        assert ((others - value) ** 2).sum(axis=1).min() >= ((nearest - value) ** 2).sum() - 1e-12


def test_isotonic_is_the_nearest() -> None:
    """No ascending sequence of 2,000 drawn around it is nearer."""
    generator = np.random.default_rng(2)
    value = generator.normal(size=6)
    nearest = steps.ascending(value)
    assert np.all(np.diff(nearest) >= 0)
    others = np.sort(nearest + generator.normal(scale=0.3, size=(2000, 6)), axis=1)
    assert ((others - value) ** 2).sum(axis=1).min() >= ((nearest - value) ** 2).sum()


def test_marginals_agree_afterwards() -> None:
    """Noisy two-way marginals of three bits: after the step each one-way sum is the same from every marginal; before it, not. Consistent ones are kept."""
    symbols = Symbols(("a", "b", "c"), (("0", "1"),) * 3)
    names, sums = workload_of(("marginals-2",), symbols)
    pairs = [place for place, name in enumerate(names) if "," in name]
    kept = sums[pairs]
    truth = kept @ np.random.default_rng(3).dirichlet(np.ones(8))
    noisy = truth + np.random.default_rng(4).normal(scale=0.1, size=12)
    step = steps.Consistent(kept)

    def gaps(values: Floats) -> float:
        """How far the share of a = 0 from (a, b) is from that of (a, c)."""
        return abs(float(values[0] + values[1] - values[4] - values[5]))

    assert gaps(noisy) > 1e-3
    assert gaps(step(Estimate(noisy, noisy, 10))) < 1e-12
    assert step(Estimate(truth, truth, 10)) == pytest.approx(truth)
    assert ((step(Estimate(noisy, noisy, 10)) - truth) ** 2).sum() < ((noisy - truth) ** 2).sum()


def test_by_name() -> None:
    """Each has a name and says what it costs; an unknown one is refused, as are margins that do not fit."""
    assert [steps.named_step(name).name for name in steps.STEPS] == list(steps.STEPS)
    assert all(step.bias for step in steps.STEPS.values())
    refuse(
        ("norm-sub", lambda: steps.named_step("norm-sib")),
        ("margins", lambda: steps.Consistent(np.eye(3))(Estimate(np.ones(2), np.ones(2), 1))),
        ("threshold", lambda: steps.BaseCut(-1.0)),
    )


def laws(randomizer: FiniteChannel) -> Floats:
    """Pr[cell, report | value], shape (values, reports)."""
    return np.stack([report_law(randomizer, value) for value in range(randomizer.domain.size)])


def drawn(randomizer: FiniteChannel, law: Floats, n: int, seed: int) -> Tally:
    counts = np.random.default_rng(seed).multinomial(n, law @ laws(randomizer))
    return Tally(counts.reshape(randomizer.cells, randomizer.alphabet))


@pytest.mark.parametrize("randomizer", [GRR(1.0, k=5), Hadamard(1.0, k=5), SquareWave(1.0, steps=7)], ids=lambda each: each.name)
def test_reports_in_exact_proportion_give_the_law_back(randomizer: FiniteChannel) -> None:
    """Where the reports are exactly as a law says, that law is the likeliest: found to 1e-3."""
    law = 1.0 / np.arange(1, randomizer.domain.size + 1)
    law /= law.sum()
    counts = np.rint(law @ laws(randomizer) * 2.0**40).astype(np.int64)
    found = steps.ExpectationMaximisation(gain=1e-13, rounds=1 << 18)(randomizer, Tally(counts.reshape(randomizer.cells, randomizer.alphabet)))
    np.testing.assert_allclose(found.law, law, atol=1e-3)


def test_it_is_the_maximum() -> None:
    """No direction to another law raises the likelihood (Karush, Kuhn and Tucker: no entry of the gradient is above 1), and a solver finds no better."""
    randomizer = GRR(0.5, k=4)
    tally = drawn(randomizer, np.array([0.9, 0.1, 0.0, 0.0]), 400, 3)
    found = steps.ExpectationMaximisation(gain=1e-15, rounds=1 << 18)(randomizer, tally)
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
    likeliest = np.array([steps.ExpectationMaximisation(gain=1e-8)(randomizer, tally).law[2] for tally in tallies])
    error = plain.std() / np.sqrt(len(tallies))
    assert abs(plain.mean()) < 4 * error  # normal tail at 4: 6e-5
    assert likeliest.mean() > 6 * error


def test_smoothing_finds_a_smooth_law_of_numbers() -> None:
    """From 20,000 reports by the square wave, the smoothed law of a bell is nearer to the truth in Wasserstein distance than the spiky unsmoothed one."""
    randomizer = SquareWave(1.0)
    law = np.exp(-(((np.arange(64) / 63 - 0.4) / 0.15) ** 2) / 2)
    law /= law.sum()
    tally = drawn(randomizer, law, 20_000, 5)
    smooth, plain = (steps.ExpectationMaximisation(smooth=smooth, gain=1e-8)(randomizer, tally).law for smooth in (True, False))
    far = [float(abs(np.cumsum(each - law)).sum()) / 63 for each in (smooth, plain)]
    assert far[0] < far[1]
    assert far[0] < 0.02
    assert abs(smooth @ np.arange(64) / 63 - randomizer.estimate(tally).value) < 0.03


def test_nothing_to_work_on_is_refused() -> None:
    refuse(
        ("nobody answered", lambda: steps.ExpectationMaximisation()(GRR(1.0, k=3), GRR(1.0, k=3).empty())),
        ("rounds", lambda: steps.ExpectationMaximisation(rounds=0)),
        ("gain", lambda: steps.ExpectationMaximisation(gain=0.0)),
    )
