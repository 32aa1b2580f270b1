"""The pure proper point learner, baseline of the separation."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from local_dp.bounds.packing import least_records, pure_success
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.points.learner import AllPoints, ProperPointLearner
from local_dp.curator.selection.exponential import ExponentialMechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pure_by_enumeration(n: int) -> None:
    """No delta, on all databases; at twice the epsilon there is one."""
    small = SmallDatabases(list(product(range(4), (0, 1))), n, lambda records: LabelledMultiset.of_pairs(records, 2))
    learner = ProperPointLearner(1.0)
    assert small.worst_delta(learner) == 0
    assert max(small.worst_ratios(learner).values()) <= exp_epsilon(learner.loss.nano)
    assert small.worst_delta(ProperPointLearner(3.0), learner.loss) > 0.05


@pytest.mark.parametrize("bits", [3, 64, 65])
def test_all_points_are_there_once(bits: int) -> None:
    """Those that occur and all others make 2^bits; each of the others is one that does not occur."""
    for pairs in ([], [(0, 1), (5, 1), (5, 1), (7, 0)]):
        groups = AllPoints(LabelledMultiset.of_pairs(pairs, bits).labelled(1))
        assert groups.total == 1 << bits
        others = [groups.member(len(groups.scores) - 1, place) for place in range(6)]
        assert others == [x for x in range(9) if x not in {x for x, label in pairs if label}][:6]


def test_the_law_of_groups_is_the_law_of_points() -> None:
    """Exactly that of a score for each point, and 3,000 draws fit it (chi-squared, failure 1e-6)."""
    examples = LabelledMultiset.of_pairs([(1, 1)] * 4 + [(6, 1)] * 2 + [(3, 0)], 3)
    learner = ProperPointLearner(1.0)
    listed: ExponentialMechanism[int] = ExponentialMechanism(lambda _: np.array([0, 4, 0, 0, 0, 0, 2, 0]), 1.0)
    law, draws = learner.law(examples), Draws(KeyedNoise(0))
    assert law == listed.law(0)
    drawn = Counter(learner.release(examples, draws) for _ in range(3000))
    assert float(chisquare([drawn[x] for x in law], [3000 * weight / sum(law.values()) for weight in law.values()]).pvalue) > 1e-6


@pytest.mark.parametrize(("bits", "records"), [(16, 302), (32, 544), (64, 1018), (128, 1950), (256, 3790), (1024, 14663)])
def test_records(bits: int, records: int) -> None:
    """Exact sums at epsilon 1 and alpha .1: they grow with the bits."""
    assert least_records(lambda m: pure_success(bits, 1.0, m, 0.1)) == records


def test_success_is_that_of_the_law() -> None:
    """`pure_success` averages what the law gives to the target over the counts of its examples."""
    m, learner, told = 12, ProperPointLearner(2.0), []
    for count in range(m + 1):
        law = learner.law(LabelledMultiset.of_pairs([(5, 1)] * count + [(9, 0)] * (m - count), 8))
        told.append(law[5] / sum(law.values()))
    assert pure_success(8, 2.0, m, 0.4) == pytest.approx(float(binom.pmf(np.arange(m + 1), m, 0.4) @ told), rel=1e-6)


def test_a_domain_beyond_reach() -> None:
    """2^65536 points: 100,000 examples of one outweigh all others, 80,000 do not."""
    top = (1 << 65536) - 1
    for count, found in ((100_000, True), (80_000, False)):
        examples = LabelledMultiset(65536, np.array([3, top], dtype=object), np.array([5, 0]), np.array([1, count]))
        assert (ProperPointLearner(1.0).release(examples, Draws(KeyedNoise(1))) == top) is found


def test_bad_input_gets_a_line() -> None:
    with pytest.raises(InputError, match="epsilon is 0"):
        ProperPointLearner(0.0)
