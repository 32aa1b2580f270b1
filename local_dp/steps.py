"""Step functions of the client index: one whole number for every client, with a step for each cohort, not each client."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator


class Steps:
    """A whole number for each client, 0 at first, that changes by spans of clients."""

    def __init__(self) -> None:
        self._starts = [0]
        self._values = [0]

    def copy(self) -> "Steps":
        """Another one with the same values."""
        twin = Steps()
        twin._starts, twin._values = self._starts.copy(), self._values.copy()
        return twin

    def add(self, start: int, stop: int, amount: int) -> None:
        """Adds `amount` to each client start..stop."""
        first = self._cut(start)
        for step in range(first, self._cut(stop)):
            self._values[step] += amount

    def _cut(self, client: int) -> int:
        """The position of the step that begins at `client`, made if it is not there."""
        position = bisect_right(self._starts, client) - 1
        if self._starts[position] == client:
            return position
        self._starts.insert(position + 1, client)
        self._values.insert(position + 1, self._values[position])
        return position + 1

    def within(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The steps of the clients start..stop: (first, one past the last, value) each. Reads without cutting."""
        for step in range(bisect_right(self._starts, start) - 1, bisect_left(self._starts, stop)):
            end = self._starts[step + 1] if step + 1 < len(self._starts) else stop
            yield max(start, self._starts[step]), min(stop, end), self._values[step]

    def most(self, start: int, stop: int) -> int:
        """The largest value among the clients start..stop."""
        return max(self._values[bisect_right(self._starts, start) - 1 : bisect_left(self._starts, stop)])

    def spans(self) -> Iterator[tuple[int, int, int]]:
        """Every step that is not 0: (first, one past the last, value) each."""
        for start, stop, value in zip(self._starts, self._starts[1:], self._values, strict=False):  # the last step has no end, and is 0
            if value:
                yield start, stop, value

    @property
    def maximum(self) -> int:
        """The largest value."""
        return max(self._values)
