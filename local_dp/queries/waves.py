"""Queries to lives: records that hold what somebody would say at each of several times."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_built, check_whole
from local_dp.domains import MAX_SYMBOLS, Domain, symbols
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.queries.tables import Category, Question
from local_dp.records import Records


def asked_in(wave: str, labels: tuple[str, ...], spare: tuple[str, ...] = ()) -> Category | Question:
    """What is asked in one wave: a column with public labels, or where there are none a yes/no question."""
    return Category(wave, labels, spare) if labels else Question(wave, tuple(name for name in spare if name == "missing"))


@dataclass(frozen=True)
class ChangeInterval(Query):
    """In which interval of `width` waves a yes/no answer changes for the `change`-th time, counted from 0 on; the number of intervals if it does not.

    Before the first wave the answer is no (the first label), so odd changes are to yes and even ones to no, and after wave t the answer is yes if the number
    of changes is odd. What it is up to the end of an interval decides whether that interval is told: nobody needs to know the future.
    """

    name: ClassVar[str] = "change-interval"
    waves: tuple[str, ...]
    labels: tuple[str, ...]
    change: int
    width: int

    def check(self) -> None:
        check_whole("the number of waves", len(self.waves), 2, MAX_SYMBOLS - 1)
        check_whole("change", self.change, 1, len(self.waves))
        if len(self.labels) not in (0, 2):
            raise InputError(f"there are {len(self.labels)} labels; changes are of two, no and yes")
        check_whole("width", self.width, 1, len(self.waves))
        check_built(self.parts)

    @cached_property
    def parts(self) -> tuple[Category | Question, ...]:
        """What is asked in each wave."""
        return tuple(asked_in(wave, self.labels) for wave in self.waves)

    @property
    def intervals(self) -> int:
        """How many intervals there are; the last one may be shorter."""
        return -(-len(self.waves) // self.width)

    @property
    def domain(self) -> Domain:
        return symbols(self.intervals + 1)

    def __call__(self, records: Records) -> Ints:
        before, changes = np.zeros(len(records), dtype=np.int64), np.zeros(len(records), dtype=np.int64)
        found = np.full(len(records), self.intervals, dtype=np.int64)
        for wave, part in enumerate(self.parts):
            now = part.values(records).astype(np.int64)
            changes += now != before
            found = np.where((now != before) & (changes == self.change), wave // self.width, found)
            before = now
        return found
