"""A run in virtual time whose server dies where a test wants it to, and is started again with its
journal."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS, filters, serve
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, run_async
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import filters as server_filters
from local_dp.server.remote import Journal, RemoteOracle
from local_dp.tallies import Tally
from local_dp.wire import Request, decode, encode
from tests.support.inputs.builders import PATIENT, RUN, SEED, role, yes_records
from tests.support.runs.stores import Stepping
from tests.support.runs.virtual_time import beside

ROUNDS, CLIENTS, HOSTS_OF = 20, 50, 5


class KilledError(BaseException):
    """The server is no more."""


class Mortal(Stepping):
    """A server's journal, or its bus, that dies at its `point`-th call: before it does anything, or
    after."""

    left = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)
        if name in ("messages", "past"):
            return method
        if name == "publish":

            async def publish(*arguments: Any) -> None:
                self.step()
                await method(*arguments)
                self.step()

            return publish
        return super().__getattr__(name)

    def step(self) -> None:
        Mortal.left -= 1
        if Mortal.left == 0:
            raise KilledError


def adaptive() -> Adaptive[LocalQuery, Tally, list[list[int]]]:
    """Twenty rounds with everybody, where the answers of one choose the question of the next."""

    def play() -> Any:
        messages: list[list[int]] = []
        for number in range(ROUNDS):
            question = "yes == 1" if sum(map(sum, messages)) % 2 else f"yes > {number}"
            (tally,) = yield (LocalQuery(Question(question), BinaryRR(0.04), Cohort(0, CLIENTS)),)
            messages.append(tally.counts.ravel().tolist())
        return messages

    return Adaptive(play)


def hosts() -> list[ClientRole]:
    spans, records = pairwise(range(0, CLIENTS + 1, CLIENTS // HOSTS_OF)), yes_records(CLIENTS)
    return [
        role(records.take(slice(start, stop)), start, member=f"host-{index}")
        for index, (start, stop) in enumerate(spans)
    ]


class Town:
    """Five hosts on a bus in memory, which outlive every server, and what they are asked."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.broker, self.members = folder, MemoryBroker(), hosts()
        self.requests: dict[int, set[bytes]] = {}

    async def live(self, points: Iterator[int]) -> tuple[Any, Coordinator, int]:
        """The run, played by as many servers as it takes: each but the last is killed at the next
        of `points`."""
        kills = 0
        async with beside(
            *(
                serve(member, self.broker.join(filters(RUN, HOSTS)), RUN, HOSTS)
                for member in self.members
            )
        ):
            while True:
                try:
                    return *(await self._server(next(points))), kills
                except KilledError:
                    kills += 1

    async def _server(self, point: int) -> tuple[Any, Coordinator]:
        try:
            journal = Journal.open(self.folder, RUN)
        except InputError:
            journal = Journal.begin(self.folder, RUN, {})
        Mortal.left = point
        bus = self.broker.join(server_filters(RUN))
        coordinator = Coordinator(RUN, CLIENTS, SEED, 1.0, PATIENT)
        oracle = RemoteOracle(self._tap(bus), coordinator, journal=Mortal(journal))  # type: ignore[arg-type]
        try:
            async with beside(oracle.serve(1.0), self._play(oracle)) as (serving, playing):
                await asyncio.wait({serving, playing}, return_when=asyncio.FIRST_COMPLETED)
                if serving.done():
                    serving.result()
                return await playing, coordinator
        finally:
            self.broker.buses.remove(bus)
            journal._log._database.close()  # as the kernel does for a killed process

    def _tap(self, bus: Any) -> Any:
        publish = bus.publish

        async def note(where: str, payload: bytes) -> None:
            message = decode(payload)
            if isinstance(message, Request):
                self.requests.setdefault(message.round, set()).add(
                    encode(message.model_copy(update={"missing": ()}))
                )
            await publish(where, payload)

        bus.publish = note
        return Mortal(bus)

    async def _play(self, oracle: RemoteOracle) -> Any:
        await oracle.ready(20.0)
        result = await run_async(adaptive(), oracle)
        await oracle.end(1.0)
        return result
