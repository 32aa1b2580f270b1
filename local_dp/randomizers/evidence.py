"""Privacy by enumeration: the whole channel as whole numbers, its worst ratio as a Fraction."""

import math
from fractions import Fraction

import numpy as np

from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.base import Randomizer

MAX_ENTRIES = 1 << 28


def exact_ratio(randomizer: Randomizer) -> Fraction:
    """The largest Pr[w | u, c] / Pr[w | u', c] over all cells c, reports w and values u, u'.

    Raises RefusedError("unverifiable") if the channel is too large, is not a table of probabilities, or gives a report to one value only.
    """
    entries = randomizer.cells * randomizer.alphabet * randomizer.domain.size
    if entries > MAX_ENTRIES:
        raise RefusedError("unverifiable", f"{randomizer.name}: a channel of {entries} entries is too large to enumerate")
    worst = Fraction(1)
    seen: set[tuple[int, int]] = set()
    for cell in range(randomizer.cells):
        channel = randomizer.channel(cell)
        sums = channel.sum(axis=1, dtype=np.uint64)  # exact modulo 2^64; the float sum below excludes a whole multiple
        total = randomizer.total
        if np.any(sums != np.uint64(total % 2**64)) or np.any(abs(channel.sum(axis=1, dtype=np.float64) / total - 1) > 1e-6):
            raise RefusedError("unverifiable", f"{randomizer.name}: the weights of cell {cell} do not sum to 2^{randomizer.word_bits}")
        for high, low in {*zip(channel.max(axis=0).tolist(), channel.min(axis=0).tolist(), strict=True)} - seen:
            seen.add((high, low))
            if low == 0 < high:
                raise RefusedError("unverifiable", f"{randomizer.name}: a report that some value never sends reveals that value")
            if high:
                worst = max(worst, Fraction(high, low))
    return worst


def exact_epsilon(randomizer: Randomizer) -> float:
    """The exact privacy loss in nats: ln of `exact_ratio`."""
    ratio = exact_ratio(randomizer)
    return math.log1p(float(ratio - 1))


def check_epsilon(randomizer: Randomizer) -> None:
    """Raises RefusedError("unverifiable") unless the exact loss is at most the epsilon that the randomizer charges for."""
    if exact_ratio(randomizer) > exp_epsilon(randomizer.nano):
        raise RefusedError(
            "unverifiable",
            f"{randomizer.name} claims epsilon {randomizer.epsilon:g} but its channel has {exact_epsilon(randomizer):.9g}",
        )
