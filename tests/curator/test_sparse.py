"""The sparse exponential mechanism: candidates that occur, and no answer."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.groups import Listed
from local_dp.curator.selection.sparse import SparseChoice, SparseExponential
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO
from local_dp.noise import KeyedNoise


def frequent(points: Multiset) -> Listed:
    """The points that occur, by how often."""
    return Listed(points.counts, points.values)


def pairs_and_points(points: Multiset) -> Listed:
    """The points 0..3, and the halves {0, 1} and {2, 3} by the name 4 and 5, by how often: a record is in two candidates."""
    counts = np.bincount(points.values.astype(np.int64), weights=points.counts, minlength=4).astype(np.int64)
    scores = np.concatenate([counts, counts.reshape(2, 2).sum(axis=1)])
    return Listed(scores[scores > 0], np.flatnonzero(scores))


@dataclass(frozen=True)
class LightNone(SparseChoice):
    """A wrong twin: no answer weighs half of what it must."""

    @property
    def _odds(self) -> Fraction:
        return Fraction(self.growth * ATTO, self.loss.atto) / 2


POINTS = SparseExponential(frequent, SparseChoice(1.0, 1e-2))
HALVES = SparseExponential(pairs_and_points, SparseChoice(1.0, 1e-2, growth=2))


def worst(mechanism: SparseExponential[Multiset, int], n: int) -> float:
    """The worst delta over all databases of n records of four values, in units of its own."""
    small = SmallDatabases([(value,) for value in range(4)], n, lambda records: Multiset.of([value for (value,) in records], 2))
    return float(small.worst_delta(mechanism)) / mechanism.choice.delta


@pytest.mark.parametrize("mechanism", [POINTS, HALVES], ids=["points", "halves"])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_private_by_enumeration(mechanism: SparseExponential[Multiset, int], n: int) -> None:
    """The worst delta is at most its own, and 1 / (1 + delta) of it with a single record: nothing is lost."""
    found = worst(mechanism, n)
    assert found <= 1
    if n == 1:
        assert found == pytest.approx(1 / (1 + mechanism.choice.delta), rel=1e-9)


def test_wrong_twins_are_not_private() -> None:
    """Half the weight of no answer; candidates of two kinds called one: nearly twice delta."""
    assert 1.7 < worst(SparseExponential(frequent, LightNone(1.0, 1e-2)), 1) < 2
    assert 1.3 < worst(SparseExponential(pairs_and_points, SparseChoice(1.0, 1e-2)), 1) < 2.1


def test_clamping_keeps_the_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a reach of four points, so that most scores are beyond it, the delta is within a share a^reach of its own."""
    monkeypatch.setattr(SparseChoice, "reach", 4)
    assert worst(POINTS, 9) <= 1 + float(POINTS.choice.decay) ** 4
    monkeypatch.setattr(SparseChoice, "reach", 60)
    assert worst(POINTS, 9) <= 1


def test_the_code_draws_from_its_law() -> None:
    """3,000 draws fit (chi-squared, failure 1e-6); not the law of twice the epsilon."""
    points = Multiset.of([0] * 9 + [1] * 8 + [3] * 2, 2)

    def p_value(epsilon: float) -> float:
        law, draws = SparseExponential(frequent, SparseChoice(epsilon, 1e-2)).law(points), Draws(KeyedNoise(5))
        drawn = Counter(POINTS.release(points, draws) for _ in range(3000))
        return float(chisquare([drawn[outcome] for outcome in law], [3000 * weight / sum(law.values()) for weight in law.values()]).pvalue)

    assert p_value(1.0) > 1e-6 > p_value(2.0)


def test_a_billion_records_are_no_more_work() -> None:
    """Only distinct points count; the most frequent one is told for certain, and nobody at all gives no answer."""
    many = Multiset(64, np.array([3, 1 << 63], dtype=np.uint64), np.array([10**9, 2 * 10**9]))
    assert POINTS.release(many, Draws(KeyedNoise(0))) == 1 << 63
    assert POINTS.release(Multiset.of([], 2), Draws(KeyedNoise(0))) is None


def test_records_for_one_choice() -> None:
    """A tenth of 331 records, 33.03, is told nine times of ten at (1, 1e-6): 33 records a little less often, 34 more. The printed mechanism asks for 3,391."""
    choice = SparseExponential(frequent, SparseChoice(1.0, 1e-6))

    def told(count: int) -> float:
        law = choice.law(Multiset(2, np.array([0], dtype=np.uint64), np.array([count])))
        return law[0] / sum(law.values())

    assert 0.89 < told(33) < 0.9 < told(34)
    crossing = 1 + 2 * np.log(1e6) + 2 * np.log(9)
    assert math.ceil(crossing / 0.1) == 331


def test_bad_input_gets_a_line() -> None:
    with pytest.raises(InputError, match="at most"):
        SparseChoice(0.1, 0.2)
    with pytest.raises(InputError, match="growth is 0"):
        SparseChoice(1.0, 1e-6, growth=0)
