"""Points learned improperly, by buckets of public hashes: pure and flat."""

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.arrays import Floats
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.points.buckets import BucketClass, BucketPointLearner
from local_dp.curator.selection.exponential import log_probabilities
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise


def drawn_class(seed: int, bits: int = 64, hashes: int = 8, width: int = 4) -> BucketClass:
    return BucketClass.drawn(bits, Draws(KeyedNoise(seed)), hashes, width)


def test_two_points_meet_as_seldom_as_they_must() -> None:
    """Over all 64 pairs of masks of 3 bits, any two of the 8 points meet in one of 4 buckets under exactly 16."""
    points = np.arange(8, dtype=np.uint64)
    hashes = [BucketClass(3, (masks,)).hash(0, points) for masks in product(range(8), repeat=2)]
    met = sum((values[:, None] == values[None, :]).astype(int) for values in hashes)
    assert np.array_equal(met, np.where(np.eye(8, dtype=bool), 64, 16))


@pytest.mark.parametrize("masses", [[0.9], [0.45] * 2, [0.18] * 5, [0.3, 0.15, 0.15, 0.1, 0.1, 0.05, 0.05]], ids=len)
def test_it_represents_points(masses: list[float]) -> None:
    """Exactly, over all masks: on 8 points no hash of 16 buckets errs by more than .1 with probability above 1 / (16 .1); so 8 hashes fail with below .024.

    With 4 buckets the bound is void, and one hash does fail in a quarter of the draws.
    """
    weights = np.array([0.1, *masses])
    points = np.arange(1, len(weights) + 1, dtype=np.uint64)

    def failure(width: int) -> float:
        wrong = 0.0
        for masks in product(range(8), repeat=width):
            values = BucketClass(3, (masks,)).hash(0, points)
            wrong += float(weights[1:][values[1:] == values[0]].sum()) > 0.1 + 1e-12
        return float(wrong / 8**width)

    assert failure(4) <= 1 / 1.6
    assert failure(4) ** 8 < 0.024
    if len(masses) == 1:
        assert failure(2) == 0.25
    assert drawn_class(0).log_size == math.log(129)


def test_errors_are_counted_right() -> None:
    """Against each hypothesis' own predictions; number 0 is never 1."""
    generator = np.random.default_rng(0)
    for bits in (5, 64, 200):
        hypotheses = drawn_class(1, bits, 3, 2)
        x = [int.from_bytes(generator.bytes(32), "little") % (1 << bits) for _ in range(30)]
        y = generator.integers(0, 2, 30)
        examples = LabelledMultiset.of(x, y, bits)
        points = np.array(x, dtype=np.uint64 if bits <= 64 else object)
        by_hand = [int((hypotheses.predict(number, points) != (y == 1)).sum()) for number in range(hypotheses.size)]
        assert hypotheses.errors(examples).tolist() == by_hand
        assert not hypotheses.predict(0, points).any()


@pytest.mark.parametrize("n", [1, 2, 3])
def test_pure_by_enumeration(n: int) -> None:
    small = SmallDatabases(list(product((0, 1, 6, 7), (0, 1))), n, lambda records: LabelledMultiset.of_pairs(records, 3))
    learner = BucketPointLearner(drawn_class(0, 3, 2, 2), 1.0)
    assert small.worst_delta(learner) == 0
    assert small.worst_delta(BucketPointLearner(drawn_class(0, 3, 2, 2), 3.0), learner.loss) > 0.05


def test_the_code_draws_from_its_law() -> None:
    """4,000 draws fit (chi-squared, failure 1e-6)."""
    examples = LabelledMultiset.of_pairs([(1, 1)] * 6 + [(6, 0)] * 3, 3)
    learner, draws = BucketPointLearner(drawn_class(0, 3, 2, 2), 1.0), Draws(KeyedNoise(0))
    law = learner.law(examples)
    drawn = Counter(learner.release(examples, draws) for _ in range(4000))
    assert float(chisquare([drawn[x] for x in law], [4000 * weight / sum(law.values()) for weight in law.values()]).pvalue) > 1e-6


def success(m: int, masses: Floats, samples: int, width: int = 4) -> float:
    """Pr[error <= .1] with just over .1 on the target and `masses` on others, given hashes and a sample by the law, averaged over both."""
    generator, found = np.random.default_rng([m, len(masses)]), 0.0
    shares = np.array([0.1, *masses])
    points = np.sort(generator.choice(1 << 40, len(shares), replace=False)).astype(np.uint64)
    generator.shuffle(shares[1:])
    for number in range(samples):
        hypotheses, counts = drawn_class(number, 40, 8, width), generator.multinomial(m, shares)
        target = np.eye(1, len(shares), dtype=np.int64)[0]
        examples = LabelledMultiset(40, points, counts * (1 - target), counts * target)
        scale = LabelledMultiset(40, points, np.rint(shares * 10**9).astype(np.int64) * (1 - target), 10**8 * target)
        good = hypotheses.errors(scale) < 10**8  # just over alpha at the target itself
        found += float(np.exp(log_probabilities(-hypotheses.errors(examples), 1.0))[good].sum())
    return found / samples


SPREADS = [np.full(parts, 0.9 / parts) for parts in (1, 2, 5, 9, 17, 27, 64, 300)]


@pytest.mark.parametrize("masses", SPREADS, ids=len)
def test_records(masses: Floats) -> None:
    """140 examples are enough at any number of bits, wherever the rest of the distribution lies: .93 in the hardest (27 points), over 300 hashes and samples.

    The mean of 300 chances of standard deviation .12 at most is within .03 of its expectation but for 1e-5; with 80 examples the hardest has .75.
    """
    assert success(140, masses, 300) > 0.9
    if len(masses) == 27:
        assert success(80, masses, 300) < 0.85


def test_a_domain_beyond_reach() -> None:
    """65,536 bits and 1,000 points: the hypothesis is 1 at the target and at few others."""
    generator = np.random.default_rng(0)
    points = [int.from_bytes(generator.bytes(8192), "little") for _ in range(1000)]
    examples = LabelledMultiset.of(points, [1, *[0] * 999], 65536)
    heavy = LabelledMultiset(65536, examples.values, examples.zeros, examples.ones * 400)
    hypotheses = drawn_class(3, 65536)
    found = BucketPointLearner(hypotheses, 1.0).release(heavy, Draws(KeyedNoise(0)))
    assert hypotheses.predict(found, np.array(points[:1], dtype=object)).all()
    assert hypotheses.predict(found, np.array(points, dtype=object)).sum() < 120


def test_bad_input_gets_a_line() -> None:
    with pytest.raises(InputError, match="masks"):
        BucketClass(3, ())
    with pytest.raises(InputError, match="no whole number of 3 bits"):
        BucketClass(3, ((8,),))
    with pytest.raises(InputError, match="width is 11"):
        BucketClass.drawn(3, Draws(KeyedNoise(0)), 8, 11)
    with pytest.raises(InputError, match="one domain"):
        BucketPointLearner(drawn_class(0), 1.0).release(LabelledMultiset.of_pairs([(1, 1)], 3), Draws(KeyedNoise(0)))
