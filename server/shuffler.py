"""The shuffler of a run, a process beside the server: it asks the clients as a server does, and
answers the server as its only member, without the senders."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from local_dp.bus.address import Address
from local_dp.bus.interface import Bus, SealedBus
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import InputError, LocalDPError, RefusedError
from local_dp.loss import MAX_EPSILON
from local_dp.records import chunks
from local_dp.sealing import UNSIGNED, Envelopes, Party
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Keys, Roster
from local_dp.server.members import filters as server_filters
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.relay import Relay, RelayProcess, Said, filters, live, query_of, will
from local_dp.server.remote import RemoteOracle
from local_dp.server.round import Part, Round
from local_dp.shuffle.central import Shuffler, check_shufflable
from local_dp.storage.log import sync
from local_dp.wire import Absent, Refusal, Reply, Request, behind, per_message

NAME = "shuffler"  # its name and its group, to the server
PASSED = ".passed"  # the name of a run's file, after that of the run


@dataclass(frozen=True)
class Passed:
    """A file that stands for a run whose reports were passed on. Two shufflers would pass on two
    batches: their difference reveals the clients between them."""

    path: Path

    def check(self) -> None:
        """Raises InputError where it stands."""
        if self.path.exists():
            run = self.path.name.removesuffix(PASSED)
            raise InputError(
                f"reports of run {run!r} were passed on before, and a second batch would reveal "
                "clients; begin a run of a new name"
            )

    def note(self) -> None:
        """Puts it on the disk. Raises InputError where it stands, or cannot be written."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            sync(self.path.parent)
        except FileExistsError:
            self.check()
        except OSError as error:
            raise InputError(f"cannot write {str(self.path)!r}: {error.strerror}") from None


class Mixer(Relay):
    """Is all clients to the server; `shuffler` keeps the crowd and draws the order. The senders of
    a round are dropped with it."""

    def __init__(
        self,
        front: RemoteOracle,
        bus: Bus,
        shuffler: Shuffler,
        passing: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(front, bus, NAME, NAME, (0, front.coordinator.members.clients), passing)
        self.shuffler = shuffler

    @property
    def private(self) -> bool:
        return self.shuffler.private

    async def part(self, over: bool) -> None:
        await self.front.end()

    async def answered(self, request: Request) -> list[Said]:
        try:
            queries = tuple(map(query_of, request.asks))
            for query in queries:
                check_shufflable(query)
            round = await self.front.collect(queries)
        except LocalDPError as error:
            code = error.code if isinstance(error, RefusedError) else "not-shuffled"
            clients = self.front.coordinator.members.clients
            return [
                Refusal(
                    run=self.run,
                    round=request.round,
                    member=NAME,
                    start=0,
                    stop=clients,
                    code=code,
                    text=str(error)[:1000],
                )
            ]
        self.front.coordinator.forget(round)
        return [
            messages for ask in range(len(round.parts)) for messages in self._of_ask(round, ask)
        ]

    def _of_ask(self, round: Round, ask: int) -> list[Said]:
        """The reports to one ask, and the number of missing ones; the places are counted from the
        cohort's first and identify nobody."""
        part = round.parts[ask]
        passed, start = self.shuffler.passed(part.reports[part.answered]), part.query.cohort.start
        count, width = passed.shape
        messages: list[Said] = [
            Reply(
                run=self.run,
                round=round.number,
                member=NAME,
                ask=ask,
                start=start + low,
                width=width,
                reports=passed[low:high].tobytes(),
            )
            for low, high in chunks(0, count, per_message(width))
        ]
        at = start + count
        for why, code, many in _lacking(round, part, count):
            if many > 0:
                messages.append(
                    Absent(
                        run=self.run,
                        round=round.number,
                        member=NAME,
                        ask=ask,
                        start=at,
                        stop=at + many,
                        why=why,
                        code=code,
                    )
                )
                at += many
        return messages


def _lacking(
    round: Round, part: Part, passed: int
) -> list[tuple[Literal["missing", "refused", "crowd"], str, int]]:
    """The number of reports that are not passed on, by reason and code."""
    withheld, refused, causes = (
        int(part.answered.sum()) - passed,
        int((part.refused & ~part.answered).sum()),
        Counter[str](),
    )
    for lack, owing in round.lacking(part):
        causes[lack.cause] += owing
    causes[""] = len(part.query.cohort) - passed - withheld - refused - causes.total()
    return [
        ("crowd", "", withheld),
        ("refused", next(iter(part.refusals), ""), refused),
        *(("missing", code, many) for code, many in causes.items()),
    ]


class ShufflerConfig(BaseModel):
    """One shuffler: its run, the brokers of the clients and of the server, how many clients there
    are, its crowd, and its seed, or None for entropy.

    `joining`, `deadline` and `grace` are in seconds: the longest wait for the clients, for the
    reports of a round, and for a client that went. `key`, its own and private, `server_key` and
    `roster` come together; without them nothing is signed. `folder` is for the file of a run that
    is passed on once; without it, nobody starts this one again.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    run: str
    broker: str
    server_broker: str
    clients: Annotated[int, Field(ge=1)]
    crowd: Annotated[int, Field(ge=2)]
    seed: int | None
    deadline: float = 24.0
    joining: float = 60.0
    grace: float = GRACE
    key: Annotated[str, Field(repr=False)] = ""
    server_key: str = ""
    roster: str = ""
    folder: str = ""

    async def serve(self) -> None:
        """Mixes until the run is over. Raises BusError or QuorumError, and InputError if the run
        was passed on before."""
        passed = Passed(Path(self.folder) / (self.run + PASSED)) if self.folder else None
        if passed is not None:
            passed.check()
        keys = Keys(bytes.fromhex(self.key), Roster.parse(self.roster)) if self.key else None
        before: Envelopes = (
            UNSIGNED if keys is None else Party.server(self.run, keys.own, keys.roster.speaker)
        )
        after: Envelopes = (
            UNSIGNED
            if keys is None
            else Party.member(behind(self.run), bytes.fromhex(self.server_key), keys.own)
        )
        coordinator = Coordinator(
            self.run,
            self.clients,
            0,
            MAX_EPSILON,
            Terms(self.deadline, grace=self.grace),
            keys.roster if keys else None,
        )
        clients = MqttBus(
            Address.parse(self.broker), f"{self.run}-{NAME}-front", server_filters(self.run)
        )
        server = MqttBus(
            Address.parse(self.server_broker),
            f"{self.run}-{NAME}",
            filters(self.run, NAME),
            will(self.run, NAME, NAME, after),
        )
        front = RemoteOracle(clients, coordinator, envelopes=before)
        mixer = Mixer(
            front,
            SealedBus(server, after),
            Shuffler.of(self.seed, self.crowd),
            passed.note if passed else lambda: None,
        )
        await mixer.serve(self.joining)


def process(config: ShufflerConfig) -> RelayProcess:
    """A shuffler beside the run that starts it."""
    return RelayProcess("local_dp.server.shuffler", config, "the shuffler ended before the run did")


def main() -> None:
    """The shuffler's process."""
    live(lambda line: ShufflerConfig.model_validate_json(line).serve())


if __name__ == "__main__":
    main()
