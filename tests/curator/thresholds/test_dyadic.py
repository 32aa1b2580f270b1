"""Thresholds from dyadic intervals: which candidates there are, privacy by enumeration, and how many records are enough."""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.selection.sparse import SparseChoice
from local_dp.curator.thresholds.candidates import Middles, middles
from local_dp.curator.thresholds.dyadic import DyadicThresholds, dyadic_records
from local_dp.curator.thresholds.hard import hard_thresholds, mean_chance, random_target
from local_dp.curator.thresholds.learner import errors_by_gap
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise
from tests.support.theory.fits import p_value

TOP = 1000


def random_points(bits: int, generator: np.random.Generator) -> list[int]:
    """Some points that share many, few or no high bits."""
    far = [int(word) << max(bits - 32, 0) for word in generator.integers(0, 1 << min(bits, 32), 4)]
    near = [far[0] ^ int(word) % (1 << bits) for word in generator.integers(0, 4, 3)]
    return [point for point in (*far, *near, 0, (1 << bits) - 1) if generator.random() < 0.7] or [0]


@pytest.mark.parametrize("bits", [1, 2, 3, 8, 63, 64, 65, 300])
def test_candidates_are_the_middles(bits: int) -> None:
    """Each middle of an interval that holds a point once, with the score that one gets interval by interval; `within` counts them."""
    generator = np.random.default_rng(bits)
    for _ in range(12):
        points = random_points(bits, generator)
        sample = LabelledMultiset.of(points, generator.integers(0, 2, len(points)), bits)
        pairs = [(int(value), int(label)) for label in (0, 1) for value in np.repeat(sample.labelled(label).values, sample.labelled(label).counts)]
        groups = middles(Multiset(bits, sample.values, sample.zeros + sample.ones), TOP - errors_by_gap(sample))
        expected = {t: TOP - sum((point >= t) != label for point, label in pairs) for t in (0, 1 << bits)}
        for point, height in {(point >> height, height) for point in points for height in range(1, bits + 1)}:
            t = (2 * point + 1) << (height - 1)
            held = sum(other >> height == point for other in points)
            expected[t] = min(held, TOP - sum((other >= t) != label for other, label in pairs))
        found = [(candidate, int(groups.scores[group])) for group, candidate in groups.members()]
        assert sorted(found) == sorted(expected.items())
        low, high = sorted(points)[len(points) // 2], max(points)
        counted = Counter(group for group, candidate in groups.members() if low <= candidate <= high)
        assert [counted[group] for group in range(len(groups.sizes))] == groups.within(low, high).tolist()


def worst(mechanism: DyadicThresholds, n: int) -> float:
    """The worst delta over all samples of n and all replacements of a record, in units of its own."""
    universe = [(point, label) for point in range(1 << mechanism.bits) for label in (0, 1)]
    small = SmallDatabases(universe, n, lambda pairs: LabelledMultiset.of_pairs(pairs, mechanism.bits))
    return float(small.worst_delta(mechanism)) / mechanism.delta


@dataclass(frozen=True)
class Lowered(DyadicThresholds):
    """The mechanism at another H, as an agnostic learner has it: so low that constants weigh nothing, and nothing hides what candidates lose."""

    lowered: int = 20

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        return super().candidates(sample, optimum - self.lowered)


@pytest.mark.parametrize(("bits", "n"), [(1, 4), (2, 2), (2, 5)])
@pytest.mark.parametrize("lowered", [0, 10])
def test_private_by_enumeration(bits: int, n: int, lowered: int) -> None:
    """The worst delta is at most its own, whatever H is."""
    assert worst(Lowered(bits, 0.1, 1.0, 1e-3, lowered=lowered), n) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "n"), [(2, 6), (3, 4)])
@pytest.mark.parametrize("lowered", [0, 10])
def test_nothing_is_lost(bits: int, n: int, lowered: int) -> None:
    """All ordered pairs of neighbours, 195,840 of them at three bits: at most delta, and nearly all of it at the H that shows most."""
    found = worst(Lowered(bits, 0.1, 1.0, 1e-3, lowered=lowered), n)
    assert found <= 1
    assert lowered != 10 or found > 0.99


@dataclass(frozen=True)
class OneInterval(Lowered):
    """A wrong twin: as if a record lay in one interval, not in one of each height."""

    @property
    def choice(self) -> SparseChoice:
        return replace(super().choice, growth=1)


@dataclass(frozen=True)
class AnyScore(Lowered):
    """A wrong twin: a candidate that is about to leave may have any score."""

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        found = super().candidates(sample, optimum)
        return replace(found, scores=found.scores + 2)


def test_wrong_twins_are_not_private() -> None:
    """Growth 1 for d - 1: nearly twice delta at three bits; scores of up to 3 for candidates that leave: e times as much."""
    assert 1.3 < worst(OneInterval(3, 0.1, 1.0, 1e-3, lowered=10), 2) < 2.1
    assert 2 < worst(AnyScore(3, 0.1, 1.0, 1e-3, lowered=10), 2) < 2.8
    assert 0.99 < worst(Lowered(3, 0.1, 1.0, 1e-3, lowered=10), 2) <= 1


def test_the_loss_is_what_is_spent() -> None:
    """All of it on one choice; an agnostic learner spends a tenth on the least number of errors."""
    for agnostic, nano in ((False, 10**9), (True, 9 * 10**8)):
        learner = DyadicThresholds(8, 0.1, 1.0, 1e-3, agnostic)
        assert (learner.loss.nano, learner.loss.atto, learner.choice.loss.nano) == (10**9, 10**15, nano)


def test_the_code_draws_from_its_law() -> None:
    """2,000 draws fit (chi-squared, failure 1e-6), not those of half the epsilon; `chance` is a sum of the law, with the fallback where it lies."""
    learner = DyadicThresholds(4, 0.1, 1.0, 1e-3)
    sample, draws = LabelledMultiset.of([3] * 15 + [5] * 12 + [11, 12], [0] * 15 + [1] * 13 + [0], 4), Draws(KeyedNoise(4))
    drawn = Counter(learner.release(sample, draws) for _ in range(2000))

    assert p_value(drawn, learner.law(sample)) > 1e-6 > p_value(drawn, replace(learner, epsilon=0.5).law(sample))
    law = learner.law(sample)
    for low, high in ((0, 16), (4, 5), (8, 8), (6, 11)):
        told = Fraction(sum(weight for answer, weight in law.items() if low <= answer <= high), sum(law.values()))
        assert learner.chance(sample, low, high) == pytest.approx(float(told), abs=1e-12)


def test_agnostic_chance_is_that_of_draws() -> None:
    """1,000 releases with a noisy optimum: within 4.9 standard errors of `chance` (failure 1e-6)."""
    learner = DyadicThresholds(4, 0.1, 1.0, 1e-2, agnostic=True)
    sample, draws = LabelledMultiset.of([3] * 20 + [5] * 18 + [11, 12], [0] * 15 + [1] * 24 + [0], 4), Draws(KeyedNoise(5))
    share, found = learner.chance(sample, 4, 5), sum(4 <= learner.release(sample, draws) <= 5 for _ in range(1000))
    assert 0.1 < share < 0.95
    assert abs(found - 1000 * share) < 4.9 * (1000 * share * (1 - share)) ** 0.5


@pytest.mark.parametrize(("bits", "delta", "n"), [(16, 1e-6, 340), (64, 1e-6, 380), (1024, 1e-6, 440), (16, 1e-3, 240), (128, 1e-3, 300)])
def test_records_for_a_threshold(bits: int, delta: float, n: int) -> None:
    """Nine successes of ten on each of the hard distributions, over 40 odd targets, by four standard errors of the mean."""
    generator, learner = np.random.default_rng(bits), DyadicThresholds(bits, 0.1, 1.0, delta)
    laws = [hard_thresholds(bits, 0.1, random_target(bits, generator)) for _ in range(40)]
    for name in laws[0]:
        mean, error = mean_chance(learner.chance, [each[name] for each in laws], n, 0.1, generator)
        assert mean - 4 * error > 0.9, name


@dataclass(frozen=True)
class AsInTheText(DyadicThresholds):
    """The interval's score is the smaller number of its zeros and ones, as in Section 3.2."""

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        found, enough = super().candidates(sample, optimum), np.full(len(sample.values) + 1, 1 << 40)
        fewer = np.minimum(*(middles(Multiset(sample.bits, sample.values, counts), enough).scores for counts in (sample.zeros, sample.ones)))
        return replace(found, sizes=np.where(fewer > 0, found.sizes, 0).astype(np.uint64), scores=np.minimum(found.scores, fewer))


def test_all_records_of_an_interval_count() -> None:
    """380 records are enough at 64 bits; if only the rarer label counts they are not, and 700 are."""
    generator = np.random.default_rng(64)
    laws = [hard_thresholds(64, 0.1, random_target(64, generator))["needle"] for _ in range(40)]
    text, ours = AsInTheText(64, 0.1, 1.0, 1e-6), DyadicThresholds(64, 0.1, 1.0, 1e-6)
    few, enough, less = (mean_chance(learner.chance, laws, n, 0.1, np.random.default_rng(0))[0] for learner, n in ((text, 380), (text, 700), (ours, 380)))
    assert few < 0.6
    assert min(enough, less) > 0.9


def test_records_for_noisy_labels() -> None:
    """With 20 % of labels flipped, 460 records at 64 bits, on each of them."""
    generator, learner = np.random.default_rng(1), DyadicThresholds(64, 0.1, 1.0, 1e-6, agnostic=True)
    laws = [hard_thresholds(64, 0.1, random_target(64, generator), 0.2) for _ in range(3)]
    for name in laws[0]:
        assert mean_chance(learner.chance, [each[name] for each in laws], 460, 0.1, generator)[0] > 0.9, name


def test_the_proven_number_is_enough() -> None:
    """Empirical error at most alpha with probability .9 and more, on every sample that some threshold fits: here on the hard ones, at 64 bits."""
    m = dyadic_records(64, 0.1, 1.0, 1e-6)
    assert [dyadic_records(bits, 0.1, 1.0, 1e-6) for bits in (16, 64, 1024)] == [597, m, 763] == [597, 652, 763]
    generator, learner = np.random.default_rng(2), DyadicThresholds(64, 0.1, 1.0, 1e-6)
    for law in hard_thresholds(64, 0.1, random_target(64, generator)).values():
        sample = law.sample(m, generator)
        errors, starts = errors_by_gap(sample), [0, *(int(value) + 1 for value in sample.values)]
        good = np.flatnonzero(errors <= 0.1 * m)
        ends = [*(start - 1 for start in starts[1:]), 1 << 64]
        assert learner.chance(sample, starts[good[0]], ends[good[-1]]) > 0.9


def test_large_domains_and_nobody() -> None:
    """Thresholds of 65,536 bits; of no record at all; of points at both ends."""
    far = 1 << 65535
    sample = LabelledMultiset.of([far - 1] * 200 + [far] * 200, [0] * 200 + [1] * 200, 65536)
    assert DyadicThresholds(65536, 0.1, 1.0, 1e-6).release(sample, Draws(KeyedNoise(0))) == far
    nobody = LabelledMultiset.of([], np.array([], dtype=np.int64), 3)
    assert DyadicThresholds(3, 0.1, 1.0, 1e-3).release(nobody, Draws(KeyedNoise(0))) in (0, 4, 8)
    ends = LabelledMultiset.of([0] * 300 + [(1 << 64) - 1] * 300, [1] * 300 + [0] * 300, 64)
    assert DyadicThresholds(64, 0.1, 1.0, 1e-6).release(ends, Draws(KeyedNoise(0))) in range((1 << 64) + 1)


def test_bad_input_gets_a_line() -> None:
    for bits, alpha, delta, said in ((0, 0.1, 1e-3, "bits is 0"), (8, 1.0, 1e-3, "alpha"), (8, 0.1, 0.0, "delta"), (8, 0.1, 0.9, "delta")):
        with pytest.raises(InputError, match=said):
            DyadicThresholds(bits, alpha, 1.0, delta)
    with pytest.raises(InputError, match="of 3 bits"):
        DyadicThresholds(4, 0.1, 1.0, 1e-3).release(LabelledMultiset.of([1], [1], 3), Draws(KeyedNoise(0)))
    with pytest.raises(InputError, match="not listed"):
        DyadicThresholds(3, 0.1, 1.0, 1e-3, agnostic=True).law(LabelledMultiset.of([1], [1], 3))
