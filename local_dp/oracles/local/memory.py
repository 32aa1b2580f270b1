"""How an answer is repeated in later rounds, and what clients remember for it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Words
from local_dp.errors import InputError
from local_dp.randomizers.randomizer import Randomizer

LABEL = r"\A[A-Za-z0-9_.-]{0,64}\Z"
_LABEL = re.compile(LABEL)


@dataclass(frozen=True)
class Fresh:
    """Each answer is drawn anew, and charged."""

    label: ClassVar[str] = ""


@dataclass(frozen=True)
class Memoised:
    """The first answer stands for life: later rounds under the label repeat it and charge nothing.

    Of a randomizer of two steps (`memoised-grr`) the outcome of the first step stands; the second,
    drawn anew, reveals no more than that. The first record counts, whatever it becomes.
    """

    label: str

    def __post_init__(self) -> None:
        _check(self.label)


@dataclass(frozen=True)
class Session:
    """A client speaks in one of the rounds under the label at most. It is silent in all others, and
    pays once. The rounds may ask different things; the randomizer knows a value for silence
    (`one-of-rounds`)."""

    label: str

    def __post_init__(self) -> None:
        _check(self.label)


Repeat: TypeAlias = Fresh | Memoised | Session
FRESH = Fresh()


def _check(label: str) -> None:
    if not label or not _LABEL.match(label):
        raise InputError(
            f"the label of an answer is {label!r}; give 1 to 64 letters, digits, '.', '_' or '-'"
        )


def repeat_of(label: str, randomizer: Randomizer) -> Repeat:
    """What a label in a request stands for: the randomizer decides, by its value for silence."""
    if not label:
        return FRESH
    return Memoised(label) if randomizer.silence is None else Session(label)


class Speakers:
    """For each session, one bit a client: whether it has answered one of its rounds by something
    else than silence.

    The clients keep it to themselves: no refusal, charge or message depends on it. Once there is
    room, threads may note chunks that share no byte.
    """

    def __init__(self) -> None:
        self._bits: dict[str, Words] = {}

    def copy(self, sessions: Iterable[str]) -> "Speakers":
        """Another one, of these sessions alone."""
        twin = Speakers()
        for session in sessions:
            if session in self._bits:
                twin._bits[session] = self._bits[session].copy()
        return twin

    def reserve(self, session: str, places: int) -> None:
        """Makes room for the places 0..places."""
        bits = self._bits.get(session, np.zeros(0, dtype=np.uint8))
        more = -(-places // 8) - len(bits)
        if more > 0:
            self._bits[session] = np.concatenate([bits, np.zeros(more, dtype=np.uint8)])

    def once_only(self, session: str, silence: int, places: Counts, values: Ints) -> Ints:
        """The values that the clients at these places may report: silence for each that answered
        before. Those that answer now are noted. No branch on any of it."""
        first = int(places.min()) // 8
        stop = int(places.max()) + 1
        self.reserve(session, stop)
        part = self._bits[session][first : -(-stop // 8)]
        bits = np.unpackbits(part, bitorder="little").view(np.bool_)
        own = places - 8 * first
        spoke = bits[own]
        replies: Ints = np.where(spoke, values.dtype.type(silence), values)
        bits[own] = spoke | (replies != silence)
        part[:] = np.packbits(bits, bitorder="little")
        return replies

    def bits(self, session: str) -> bytes:
        """Of all clients of a session, eight to a byte, the first in its lowest bit."""
        return self._bits[session].tobytes()

    def restore(self, session: str, bits: bytes) -> None:
        self._bits[session] = np.frombuffer(bits, dtype=np.uint8).copy()


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


class Memo:
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
        self.additions: list[Outcomes] | None = None  # noted in a copy alone

    def copy(self, labels: Iterable[str]) -> "Memo":
        """Another one, of these labels alone, to which nothing was added."""
        twin = Memo()
        twin.additions = []
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
        result = np.full(len(places), -1)
        if label in self._labels:
            numbers = self._labels[label][0]
            inside = places < len(numbers)
            result[inside] = numbers[places[inside]]
        return result

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
        octets = np.ascontiguousarray(outcomes, dtype=dtype.base).tobytes()
        rows = np.frombuffer(octets, dtype=np.uint8).reshape(len(places), dtype.itemsize)
        self._put(label, places, numbers, rows)
        if self.additions is not None:
            self.additions.append(Outcomes(label, _spans(places, numbers), rows.tobytes()))

    def restore(self, outcomes: Outcomes) -> None:
        """Keeps what was added to another one."""
        places, numbers = (
            np.concatenate([np.arange(span[part], span[part] + span[2]) for span in outcomes.spans])
            for part in (0, 1)
        )
        rows = np.frombuffer(outcomes.data, dtype=np.uint8).reshape(len(places), -1)
        self._put(outcomes.label, places, numbers, rows)

    def _put(self, label: str, places: Counts, numbers: Counts, rows: Words) -> None:
        self.reserve(label, int(places.max()) + 1, rows.shape[1])
        store = self._labels[label]
        store[0][places], store[1][places] = numbers, rows


def _spans(places: Counts, numbers: Counts) -> tuple[Span, ...]:
    gaps = np.flatnonzero((np.diff(places) != 1) | (np.diff(numbers) != 1))
    cuts = [0, *(gaps + 1).tolist(), len(places)]
    return tuple(
        (int(places[first]), int(numbers[first]), last - first) for first, last in pairwise(cuts)
    )


@dataclass(frozen=True)
class Memory:
    """What clients remember: who answered in each session, and outcomes under each label."""

    speakers: Speakers = field(default_factory=Speakers)
    memo: Memo = field(default_factory=Memo)

    def copy(self, repeats: Iterable[Repeat]) -> "Memory":
        """Another one, of these labels alone, which notes what is added to it."""
        repeats = list(repeats)
        sessions = [each.label for each in repeats if isinstance(each, Session)]
        labels = [each.label for each in repeats if isinstance(each, Memoised)]
        return Memory(self.speakers.copy(sessions), self.memo.copy(labels))
