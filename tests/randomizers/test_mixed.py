"""Mixtures of corners: their loss is the corners', and what is no mixture is refused."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.errors import RefusedError
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.numbers.rounded import Rounded, RoundedGRR, RoundedHadamard


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("kind", [RoundedGRR, RoundedHadamard])
@pytest.mark.parametrize(("steps", "groups"), [(1, 1), (7, 1), (5, 3)])
def test_the_loss_of_the_corners_is_that_of_the_whole_channel(kind: type[Any], epsilon: float, steps: int, groups: int) -> None:
    """The ratio from the corners alone is the largest over every value, report and cell, one by one, and every row sums to one."""
    randomizer: Rounded = kind(epsilon, steps=steps, groups=groups)
    worst = Fraction(1)
    for cell in range(randomizer.cells):
        rows = randomizer.channel(cell).tolist()
        assert {sum(row) for row in rows} == {randomizer.total}
        worst = max(worst, *(Fraction(max(column), min(column)) for column in zip(*rows, strict=True)))
    assert exact_ratio(randomizer) == worst


def test_a_hundred_groups_of_65_537_numbers_are_verified() -> None:
    """Their channels have billions of entries; the corners' have some thousands."""
    for randomizer in (RoundedGRR(1.0, groups=100), RoundedHadamard(1.0, groups=100)):
        assert randomizer.cells * randomizer.alphabet * randomizer.domain.size > 1 << 30
        assert abs(float(exact_ratio(randomizer)) - np.e) < 1e-5


@dataclass(frozen=True, kw_only=True)
class Beyond(RoundedGRR):
    """One level is beyond its group's end."""

    name: ClassVar[str] = "beyond"

    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        first, second, level = super().between(values)
        return first, second, np.where(values == 3, self.steps + 1, level)


@dataclass(frozen=True, kw_only=True)
class Elsewhere(RoundedGRR):
    """One corner is said to be another."""

    name: ClassVar[str] = "elsewhere"

    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        first, second, level = super().between(values)
        return np.where(values == 0, self.domain.high, first), second, level


@dataclass(frozen=True, kw_only=True)
class Uneven(RoundedGRR):
    """The corners are no whole number of steps apart."""

    name: ClassVar[str] = "uneven"

    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        right, odd = super().corner_weight(reports, corners, cells), corners == 0
        return right + np.where(odd & (reports == 0), np.uint64(1), np.uint64(0)) - np.where(odd & (reports == 1), np.uint64(1), np.uint64(0))


@pytest.mark.parametrize(
    ("twin", "words"),
    [(Beyond(1.0, steps=5), "between two corners"), (Elsewhere(1.0, steps=5), "between two corners"), (Uneven(1.0, steps=5), "equal steps apart")],
    ids=lambda each: str(getattr(each, "name", "")),
)
def test_what_is_no_mixture_is_refused(twin: RoundedGRR, words: str) -> None:
    """A level beyond the end, a corner that is another, and corners that the steps do not divide."""
    with pytest.raises(RefusedError, match=words):
        exact_ratio(twin)
