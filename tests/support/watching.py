"""Members of a run on one connection, in a thread of the test, which sees what is asked."""

import threading
import time

from clients.role import ClientRole
from local_dp.bus.address import Address
from local_dp.bus.base import Delivery
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.wire import End, Hello, Receipt, Request, Roll, decode, encode, topic


class Watching(threading.Thread):
    """Says hello and answers for hosts or many clients on one connection, as their members do, and tells which round is asked."""

    def __init__(self, url: str, run: str, members: list[tuple[str, ClientRole]]) -> None:
        super().__init__(daemon=True)
        self.url, self.run_name, self.members = url, run, members
        self.asked: list[int] = []
        self.requests: dict[int, set[bytes]] = {}
        self.receipts = 0
        self.stir = threading.Condition()

    def run(self) -> None:
        finish(self._live())

    async def _live(self) -> None:
        bus = BlockingBus(Address.parse(self.url), f"{self.run_name}-many", [topic(self.run_name, "req", "+")])
        async for event in bus.messages(10.0):
            message = decode(event.payload) if isinstance(event, Delivery) else Roll(run=self.run_name)
            if isinstance(message, Roll):
                for group, role in self.members:
                    hello = Hello(run=self.run_name, member=role.member, start=role.start, stop=role.stop)
                    await bus.publish(topic(self.run_name, "hello", group, role.member), encode(hello))
            elif isinstance(message, Request):
                self._note(message)
                for group, role in self.members:
                    if isinstance(event, Delivery) and event.topic.endswith(f"/{group}"):
                        for answer in role.handle(message):
                            await bus.publish(topic(self.run_name, "rep", group, role.member), encode(answer))
            elif isinstance(message, Receipt):
                self.receipts += len(message.accepted)
            elif isinstance(message, End):
                for group, role in self.members:
                    await bus.publish(topic(self.run_name, "rep", group, role.member), encode(role.account(self.run_name)))
                return

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
