"""Permute-and-flip (McKenna, Sheldon 2020): the loss of the exponential mechanism, and at most its chance of missing the best."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.curator.laws import D, whole_weights
from local_dp.curator.mechanism import Law, R
from local_dp.curator.selection.exponential import LISTED, ExponentialChoice, ExponentialMechanism
from local_dp.curator.selection.groups import Groups
from local_dp.draws import Draws
from local_dp.errors import InputError

_ENUMERATED = 64  # candidates


@dataclass(frozen=True)
class PermuteAndFlip(ExponentialChoice):
    """In a random order each candidate of score q flips a coin of bias a^(best - q), a just above e^(-eps / (2 sensitivity)); the first head is chosen.

    Privacy: epsilon, where no neighbour moves a score by more than `sensitivity` and all have the same candidates.
    Utility: falls short of the best by any t at most as often as the exponential mechanism. The worse one of two candidates is chosen with probability
    a^gap / 2 in place of a^gap / (1 + a^gap), nearly half. Cost: up to O(candidates) coins, so at most 65,536 candidates.
    Source: McKenna, Sheldon 2020, Algorithm 1, Theorems 1 and 2.
    """

    def choose(self, groups: Groups[R], draws: Draws) -> R:
        gaps, sizes = self._gaps(groups, LISTED)
        upto = np.array(list(accumulate(sizes)))
        moved, left = dict[int, int](), groups.total  # a permutation, as far as it is needed
        while True:
            place = draws.below(left)
            left -= 1
            drawn = moved.get(place, place)
            moved[place] = moved.get(left, left)
            group = int(np.searchsorted(upto, drawn, side="right"))
            if all(draws.coin(self.decay) for _ in range(gaps[group])):
                return groups.member(group, drawn - (int(upto[group - 1]) if group else 0))

    def choose_many(self, groups: Groups[R], count: int, draws: Draws) -> tuple[R, ...]:
        return tuple(self.choose(groups, draws) for _ in range(count))

    def law(self, groups: Groups[R]) -> Law[R]:
        """The law of `choose`. Raises InputError above 64 candidates."""
        chances = self._chances(groups)
        return whole_weights({candidate: chances[group] for group, candidate in groups.members()})

    def share(self, groups: Groups[R], counts: Naturals) -> Fraction:
        return sum((int(count) * chance for count, chance in zip(counts, self._chances(groups), strict=True)), Fraction(0))

    def _chances(self, groups: Groups[R]) -> list[Fraction]:
        """The probability of one candidate of each group: it comes at a uniform time t, and no coin before it is a head.

        It is p times the integral of the product of 1 - t p' over all others: a polynomial with rational coefficients.
        """
        gaps, sizes = self._gaps(groups, _ENUMERATED)
        coins, chances = [self.decay**gap for gap in gaps], list[Fraction]()
        for group, (coin, size) in enumerate(zip(coins, sizes, strict=True)):
            before = [other for each, (other, many) in enumerate(zip(coins, sizes, strict=True)) for _ in range(many - (each == group))]
            chances.append(coin * _integral(before) if size else Fraction(0))
        return chances

    def _gaps(self, groups: Groups[R], most: int) -> tuple[list[int], list[int]]:
        if not 1 <= groups.total <= most:
            raise InputError(f"there are {groups.total} candidates; give 1 to {most}")
        sizes: list[int] = [int(size) for size in groups.sizes]
        best = max(int(score) for score, size in zip(groups.scores, sizes, strict=True) if size)
        return [max(0, best - int(score)) for score in groups.scores], sizes


def _integral(coins: list[Fraction]) -> Fraction:
    """Of the product of 1 - t p over these coins p, for t from 0 to 1."""
    product = [Fraction(1)]
    for coin in coins:
        product = [here - coin * before for here, before in zip([*product, Fraction(0)], [Fraction(0), *product], strict=True)]
    return sum((term / (power + 1) for power, term in enumerate(product)), Fraction(0))


@dataclass(frozen=True)
class PermutedMechanism(ExponentialMechanism[D]):
    """Permute-and-flip of any score: `PermuteAndFlip` among at most 65,536 numbered candidates. Privacy: epsilon, pure, as for any score."""

    score: Callable[[D], Ints | Groups[int]]

    @property
    def choice(self) -> PermuteAndFlip:
        return PermuteAndFlip(self.epsilon, self.sensitivity)
