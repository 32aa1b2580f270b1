"""The coordinator of a round, sans I/O: who was asked, who answered, what is missing, when it is over."""

from dataclasses import dataclass, field

import numpy as np

from local_dp.arrays import Bools, Words
from local_dp.errors import WireError
from local_dp.oracles.local.asked import CHUNK, LocalQuery, cells_of, chunk_digest, round_digest
from local_dp.records import chunks
from local_dp.tallies import Tally
from local_dp.wire import Ask, Refusal, Reply, Request, Span


@dataclass
class Turnout:
    """How the clients of a run or of a round fared. A late report is one that came after its round had closed; it is not counted in the estimate."""

    asked: int = 0
    answered: int = 0
    refused: int = 0
    late: int = 0
    duplicate: int = 0
    conflicting: int = 0
    missing: int = 0

    def __add__(self, other: "Turnout") -> "Turnout":
        return Turnout(**{name: value + getattr(other, name) for name, value in vars(self).items()})


@dataclass
class Part:
    """One query of the round and what its cohort has sent: a report counts once, the first one."""

    query: LocalQuery
    reports: Words = field(init=False)
    answered: Bools = field(init=False)
    refused: Bools = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.query.cohort)
        self.reports = np.zeros(size, dtype=self.query.randomizer.report_dtype)
        self.answered = np.zeros(size, dtype=np.bool_)
        self.refused = np.zeros(size, dtype=np.bool_)

    def window(self, start: int, stop: int) -> slice | None:
        """The clients start..stop as positions in this cohort, or None if none of them is in it."""
        first = self.query.cohort.start
        low, high = max(start, first), min(stop, self.query.cohort.stop)
        return slice(low - first, high - first) if low < high else None


class Round:
    """Collects the replies of one round until everybody has answered, refused or gone, or the deadline passes."""

    def __init__(self, run: str, number: int, queries: tuple[LocalQuery, ...], coin_key: bytes) -> None:
        self.run = run
        self.number = number
        self.coin_key = coin_key
        self.parts = [Part(query) for query in queries]
        self.counts = Turnout(asked=sum(len(query.cohort) for query in queries))
        self.refusals: dict[str, str] = {}
        self.closed = False
        self.outstanding = self.counts.asked  # clients that have neither answered nor refused

    def request(self, missing: tuple[Span, ...] = ()) -> Request:
        """The round's one request, as data; with `missing`, addressed once more to the clients that have not answered."""
        asks = tuple(
            Ask(
                query=query.query.name,
                query_params=query.query.params(),
                randomizer=query.randomizer.name,
                randomizer_params=query.randomizer.params(),
                start=query.cohort.start,
                stop=query.cohort.stop,
            )
            for query in (part.query for part in self.parts)
        )
        return Request(run=self.run, round=self.number, coins=self.coin_key, asks=asks, missing=missing)

    def accept(self, reply: Reply) -> None:
        """Counts a reply's reports: the new ones, the repeated ones, the late ones. Raises WireError if it does not fit the round."""
        reports = np.frombuffer(reply.reports, dtype=f"<u{reply.width}") if len(reply.reports) % reply.width == 0 else None
        if reports is None or not len(reports):
            raise WireError(f"a reply with {len(reply.reports)} bytes of {reply.width}-byte reports")
        start, stop = reply.start, reply.start + len(reports)
        part = next((part for part in self.parts if part.query.cohort.start <= start and stop <= part.query.cohort.stop), None)
        if part is None or part.reports.dtype.itemsize != reply.width:
            raise WireError(f"a reply for the clients {start}..{stop}, which were not asked together for {reply.width}-byte reports")
        if int(reports.max()) >= part.query.randomizer.alphabet:
            raise WireError(f"a report of {int(reports.max())} where reports are below {part.query.randomizer.alphabet}")
        window = part.window(start, stop)
        assert window is not None
        known = part.answered[window]
        again = int(known.sum())
        if again:
            self.counts.duplicate += again
            self.counts.conflicting += int((part.reports[window][known] != reports[known]).sum())
        if self.closed:
            self.counts.late += len(reports) - again
            return
        self.outstanding -= int((~known & ~part.refused[window]).sum())
        part.reports[window] = np.where(known, part.reports[window], reports)
        self.counts.answered += len(reports) - again
        part.answered[window] = True

    def refuse(self, refusal: Refusal) -> None:
        """Counts the clients a refusal speaks for as refused."""
        if self.closed:
            return
        self.refusals.setdefault(refusal.code, refusal.text)
        for part in self.parts:
            window = part.window(refusal.start, refusal.stop)
            if window is not None:
                self.outstanding -= int((~part.answered[window] & ~part.refused[window]).sum())
                part.refused[window] = True

    def awaited(self, start: int, stop: int) -> list[Span]:
        """The spans of clients among start..stop that were asked and have neither answered nor refused."""
        spans = []
        for part in self.parts:
            window = part.window(start, stop)
            if window is not None:
                waiting = ~(part.answered[window] | part.refused[window])
                offset = part.query.cohort.start + int(window.start)
                spans += [(offset + low, offset + high) for low, high in _runs(waiting)]
        return spans

    def is_awaited(self, start: int, stop: int) -> bool:
        """Whether any client among start..stop was asked and has neither answered nor refused."""
        windows = ((part, part.window(start, stop)) for part in self.parts)
        return any(window is not None and not bool((part.answered[window] | part.refused[window]).all()) for part, window in windows)

    def close(self) -> None:
        """No report counts any more."""
        self.closed = True
        self.counts.refused = sum(int((part.refused & ~part.answered).sum()) for part in self.parts)
        self.counts.missing = self.counts.asked - self.counts.answered - self.counts.refused

    def tallies(self) -> tuple[Tally, ...]:
        """The tally of each query over the reports that came."""
        return tuple(_tally(part, self.coin_key) for part in self.parts)

    def digest(self) -> str:
        """The digest of the round's reports, equal to the population tier's when all came and every report agrees."""
        return round_digest([digest for part in self.parts for digest in _digests(part)])


def _runs(flags: Bools) -> list[Span]:
    """The maximal spans where `flags` is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return [(int(low), int(high)) for low, high in edges.reshape(-1, 2)]


def _chunks_of(part: Part) -> list[tuple[int, int, slice]]:
    first = part.query.cohort.start
    return [(start, stop, slice(start - first, stop - first)) for start, stop in chunks(first, part.query.cohort.stop, CHUNK)]


def _tally(part: Part, coin_key: bytes) -> Tally:
    randomizer, tally = part.query.randomizer, part.query.randomizer.empty()
    for start, stop, window in _chunks_of(part):
        answered = part.answered[window]
        cells = cells_of(randomizer, coin_key, start, stop)
        tally += randomizer.tally(part.reports[window][answered], cells[answered] if randomizer.cells > 1 else cells)
    return tally


def _digests(part: Part) -> list[bytes]:
    return [chunk_digest(part.reports[window], part.answered[window]) for _, _, window in _chunks_of(part)]
