"""What a label keeps: the outcome of each client's first step, of which it reports for life,
whatever its record becomes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts, Words

Span: TypeAlias = tuple[
    int, int, int
    # places, and the numbers of their clients, that follow each other: the first place, the first
    # number, how many
]


@dataclass(frozen=True)
class Outcomes:
    """New outcomes under a label: of these spans, the bytes of one client after another."""

    label: str
    spans: tuple[Span, ...]
    data: bytes


class Kept:
    """For each label, the outcome of the first step (`Randomizer.lasting`) of each client that has
    answered under it.

    A client keeps its outcomes beside its ledger, durable before anything is sent: they are all
    that its later reports depend on, so reports of many records reveal no more than the first one's
    outcome. `numbers` are the clients' numbers then, by which a server knows their public coins.
    Chunks of clients may be kept by several threads at a time, once there is room for them.
    """

    def __init__(self) -> None:
        # the numbers, -1 where nothing is kept, and the outcomes, a row of bytes each
        self._labels: dict[str, tuple[Counts, Words]] = {}
        self.added: list[Outcomes] | None = None  # noted in a copy alone

    def copy(self, labels: Iterable[str]) -> "Kept":
        """Another one, of these labels alone, to which nothing was added."""
        twin = Kept()
        twin.added = []
        twin._labels = {
            label: (numbers.copy(), rows.copy())
            for label, (numbers, rows) in self._labels.items()
            if label in labels
        }
        return twin

    def reserve(self, label: str, places: int, width: int) -> None:
        """Makes room for the places 0..places."""
        numbers, rows = self._labels.get(
            label, (np.zeros(0, dtype=np.int64), np.zeros((0, width), dtype=np.uint8))
        )
        more = places - len(numbers)
        if more > 0:
            self._labels[label] = (
                np.append(numbers, np.full(more, -1)),
                np.concatenate([rows, np.zeros((more, width), dtype=np.uint8)]),
            )

    def numbers(self, label: str, places: Counts) -> Counts:
        """The number that each client had when its outcome was kept, or -1."""
        found = np.full(len(places), -1)
        if label in self._labels:
            numbers = self._labels[label][0]
            inside = places < len(numbers)
            found[inside] = numbers[places[inside]]
        return found

    def known(self, label: str, places: Counts) -> Bools:
        return self.numbers(label, places) >= 0

    def outcomes(self, label: str, places: Counts, dtype: "np.dtype[np.generic]") -> Words:
        """The kept outcomes of these places."""
        return np.frombuffer(self._labels[label][1][places].tobytes(), dtype=dtype)

    def keep(
        self,
        label: str,
        places: Counts,
        numbers: Counts,
        outcomes: Words,
        dtype: "np.dtype[np.generic]",
    ) -> None:
        """Keeps outcomes of clients that have none."""
        rows = np.frombuffer(
            np.ascontiguousarray(outcomes, dtype=dtype.base).tobytes(), dtype=np.uint8
        ).reshape(len(places), dtype.itemsize)
        self._put(label, places, numbers, rows)
        if self.added is not None:
            self.added.append(Outcomes(label, _spans(places, numbers), rows.tobytes()))

    def restore(self, outcomes: Outcomes) -> None:
        """Keeps what was added to another one."""
        places, numbers = (
            np.concatenate([np.arange(span[part], span[part] + span[2]) for span in outcomes.spans])
            for part in (0, 1)
        )
        self._put(
            outcomes.label,
            places,
            numbers,
            np.frombuffer(outcomes.data, dtype=np.uint8).reshape(len(places), -1),
        )

    def _put(self, label: str, places: Counts, numbers: Counts, rows: Words) -> None:
        self.reserve(label, int(places.max()) + 1, rows.shape[1])
        held = self._labels[label]
        held[0][places], held[1][places] = numbers, rows


def _spans(places: Counts, numbers: Counts) -> tuple[Span, ...]:
    cuts = [
        0,
        *(np.flatnonzero((np.diff(places) != 1) | (np.diff(numbers) != 1)) + 1).tolist(),
        len(places),
    ]
    return tuple(
        (int(places[first]), int(numbers[first]), last - first) for first, last in pairwise(cuts)
    )
