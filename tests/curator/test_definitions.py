"""KLNRS Definitions 3.3 and 3.4 and Claim 3.3, held by the shipped learners: privacy on every database and utility, separately and exactly where possible."""

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints
from local_dp.bounds.curator import occam_examples, paper_parity_examples, parity_success
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import Examples, ParityLearner, amplified_learner, paper_amplified
from local_dp.curator.selection.occam import Labelled, OccamLearner, ThresholdClass
from local_dp.draws import Draws
from local_dp.experiments.lab.intervals import wilson
from local_dp.noise import KeyedNoise

EXAMPLES = list(product(range(4), (0, 1)))  # (x, y) with x of two bits
ALPHA, BETA = 0.2, 0.1


@cache
def solutions(kept: tuple[tuple[int, int], ...]) -> frozenset[int]:
    """The solution space of the kept equations, as the shipped elimination finds it: every r it can pick."""
    if not kept:
        return frozenset(range(4))
    x = gf2.pack(np.array([[point & 1, point >> 1] for point, _ in kept], dtype=np.uint8))
    found = gf2.solve(x, np.array([y for _, y in kept], dtype=np.uint8), 2)
    if found is None:
        return frozenset()
    return frozenset(int(found.pick(np.array([word], dtype=np.uint64))[0]) for word in range(4))


def chance(database: tuple[tuple[int, int], ...], r: int, place: int, kept: bool, p: Fraction) -> Fraction:
    """Pr[a run that is not silent outputs r | example `place` is kept, or is not]."""
    total = Fraction(0)
    for chosen in product((False, True), repeat=len(database)):
        if chosen[place] == kept:
            space = solutions(tuple(example for example, keep in zip(database, chosen, strict=True) if keep))
            others = sum(chosen) - kept
            if r in space:
                total += p**others * (1 - p) ** (len(database) - 1 - others) / len(space)
    return total


@pytest.mark.parametrize("p", [Fraction(1, 8), Fraction(1, 2)])
def test_claim_3_3(p: Fraction) -> None:
    """Keeping one example at most doubles the probability of any hypothesis, for all databases of three examples over two bits, and does so for some."""
    worst = Fraction(0)
    for database in product(EXAMPLES, repeat=3):
        for r in range(4):
            without, within = chance(database, r, 0, False, p), chance(database, r, 0, True, p)
            assert within <= 2 * without
            worst = max(worst, within / without if without else Fraction(0))
    assert worst == 2


def test_claim_3_3_in_each_solution_space() -> None:
    """The proof's step, for the shipped elimination: a further equation empties the space, keeps it or halves it."""
    for database in product(EXAMPLES, repeat=3):
        before, after = solutions(database[:2]), solutions(database)
        assert after <= before
        assert len(after) in (0, len(before), len(before) / 2)


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("learner", [paper_amplified, amplified_learner])
def test_definition_3_3_parity(learner: object, epsilon: float) -> None:
    """A* is a private PAC learner of parity: epsilon-private on all databases of two examples, and exact with 1 - beta on the printed number of examples."""
    assert callable(learner)
    private: ParityLearner = learner(epsilon, BETA)
    assert SmallDatabases(EXAMPLES, 2, lambda pairs: Examples.of(2, pairs)).worst_delta(private) == 0
    assert private.epsilon <= epsilon * (1 + 1e-9)  # on all databases of any size, by the closed form
    for d in (2, 8, 16):
        n = paper_parity_examples(d, epsilon, ALPHA, BETA)
        assert parity_success(private, d, n) >= 1 - BETA
        assert n <= 200 * d * math.log2(2 / BETA) ** 2 / (epsilon * ALPHA)  # polynomial in 1/epsilon, d, 1/alpha and log(1/beta)


def arbitrary_target(x: Ints) -> Ints:
    """No threshold: 1 on the middle third and on the last point of twelve. The best threshold errs on 4 points."""
    labels: Ints = (((x >= 4) & (x < 8)) | (x == 11)).astype(np.int64)
    return labels


def success(epsilon: float, n: int, weights: Floats, runs: int) -> int:
    """How often the private learner comes within ALPHA of the best of 13 thresholds for a target that is none of them."""
    everything = np.arange(12)
    wrong = np.array([[(point >= t) != arbitrary_target(everything)[point] for point in everything] for t in range(13)]) @ weights
    learner, generator = OccamLearner(ThresholdClass(12), epsilon), np.random.default_rng([n, round(1000 * epsilon)])
    good = 0
    for _ in range(runs):
        x = generator.choice(12, size=n, p=weights)
        chosen = learner.release(Labelled(x, arbitrary_target(x)), Draws(KeyedNoise(int(generator.integers(1 << 62)))))
        good += bool(wrong[chosen] <= wrong.min() + ALPHA)
    return good


@pytest.mark.parametrize("weights", [np.full(12, 1 / 12), np.array([0.3] + [0.02] * 10 + [0.5])], ids=["uniform", "skewed"])
def test_definition_3_4_occam(weights: Floats) -> None:
    """The exponential mechanism is a private agnostic learner: exactly epsilon-private on all databases, inconsistent ones too, and within alpha of OPT > 0
    with 1 - beta on the proven n, under each distribution (a right learner fails with probability below 1e-4)."""
    epsilon = 0.5
    assert SmallDatabases(list(product(range(3), (0, 1))), 3, Labelled.of).worst_delta(OccamLearner(ThresholdClass(3), epsilon)) == 0
    n = occam_examples(13, epsilon, ALPHA, BETA)
    assert wilson(success(epsilon, n, weights, 300), 300, 3.9)[1] >= 1 - BETA


def test_too_few_examples_are_not_enough() -> None:
    """Twin: with a fiftieth of them the utility condition fails, so the test above can."""
    n = occam_examples(13, 0.5, ALPHA, BETA)
    assert wilson(success(0.5, n // 50, np.full(12, 1 / 12), 300), 300, 3.9)[1] < 1 - BETA
