"""Private medians: their sensitivity by brute force, their privacy on every small database."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.sensitivity.mechanisms import FINE, LEAST, CauchyNoise, LocalSensitivity, cosh_loss, worst_ratio
from local_dp.curator.sensitivity.medians import ExponentialMedian, Median, ProposedMedian, SmoothMedian
from local_dp.draws import Draws
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise

Records = tuple[tuple[int], ...]
FIVE = [(0,), (1,), (3,), (6,), (7,)]  # points of 0..7


@cache
def multiset(records: Records, bits: int = 3) -> Multiset:
    return Multiset.of([value for (value,) in records], bits)


def small(n: int, universe: list[tuple[int]]) -> SmallDatabases[tuple[int], Multiset]:
    return SmallDatabases(universe, n, multiset)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_sensitivities_by_brute_force(n: int) -> None:
    """On all multisets of n points of 0..3, odd and even n: A_k is the largest step of the median over all databases at distance k or less, for every k."""
    near: dict[Records, set[Records]] = {tuple((v,) for v in records): set() for records in combinations_with_replacement(range(4), n)}
    for one, other in small(n, [(value,) for value in range(4)]).pairs("replace"):
        near[one].add(other)

    def middle(records: Records) -> int:
        return records[(n + 1) // 2 - 1][0]

    database = {records: max(abs(middle(records) - middle(other)) for other in others) for records, others in near.items()}
    for distance in range(n + 2):
        for records, sensitivity in database.items():
            median = Median(multiset(records, 2))
            assert (median.value, median.within(distance)) == (middle(records), sensitivity)
        database = {records: max(sensitivity, *(database[other] for other in near[records])) for records, sensitivity in database.items()}


def test_distance_to_a_larger_sensitivity() -> None:
    """Found by halving, it is the first distance whose A_k is above the bound, or the largest that is asked for."""
    for records in combinations_with_replacement([value for (value,) in FIVE], 5):
        median = Median(Multiset.of(records, 3))
        for bound in range(9):
            for most in (0, 2, 6):
                assert median.stable(bound, most) == next((k for k in range(most) if median.within(k) > bound), most)


@dataclass(frozen=True)
class LocalNoise(CauchyNoise):
    """A wrong twin: the local sensitivity in place of the smooth one."""

    def scale(self, local: LocalSensitivity) -> int:
        return max(LEAST, math.ceil(FINE * local.within(0) / self.shift))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_smooth_medians_are_private_in_fractions(epsilon: float) -> None:
    """No float: on all multisets of 5 from five points and all replacements `worst_ratio`, which no ratio of the laws passes, is at most e^epsilon."""

    def worst(noise: CauchyNoise) -> Fraction:
        database = {records: Median(multiset(records)) for pair in small(5, FIVE).pairs("replace") for records in pair}
        scales = {records: noise.scale(median) for records, median in database.items()}
        steps = {(FINE * abs(database[one].value - database[other].value), scales[one], scales[other]) for one, other in small(5, FIVE).pairs("replace")}
        return max(worst_ratio(cosh_loss(*step)) for step in steps)

    exact = CauchyNoise.exact(epsilon)
    assert exp_epsilon(round(0.95 * exact.loss.nano)) < worst(exact) <= exp_epsilon(exact.loss.nano)
    assert worst(LocalNoise(exact.shift, exact.stretch)) > 10 * exp_epsilon(exact.loss.nano)


def test_smooth_medians_of_all_small_domains_are_within_the_price() -> None:
    """Exactly: on all multisets of 1 to 4 from all of 0..7, the shift is at most a times the smaller scale, and the scales at most e^b apart."""
    noise = CauchyNoise.exact(1.0)
    for n in range(1, 5):
        database = {records: Median(multiset(records)) for pair in small(n, [(value,) for value in range(8)]).pairs("replace") for records in pair}
        scales = {records: noise.scale(median) for records, median in database.items()}
        for one, other in small(n, [(value,) for value in range(8)]).pairs("replace"):
            low, high = sorted([scales[one], scales[other]])
            assert FINE * abs(database[one].value - database[other].value) <= noise.shift * low
            assert high <= noise.stretch * low


def test_smooth_medians_are_drawn_from_their_law() -> None:
    """4,000 releases fit the Cauchy law of their scale, clipped (chi-squared, failure 1e-6); not that of 1.2 times the scale."""
    points, noise, draws = Multiset.of([2, 2, 3, 5, 6], 3), CauchyNoise.exact(1.0), Draws(KeyedNoise(4))
    mechanism, median = SmoothMedian(noise), Median(points)
    drawn = Counter(mechanism.release(points, draws) for _ in range(4000))

    def p_value(scale: float) -> float:
        upto = np.arctan((np.arange(0.5, 7) - median.value) / (scale / FINE)) / np.pi + 0.5
        return float(chisquare([drawn[y] for y in range(8)], 4000 * np.diff([0, *upto, 1])).pvalue)

    assert p_value(noise.scale(median)) > 1e-6 > p_value(1.2 * noise.scale(median))
    assert set(drawn) <= set(range(8))


def test_proposals_answer_near_no_sensitive_database() -> None:
    """A database at distance 0 answers with probability at most delta, the least threshold for it; at twice that distance one that is stable nearly always."""
    for epsilon, delta in ((1.0, 1e-6), (2.0, 0.05), (0.01, 1e-9), (20.0, 0.3)):
        mechanism = ProposedMedian(1, epsilon, delta)
        assert mechanism.answered(0) <= delta * (1 + 1e-12)
        assert mechanism.threshold == 0 or mechanism.answered(1) > delta
        assert mechanism.answered(2 * mechanism.threshold + 1) > 1 - delta * (1 + 1e-12)
    mechanism = ProposedMedian(1, 2.0, 0.05)
    alike, spread = Multiset.of([3] * 40, 3), Multiset.of([0, 7], 3)
    draws = Draws(KeyedNoise(6))
    assert mechanism.release(alike, draws) is not None
    assert [mechanism.release(spread, draws) for _ in range(20)].count(None) >= 17  # fails once in 1e-4 at worst


def test_scores_are_records_to_replace() -> None:
    """On all multisets of 1 to 5 from five points, each point's score is minus the least number of replaced records that makes it the median."""
    for n in range(1, 6):
        for records in combinations_with_replacement([value for (value,) in FIVE], n):
            runs, middle = ExponentialMedian(1.0).candidates(Multiset.of(records, 3)), (n + 1) // 2
            for y in range(8):
                below, upto = sum(x < y for x in records), sum(x <= y for x in records)
                assert runs.scores[runs.run_of(y)] == -max(0, below - middle + 1, middle - upto)


def normal(generator: np.random.Generator) -> Multiset:
    """1,001 records of mean .4 and standard deviation .05 on 2^20 points of [0, 1]."""
    return Multiset.of((np.clip(generator.normal(0.4, 0.05, 1001), 0, 1) * ((1 << 20) - 1)).astype(np.int64), 20)


def test_scales_on_normal_data() -> None:
    """The scale is the median error: over 100 normal tables, by exact constants .00010 to .00025 in the middle, by published ones 10 to 20 times that."""
    generator, exact, published = np.random.default_rng(0), CauchyNoise.exact(1.0), CauchyNoise.published(1.0)
    medians = [Median(normal(generator)) for _ in range(100)]
    scales = np.array([[noise.scale(median) / FINE / (1 << 20) for noise in (exact, published)] for median in medians])
    assert 0.0001 < np.median(scales[:, 0]) < 0.00025
    assert 10 < np.median(scales[:, 1] / scales[:, 0]) < 20


def test_a_billion_records_are_no_more_work() -> None:
    """Only distinct points count; a stable median is released as it is, and a single record is hidden."""
    many = Multiset(62, np.array([3, 1 << 61], dtype=np.uint64), np.array([10**9, 2 * 10**9]))
    mechanism = SmoothMedian(CauchyNoise.exact(1.0))
    assert mechanism.release(many, Draws(KeyedNoise(0))) == 1 << 61
    assert mechanism.noise.scale(Median(Multiset.of([5], 62))) > 1 << 61
