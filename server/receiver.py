"""A receiver, a process beside the server: it asks the clients of its share as a server does,
stores their reports, and passes them on packed.

The server hears some receivers as it hears hosts. Their shares are apart, so that each report is in
one of them, and a report that comes twice counts once.
"""

import asyncio
import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from local_dp.bus.address import Address
from local_dp.bus.children import ending
from local_dp.bus.interface import Bus, SealedBus
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import BusError, QuorumError
from local_dp.loss import MAX_EPSILON
from local_dp.records import chunks
from local_dp.sealing import UNSIGNED, Envelopes, Party, public
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Keys, Roster, Share
from local_dp.server.members import filters as server_filters
from local_dp.server.phases import Collecting, parting
from local_dp.server.quorum import CAUSES, Terms
from local_dp.server.relay import (
    BROKER,
    LOST,
    Relay,
    RelayProcess,
    Said,
    filters,
    live,
    query_of,
    will,
)
from local_dp.server.remote import Journal, RemoteOracle, path_of
from local_dp.server.round import Balance, Closing, Part, Reconciliation, Round, runs
from local_dp.wire import (
    CLIENT,
    Absent,
    Account,
    Refusal,
    Reply,
    Request,
    behind,
    decode,
    encode,
    per_message,
    topic,
)

GROUP = "receivers"
AFTER = 2.0  # seconds to wait for the members that are still there after the run
# to start it again in a row, where it lived for less than so many seconds
ATTEMPTS, STEADY = (
    10,
    1.0,
)


class Shared(Terms):
    """The terms of a receiver's round: the server judges the turnout of all shares together."""

    def judge(self, round: Round) -> None:
        pass


class ShareJournal(Journal):
    """A receiver's journal. A round is closed for good once the server asks the next one: until
    then a server that missed its quorum may ask it again."""

    _closing: tuple[int, Closing] | None = None

    @classmethod
    def of(cls, folder: Path, run: str) -> Self:
        return (
            cls.open(folder, run) if path_of(folder, run).exists() else cls.begin(folder, run, {})
        )

    def closed(self, number: int, closing: Closing) -> None:
        self._closing = number, closing

    def settle(self) -> None:
        """The server went on."""
        if self._closing is not None:
            super().closed(*self._closing)
            self._closing = None

    def began_round(self, request: Request) -> None:
        """Stores what the server asks, once, for one that is started again."""
        name = f"{_ASKED}{request.round}"
        if self._log.get(self.run, 0, name) is None:
            self.note(name, encode(request.model_copy(update={"missing": ()})))

    def requests(self) -> dict[int, Request]:
        """What the server asked, by round."""
        messages = (decode(note, CLIENT) for note in self.notes(_ASKED))
        return {message.round: message for message in messages if isinstance(message, Request)}


# the names of notes: of what the server asked in a round, of how many clients there were
_ASKED, _PRESENT = (
    "request ",
    "present",
)


class Receiver(Relay):
    """Is the clients of its share to the server."""

    resumes = True
    private = True

    def __init__(
        self, front: RemoteOracle, bus: Bus, name: str, journal: ShareJournal, again: bool = False
    ) -> None:
        share = front.coordinator.share
        assert share is not None
        super().__init__(front, bus, GROUP, name, (share.start, share.stop))
        self.journal = journal
        self.again = again  # the run goes on, and this one was started again

    async def gathered(self, joining: float) -> None:
        """Nobody is too few: the server judges all shares together. One that is started again waits
        for as many as were there before."""
        members, before = self.front.coordinator.members, self.journal.notes(_PRESENT)
        members.enough = int(before[0]) if self.again and before else members.clients
        with suppress(QuorumError):
            await self.front.ready(joining)
            await self.front.gather()
        if not before:
            self.journal.note(_PRESENT, str(members.present).encode())

    async def answered(self, request: Request) -> list[Said]:
        coordinator = self.front.coordinator
        self._repeat(request.round - 1)
        self.journal.settle()
        self.journal.began_round(request)
        await self.front.answer(tuple(map(query_of, request.asks)))
        return [
            message
            for ask, part in enumerate(coordinator.last.parts)
            for message in self._of_ask(request.round, ask, part)
        ]

    def _repeat(self, last: int) -> None:
        """The rounds up to this one, which the server has closed, as far as an earlier process has
        played them."""
        coordinator = self.front.coordinator
        requests = self.journal.requests() if len(coordinator.rounds) < last else {}
        for number in range(len(coordinator.rounds) + 1, last + 1):
            past = self.journal.past(number)
            # nobody of its share was asked, or it was away for all of that round
            if number not in requests:
                coordinator.skip()
                continue
            queries = tuple(map(query_of, requests[number].asks))
            if past is not None and past.closing is not None:
                coordinator.repeat(queries, past)
                continue
            round = coordinator.open(queries, 0.0, past)
            if past is None:
                self.journal.asked(number, round.request_digest())
            coordinator.close(0.0)
            self.journal.closed(number, coordinator.closing())
            self.journal.settle()

    async def leave(self) -> None:
        """The run was over before this process began: it sends home who is still there. Accounts
        that came before are lost, and their members silent."""
        serving = asyncio.create_task(self.front.serve(BROKER))
        with suppress(QuorumError):
            await self.front.ready(AFTER)
            await self.front.gather()
        await self.part(True)
        serving.cancel()

    def _of_ask(self, round: int, ask: int, part: Part) -> Iterator[Said]:
        """The reports to one ask, packed, and who has given none."""
        window, run, name = part.window(*self.span), self.run, self.name
        if window is None:
            return
        first, answered, reports = (
            part.query.cohort.start + window.start,
            part.answered[window],
            part.reports[window],
        )
        refused, width = part.refused[window] & ~answered, reports.shape[1]
        for start, stop in runs(answered):
            for low, high in chunks(start, stop, per_message(width)):
                yield Reply(
                    run=run,
                    round=round,
                    member=name,
                    ask=ask,
                    start=first + low,
                    width=width,
                    reports=reports[low:high].tobytes(),
                )
        for low, high in runs(refused):
            code, text = next(iter(part.refusals.items()))
            yield Refusal(
                run=run,
                round=round,
                member=name,
                start=first + low,
                stop=first + high,
                code=code,
                text=text,
            )
        causes = np.full(len(answered), "", dtype="U8")
        for lack in self.front.coordinator.last.lacks:
            causes[max(0, lack.start - first) : max(0, lack.stop - first)] = lack.cause
        for code in CAUSES:
            for low, high in runs(~(answered | refused) & (causes == code)):
                yield Absent(
                    run=run,
                    round=round,
                    member=name,
                    ask=ask,
                    start=first + low,
                    stop=first + high,
                    why="missing",
                    code=code,
                )

    async def part(self, over: bool) -> None:
        """Where the run goes on, its members wait. One that was started again and has answered
        nothing since has its share's rounds from the journal."""
        if over:
            if not isinstance(self.front.coordinator.phase, Collecting):
                self._repeat(max(self.journal.requests(), default=0))
            await self.bus.publish(
                topic(self.run, "rep", GROUP, self.name),
                encode(Account(run=self.run, member=self.name, rounds=())),
            )
            await self.front.end(parting(len(self.front.coordinator.members)))

    def record(self) -> dict[str, Any]:
        """What only the receiver knows of its members, as data."""
        coordinator = self.front.coordinator
        return {
            "counts": vars(coordinator.counts),
            "rejections": coordinator.rejections,
            "silenced": coordinator.listening.silenced,
            "forged": self.front.bus.forged,
            "reconciliation": asdict(coordinator.reconciliation()),
            "losses": [asdict(loss) for loss in coordinator.losses()],
        }


class ReceiverConfig(BaseModel):
    """One receiver of a run: its name, the clients start..stop and their groups, the seed of the
    public coins, the terms in seconds, and its journal's folder.

    It joins the clients' `broker`, and the server's. `server_key` is the server's own and private,
    `roster` has the members of the share, and `key` is the receiver's own; without them nothing is
    signed.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    run: str
    broker: str
    server_broker: str
    name: str
    start: int
    stop: int
    groups: list[str]
    coin_seed: int
    deadline: float | None
    grace: float | None
    joining: float
    folder: str
    again: bool = False
    over: bool = False
    key: Annotated[str, Field(repr=False)] = ""
    server_key: Annotated[str, Field(repr=False)] = ""
    roster: str = ""

    async def serve(self) -> None:
        """Receives until the run is over, and prints the record. Raises BusError, and InputError
        where the journal is of another run."""
        keys = Keys(bytes.fromhex(self.server_key), Roster.parse(self.roster)) if self.key else None
        before: Envelopes = (
            UNSIGNED if keys is None else Party.server(self.run, keys.own, keys.roster.speaker)
        )
        after: Envelopes = (
            UNSIGNED
            if keys is None
            else Party.member(behind(self.run), public(keys.own), bytes.fromhex(self.key))
        )
        share = Share(self.start, self.stop, tuple(self.groups))
        terms = Shared(self.deadline, grace=math.inf if self.grace is None else self.grace)
        coordinator = Coordinator(
            self.run,
            self.stop,
            self.coin_seed,
            MAX_EPSILON,
            terms,
            keys.roster if keys else None,
            share=share,
        )
        clients = MqttBus(
            Address.parse(self.broker),
            f"{self.run}-{self.name}",
            server_filters(self.run, share.groups),
        )
        server = MqttBus(
            Address.parse(self.server_broker),
            f"{self.run}-{self.name}",
            filters(self.run, GROUP),
            will(self.run, GROUP, self.name, after),
        )
        journal = ShareJournal.of(Path(self.folder), self.run)
        receiver = Receiver(
            RemoteOracle(clients, coordinator, journal=journal, envelopes=before),
            SealedBus(server, after),
            self.name,
            journal,
            self.again,
        )
        await (receiver.leave() if self.over else receiver.serve(self.joining))
        print(json.dumps(receiver.record()), flush=True)


class ReceiverProcess(RelayProcess):
    """A receiver beside the server, started again where it dies: nothing that it has accepted is
    lost."""

    def __init__(self, config: ReceiverConfig) -> None:
        super().__init__(
            "local_dp.server.receiver", config, f"{config.name} ended before the run did"
        )
        self.over = False  # the run

    async def record(self) -> dict[str, Any]:
        """Its record, once the run is over. Raises BusError if it says why it ends, or ends again
        and again as soon as it was started."""
        failed = 0
        while True:
            began = time.monotonic()
            code, message = await self.ended()
            if code == 0:
                return dict(json.loads(message))
            failed = failed + 1 if time.monotonic() - began < STEADY else 0
            if code == LOST or failed > ATTEMPTS:
                raise BusError(message or f"{self.lost} ({ending(code)})")
            self.config = self.config.model_copy(update={"again": True, "over": self.over})
            await self.start()


def reconciled(records: Sequence[Mapping[str, Any]]) -> Reconciliation:
    """The reconciliations of all receivers as one."""
    found = [record["reconciliation"] for record in records]
    balances: dict[int, Balance] = {}
    for balance in (Balance(**each) for one in found for each in one["rounds"]):
        before = balances.get(balance.round)
        balances[balance.round] = balance if before is None else before + balance
    return Reconciliation(
        sum(one["members"] for one in found),
        sum(one["silent"] for one in found),
        tuple(balances[number] for number in sorted(balances)),
    )


def main() -> None:
    """The receiver's process."""
    live(lambda line: ReceiverConfig.model_validate_json(line).serve())


if __name__ == "__main__":
    main()
