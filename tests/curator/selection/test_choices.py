"""Choices by score: of candidates in groups, stable, sparse; and the Occam learner."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.arrays import Ints
from local_dp.bounds.curator import (
    occam_examples,
    occam_examples_printed,
    occam_examples_realizable,
    occam_examples_uniform,
)
from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.oracle_efficient.separated import Thresholds
from local_dp.curator.selection import exponential
from local_dp.curator.selection.exponential import (
    ExponentialChoice,
    ExponentialMechanism,
    Labelled,
    OccamLearner,
)
from local_dp.curator.selection.groups import Listed, Runs, powers, sum_by
from local_dp.curator.selection.sparse import SparseChoice, SparseExponential
from local_dp.curator.selection.stable import (
    UNIT,
    Lead,
    StableChoice,
    best_acceptance,
    laplace_acceptance,
    printed_acceptance,
)
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, approximate, exp_epsilon, nano_epsilon
from tests.support.mechanisms.case import share
from tests.support.mechanisms.paths import follows
from tests.support.runs.scripted import seeded

RUNS = Runs(np.array([2, 3, 9], dtype=np.uint64), np.array([-4, 0, -1, -6]), 20)
CHOICE: ExponentialMechanism[Runs] = ExponentialMechanism(lambda runs: runs, 1.0)
LOSSES = [
    approximate(0.5, 1e-2),
    approximate(1.0, 1e-3),
    approximate(2.0, 1e-6),
    approximate(0.1, 0.05),
]


def test_runs_have_the_law_of_their_candidates() -> None:
    """They cover the candidates in order, and have the same whole weights as a score for each
    candidate; a listed candidate keeps its name."""
    dense = np.repeat(RUNS.scores, RUNS.sizes.astype(np.int64))
    listed: ExponentialMechanism[Runs] = ExponentialMechanism(lambda _: dense, 1.0)
    assert RUNS.sizes.tolist() == [3, 1, 6, 11]
    assert [candidate for _, candidate in RUNS.members()] == list(range(21))
    assert CHOICE.law(RUNS) == listed.law(RUNS)
    assert dict(Listed(np.array([1, 2]), np.array([40, 50])).members()) == {0: 40, 1: 50}


def test_choices_among_runs_have_their_law() -> None:
    """By all paths; not that of runs of equal length."""
    twin = Runs(RUNS.ends, RUNS.scores, RUNS.last)
    object.__setattr__(twin, "sizes", np.ones(4, dtype=np.uint64))
    assert follows(lambda draws: CHOICE.release(RUNS, draws), CHOICE.law(RUNS))
    assert not follows(lambda draws: CHOICE.release(twin, draws), CHOICE.law(RUNS))


@pytest.mark.parametrize("bits", [63, 64, 65, 5000])
def test_domains_beyond_a_word(bits: int) -> None:
    """Thresholds 0..2^bits: all are counted, none is out of reach, the last one is one more than a
    word holds."""
    top = 1 << bits
    ends = np.array([0, top - 1], dtype=np.uint64 if bits <= 64 else object)
    runs = Runs(ends, np.array([0, 0, 0]), top)
    assert [int(size) for size in runs.sizes] == [1, top - 1, 1]
    assert (runs.total, runs.member(2, 0)) == (top + 1, top)
    assert Runs(np.zeros(0, dtype=np.uint64), np.array([3]), top).total == top + 1
    assert runs.pick(np.array([True, False, True]), seeded(0)) in (0, top)
    spread = [CHOICE.release(runs, seeded(seed)) for seed in range(20)]
    assert max(spread) > top // 2 > min(spread)
    needle = Runs(ends, np.array([0, 0, 4 * bits]), top)
    assert CHOICE.release(needle, seeded(0)) == top


def test_sums_beyond_a_word_are_exact() -> None:
    """Against Python's own, on sizes near 2^64."""
    generator = np.random.default_rng(0)
    sizes, groups = (
        generator.integers(0, 1 << 64, 500, dtype=np.uint64),
        generator.integers(0, 5, 500),
    )
    expected = [
        sum(
            size
            for size, group in zip(sizes.tolist(), groups.tolist(), strict=True)
            if group == number
        )
        for number in range(7)
    ]
    assert sum_by(sizes, groups, 7) == sum_by(sizes.astype(object), groups, 7) == expected


def test_powers_are_as_close_as_they_say() -> None:
    """Within 2^-96 for any gaps, and never of fewer than 128 bits."""
    decay, gaps = exponential.decay_of(nano_epsilon(0.25)), np.array([0, 1, 7, 8, 390, 400])
    weights = powers(decay, gaps, 400)
    for gap, weight in zip(gaps.tolist(), weights, strict=True):
        assert abs(Fraction(weight, weights[0]) / decay**gap - 1) < Fraction(1, 1 << 96)
    assert weights[-1].bit_length() > 128
    assert powers(decay, gaps[[0, 4]], 400)[0] == weights[0]


def worst_of(accepted: Callable[[int], float], epsilon: float) -> float:
    """The largest hockey stick over the pairs of gaps that one replacement can make, other leaders
    included."""
    growth = float(exp_epsilon(round(epsilon * 1e9)))
    pairs = [
        (accepted(gap), accepted(gap + step))
        for gap in range(400)
        for step in (-2, -1, 0, 1, 2)
        if gap + step >= 0
    ]
    same = max(
        max(here - growth * there, (1 - here) - growth * (1 - there)) for here, there in pairs
    )
    return max(same, *(accepted(gap) for gap in (0, 1, 2)))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_repaired_test_is_tight_and_the_printed_one_is_wrong(loss: Approximate) -> None:
    """Laplace noise of scale 2 / eps has exactly delta; the printed test has more than .2 at eps >=
    .5, and delta e^(2 eps) / 2 at 2 eps (erratum E1)."""
    assert worst_of(lambda gap: laplace_acceptance(gap, loss), loss.epsilon) == pytest.approx(
        loss.delta, abs=1e-12
    )
    if loss.epsilon >= 0.5:
        assert worst_of(lambda gap: printed_acceptance(gap, loss), loss.epsilon) > 0.2
    twice = loss.delta * np.exp(2 * loss.epsilon) / 2
    assert worst_of(lambda gap: printed_acceptance(gap, loss), 2 * loss.epsilon) == pytest.approx(
        twice, rel=1e-6
    )


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_test_of_the_gap_answers_more(loss: Approximate) -> None:
    """One unit more at any gap, and some pair of gaps that are two apart has more than delta; the
    repaired Laplace test answers less at every gap."""
    accepted, growth, spare = (
        best_acceptance(loss),
        exp_epsilon(loss.nano),
        Fraction(loss.atto * UNIT, ATTO),
    )
    assert accepted[-1] == UNIT
    for gap in range(3, len(accepted)):
        before, more = accepted[gap - 2], min(accepted[gap] + 1, UNIT)
        assert (
            more == accepted[gap]
            or more > growth * before + spare
            or UNIT - before > growth * (UNIT - more) + spare
        )
    assert all(
        chance / UNIT >= laplace_acceptance(gap, loss) - 1e-12
        for gap, chance in enumerate(accepted)
    )


@pytest.mark.long
def test_a_test_without_an_end_gets_a_line() -> None:
    """Found out after seconds: at the least epsilon and delta no gap of a size that can be listed
    is answered for certain."""
    with pytest.raises(InputError, match="larger"):
        StableChoice(lambda _: Lead(0, 0), 1e-9, 1e-18)


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
    small = SmallDatabases(
        [(value,) for value in range(4)],
        9,
        lambda records: Multiset.of([value for (value,) in records], 2),
    )
    assert float(small.worst_delta(sparse(1e-2))) <= 1e-2 * (1 + more)


def test_records_for_one_sparse_choice() -> None:
    """A tenth of 331 records, 33.03, is released nine times of ten at (1, 1e-6); 33 records a
    little less often, 34 more; a billion for certain."""
    chances = [
        share(sparse(1e-6).law(Multiset(2, np.array([0], dtype=np.uint64), np.array([count]))))[0]
        for count in (33, 34)
    ]
    assert 0.89 < chances[0] < 0.9 < chances[1]
    assert math.ceil((1 + 2 * np.log(1e6) + 2 * np.log(9)) / 0.1) == 331
    many = Multiset(64, np.array([3, 1 << 63], dtype=np.uint64), np.array([10**9, 2 * 10**9]))
    assert sparse(1e-2).release(many, seeded(0)) == 1 << 63
    assert sparse(1e-2).release(Multiset.of([], 2), seeded(0)) is None


def chances_of(choice: ExponentialChoice, scores: Ints) -> list[Fraction]:
    law = choice.law(exponential.numbered(scores))
    return [Fraction(law[number], sum(law.values())) for number in range(len(scores))]


def test_shares_are_sums_of_the_law() -> None:
    runs, choice = (
        Runs(np.array([1, 2], dtype=np.uint64), np.array([-2, 0, -1]), 5),
        ExponentialChoice(1.5),
    )
    law = choice.law(runs)
    assert choice.share(runs, np.array([1, 0, 2], dtype=np.uint64)) == Fraction(
        law[0] + law[3] + law[4], sum(law.values())
    )
    assert choice.share(runs, runs.sizes) == 1


def test_the_exponential_loss_is_tight() -> None:
    """Scores moved by one towards a candidate and by one away from all others come within 1e-9 of
    e^eps: the charge is not slack."""
    before, after = (
        chances_of(ExponentialChoice(1.0), np.array([-80] + [0] * 3)),
        chances_of(ExponentialChoice(1.0), np.array([-79] + [-1] * 3)),
    )
    assert math.e * (1 - 1e-9) < after[0] / before[0] <= exp_epsilon(nano_epsilon(1.0))


@pytest.mark.parametrize("best", [0, -1000, 10**6])
def test_clamping_keeps_the_loss(best: int) -> None:
    """Across the end of `reach`, where scores stop counting, neighbouring scores still have ratios
    of at most e^eps."""
    choice = ExponentialChoice(2.0)
    far, limit = best - choice.reach(3), exp_epsilon(nano_epsilon(2.0))
    for low, move in product((far - 1, far, far + 1), product((-1, 0, 1), repeat=3)):
        scores = np.array([best, low, best - 1])
        before, after = chances_of(choice, scores), chances_of(choice, scores + np.array(move))
        assert all(high / low <= limit for high, low in zip(before, after, strict=True))


@pytest.mark.parametrize("epsilon", [pytest.param(1e-4, marks=pytest.mark.slow), 1.0, 24.0])
def test_extreme_scores_never_overflow(epsilon: float) -> None:
    """The ends of int64 give a legal choice; at 1e-4 it takes seconds."""
    ends = np.iinfo(np.int64)
    scores = np.array([ends.min, ends.max, 0, ends.max - 1])
    assert ExponentialChoice(epsilon).choose(exponential.numbered(scores), seeded(0)) in (1, 3)
    assert ExponentialChoice(epsilon).choose(
        exponential.numbered(np.full(3, ends.min)), seeded(0)
    ) in (0, 1, 2)


def test_log_probabilities() -> None:
    """They are those of the exact law; at the ends of float64 and epsilon from 1e-6 to 24 they are
    finite."""
    scores = np.array([0, -7, 3, 3, -20])
    exact = [float(p) for p in chances_of(ExponentialChoice(0.7, sensitivity=2), scores)]
    assert np.exp(exponential.log_probabilities(scores, 0.7, 2)) == pytest.approx(exact, rel=1e-9)
    for epsilon in (1e-6, 1.0, 24.0):
        with np.errstate(all="raise", under="ignore"):
            logs = exponential.log_probabilities(
                np.array([1.7e308, -1.7e308, 0.0, 1.7e308]), epsilon
            )
        assert np.all(np.isfinite(logs))
        assert float(np.exp(logs).sum()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("epsilon", "alpha"), list(product([0.05, 0.3, 1.0, 4.0], [0.02, 0.1, 0.4]))
)
def test_the_sizes_are_ordered(epsilon: float, alpha: float) -> None:
    """Realizable <= agnostic <= the printed size <= the size by uniform convergence: the printed
    one holds agnostically."""
    each = [
        size(1000, epsilon, alpha, 0.1)
        for size in (
            occam_examples_realizable,
            occam_examples,
            occam_examples_printed,
            occam_examples_uniform,
        )
    ]
    assert each == sorted(each)


@pytest.mark.parametrize(
    ("flip", "size"), [(0.0, occam_examples_realizable), (0.25, occam_examples)]
)
def test_the_sizes_are_enough(flip: float, size: Callable[[int, float, float, float], int]) -> None:
    """At the size for alpha = beta = .1, thresholds on 64 points exceed the best error by alpha in
    at most a share beta of 100 runs (failure 1e-6)."""
    alpha, beta, epsilon, points, target = 0.1, 0.1, 0.5, 64, 20
    n = size(points + 1, epsilon, alpha, beta)
    learner, failed = OccamLearner(Thresholds(points), epsilon), 0
    for trial in range(100):
        generator = np.random.default_rng([7, trial])
        x = generator.integers(0, points, n)
        y = ((x >= target) ^ (generator.random(n) < flip)).astype(np.int64)
        t = learner.release(Labelled(x, y), seeded(trial))
        failed += (1 - 2 * flip) * abs(t - target) / points > alpha
    assert failed <= binom(100, beta).isf(1e-6)
