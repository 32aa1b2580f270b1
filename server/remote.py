"""The LR oracle over a message bus: real clients answer. It owns the bus, the clock and the journal
of a run in a file; the coordinator decides."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing, closing, suppress
from pathlib import Path
from shlex import quote
from typing import Any

from local_dp.bus.interface import Connected, Delivery, SealedBus, ServerBus
from local_dp.errors import InputError, WireError, reading
from local_dp.oracles.local.asked import LocalQuery
from local_dp.sealing import UNSIGNED, Envelopes
from local_dp.server.coordinator import Coordinator
from local_dp.server.losses import Unanswered
from local_dp.server.pace import clock
from local_dp.server.phases import Parting, Send
from local_dp.server.progress import Progress, Turnout
from local_dp.server.round import Closing, Past, Round
from local_dp.storage.log import Entry, Log
from local_dp.tallies import Tally
from local_dp.wire import SERVER, Reply, check_name, decode, encode, topic

KIND = 0x1D9D  # SQLite's application id: the file is the journal of a run
SUFFIX = ".run"


class Journal:
    """The journal of one run. A report is in it before its receipt is sent, and a round before the
    next one begins. Methods raise InputError."""

    def __init__(self, log: Log, run: str) -> None:
        self._log = log
        self.run = run
        try:
            with reading(log.path, "begin a run of a new name"):
                self.began: dict[str, Any] = dict(json.loads(self._log.entries(run)[0].data))
        except InputError:
            log.close()
            raise

    @classmethod
    def begin(cls, folder: Path, run: str, how: Mapping[str, Any]) -> "Journal":
        """A new one. Raises InputError for a run that has one: clients answer a round of a name
        once."""
        path = path_of(folder, run)
        if path.exists():
            over, where = False, f"{run} --journal {quote(str(folder))}"
            with suppress(InputError), closing(cls.open(folder, run)) as journal:
                over = journal.result is not None
            advice = (
                f"`local-dp show {where}` prints its outcome"
                if over
                else f"`local-dp resume {where}` resumes it"
            )
            raise InputError(f"run {run!r} was begun before: {advice}; a new run takes a new name")
        return cls(Log.create(path, KIND, Entry(run, 0, "began", json.dumps(how).encode())), run)

    @classmethod
    def open(cls, folder: Path, run: str) -> "Journal":
        """That of a run which was begun before."""
        path = path_of(folder, run)
        if not path.exists():
            raise InputError(
                f"there is no journal of run {run!r} in {str(folder)!r}; `local-dp runs --journal "
                f"{quote(str(folder))}` lists those that there are"
            )
        return cls(Log(path, KIND), run)

    @property
    def folder(self) -> Path:
        return self._log.path.parent

    def past(self, number: int) -> Past | None:
        """The stored part of a round, if it was asked."""
        parts = {entry.part: entry.data for entry in self._log.entries(self.run, number)}
        if not parts:
            return None
        request, closed = parts.pop("asked"), parts.pop("closed", None)
        replies = tuple(reply for reply in map(decode, parts.values()) if isinstance(reply, Reply))
        if closed is None:
            return Past(request, replies, None)
        data = json.loads(closed)
        missing = data.get("unanswered", {})  # older servers stored none
        shortfall = Unanswered(**{**missing, "owing": tuple(missing.get("owing", ()))})
        return Past(
            request, replies, Closing(Turnout(**data["counts"]), data["seconds"], shortfall)
        )

    def asked(self, number: int, request: bytes) -> None:
        """A round that is about to be asked, by the digest of its request."""
        self._log.append([Entry(self.run, number, "asked", request)])

    def keep(self, replies: Iterable[Reply]) -> None:
        """Accepted reports, all in one step."""
        entries = []
        for reply in replies:
            part = f"{reply.ask} {reply.start} {len(reply.reports) // reply.width}"
            entries.append(Entry(self.run, reply.round, part, encode(reply)))
        self._log.append(entries)

    def closed(self, number: int, closing: Closing) -> None:
        """A round that counts, and to which nothing is added any more."""
        data = {
            "counts": vars(closing.counts),
            "seconds": closing.seconds,
            "unanswered": vars(closing.shortfall),
        }
        self._log.append([Entry(self.run, number, "closed", json.dumps(data).encode())])

    def note(self, name: str, data: bytes) -> None:
        """Something else of the run, under a name that is used once."""
        self._log.append([Entry(self.run, 0, name, data)])

    def notes(self, start: str) -> list[bytes]:
        """The notes whose names begin so, in their order."""
        return [
            entry.data for entry in self._log.entries(self.run, 0) if entry.part.startswith(start)
        ]

    def end(self, result: Mapping[str, Any]) -> None:
        self._log.append([Entry(self.run, 0, "result", json.dumps(result).encode())])

    @property
    def result(self) -> dict[str, Any] | None:
        """The result of the run, if it is over."""
        data = self._log.get(self.run, 0, "result")
        return None if data is None else json.loads(data)

    def standing(self) -> tuple[int, int, int]:
        """How many rounds were closed, how many were asked, and how many messages of reports are
        kept."""
        parts = [entry.part for entry in self._log.entries() if entry.round]
        closed, rounds = parts.count("closed"), parts.count("asked")
        return closed, rounds, len(parts) - closed - rounds

    def leave(self) -> None:
        """Ends the server's work. The journal of a run without a question is deleted: it can begin
        again."""
        unused = False
        with suppress(InputError):  # of a file that is hurt all is kept
            unused = self.standing()[1] == 0
        self.close()
        if unused:
            self._log.path.unlink()

    def close(self) -> None:
        self._log.close()


def path_of(folder: Path, run: str) -> Path:
    """The file of a run. Raises InputError for a name that no run has."""
    check_name(run)
    return folder / (run + SUFFIX)


LINGER = 0.02  # seconds for which accepted reports are gathered, to be kept together
SHOWN = 0.25  # seconds between two looks at how far a round is


class RemoteOracle:
    """Asks the clients that have said hello on the bus.

    `serve` must run beside `ready` and `answer`: it is the only reader of the bus. With a journal,
    an accepted report is stored there before its receipt is sent, and is not asked again. An
    envelope is opened only if the coordinator finds that worth the work.
    """

    def __init__(
        self,
        bus: ServerBus,
        coordinator: Coordinator,
        on_progress: Callable[[Progress], None] = lambda progress: None,
        journal: Journal | None = None,
        envelopes: Envelopes = UNSIGNED,
    ) -> None:
        self.bus = SealedBus(bus, envelopes, lambda topic: coordinator.opens(topic, clock()))
        self.coordinator = coordinator
        self.on_progress = on_progress
        self._alarm = asyncio.Event()
        self._until = math.inf  # when the sleep ends that an event may shorten
        self._listening: asyncio.Task[None] | None = None
        self._journal = journal
        self._patience: float | None = None  # for the clients, before they have been waited for
        self._last_keep = -math.inf  # when reports were last kept
        coordinator.listening.on_flood = self._alarm.set
        if journal is not None:
            coordinator.fresh = []

    async def serve(self, patience: float) -> None:
        """Reads the bus until cancelled. Raises BusError if the broker cannot be joined within
        `patience` seconds."""
        async with aclosing(self.bus.messages(patience)) as events:
            async for event in events:
                if isinstance(event, Connected):
                    self.coordinator.connected()
                elif not self._deliver(event):
                    continue
                now = clock()
                if self._last_keep + LINGER <= now:
                    self._keep()
                if self.coordinator.wake(now) < self._until:
                    self._alarm.set()

    def _deliver(self, delivery: Delivery) -> bool:
        """True if it was read."""
        now = clock()
        if not self.coordinator.reads(delivery.topic, now):
            return False
        try:
            message = decode(delivery.payload, SERVER)
        except WireError as error:
            self.coordinator.reject(delivery.topic, error, now)
        else:
            self.coordinator.receive(delivery.topic, message, now)
        return True

    async def ready(self, patience: float) -> None:
        """Waits until every expected client is present, or `patience` seconds. Raises QuorumError
        if nobody came.

        Where the journal answers the first round, that is put off until somebody must be asked.
        """
        self._patience = patience
        past = None if self._journal is None else self._journal.past(1)
        if past is None or past.closing is None:
            await self.gather()

    async def gather(self) -> None:
        """Waits for the clients, if that was put off. Raises QuorumError if nobody came."""
        if self._patience is not None:
            self.coordinator.gather(self._patience, clock())
            self._patience = None
            await self._settle()
            self.coordinator.gathered()

    async def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """One round. Raises RefusedError or QuorumError if it closes with fewer replies of a cohort
        than its quorum."""
        journal, number = self._journal, len(self.coordinator.rounds) + 1
        past = None if journal is None else journal.past(number)
        if past is not None and past.closing is not None:
            return self.coordinator.repeat(queries, past)
        await self.gather()
        round = self.coordinator.open(queries, clock(), past)
        round.check_size()
        if journal is None:
            return self.coordinator.close(await self._settle())
        if past is None:
            journal.asked(number, round.request_digest())
        end = await self._settle()
        tallies = self.coordinator.close(end)
        journal.closed(number, self.coordinator.closing())
        for send in self.coordinator.receipts():
            await self._publish(send)
        return tallies

    def _keep(self) -> None:
        """Stores the reports accepted since, in one step."""
        fresh = self.coordinator.fresh
        if self._journal is not None and fresh:
            self._journal.keep(fresh)
            fresh.clear()
            self._last_keep = clock()

    async def collect(self, queries: tuple[LocalQuery, ...]) -> Round:
        """One round, however few answer it. Raises as `Coordinator.open`."""
        self.coordinator.open(queries, clock())
        await self._settle()
        return self.coordinator.shut()

    async def end(self, patience: float = 0.0) -> None:
        """Ends the run for every client, and waits for their accounts for `patience` seconds at
        most."""
        # nobody was asked, and who is there is not known
        if self._patience is not None and patience:
            self.coordinator.gather(patience, clock())
            await self._settle()
        self.coordinator.phase = Parting(self.coordinator.members, patience, clock())
        await self._settle()

    async def _settle(self) -> float:
        """Publishes the due messages until the phase is settled, and stores accepted reports; the
        time when it was settled."""
        while not self.coordinator.phase.is_settled(now := clock()):
            self._alarm.clear()
            if (filters := self.coordinator.listening.change(clock())) is not None:
                await self._listen(filters)
            self._keep()  # before a receipt is due
            for send in self.coordinator.due(clock()):
                await self._publish(send)
            self._show()
            self._until = self.coordinator.wake(clock())
            with suppress(TimeoutError):  # until an event makes it wake earlier, or progress is due
                async with asyncio.timeout_at(min(self._until, clock() + SHOWN)):
                    await self._alarm.wait()
        self._keep()
        self._show()
        self.coordinator.trouble, self.coordinator.forgeries = self.bus.bus.lost, self.bus.forgeries
        return now

    async def _listen(self, filters: list[str]) -> None:
        """Changes the topics; does not wait long for the answer, which comes after all messages on
        their way."""
        self._listening = asyncio.create_task(self.bus.listen(filters))
        self._listening.add_done_callback(self._stands)
        await asyncio.wait([self._listening], timeout=LINGER)

    def _stands(self, listening: asyncio.Task[None]) -> None:
        self.coordinator.listening.stands(clock())
        self._alarm.set()

    async def _publish(self, send: Send) -> None:
        await self.bus.publish(topic(self.coordinator.run, "req", send.group), encode(send.message))

    def _show(self) -> None:
        progress = self.coordinator.progress(clock())
        if progress is not None:
            self.on_progress(progress)
