"""Runs: a whole-valued function on 0..last that changes at few places, in as much memory as there are places."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Ints, Naturals
from local_dp.curator.choosing.groups import Groups
from local_dp.curator.multisets import WORD


@dataclass(frozen=True)
class Runs(Groups[int]):
    """The candidates 0..last, those of run i of score `scores[i]`.

    `ends`, shape (runs - 1,), ascending: the last candidate of each run but the last one, which ends at `last`. Last itself may be 2^bits, one more than fits.
    """

    ends: Naturals
    scores: Ints
    last: int

    def __post_init__(self) -> None:
        lengths = self.ends[1:] - self.ends[:-1]
        first, rest = (int(self.ends[0]) + 1, self.last - int(self.ends[-1])) if len(self.ends) else (self.last + 1, 0)
        fits = self.ends.dtype != object and max(first, rest) >> WORD == 0
        ends = [first, rest] if len(self.ends) else [first]
        outer = np.array(ends, dtype=np.uint64 if fits else object)
        object.__setattr__(self, "sizes", np.concatenate([outer[:1], lengths if fits else lengths.astype(object), outer[1:]]))

    def start(self, run: int) -> int:
        """The first candidate of a run."""
        return int(self.ends[run - 1]) + 1 if run else 0

    def member(self, group: int, place: int) -> int:
        return self.start(group) + place
