"""Rejection from a pseudorandom seed: a report of any channel told by the seed that makes it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_whole
from local_dp.randomizers.compressed.base import Compressed

MAX_BITS = 12


@dataclass(frozen=True, kw_only=True)
class SeededRejection(Compressed):
    """Reports a short seed from which the channel's mean law makes a report that is accepted as often as the value makes it likelier than the mean.

    Seeds are tried until one is accepted, and after as many tries as the least lucky value needs any seed is taken: so what is chosen stays linear in the
    channel's rows, and the mean of a number whose chances are linear in it stays so. Privacy: enumerated over all seeds and lists. Utility: the channel's own
    variance as seeds grow longer (`variances`). Cost: `seed_bits` bits, whatever the size of a report of the channel. 1 <= seed_bits <= 12.
    """

    name: ClassVar[str] = "seeded-rejection"
    source: ClassVar[str] = "Feldman, Talwar 2021"
    seed_bits: int = 2

    @property
    def choices(self) -> int:
        return 1 << self.seed_bits

    def prepare(self) -> None:
        check_whole("seed_bits", self.seed_bits, 1, MAX_BITS)
        super().prepare()

    def parts(self, ratios: Ints) -> Ints:
        accepted = ratios.sum(axis=2, keepdims=True)
        parts: Ints = ratios * np.int64(self.choices) + (accepted.max(axis=1, keepdims=True) - accepted)
        return parts
