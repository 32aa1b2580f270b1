"""The comparison of reports with a closed-form variance."""

import math

import numpy as np

from local_dp.arrays import Floats
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.base import Randomizer
from local_dp.tallies import Estimate

ALPHA = 1e-6  # failure probability of each statistical check


def clients_for(away: Floats, law: Floats) -> int:
    """How many reports keep the empirical variance within 3 % of the true one but with probability ALPHA, by Bernstein's inequality for squared errors.

    `away` is what each report may stand for, less the truth, and `law` how likely it is.
    """
    seen = law > 1e-13
    squares, shares = away[seen] ** 2, law[seen]
    variance = float(shares @ squares)
    spread, most, t = float(shares @ (squares - variance) ** 2), float(squares.max()), 0.03 * variance
    return math.ceil(math.log(2 / ALPHA) * (2 * spread + 2 * most * t / 3) / t**2)


def simulated(randomizer: Randomizer, value: int, n: int) -> Estimate:
    """The estimate from n clients that all hold one value; its standard error is measured from the reports where it has no closed form."""
    coins = randomizer.cells_of(public_coins(stream_key("coins", 5, 1), 0, n)) if randomizer.uses_coins else np.zeros(1, dtype=np.uint8)
    reports = randomizer.respond(np.full(n, value), randomizer.draw(KeyedNoise(11), Draw(1), 0, n), coins)
    return randomizer.estimate(randomizer.tally(reports, coins))
