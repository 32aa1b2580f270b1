"""Client counts for heavy hitters among 2^bits strings, prefix by prefix (normal approximations)."""

import math
from dataclasses import dataclass

from local_dp.bounds.frequencies import frequency_variance, parities_variance
from local_dp.bounds.normal import normal_quantile
from local_dp.randomizers.frequencies.wide_hashing import best_parities

FIRST, STEP = 20, 12  # bits of the first prefix, and of each further level
KEPT = 512  # prefixes that are followed from one level to the next
NOISE = 0.01  # the chance that noise anywhere is taken for a string
FREQUENT = 10  # so many strings are to be found at once


def level_lengths(bits: int) -> tuple[int, ...]:
    """The bits of the prefix at each level: 20, 32, 44, and so on, the last one `bits`."""
    return (*range(min(FIRST, bits), bits, STEP), bits)


def noise_height(bits: int) -> float:
    """So many standard errors are passed by none of 2^bits strings that nobody holds, except with probability 1 %: a union of normal tails."""
    return normal_quantile(NOISE / 2**bits)


def heavy_hitters_clients(epsilon: float, bits: int, share: float, beta: float) -> int:
    """n for which ten strings that `share` of the clients hold each are all found, and no other, except with probability beta above 1 %.

    V / share^2 times the larger of (h + z)^2, with h the noise's height, and L (z_{512 / 2^20} + z)^2: each is among the 512 best of 2^20 prefixes by the
    1/L-th part of the clients. V is one report's variance, and z is exceeded by 1/20 of what noise leaves of beta: by one of the ten, in either way to lose it.
    """
    lengths = level_lengths(bits)
    variance = parities_variance(epsilon, best_parities(epsilon, lengths[0]), 0.0)
    miss = normal_quantile((beta - NOISE) / (2 * FREQUENT))
    kept = normal_quantile(min(0.5, KEPT / 2 ** lengths[0]))
    reach = max(noise_height(bits) + miss, math.sqrt(len(lengths)) * (kept + miss))
    return math.ceil(variance * (reach / share) ** 2)


@dataclass(frozen=True)
class Schedule:
    """Rounds that know what was kept: prefixes of `first` bits, then `step` bits more of each of `kept`, told as codes of `width` bits."""

    first: int
    step: int
    kept: int
    width: int

    def lengths(self, bits: int) -> tuple[int, ...]:
        """The bits of the prefix in each round, the last one `bits`."""
        return (*range(min(self.first, bits), bits, self.step), bits)

    def height(self, length: int, bits: int) -> float:
        """From how many standard errors on a prefix is taken, and its share subtracted from those that continue the same one.

        Noise's height for a whole string, and where many are kept; where few are, so high that as many of noise alone stand higher.
        """
        few = length < bits and self is NARROW
        return normal_quantile(min(0.5, self.kept / 2**length)) if few else noise_height(bits)

    def needs(self, bits: int, beta: float) -> list[float]:
        """How many clients must have answered by the end of each round, in units of V / share^2, for ten strings to be found except with probability beta.

        A prefix is to be among the `kept` best of all of its length by its score, (z_{kept / 2^length} + z)^2, and by its own round alone among its part, a
        tenth, of those kept that continue the same one, (z_own + z)^2 more than before: what they share says nothing of them. Where few are kept, above the
        best of them, which varies too: 1.17 z. (h + z)^2 at the end, as in `heavy_hitters_clients`; z is exceeded with what noise leaves of beta by one of the
        ten in any round, in either way to lose it.
        """
        miss = normal_quantile((beta - NOISE) / (2 * FREQUENT * (len(self.lengths(bits)) if self is NARROW else 1)))
        part, varies = (1.0, 1.17) if self is NARROW else (self.kept / FREQUENT, 1.0)
        own = (normal_quantile(part / 2**self.step) + varies * miss) ** 2
        needs: list[float] = []
        for length in self.lengths(bits)[:-1]:
            kept = (normal_quantile(min(0.5, self.kept / 2**length)) + miss) ** 2
            needs.append(max(kept, needs[-1] + own) if needs else kept)
        return [*needs, max((noise_height(bits) + miss) ** 2, needs[-1] + own if needs else 0.0)]

    def variance(self, epsilon: float, bits: int, share: float) -> float:
        """n times that of one round's estimate of a prefix that `share` hold."""
        if self is NARROW:
            return frequency_variance(epsilon, 1 << self.lengths(bits)[0], share)
        return parities_variance(epsilon, best_parities(epsilon, self.lengths(bits)[0]), share)

    def clients(self, epsilon: float, bits: int, share: float, beta: float) -> int:
        """n for which ten strings that `share` of the clients hold each are all found, and no other, except with probability beta above 1 %."""
        return math.ceil(self.variance(epsilon, bits, share) * self.needs(bits, beta)[-1] / share**2)


WIDE, NARROW = Schedule(20, 12, 511, 21), Schedule(12, 7, 31, 12)


def best_schedule(epsilon: float, bits: int, share: float, beta: float) -> Schedule:
    """The one that needs fewer clients: few long rounds, or, where more than the two or three parities that a coin has room for would tell more, short ones."""
    return min((WIDE, NARROW), key=lambda schedule: schedule.clients(epsilon, bits, share, beta))
