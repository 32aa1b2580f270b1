"""What a local oracle is asked, and how a client answers: record -> value -> report. Every tier's
clients answer through `respond`."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools, Column, Counts, Ints, Words
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Play, R
from local_dp.ledger import Charge
from local_dp.noise import Draw, KeyedNoise, Noise, public_coins
from local_dp.oracles.local.kept import Kept
from local_dp.queries.query import Query
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.records import Records, chunks
from local_dp.tallies import Tally

CHUNK = (
    1 << 18
    # clients at a time, or words of clients who use several, and clients to a digest: fewer, and
    # two threads would wait for each other
)
_NUMBERS = 1 << 25  # that records are made into at a time
ONCE = r"\A[A-Za-z0-9_.-]{0,64}\Z"
_ONCE = re.compile(ONCE)


@dataclass(frozen=True, order=True)
class Cohort:
    """The clients start..stop by index."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(
                f"the cohort {self.start}..{self.stop} is empty; ask more clients, or give 0 <= "
                "start < stop"
            )

    def __len__(self) -> int:
        return self.stop - self.start


class Spoken:
    """For each session, one bit a client: whether it has answered one of its rounds by something
    else than silence.

    The clients keep it to themselves: no refusal, charge or message depends on it. Once there is
    room, threads may note chunks that share no byte.
    """

    def __init__(self) -> None:
        self._bits: dict[str, Words] = {}

    def copy(self, sessions: Iterable[str]) -> "Spoken":
        """Another one, of these sessions alone."""
        twin = Spoken()
        twin._bits = {
            session: self._bits[session].copy() for session in sessions if session in self._bits
        }
        return twin

    def reserve(self, session: str, clients: int) -> None:
        """Makes room for the clients 0..clients."""
        held = self._bits.get(session, np.zeros(0, dtype=np.uint8))
        if 8 * len(held) < clients:
            self._bits[session] = np.concatenate(
                [held, np.zeros(-(-clients // 8) - len(held), dtype=np.uint8)]
            )

    def once_only(self, session: str, silence: int, start: int, values: Ints) -> Ints:
        """The values that the clients from `start` on may report: silence for each that has spoken.
        Those that speak now are noted. No branch on any of it."""
        first, stop = start // 8, start + len(values)
        self.reserve(session, stop)
        bytes_of = self._bits[session][first : -(-stop // 8)]
        bits = np.unpackbits(bytes_of, bitorder="little").view(np.bool_)
        spoken: Bools = bits[start - 8 * first : stop - 8 * first]
        told: Ints = np.where(spoken, values.dtype.type(silence), values)
        spoken |= told != silence
        bytes_of[:] = np.packbits(bits, bitorder="little")
        return told

    def bits(self, session: str) -> bytes:
        """Of all clients of a session, eight to a byte, the first in its lowest bit."""
        return self._bits[session].tobytes()

    def restore(self, session: str, bits: bytes) -> None:
        self._bits[session] = np.frombuffer(bits, dtype=np.uint8).copy()


@dataclass(frozen=True)
class LocalQuery:
    """LR_z(i, R) for every client i of a cohort: evaluate `query` on the record, randomize the
    value with `randomizer`.

    A round may ask one client several things that were fixed beforehand (KLNRS Definition 4.4):
    each has its own randomness, and their losses add up. With a label in `once`, the answer is
    memoised: a client keeps it, repeats the report in later rounds under that label, and pays
    nothing more. Of a randomizer of two steps (`memoised-grr`) it keeps the outcome of the first.
    The second, drawn anew, reveals no more than that. The first record counts: later reports are of
    what was kept (`kept.Kept`), whatever the record has become. With a label and a randomizer that
    knows a value for silence (`one-of-rounds`) the rounds are a session. They may ask different
    things, and each is answered anew. A client speaks in one of them at most and is silent in all
    others (`sessions.Spoken`), so that it pays for all of them once.
    """

    query: Query
    randomizer: Randomizer
    cohort: Cohort
    memo: str = ""

    def __post_init__(self) -> None:
        if self.query.domain != self.randomizer.domain:
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}, but randomizer "
                f"{self.randomizer.name!r} takes {self.randomizer.domain}; give a query and a "
                "randomizer of one domain"
            )
        if not _ONCE.match(self.memo):
            raise InputError(
                f"the label of a memoised answer is {self.memo!r}; give at most 64 letters, "
                "digits, '.', '_' or '-'"
            )

    @property
    def session(self) -> str:
        """The label where it is a session's, else empty: the randomizer alone decides, by having a
        value for silence."""
        return self.memo if self.randomizer.silence is not None else ""

    @property
    def label(self) -> str:
        """The label where it is of memoised answers, else empty."""
        return self.memo if self.randomizer.silence is None else ""

    def draw(self, round: int, ask: int) -> Draw:
        """Which words answer it as the ask of this number in this round. In a simulation those of a
        label are the same ones in every round."""
        return Draw(round, ask, self.label)

    def restricted(self, start: int, stop: int) -> "LocalQuery":
        return LocalQuery(self.query, self.randomizer, Cohort(start, stop), self.memo)

    def charge(self, coins: bytes = b"") -> Charge:
        """The charge to each client. A label is paid for once: it stands for one randomizer, and
        outside sessions for one query and one key of public coins."""
        what = b""
        if self.memo:
            asked = ("session",) if self.session else (self.query.name, self.query.params())
            named = (
                *asked,
                self.randomizer.name,
                self.randomizer.params(),
                *([] if self.session else [coins]),
            )
            what = blake2b(repr(named).encode(), digest_size=16).digest()
        return Charge(self.cohort.start, self.cohort.stop, self.randomizer.nano, self.memo, what)


Local: TypeAlias = Nonadaptive[LocalQuery, Tally, R]
LocalRounds: TypeAlias = Adaptive[LocalQuery, Tally, R]
LocalAlgorithm: TypeAlias = Local[R] | LocalRounds[R]
LocalPlay: TypeAlias = Play[LocalQuery, Tally, R]


def ask_all(
    query: Query, randomizer: Randomizer, clients: int, read: Callable[[Tally], R]
) -> Local[R]:
    """The algorithm that puts one question to all clients, once, and reads its result off their
    tally."""
    return Nonadaptive(
        (LocalQuery(query, randomizer, Cohort(0, clients)),), lambda tallies: read(tallies[0])
    )


def respond(
    query: LocalQuery,
    records: Records,
    start: int,
    noise: Noise,
    which: Draw,
    coins: bytes,
    spoken: Spoken,
    place: int,
) -> Words:
    """The reports of the clients from `start` on: record -> value -> report, with places in
    `spoken` from `place` on. Simulations raise query errors."""
    values = _values_in_parts(query.query, records, isinstance(noise, KeyedNoise))
    return randomize(query, said(query, values, spoken, place), start, noise, which, coins)


def respond_once(
    query: LocalQuery,
    records: Records,
    start: int,
    noise: Noise,
    which: Draw,
    coins: bytes,
    kept: Kept,
    places: Counts,
) -> Words:
    """The reports under a label of the clients start..start + len(records), from what they keep, at
    these places of `kept`.

    Only of a client that keeps nothing yet is the record read: its first step
    (`Randomizer.lasting`) is made, and kept for life.
    """
    return report_once(
        query,
        lambda: _values_in_parts(query.query, records, isinstance(noise, KeyedNoise)),
        start,
        noise,
        which,
        coins,
        kept,
        places,
    )


def report_once(
    query: LocalQuery,
    values: Callable[[], Ints],
    start: int,
    noise: Noise,
    which: Draw,
    coins: bytes,
    kept: Kept,
    places: Counts,
    most: int = 0,
) -> Words:
    """The same, of clients who hold these values."""
    label, randomizer = query.memo, query.randomizer
    fresh = np.flatnonzero(~kept.known(label, places))
    if len(fresh):
        outcomes = _lasting(query, values(), start, noise, which, coins, most)
        kept.keep(label, places[fresh], start + fresh, outcomes[fresh], randomizer.report_dtype)
    outcomes = kept.outcomes(label, places, randomizer.report_dtype)
    if not randomizer.has_second_step:
        return outcomes

    def again(first: int, outcomes: Words, cells: Words) -> Words:
        return randomizer.again(
            outcomes,
            randomizer.draw(noise, _drawn(noise, which), first, first + len(outcomes)),
            cells,
        )

    return _in_batches(query, again, outcomes, start, coins, most)


def _lasting(
    query: LocalQuery, values: Ints, start: int, noise: Noise, which: Draw, coins: bytes, most: int
) -> Words:
    """The outcomes of the first step of the clients from `start` on."""
    randomizer = query.randomizer
    if not randomizer.has_second_step:
        return randomize(query, values, start, noise, which, coins, most)

    def lasting(first: int, held: Ints, cells: Words) -> Words:
        return randomizer.lasting(
            held, randomizer.draw(noise, _drawn(noise, which), first, first + len(held)), cells
        )

    return _in_batches(query, lasting, values, start, coins, most)


def said(query: LocalQuery, values: Ints, spoken: Spoken, place: int) -> Ints:
    """The values that are randomized: in a session, silence for each client that has spoken in
    it."""
    silence = query.randomizer.silence
    return (
        values
        if silence is None or not query.session
        else spoken.once_only(query.session, silence, place, values)
    )


def _values_in_parts(query: Query, records: Records, strict: bool) -> Ints:
    """The value of each record. The parts fit into memory: a query makes about as many numbers of a
    record as its longest list has."""
    if len(records) <= 1:
        return _values(query, records, strict)
    few = max(
        1,
        _NUMBERS
        // max([1, *(len(value) for value in query.params().values() if isinstance(value, tuple))]),
    )
    parts = [
        _values(query, records.take(slice(first, first + few)), strict)
        for first in range(0, len(records), few)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _values(query: Query, records: Records, strict: bool) -> Ints:
    """The value of each record. If `strict` is false, a record on which the query fails counts as
    the domain's first value."""
    try:
        values = query.values(records)
        if values.dtype.kind in "biu" and values.shape == query.domain.shape(len(records)):
            return values
    except (Exception, SystemExit):  # an error would reveal that the client holds such a record
        if strict:
            raise
    if len(records) <= 1:
        return query.domain.first(len(records))
    return np.concatenate(
        [_values(query, records.take(slice(row, row + 1)), strict) for row in range(len(records))]
    )


def randomize(
    query: LocalQuery,
    values: Ints,
    start: int,
    noise: Noise,
    which: Draw,
    coins: bytes,
    most: int = 0,
) -> Words:
    """The reports of the clients start..start + len(values) who hold these values; `most` answer at
    a time, or as many as fit."""
    randomizer = query.randomizer
    if isinstance(noise, KeyedNoise):
        return _in_batches(
            query, partial(randomizer.simulated, noise, which), values, start, coins, most
        )

    def report(first: int, held: Ints, cells: Words) -> Words:
        return randomizer.respond(
            held, randomizer.draw(noise, _drawn(noise, which), first, first + len(held)), cells
        )

    return _in_batches(query, report, values, start, coins, most)


def _drawn(noise: Noise, which: Draw) -> Draw:
    """Which words are drawn: those of a label in a simulation alone, since words that are used
    again would meet another record."""
    return which if isinstance(noise, KeyedNoise) else Draw(which.round, which.ask)


def _in_batches(
    query: LocalQuery,
    work: Callable[[int, Column, Words], Words],
    given: Column,
    start: int,
    coins: bytes,
    most: int,
) -> Words:
    """work(the first client, what is given of each, its public coins), `most` clients at a time, or
    as many as fit."""
    batches = [
        work(
            first,
            given[first - start : last - start],
            cells_of(query.randomizer, coins, first, last),
        )
        for first, last in chunks(start, start + len(given), most or fitting(query.randomizer))
    ]
    return batches[0] if len(batches) == 1 else np.concatenate(batches)


def fitting(randomizer: Randomizer) -> int:
    """How many clients answer at a time."""
    return max(1, CHUNK // randomizer.words)


def cells_of(randomizer: Randomizer, coins: bytes, start: int, stop: int) -> Words:
    """What the randomizer uses of the public coins of the clients start..stop; no coin is drawn for
    one that uses none."""
    if not randomizer.uses_coins:
        return NO_COIN
    return randomizer.cells_of(public_coins(coins, start, stop))


def chunk_digest(randomizer: Randomizer, reports: Words, answered: Bools | None = None) -> bytes:
    """A digest of one chunk of reports, bits packed; of those that came, and of who sent them,
    where some are missing."""
    who = b"" if answered is None or bool(answered.all()) else np.packbits(answered).tobytes()
    came = reports[answered] if who else reports
    packed = np.packbits(came) if randomizer.bits == 1 else came
    return blake2b(who + packed.tobytes(), digest_size=16).digest()


def round_digest(parts: Sequence[bytes]) -> str:
    """The digest of a round: equal for two runs if and only if every report of every client is (up
    to a collision)."""
    return blake2b(b"".join(parts), digest_size=16).hexdigest()
