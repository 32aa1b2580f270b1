"""Choices by score: of candidates in groups, stable, sparse; and the Occam learner."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Ints
from local_dp.bounds.curator import (
    occam_examples,
    occam_examples_printed,
    occam_examples_realizable,
    occam_examples_uniform,
)
from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection import exponential
from local_dp.curator.selection.exponential import ExponentialChoice, ExponentialMechanism
from local_dp.curator.selection.groups import Listed, Runs, powers, sum_by
from local_dp.curator.selection.sparse import SparseChoice, SparseExponential
from local_dp.curator.selection.stable import (
    UNIT,
    best_acceptance,
    laplace_acceptance,
    printed_acceptance,
)
from local_dp.loss import ATTO, Approximate, approximate, exp_epsilon, nano_epsilon
from tests.support.mechanisms.case import points, share
from tests.support.runs.scripted import seeded

RUNS = Runs(np.array([2, 3, 9], dtype=np.uint64), np.array([-4, 0, -1, -6]), 20)
CHOICE: ExponentialMechanism[Runs] = ExponentialMechanism(lambda runs: runs, 1.0)
LOSSES = [approximate(*loss) for loss in ((0.5, 1e-2), (1.0, 1e-3), (2.0, 1e-6), (0.1, 0.05))]


def test_runs_have_the_law_of_their_candidates() -> None:
    """They cover the candidates in order, and have the same whole weights as a score for each
    candidate; a listed candidate keeps its name."""
    one_by_one: ExponentialMechanism[Runs] = ExponentialMechanism(
        lambda _: np.repeat(RUNS.scores, [3, 1, 6, 11]), 1.0
    )
    assert RUNS.sizes.tolist() == [3, 1, 6, 11]
    assert [candidate for _, candidate in RUNS.members()] == list(range(21))
    assert CHOICE.law(RUNS) == one_by_one.law(RUNS)
    assert dict(Listed(np.array([1, 2]), np.array([40, 50])).members()) == {0: 40, 1: 50}
    some = np.array([1, 0, 2, 0], dtype=np.uint64)
    law, choice = share(CHOICE.law(RUNS)), ExponentialChoice(1.0)
    assert choice.share(RUNS, some) == law[0] + law[4] + law[5]
    assert choice.share(RUNS, RUNS.sizes) == 1


@pytest.mark.parametrize("bits", [63, 64, 65, 5000])
def test_domains_beyond_a_word(bits: int) -> None:
    """Thresholds 0..2^bits: all are counted, none is out of reach, the last one is one more than a
    word holds."""
    top, kind = 1 << bits, np.uint64 if bits <= 64 else object
    ends = np.array([0, top - 1], dtype=kind)
    flat, needle = (Runs(ends, np.array([0, 0, last]), top) for last in (0, 4 * bits))
    assert [int(size) for size in flat.sizes] == [1, top - 1, 1]
    assert (flat.total, flat.member(2, 0)) == (top + 1, top)
    assert flat.pick(np.array([True, False, True]), seeded(0)) in (0, top)
    spread = [CHOICE.release(flat, seeded(seed)) for seed in range(20)]
    assert max(spread) > top // 2 > min(spread)
    assert CHOICE.release(needle, seeded(0)) == top


def test_sums_beyond_a_word_are_exact() -> None:
    """Against Python's own, on sizes near 2^64."""
    generator = np.random.default_rng(0)
    sizes = generator.integers(0, 1 << 64, 500, dtype=np.uint64)
    groups = generator.integers(0, 5, 500)
    expected = [sum(sizes[groups == number].tolist()) for number in range(7)]
    assert sum_by(sizes, groups, 7) == sum_by(sizes.astype(object), groups, 7) == expected


def test_powers_are_as_close_as_they_say() -> None:
    """Within 2^-96 for any gaps, and never of fewer than 128 bits; e^(-eps / 2) is rounded up by
    more than a unit, which pays for that."""
    decay, gaps = exponential.decay_of(nano_epsilon(0.25)), np.array([0, 1, 7, 8, 390, 400])
    weights = powers(decay, gaps, 400)
    for gap, weight in zip(gaps.tolist(), weights, strict=True):
        assert abs(Fraction(weight, weights[0]) / decay**gap - 1) < Fraction(1, 1 << 96)
    assert weights[-1].bit_length() > 128
    assert 1 < (float(decay) - math.exp(-0.125)) * 2**40 <= 2


def worst_of(
    acceptance: Callable[[int, Approximate], float], loss: Approximate, times: int = 1
) -> float:
    """The largest hockey stick at so many times its epsilon over the pairs of gaps that one
    replacement can make, other leaders included."""
    growth = math.exp(times * loss.epsilon)
    chances = np.array([acceptance(gap, loss) for gap in range(400)])
    result = chances[:3].max()
    for step in (1, 2):
        up, down = chances[step:], chances[:-step]
        for here, there in ((up, down), (down, up), (1 - up, 1 - down), (1 - down, 1 - up)):
            result = max(result, (here - growth * there).max())
    return float(result)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_repaired_test_is_tight_and_the_printed_one_is_wrong(loss: Approximate) -> None:
    """Laplace noise of scale 2 / eps has exactly delta; the printed test has more than .2 at eps >=
    .5, and delta e^(2 eps) / 2 at 2 eps (erratum E1)."""
    assert worst_of(laplace_acceptance, loss) == pytest.approx(loss.delta, abs=1e-12)
    assert loss.epsilon < 0.5 or worst_of(printed_acceptance, loss) > 0.2
    twice = loss.delta * math.exp(2 * loss.epsilon) / 2
    assert worst_of(printed_acceptance, loss, 2) == pytest.approx(twice, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_test_of_the_gap_answers_more(loss: Approximate) -> None:
    """One unit more at any gap, and some pair of gaps that are two apart has more than delta; the
    repaired Laplace test answers less at every gap."""
    acceptance, growth = best_acceptance(loss), exp_epsilon(loss.nano)
    spare = Fraction(loss.atto * UNIT, ATTO)
    assert acceptance[-1] == UNIT
    for before, chance in zip(acceptance[1:], acceptance[3:], strict=False):
        more = chance + 1
        rises = more > growth * before + spare or UNIT - before > growth * (UNIT - more) + spare
        assert rises or chance == UNIT
    for gap, chance in enumerate(acceptance):
        assert chance / UNIT >= laplace_acceptance(gap, loss) - 1e-12


def sparse(delta: float) -> SparseExponential[Multiset, int]:
    return SparseExponential(
        lambda points: Listed(points.counts, points.values), SparseChoice(1.0, delta)
    )


@pytest.mark.parametrize(("reach", "more"), [(4, math.exp(-2) * 1.01), (60, 0.0)])
def test_clamping_keeps_the_loss_of_a_sparse_choice(
    monkeypatch: pytest.MonkeyPatch, reach: int, more: float
) -> None:
    """With a reach of four points, so that most scores of nine records are beyond it, the delta is
    within a share a^reach of its own."""
    monkeypatch.setattr(SparseChoice, "reach", reach)
    small = SmallDatabases([(value,) for value in range(4)], 9, points(2))
    assert float(small.worst_delta(sparse(1e-2))) <= 1e-2 * (1 + more)


def chances_of(choice: ExponentialChoice, scores: Ints) -> list[Fraction]:
    return list(share(choice.law(exponential.numbered(scores))).values())


@pytest.mark.parametrize("best", [0, -1000, 10**6])
def test_clamping_keeps_the_loss(best: int) -> None:
    """Across the end of `reach`, where scores stop counting, neighbouring scores have ratios of at
    most e^eps; the ends of int64 are legal."""
    choice, limit, ends = ExponentialChoice(2.0), exp_epsilon(nano_epsilon(2.0)), np.iinfo(np.int64)
    far = best - choice.reach(3)
    for low, move in product((far - 1, far, far + 1), product((-1, 0, 1), repeat=3)):
        scores = np.array([best, low, best - 1])
        before, after = chances_of(choice, scores), chances_of(choice, scores + np.array(move))
        assert all(high / low <= limit for high, low in zip(before, after, strict=True))
    wide = exponential.numbered(np.array([ends.min, ends.max, 0, ends.max - 1]))
    assert choice.choose(wide, seeded(0)) in (1, 3)
    assert choice.choose(exponential.numbered(np.full(3, ends.min)), seeded(0)) in (0, 1, 2)


def test_log_probabilities() -> None:
    """They are those of the exact law; at the ends of float64 and epsilon from 1e-6 to 24 they are
    finite."""
    scores = np.array([0, -7, 3, 3, -20])
    exact = [float(p) for p in chances_of(ExponentialChoice(0.7, sensitivity=2), scores)]
    assert np.exp(exponential.log_probabilities(scores, 0.7, 2)) == pytest.approx(exact, rel=1e-9)
    for epsilon in (1e-6, 24.0):
        with np.errstate(all="raise", under="ignore"):
            ends = np.array([1.7e308, -1.7e308, 0.0, 1.7e308])
            logs = exponential.log_probabilities(ends, epsilon)
        assert np.all(np.isfinite(logs))
        assert float(np.exp(logs).sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("epsilon", "alpha"), list(product([0.05, 0.3, 1.0, 4.0], [0.02, 0.1, 0.4]))
)
def test_the_sizes_are_ordered(epsilon: float, alpha: float) -> None:
    """Realizable <= agnostic <= the printed size <= the size by uniform convergence: the printed
    one holds agnostically."""
    sizes = (
        occam_examples_realizable,
        occam_examples,
        occam_examples_printed,
        occam_examples_uniform,
    )
    each = [size(1000, epsilon, alpha, 0.1) for size in sizes]
    assert each == sorted(each)
