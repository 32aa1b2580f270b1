"""How far an answer may move: in one step from a database, and in one step from any database near it."""

from abc import ABC, abstractmethod


class LocalSensitivity(ABC):
    """An answer of 0..`last` on one database, and its local sensitivity at every distance; what neighbours have in common is `last`, `most` and `reach`."""

    value: int
    last: int
    most: int
    """The global sensitivity."""
    reach: int
    """At this distance or before every database has one within it that is as sensitive as any."""

    @abstractmethod
    def within(self, distance: int) -> int:
        """A_k: the largest local sensitivity of all databases at this distance or less, or a bound of it; it grows with the distance, up to `most`.

        A_0 is no less than any difference between the answer here and at a neighbour, and a neighbour's A_k is at most A_(k + 1).
        """

    def stable(self, bound: int, most: int) -> int:
        """The distance to the nearest database whose local sensitivity is above the bound, or `most` if it is larger or there is none. O(log most) looks."""
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.within(middle) > bound else (middle + 1, high)
        return low
