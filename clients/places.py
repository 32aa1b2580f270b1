"""Which place in a member's store each row of its table has: charges, kept outcomes and sessions go by place."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from local_dp.arrays import Counts


class Places:
    """The places of rows, which rise from row to row."""

    def __init__(self, places: Counts) -> None:
        self.of_rows = places
        self._cuts = np.flatnonzero(np.diff(places) != 1) + 1  # rows whose place does not follow that of the row before

    def spans(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The rows start..stop by spans of places that follow each other: the first row, one past the last, the first place."""
        low, high = np.searchsorted(self._cuts, (start, stop), side="right")
        cuts = [start, *(cut for cut in self._cuts[low:high].tolist() if cut < stop), stop]
        for first, last in pairwise(cuts):
            yield first, last, int(self.of_rows[first])
