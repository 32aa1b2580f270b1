"""Members of a run on one connection, in a thread of the test, which sees what is asked."""

import threading
import time
from collections.abc import Mapping

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.interface import Delivery
from local_dp.clients.role import ClientRole
from local_dp.sealing import UNSIGNED, Envelopes
from local_dp.wire import Account, AnyMessage, End, Hello, Receipt, Refusal, Reply, Request, Roll, decode, encode, topic


class Watching(threading.Thread):
    """Answers for many members on one connection, each in its `envelopes`, and notes which round is asked."""

    def __init__(self, url: str, run: str, members: list[tuple[str, ClientRole]], envelopes: Mapping[str, Envelopes] | None = None) -> None:
        super().__init__(daemon=True)
        self.url, self.run_name, self.members = url, run, members
        self.envelopes = {role.member: (envelopes or {}).get(role.member, UNSIGNED) for _, role in members}
        self.asked: list[int] = []
        self.requests: dict[int, set[bytes]] = {}
        self.receipts = 0
        self.stir = threading.Condition()

    def run(self) -> None:
        finish(self._live())

    async def _live(self) -> None:
        bus = BlockingBus(Address.parse(self.url), f"{self.run_name}-many", [topic(self.run_name, "req", "+")])
        async for event in bus.messages(10.0):
            message = self._read(event) if isinstance(event, Delivery) else Roll(run=self.run_name)
            if isinstance(message, Roll):
                for group, role in self.members:
                    hello = Hello(run=self.run_name, member=role.member, start=role.start, stop=role.stop, private=False)
                    await self._say(bus, "hello", group, hello)
            elif isinstance(message, Request):
                self._note(message)
                for group, role in self.members:
                    if isinstance(event, Delivery) and event.topic.endswith(f"/{group}"):
                        for answer in role.handle(message):
                            await self._say(bus, "rep", group, answer)
            elif isinstance(message, Receipt):
                self.receipts += len(message.accepted)
            elif isinstance(message, End):
                for group, role in self.members:
                    await self._say(bus, "rep", group, role.account(self.run_name))
                return

    async def _say(self, bus: BlockingBus, leaf: str, group: str, message: Hello | Reply | Refusal | Account) -> None:
        where = topic(self.run_name, leaf, group, message.member)
        await bus.publish(where, self.envelopes[message.member].seal(where, encode(message)))

    def _read(self, delivery: Delivery) -> AnyMessage:
        """What the server says: to all of them in one envelope."""
        return decode(next(iter(self.envelopes.values())).open(delivery.topic, delivery.payload))

    def _note(self, message: Request) -> None:
        with self.stir:
            self.asked.append(message.round)
            self.requests.setdefault(message.round, set()).add(encode(message.model_copy(update={"missing": ()})))
            self.stir.notify_all()

    def wait_for_a_request(self, beyond: int, seconds: float) -> float:
        """Until more than so many requests have been seen; how long that took."""
        began = time.monotonic()
        with self.stir:
            assert self.stir.wait_for(lambda: len(self.asked) > beyond, seconds), "nothing was asked"
        return time.monotonic() - began
