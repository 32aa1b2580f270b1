"""Many client processes' worth of members over one connection to a real broker: the reports of a
simulation, and no process for each."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from local_dp.bus.address import Address
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import GROUP_SIZE, client_group
from local_dp.clients.role import ClientRole, Policy
from local_dp.noise import KeyedNoise
from local_dp.populations.finite import Population
from local_dp.wire import (
    CLIENT,
    EVERYBODY,
    Account,
    AnyMessage,
    End,
    Hello,
    Line,
    Reply,
    Request,
    Roll,
    checksum,
    decode,
    encode,
    topic,
)

AHEAD = 40_000  # messages that wait for the connection


class Crowd:
    """Members of one client each, by groups; each group is one role, whose packed reports are sent
    one by one under the names of its clients."""

    def __init__(self, url: str, run: str, population: Population, seed: int) -> None:
        self.run, self.size = run, population.size
        # every group has heard a roll; the run has ended; they say hello
        self.called, self.over, self.present = (
            threading.Event(),
            threading.Event(),
            False,
        )
        self._groups: dict[str, ClientRole] = {}
        for start, stop in pairwise([*range(0, self.size, GROUP_SIZE), self.size]):
            records = population.batch(start, stop)
            self._groups[client_group(start)] = ClientRole(
                "crowd", start, records, KeyedNoise(seed), MemoryStore(1.0), Policy(None)
            )
        self._silent = set(self._groups)
        self._lines: dict[int, dict[int, Line]] = {}
        self.said = Counter[str]()
        address = Address.parse(url)
        self._client = paho.Client(
            CallbackAPIVersion.VERSION2, f"{run}-crowd", protocol=paho.MQTTv311
        )
        self._client.max_queued_messages_set(AHEAD)
        self._client.on_connect = lambda client, *_: (
            client.subscribe(topic(run, "req", "+")) and None
        )
        self._client.on_message = lambda client, data, message: self._heard(
            message.topic.split("/")[-1], decode(bytes(message.payload), CLIENT)
        )
        self._client.connect(address.host, address.port)

    def join(self) -> None:
        """All say hello, and answer from now on."""
        self.present = True
        for group in self._groups:
            self._hello(group, Roll(run=self.run))

    def _say(self, leaf: str, client: int, message: AnyMessage) -> None:
        self.said[leaf] += 1
        self._client.publish(
            topic(self.run, leaf, client_group(client), f"client-{client}"), encode(message)
        )

    def _heard(self, group: str, message: AnyMessage) -> None:
        for each in (
            tuple(self._groups) if group == EVERYBODY else (group,) if group in self._groups else ()
        ):
            if isinstance(message, Roll):
                self._silent.discard(each)
                if not self._silent:
                    self.called.set()
                if self.present:
                    self._hello(each, message)
            elif isinstance(message, Request) and self.present:
                self._answer(each, message)
            elif isinstance(message, End):
                self.over.set()
                self._part(each)

    def _clients(self, group: str) -> range:
        return range(self._groups[group].start, self._groups[group].stop)

    def _hello(self, group: str, roll: Roll) -> None:
        for client in self._clients(group):
            if roll.calls(client, client + 1):
                self._say(
                    "hello",
                    client,
                    Hello(
                        run=self.run,
                        member=f"client-{client}",
                        start=client,
                        stop=client + 1,
                        private=False,
                    ),
                )

    def _answer(self, group: str, request: Request) -> None:
        for packed in self._groups[group].handle(request):
            assert isinstance(packed, Reply)
            for at, client in enumerate(
                range(packed.start, packed.start + len(packed.reports) // packed.width)
            ):
                report = packed.reports[at * packed.width : (at + 1) * packed.width]
                reply = packed.model_copy(
                    update={"member": f"client-{client}", "start": client, "reports": report}
                )
                self._lines.setdefault(client, {})[request.round] = (
                    request.round,
                    1,
                    checksum(reply),
                )
                self._say("rep", client, reply)

    def _part(self, group: str) -> None:
        for client in self._clients(group):
            lines = tuple(line for _, line in sorted(self._lines.get(client, {}).items()))
            self._say("rep", client, Account(run=self.run, member=f"client-{client}", rounds=lines))
        del self._groups[group]  # they are gone


@contextmanager
def crowd(url: str, run: str, population: Population, seed: int) -> Iterator[Crowd]:
    """They live as long as the block."""
    members = Crowd(url, run, population, seed)
    members._client.loop_start()
    try:
        yield members
    finally:
        members._client.loop_stop()
