"""What a local oracle is asked, and how a client answers: record -> value -> report. Client
processes and hosts answer through `respond`, the population tier through `Asking.report`; both
randomize in `Asking.randomize`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Column, Counts, Floats, Ints, Words
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Play, R
from local_dp.ledger import Charge
from local_dp.noise import Draw, KeyedNoise, Noise, public_coins
from local_dp.oracles.local.memory import FRESH, Fresh, Memo, Memoised, Memory, Repeat, Session
from local_dp.queries.query import Query, fault_of, has_form
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.records import Records, chunks
from local_dp.tallies import Tally

CHUNK = (
    1 << 18
    # clients that answer at once, and that one digest covers. Randomizers of several words take as
    # many words. In smaller chunks two threads would wait for each other.
)
_NUMBERS = 1 << 25  # that records are made into at a time


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


@dataclass(frozen=True)
class LocalQuery:
    """LR_z(i, R) for every client i of a cohort: evaluate `query` on the record, randomize the
    value with `randomizer`.

    A round may ask one client several things that were fixed beforehand (KLNRS Definition 4.4):
    each has its own randomness, and their losses add up. `repeat` states what a client answers in a
    later round: `Fresh`, `Memoised` or `Session`.
    """

    query: Query
    randomizer: Randomizer
    cohort: Cohort
    repeat: Repeat = FRESH

    def __post_init__(self) -> None:
        if not self.randomizer.domain.takes(self.query.domain):
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}, but randomizer "
                f"{self.randomizer.name!r} takes {self.randomizer.domain}; give a query and a "
                "randomizer of one domain"
            )
        if isinstance(self.repeat, Session) and self.randomizer.silence is None:
            raise InputError(
                f"{self.randomizer.name} has no value for silence, so it takes no part in a "
                "session; give one-of-rounds, or memoise the answer"
            )
        if isinstance(self.repeat, Memoised) and self.randomizer.silence is not None:
            raise InputError(
                f"{self.randomizer.name} answers in a session; give it Session({self.label!r})"
            )

    @property
    def label(self) -> str:
        """The label of the memoised answer or of the session, else empty."""
        return self.repeat.label

    @property
    def kinds(self) -> set[type]:
        """The classes by which it is answered."""
        randomizer = self.randomizer
        return {type(self.query), type(randomizer), type(without_coin(randomizer))}

    def draw(self, round: int, ask: int) -> Draw:
        """Which words answer it as the ask of this number in this round. In a simulation those of a
        label are the same ones in every round."""
        return Draw(round, ask, self.label if isinstance(self.repeat, Memoised) else "")

    def restricted(self, start: int, stop: int) -> "LocalQuery":
        return LocalQuery(self.query, self.randomizer, Cohort(start, stop), self.repeat)

    def charge(self, coins: bytes = b"") -> Charge:
        """The charge to each client. A label is paid for once: it stands for one randomizer, and
        outside sessions for one query and one key of public coins."""
        identity: tuple[object, ...] = (self.randomizer.name, self.randomizer.params())
        what = b""
        match self.repeat:
            case Memoised():
                identity = (self.query.name, self.query.params(), *identity, coins)
            case Session():
                identity = ("session", *identity)
        if self.label:
            what = blake2b(repr(identity).encode(), digest_size=16).digest()
        return Charge(self.cohort.start, self.cohort.stop, self.randomizer.nano, self.label, what)


Local: TypeAlias = Nonadaptive[LocalQuery, Tally, R]
LocalRounds: TypeAlias = Adaptive[LocalQuery, Tally, R]
LocalAlgorithm: TypeAlias = Local[R] | LocalRounds[R]
LocalPlay: TypeAlias = Play[LocalQuery, Tally, R]


def ask_all(
    query: Query, randomizer: Randomizer, clients: int, read: Callable[[Tally], R]
) -> Local[R]:
    """The algorithm that puts one question to all clients, once, and reads its result off their
    tally."""
    question = LocalQuery(query, randomizer, Cohort(0, clients))
    return Nonadaptive((question,), lambda tallies: read(tallies[0]))


@dataclass(frozen=True)
class Asking:
    """A question as it is put to the clients from `start` on: `which` of their words answer it, by
    the key `coins` of public coins; `most` answer at a time, or as many as fit."""

    query: LocalQuery
    start: int
    noise: Noise
    which: Draw
    coins: bytes
    most: int = 0

    def report(self, values: Callable[[], Ints], memory: Memory, places: Counts) -> Words:
        """The reports of clients who are at these places of `memory` and hold these values."""
        match self.query.repeat:
            case Memoised():
                return self._report_outcomes(values, memory.memo, places)
            case Session(label):
                silence = self.query.randomizer.silence
                assert silence is not None
                return self.randomize(memory.speakers.once_only(label, silence, places, values()))
            case Fresh():
                return self.randomize(values())

    def randomize(self, values: Ints) -> Words:
        """The reports of clients with these values: by `simulated` under a seed, else by `draw` and
        `respond`."""
        randomizer = self.query.randomizer
        if isinstance(self.noise, KeyedNoise):
            work = partial(randomizer.simulated, self.noise, self.which)
            return self._in_batches(work, values, self.which)
        return self._with_words(randomizer.respond, values)

    def _report_outcomes(self, values: Callable[[], Ints], memo: Memo, places: Counts) -> Words:
        """Reports of the outcomes in `memo`. For a client without one the first step is made
        (`Randomizer.lasting`), and stays for life."""
        label, randomizer = self.query.label, self.query.randomizer
        fresh = np.flatnonzero(~memo.known(label, places))
        if len(fresh):
            if randomizer.has_second_step:
                outcomes = self._with_words(randomizer.lasting, values())
            else:
                outcomes = self.randomize(values())
            numbers = self.start + fresh
            memo.keep(label, places[fresh], numbers, outcomes[fresh], randomizer.report_dtype)
        outcomes = memo.outcomes(label, places, randomizer.report_dtype)
        if not randomizer.has_second_step:
            return outcomes
        return self._with_words(randomizer.again, outcomes)

    def _with_words(self, step: Callable[[Any, Words, Words], Words], inputs: Column) -> Words:
        """step(the input of each client, its words, its public coins)."""
        randomizer, which = self.query.randomizer, self.which
        if not isinstance(self.noise, KeyedNoise):
            # words of a label are used again in a simulation alone: they would meet another record
            which = Draw(which.round, which.ask)

        def work(first: int, part: Column, cells: Words) -> Words:
            words = randomizer.draw(self.noise, which, first, first + len(part))
            return step(part, words, cells)

        return self._in_batches(work, inputs, which)

    def _in_batches(
        self, work: Callable[[int, Any, Words], Words], inputs: Column, which: Draw
    ) -> Words:
        """work(the first client, the input of each, its public coins), batch by batch; numbers
        between two steps are rounded before."""
        randomizer, start = self.query.randomizer, self.start
        most = self.most or fitting(randomizer)
        batches = []
        for first, last in chunks(start, start + len(inputs), most):
            part = inputs[first - start : last - start]
            if part.dtype.kind == "f":
                random = dither(randomizer, self.noise, which, first, last)
                part = self.query.query.discretize(part, random)
            batches.append(work(first, part, cells_of(randomizer, self.coins, first, last)))
        return batches[0] if len(batches) == 1 else np.concatenate(batches)


def dither(randomizer: Randomizer, noise: Noise, which: Draw, start: int, stop: int) -> Floats:
    """A number in [0, 1) for each of the clients start..stop, for `Domain.discretize`: by words of
    the width that its reports do not take."""
    width = 96 - randomizer.width
    words = noise.words(which, start, stop, width)
    return np.asarray((words >> words.dtype.type(width - 32)) * 2.0**-32)


def respond(
    query: LocalQuery,
    records: Records,
    start: int,
    noise: Noise,
    which: Draw,
    coins: bytes,
    memory: Memory,
    places: Counts,
) -> Words:
    """The reports of the clients start..start + len(records), who are at these places of `memory`:
    record -> value -> report.

    Under a label the record is read only of a client without an outcome there. Simulations raise
    query errors.
    """
    strict = isinstance(noise, KeyedNoise)
    asking = Asking(query, start, noise, which, coins)
    return asking.report(lambda: _values_in_parts(query.query, records, strict), memory, places)


def _values_in_parts(query: Query, records: Records, strict: bool) -> Ints:
    """The value of each record. The parts fit into memory: a query makes about as many numbers of a
    record as its longest list has."""
    if len(records) <= 1:
        return _values(query, records, strict)
    lists = [value for value in query.params().values() if isinstance(value, tuple)]
    few = max(1, _NUMBERS // max([1, *map(len, lists)]))
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
        if has_form(query, values, len(records)):
            return values
        if strict:
            raise InputError(f"query {query.name!r}: {fault_of(query, records)}")
    except (Exception, SystemExit):  # an error would reveal that the client holds such a record
        if strict:
            raise
    if len(records) <= 1:
        return query.domain.first(len(records))
    return np.concatenate(
        [_values(query, records.take(slice(row, row + 1)), strict) for row in range(len(records))]
    )


def fitting(randomizer: Randomizer) -> int:
    """How many clients answer at a time."""
    return max(1, CHUNK // max(randomizer.words, randomizer.domain.first(1).size))


def cells_of(randomizer: Randomizer, coins: bytes, start: int, stop: int) -> Words:
    """What the randomizer uses of the public coins of the clients start..stop; no coin is drawn for
    one that uses none."""
    if not randomizer.uses_coins:
        return NO_COIN
    return randomizer.cells_of(public_coins(coins, start, stop))


def chunk_digest(randomizer: Randomizer, reports: Words, senders: Bools | None = None) -> bytes:
    """A digest of one chunk of reports, bits packed; of those that came, and of who sent them,
    where some are missing."""
    who = b"" if senders is None or bool(senders.all()) else np.packbits(senders).tobytes()
    came = reports[senders] if who else reports
    bits = np.packbits(came) if randomizer.bits == 1 else came
    return blake2b(who + bits.tobytes(), digest_size=16).digest()


def round_digest(parts: Sequence[bytes]) -> str:
    """The digest of a round: equal for two runs if and only if every report of every client is (up
    to a collision)."""
    return blake2b(b"".join(parts), digest_size=16).hexdigest()
