"""What one report of any channel tells of a hidden parity, and the best of all channels by a linear program, for d up to 3 (limits 12.2). Nats."""

from functools import lru_cache, partial

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.channels import best_channel
from local_dp.cube import parity
from local_dp.errors import InputError

MOST = 3  # d: 2^16 columns


def parity_information(d: int, columns: Floats) -> Floats:
    """What each report tells of a uniform parity: sum_w 2^-d P_w ln(P_w / P), P_w its probability under w and P the mean of these. Shape (reports,).

    A column holds a report's probability for each value 2 x + 1(y = -1): shape (reports, 2^(d + 1)). The channel's information is the sum.
    """
    x = np.arange(1 << d)
    held = 2 * x + parity((x & x[:, None]).astype(np.uint64))  # row w: the examples of the parity w
    chances = columns[:, held].mean(axis=2)
    mean = chances.mean(axis=1, keepdims=True)
    told: Floats = (chances * np.log(chances / mean)).mean(axis=1)
    return told


@lru_cache
def best_parity_information(d: int, epsilon: float) -> float:
    """The most that one epsilon-local report tells of a uniform parity of d bits, over ALL channels. Cost: 2 s at d = 3. 1 <= d <= 3."""
    if type(d) is not int or not 1 <= d <= MOST:
        raise InputError(f"d is {d!r}; the program is solved for d from 1 to {MOST}")
    return best_channel(epsilon, 2 << d, partial(parity_information, d)).value


def random_channel(d: int, epsilon: float, reports: int, generator: np.random.Generator) -> Floats:
    """A channel whose ratio is E: random columns of ones and E's, as large as the last one allows, which makes the rows sum to 1.

    Shape (at most reports, 2^(d + 1)). The last column is 1 - t S, S the sum of the others, with the t for which its own ratio is E.
    """
    growth = float(np.exp(epsilon))
    columns = np.where(generator.random((reports - 1, 2 << d)) < generator.random((reports - 1, 1)), growth, 1.0) * generator.random((reports - 1, 1))
    sums = columns.sum(axis=0)
    columns *= (growth - 1) / (growth * sums.max() - sums.min())
    whole = np.vstack([columns, 1 - columns.sum(axis=0)])
    made: Floats = whole[whole.max(axis=1) > 1e-9]  # the last one is nothing where the others sum to a constant
    return made
