"""The point learner: flat in the domain, private on every database."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Literal

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from local_dp.bounds.packing import least_records, plain_success, stable_success, uniform_success
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.points.learner import PointLearner, leading_point
from local_dp.curator.selection.acceptance import UNIT
from local_dp.curator.selection.stable import Lead, StableChoice
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, approximate
from local_dp.noise import KeyedNoise

ONES = [(x, 1) for x in range(3)]
ALL = list(product(range(3), (0, 1)))


def databases(n: int, universe: list[tuple[int, int]]) -> SmallDatabases[tuple[int, int], LabelledMultiset]:
    return SmallDatabases(universe, n, lambda records: LabelledMultiset.of_pairs(records, 2))


@dataclass(frozen=True)
class CountAlone(PointLearner):
    """A wrong twin: the leader by its own count, whatever the second one has."""

    @property
    def choice(self) -> StableChoice[LabelledMultiset, int]:
        def lead(examples: LabelledMultiset) -> Lead[int]:
            return Lead(leading_point(examples).best, int(examples.ones.max(initial=0)))

        return StableChoice(lead, self.epsilon, self.delta)


@pytest.mark.parametrize("otherwise", ["zero", "uniform"])
@pytest.mark.parametrize(("n", "universe"), [(1, ALL), (2, ALL), (3, ALL), (20, ONES), (41, ONES)], ids=str)
def test_private_by_enumeration(n: int, universe: list[tuple[int, int]], otherwise: Literal["zero", "uniform"]) -> None:
    """At most delta over all databases, consistent with a point or not; where counts are large, nearly all of it, but for the part of a uniform point."""
    learner = PointLearner(1.0, 1e-2, otherwise)
    delta = Fraction(learner.loss.atto, ATTO)
    worst = databases(n, universe).worst_delta(learner)
    assert worst <= delta
    assert worst > delta * 7 / 10 or n <= 3


def test_it_is_about_the_lead() -> None:
    """A twin that asks how often the leader occurs, not how far it leads, has fifty times delta."""
    assert databases(30, ONES).worst_delta(CountAlone(1.0, 1e-2)) > Fraction(1, 2)


def test_the_leader_is_found() -> None:
    """Against a loop over the domain: label 0 does not count, ties go to the lowest with no lead, nothing leads where no label is 1."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        n = int(generator.integers(0, 12))
        examples = LabelledMultiset.of(generator.integers(0, 4, n), generator.integers(0, 2, n), 2)
        counts = [int(examples.ones[examples.values == x].sum()) for x in range(4)]
        second, first = sorted(counts)[-2:]
        assert leading_point(examples) == Lead(counts.index(first), first - second)


@pytest.mark.parametrize(("delta", "records"), [(1e-6, 345), (1e-3, 192)])
def test_records(delta: float, records: int) -> None:
    """Exact sums: 345 and 192 at epsilon 1 and alpha .1, in a domain of any size; 22 without privacy."""
    assert least_records(lambda m: stable_success(approximate(1.0, delta), m, 0.1)) == records
    assert least_records(lambda m: plain_success(m, 0.1)) == 22


def test_a_uniform_point_needs_no_half_of_alpha() -> None:
    """In a large domain 345 records too. In one of ten points of weight .1 it errs by twice alpha (erratum E3), and nothing is promised."""
    loss = approximate(1.0, 1e-6)
    found = [least_records(partial(uniform_success, bits, loss, alpha=0.1, beta=0.05)) for bits in (12, 16, 64, 65536)]
    assert found == [363, 346, 345, 345]
    assert uniform_success(4, loss, 10_000, 0.1, 0.1) == 0
    target = 3
    law = PointLearner(1.0, 1e-6, "uniform").law(LabelledMultiset.of_pairs([(target, 1)] * 10 + [(x, 0) for x in range(10) if x != target], 4))
    twice = sum(weight for x, weight in law.items() if x is not None and x != target and x < 10) / sum(law.values())
    assert twice > 0.5


def test_success_is_that_of_the_law() -> None:
    """`stable_success` averages what the law of the learner gives to the target over the counts of its examples."""
    learner, m, chance = PointLearner(1.0, 1e-3), 60, 0.3
    told = []
    for count in range(m + 1):
        law = learner.law(LabelledMultiset.of_pairs([(5, 1)] * count + [(9, 0)] * (m - count), 64))
        told.append(law.get(5, 0) / UNIT)
    assert stable_success(learner.loss, m, chance) == pytest.approx(float(binom.pmf(np.arange(m + 1), m, chance) @ told), rel=1e-9)


def test_without_an_answer_any_point() -> None:
    """By the law of a uniform point: 4,000 draws fit (chi-squared, failure 1e-6), where the zero function would be drawn as often as all of them."""
    learner, draws = PointLearner(1.0, 1e-2, "uniform"), Draws(KeyedNoise(3))
    examples = LabelledMultiset.of_pairs([(2, 1)] * 9 + [(1, 0)] * 3, 3)
    law = learner.law(examples)
    drawn = Counter(learner.release(examples, draws) for _ in range(4000))
    assert float(chisquare([drawn[x] for x in law], [4000 * weight / sum(law.values()) for weight in law.values()]).pvalue) > 1e-6
    assert None not in drawn
    assert set(PointLearner(1.0, 1e-2).law(examples)) == {2, None}


def test_a_domain_beyond_reach() -> None:
    """65,536 bits: the target is told, and a uniform point has about as many."""
    top = (1 << 65536) - 1
    examples = LabelledMultiset.of([top] * 60 + list(range(940)), [1] * 60 + [0] * 940, 65536)
    assert PointLearner(1.0, 1e-6).release(examples, Draws(KeyedNoise(0))) == top
    nobody = LabelledMultiset.of_pairs([], 65536)
    assert PointLearner(1.0, 1e-6).release(nobody, Draws(KeyedNoise(0))) is None
    anywhere = PointLearner(1.0, 1e-6, "uniform").release(nobody, Draws(KeyedNoise(0)))
    assert anywhere is not None
    assert 65536 - 40 < anywhere.bit_length() <= 65536


def test_bad_input_gets_a_line() -> None:
    for epsilon, delta, said in ((-1.0, 1e-6, "epsilon is -1"), (1.0, 0.0, "delta is 0"), (1.0, 1.5, "delta is 1.5")):
        with pytest.raises(InputError, match=said):
            PointLearner(epsilon, delta)
    with pytest.raises(InputError, match="otherwise is 'any'"):
        PointLearner(1.0, 1e-6, "any")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="2\\^64 points"):
        PointLearner(1.0, 1e-6, "uniform").law(LabelledMultiset.of_pairs([(1, 1)], 64))
