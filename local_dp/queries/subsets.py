"""Queries of a reconstruction: whose secret bit is set, among the rows of a public subset."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.records import Records

ROW, SECRET = "row", "secret"


@dataclass(frozen=True)
class Subset(Query):
    """1 where the record's `secret` is 1 and its public `row` is in the subset, else 0: a record is (i, x_i), and the query's sum over n rows is <q, x>.

    `members` is the subset's bits in hexadecimal, row 0 first, eight rows to two digits; rows beyond them are not in it.
    """

    name: ClassVar[str] = "subset"
    members: str

    def check(self) -> None:
        try:
            bytes.fromhex(self.members)
        except (TypeError, ValueError):
            raise InputError(f"the subset is {self.members!r:.40}; give its bits as pairs of hexadecimal digits") from None

    @classmethod
    def of(cls, members: Bools) -> "Subset":
        """The subset of the rows i with `members[i]`, shape (n,)."""
        return cls(np.packbits(members).tobytes().hex())

    @property
    def domain(self) -> Domain:
        return symbols(2)

    @cached_property
    def _bits(self) -> Ints:
        """Of each row and of one beyond, which is in no subset."""
        held = np.unpackbits(np.frombuffer(bytes.fromhex(self.members), dtype=np.uint8))
        return np.append(held, np.uint8(0))

    def __call__(self, records: Records) -> Ints:
        rows = np.minimum(records.words(ROW), len(self._bits) - 1).astype(np.intp)
        chosen: Ints = self._bits[rows] & (records.whole(SECRET) == 1)
        return chosen


def secret_bits(bits: Bools) -> Records:
    """The table of the secret bits x_i with their public rows i, shape (n,)."""
    return Records({ROW: np.arange(len(bits), dtype=np.int64), SECRET: bits.astype(np.uint8)})
