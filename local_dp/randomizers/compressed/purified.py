"""An approximate channel made pure: rows are clipped around their mean, which costs twice the
epsilon and moves no law by more than delta (limits 12.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Words
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon, split_epsilon
from local_dp.randomizers.compressed.genprot import OfChannel
from local_dp.randomizers.finite import FiniteChannel, too_narrow
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import setting_of
from local_dp.randomizers.table import whole_weights

Rows: TypeAlias = Sequence[Sequence[Fraction]]
_MOST = 1 << 14  # entries of a table in fractions


def clipped(rows: Rows, growth: Fraction) -> list[list[Fraction]]:
    """Each row clipped to [P0 / g, g P0], P0 the mean row, then brought back to sum 1 in proportion
    to the room that is left.

    Privacy: pure with g^2. Utility: if any two rows P, P' have sum max(0, P - g P') <= delta, no
    row moves by more than delta in total variation: what lies above g P0 is at most delta in all,
    and what lies below P0 / g at most delta / g. Exact in rationals.
    """
    mean = [sum(column, Fraction(0)) / len(rows) for column in zip(*rows, strict=True)]
    low, high = [m / growth for m in mean], [m * growth for m in mean]
    return [_fill(list(map(min, map(max, row, low), high)), low, high) for row in rows]


def _fill(row: list[Fraction], low: list[Fraction], high: list[Fraction]) -> list[Fraction]:
    """With sum 1, within the same limits: their sums are 1 / g and g, so there is room."""
    left = 1 - sum(row, Fraction(0))
    limits = high if left > 0 else low
    room = [abs(limit - p) for limit, p in zip(limits, row, strict=True)]
    share = left / sum(room, Fraction(0))
    return [p + share * each for p, each in zip(row, room, strict=True)]


def exact_rows(channel: FiniteChannel) -> list[list[Fraction]]:
    """A channel without coins, in fractions."""
    return [
        [Fraction(weight, channel.total) for weight in row] for row in channel.channel().tolist()
    ]


def _excess(row: Sequence[Fraction], other: Sequence[Fraction], growth: Fraction) -> Fraction:
    """The sum of max(0, P - g P')."""
    terms = (max(p - growth * q, Fraction(0)) for p, q in zip(row, other, strict=True))
    return sum(terms, Fraction(0))


def moved(rows: Rows, others: Rows) -> Fraction:
    """The largest total variation between two rows of one value."""
    pairs = zip(rows, others, strict=True)
    return max(_excess(row, other, Fraction(1)) for row, other in pairs)


def exact_delta(rows: Rows, growth: Fraction) -> Fraction:
    """The least delta with which any two rows P, P' have P(S) <= g P'(S) + delta for every S."""
    return max(_excess(row, other, growth) for row, other in product(rows, rows))


@dataclass(frozen=True, kw_only=True)
class Purified(OfChannel):
    """The channel of `inner` at half of epsilon, with every row clipped to a factor e^(eps / 2)
    around the mean row.

    Privacy: PURE, also for an approximate channel, enumerated. Utility: if `inner` is (eps / 2,
    delta)-private, no law of a report moves by more than delta in total variation, up to the
    rounding of words: n clients are never distinguished from those of `inner` by more than n delta.
    A pure `inner` stays as it is, at half of epsilon. Cost: that of `inner`.
    """

    name = "purified"
    summary = "Makes an approximate randomizer pure by clipping its channel"
    source = "limits 12.6; with 10 eps by other means: Bun, Nelson, Stemmer 2018"
    work = "pure reports"

    @property
    def inner_epsilon(self) -> float:
        return split_epsilon(self.epsilon, 2)

    @property
    def alphabet(self) -> int:
        return self._channel.alphabet

    @cached_property
    def weights(self) -> Words:
        if self.domain.size * self.alphabet > _MOST:
            raise InputError(
                f"a table of {self.domain.size} values and {self.alphabet} reports is too large "
                "to be made pure in fractions; give less"
            )
        weights = whole_weights(
            clipped(exact_rows(self._channel), exp_epsilon(self._channel.nano)),
            exp_epsilon(self.nano),
            self.word_bits,
        )
        if weights is None:
            raise too_narrow(self)
        return weights[None].astype(np.uint64)

    @property
    def moved(self) -> Fraction:
        """The largest total variation between the laws of its reports and those of `inner`, for one
        value."""
        return moved(exact_rows(self), exact_rows(self._channel))


def purify(randomizer: Randomizer) -> Purified:
    """The pure randomizer with twice the epsilon whose reports' laws are within the delta of this
    one's; see `Purified`. Raises InputError."""
    return Purified(2 * randomizer.epsilon, inner=randomizer.name, setting=setting_of(randomizer))
