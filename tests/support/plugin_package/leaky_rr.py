"""A randomizer that claims less epsilon than it spends."""

from dataclasses import dataclass
from typing import ClassVar

from local_dp.randomizers.finite import flip_weight
from local_dp.randomizers.signs.binary_rr import BinaryRR


@dataclass(frozen=True)
class LeakyRR(BinaryRR):
    """Claims epsilon and spends twice as much: every client must find out and refuse."""

    name: ClassVar[str] = "leaky-rr"

    def prepare(self) -> None:
        object.__setattr__(self, "flip", flip_weight(2 * self.nano, self.word_bits))
