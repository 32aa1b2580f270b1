"""The query of the parity learners: the whole labelled example."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import Domain
from local_dp.queries.base import Query
from local_dp.randomizers.characters import examples
from local_dp.records import Records


def _odd(records: Records) -> Words:
    """The label as a bit: 1 for y = -1."""
    return (records.whole("y") < 0).view(np.uint8)


@dataclass(frozen=True)
class ParityExample(Query):
    """A whole labelled example of parity, 2 x + 1(y = -1); a public mask s then asks for y (-1)^<s, x>. 1 <= d <= 12."""

    name: ClassVar[str] = "parity-example"
    d: int

    def __post_init__(self) -> None:
        examples(self.d)

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    def __call__(self, records: Records) -> Ints:
        values: Ints = 2 * records.whole("x").astype(np.int64) + _odd(records)
        return values
