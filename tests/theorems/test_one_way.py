"""Learners make one-way protocols, and protocols learners: thresholds and whether b is at least a."""

import math
from collections.abc import Sequence
from fractions import Fraction

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.thresholds.learner import PureThresholds
from local_dp.draws import Draws
from local_dp.loss import Pure
from local_dp.noise import KeyedNoise
from local_dp.theorems.curated import PublicLearner, learner_from_one_way, one_way_from_learner
from local_dp.two_party import OneWay, greater_or_equal

BITS, EPSILON = 3, 0.5
NEEDLE = {(a, b): 1 for a in range(1, 1 << BITS) for b in (a - 1, a)}  # Bob is next to Alice: every other threshold errs on half


def public(n: int, epsilon: float = EPSILON) -> PublicLearner[LabelledMultiset, int, int]:
    """The exponential mechanism over thresholds, and n copies of (0, 0)."""
    return PublicLearner(PureThresholds(epsilon), LabelledMultiset.of_pairs([(0, 0)] * n, BITS), n, lambda t, b: int(b >= t))


def needle(bits: int, target: int, below: int, above: int) -> LabelledMultiset:
    """`below` examples (target - 1, 0) and `above` examples (target, 1)."""
    return LabelledMultiset.of_pairs([(target - 1, 0)] * below + [(target, 1)] * above, bits)


def told(bits: int) -> OneWay[int, int]:
    """Alice says a."""
    return OneWay((1 << bits) + 1, lambda a: a, lambda message, b: int(b >= message))


def test_a_learner_makes_a_protocol() -> None:
    """By exact laws, the chance that no hypothesis of the public list is Alice's is at most `failure`, for every a; with the list of another n it is not.

    The protocol itself errs no more than that says, over 60 lists.
    """
    n, problem = 8, greater_or_equal(NEEDLE)
    law = PureThresholds(EPSILON).law(public(n).database)
    for a in range(1, 1 << BITS):
        sample = needle(BITS, a, n // 2, n // 2)
        success = PureThresholds(EPSILON).chance(sample, a, a)
        own = law[a] / sum(law.values())
        assert (1 - own) ** public(n).tries(success, 0.05) <= 0.05
    rare = min(law[a] / sum(law.values()) for a in range(1, 1 << BITS))
    assert (1 - rare) ** public(n - 7).tries(0.3, 0.05) > 0.05
    coins, tries = Draws(KeyedNoise(1)), 60
    errors = [problem.error(one_way_from_learner(public(n), problem, tries, coins)) for _ in range(60)]
    missed = float(sum((1 - law[a] / sum(law.values())) ** tries for a in range(1, 1 << BITS))) / 7 / 2
    spread = math.sqrt(missed / 2 / 60 / 7)  # of a mean of errors that are 0 or 1/2 for each of seven a
    assert abs(float(sum(errors, Fraction(0))) / 60 - missed) < 5 * spread
    assert one_way_from_learner(public(n), problem, tries, coins).bits == 6


def test_a_protocol_makes_a_learner() -> None:
    """Where Alice says her threshold, it is the pure learner of thresholds, law for law, and private on all pairs of examples; at twice epsilon it is not."""
    mechanism = learner_from_one_way(told(2), EPSILON)
    examples = [(0, 0), (1, 1), (3, 1), (2, 0)]
    assert mechanism.law(examples) == PureThresholds(EPSILON).law(LabelledMultiset.of_pairs(examples, 2))

    def build(rows: tuple[tuple[int, int], ...]) -> Sequence[tuple[int, int]]:
        return rows

    databases = SmallDatabases([(b, label) for b in range(4) for label in (0, 1)], 3, build)
    assert databases.worst_delta(mechanism) == 0
    assert databases.worst_delta(learner_from_one_way(told(2), 2 * EPSILON), Pure(mechanism.loss.nano)) > 0.01


def test_there_and_back() -> None:
    """A learner's protocol makes a learner that finds the threshold from 60 examples more often than not, since the list holds one that is right."""
    problem, coins = greater_or_equal(NEEDLE), Draws(KeyedNoise(4))
    protocol = one_way_from_learner(public(6), problem, 200, coins)
    assert problem.error(protocol) == 0
    mechanism = learner_from_one_way(protocol, 1.0)
    law = mechanism.law([(3, 0)] * 30 + [(4, 1)] * 30)
    right = sum(weight for message, weight in law.items() if protocol.answer(message, 3) == 0 and protocol.answer(message, 4) == 1)
    assert right / sum(law.values()) > 0.99
