"""How many people each class of one round should take, by the law of the answers alone: no learner, protocol or oracle is used."""

import math
from functools import cache

import numpy as np
from scipy import special

from local_dp.arrays import Floats
from local_dp.bounds.response import response_gain
from local_dp.optimise import crossing

ALPHA = 0.1  # the excess error that counts as learned
SIZES = np.linspace(-0.05, 0.05, 21)  # a number of people stands for these around it: reports are whole, and success is a saw-tooth in n of about that period
DRAWS = 300  # at each size, for conjunctions, of which no closed form is known


def answers(m: int, means: Floats, epsilon: float) -> tuple[Floats, Floats]:
    """The answers of m people whose true mean is one of these, and the probability of each: (values, one row of probabilities a mean)."""
    gain, counts = response_gain(epsilon), np.arange(m + 1.0)
    ways = special.gammaln(m + 1) - special.gammaln(counts + 1) - special.gammaln(m - counts + 1)
    ones = (1 + np.asarray(means)[:, None] / gain) / 2
    return gain * (2 * counts / m - 1), np.exp(ways + counts * np.log(ones) + (m - counts) * np.log1p(-ones))


def points(d: int, m: int, epsilon: float) -> float:
    """Each literal is kept where its answer, the share of positives that it rejects, is below .245; those of the point reject none, the others all.

    One of the others makes the conjunction empty. Without j of its own it accepts 2^j - 1 points more, which weigh 1/2 together with all negative ones.
    """
    values, (own, other) = answers(m, np.array([-1.0, 0.0]), epsilon)
    kept = (1 + values) / 2 <= 0.245 * (1 + 1e-9)
    right, wrong = float(own[kept].sum()), float(other[kept].sum())
    few = math.floor(math.log2(1 + 2 * ALPHA * ((1 << d) - 1) + 1e-9))
    return (1 - wrong) ** d * sum(math.comb(d, j) * (1 - right) ** j * right ** (d - j) for j in range(few + 1))


def stumps(d: int, m: int, epsilon: float) -> float:
    """The answer about the literal is the largest of d, of which the others are about nothing, and has its sign; of equal ones the first is taken."""
    values, (own, other) = answers(m, np.array([0.9, 0.0]), epsilon)
    sizes = np.round(np.abs(values), 12)
    order, place = np.unique(sizes, return_inverse=True)
    equal = np.bincount(place, other, len(order))
    up_to = np.minimum(np.cumsum(equal), 1.0)
    first = sum(up_to**i * np.maximum(up_to - equal, 0) ** (d - 1 - i) for i in range(d)) / d
    return float(own[values >= 0] @ np.asarray(first)[place[values >= 0]])


def conjunctions(d: int, m: int, epsilon: float) -> float:
    """The sign of the linear part, every coefficient an answer: that of a conjunction of two is -1/2 and twice 1/2. Drawn, with the same numbers at every m."""
    generator, gain = np.random.default_rng([d, m]), response_gain(epsilon)
    means = np.array([-0.5, 0.5, 0.5, *[0.0] * (d - 2)])
    drawn = gain * (2 * generator.binomial(m, (1 + means / gain) / 2, (DRAWS, d + 1)) / m - 1)
    bits = 1 - 2 * (np.arange(1 << d)[:, None] >> np.arange(d) & 1)
    truth = (bits[:, 0] == 1) & (bits[:, 1] == 1)
    wrong = ((drawn @ np.column_stack([np.ones(1 << d), bits]).T > 0) != truth).mean(axis=1)
    return float(np.mean(wrong <= ALPHA + 1e-12))


LAWS = {"points": points, "stumps": stumps, "conjunctions": conjunctions}
QUERIES = {"points": lambda d: 2 * d, "stumps": lambda d: d, "conjunctions": lambda d: d + 1}


def around(n: float) -> list[int]:
    """The numbers of people that stand for n."""
    return [round(n * (1 + size)) for size in SIZES.tolist()]


@cache
def predicted(name: str, d: int, epsilon: float, success: float) -> float:
    """The number of people with which the class is learned with this probability."""

    def fails(n: float) -> bool:
        return float(np.mean([LAWS[name](d, max(1, size // QUERIES[name](d)), epsilon) for size in around(n)])) < success

    return math.exp(sum(crossing(math.log(20.0 * d), math.log(1e5 * d), lambda log: fails(math.exp(log)), 11)) / 2)
