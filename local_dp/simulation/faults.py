"""Faults on purpose in a run over a broker: messages are lost, repeated and late, members are
killed, clients lie."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields
from hashlib import blake2b
from typing import Any

from local_dp.bus.interface import Connected, Delivery, ServerBus
from local_dp.checks import check_whole, real_number, whole_number
from local_dp.errors import InputError

EXAMPLE = "drop=.05,duplicate=.1,delay=.2,kill=3,lie=.01"
_MOST_LOST = 0.9
_LATEST = 60.0  # seconds


@dataclass(frozen=True)
class Faults:
    """The shares of messages that are lost and repeated, each way; the longest delay in seconds,
    which reorders them; the number of member processes that are killed in the first round; the
    share of clients that send the most misleading report. Raises InputError for impossible values.
    """

    drop: float = 0.0
    duplicate: float = 0.0
    delay: float = 0.0
    kill: int = 0
    lie: float = 0.0

    def __post_init__(self) -> None:
        ends = {"drop": _MOST_LOST, "duplicate": 1.0, "delay": _LATEST, "lie": 1.0}
        for name, most in ends.items():
            if not 0 <= getattr(self, name) <= most:
                raise InputError(
                    f"--fault {name} is {getattr(self, name)}; give a number from 0 to {most:g}"
                )
        check_whole("--fault kill", self.kill, 0, 10**6)

    @classmethod
    def parse(cls, text: str) -> "Faults":
        """Faults in the form drop=.05,kill=3. Raises InputError."""
        values: dict[str, Any] = {}
        names = [each.name for each in fields(cls)]
        for part in text.split(","):
            name, _, value = part.strip().partition("=")
            if name not in names or name in values:
                raise InputError(
                    f"--fault takes {', '.join(names)}, each once, as in {EXAMPLE}; not "
                    f"{part.strip()!r}"
                )
            number = whole_number if name == "kill" else real_number
            values[name] = number(f"--fault {name}", value)
        return cls(**values)

    def liars(self, clients: int, seed: int) -> tuple[int, ...]:
        """The clients that lie, ascending."""
        chance = _chance(seed, "liars")
        return tuple(sorted(chance.sample(range(clients), round(self.lie * clients))))


@dataclass(frozen=True)
class Faulted:
    """The intended faults, and the counts of actual ones: lost, repeated and delayed messages,
    killed members, lying clients."""

    asked: Faults
    lost: int
    repeated: int
    delayed: int
    killed: int
    lied: int


@dataclass(eq=False)
class Trouble:
    """Makes the faults of one run, from a seed: the fate of a message depends on its sender, way
    and number, not on the time.

    `members` is their number, and `kill` kills one of them, if it is alive.
    """

    faults: Faults
    seed: int
    members: int
    kill: Callable[[int], bool] = lambda member: False

    def __post_init__(self) -> None:
        self.counts = Counter[str]()
        self._nth = Counter[tuple[str, str]]()
        self._messages = 0
        members, chance = self.members, _chance(self.seed, "killed")
        victims = chance.sample(range(members), min(self.faults.kill, members))
        moments = [chance.randint(members, 2 * members) for _ in victims]
        self._victims = sorted(zip(moments, victims, strict=True), reverse=True)

    def result(self, liars: int) -> Faulted:
        counts = self.counts
        return Faulted(
            self.faults,
            counts["lost"],
            counts["repeated"],
            counts["delayed"],
            counts["killed"],
            liars,
        )

    def fate(self, way: str, topic: str) -> list[float]:
        """The delay in seconds of each copy of a message."""
        sender = topic.split("/", 3)[-1]  # without the run's name, which is another one each time
        nth = self._nth[way, sender] = self._nth[way, sender] + 1
        chance = _chance(self.seed, f"{way} {sender} {nth}")
        is_lost = chance.random() < self.faults.drop
        twice = chance.random() < self.faults.duplicate
        copies = 0 if is_lost else 1 + twice
        self.counts["lost"] += is_lost
        self.counts["repeated"] += copies == 2
        self.counts["delayed"] += copies if self.faults.delay else 0
        return [chance.random() * self.faults.delay for _ in range(copies)]

    def heard(self) -> None:
        """Counts a message from a member; after some of them a member is killed."""
        self._messages += 1
        while self._victims and self._victims[-1][0] <= self._messages:
            self.counts["killed"] += self.kill(self._victims.pop()[1])


class FaultyBus:
    """A bus that loses, repeats and delays what it carries, both ways."""

    def __init__(self, bus: ServerBus, trouble: Trouble) -> None:
        self.bus = bus
        self.trouble = trouble
        self._sending: set[asyncio.Task[None]] = set()

    async def publish(self, topic: str, payload: bytes) -> None:
        for seconds in self.trouble.fate("out", topic):
            if seconds:
                sending = asyncio.create_task(self._later(seconds, topic, payload))
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)
            else:
                await self.bus.publish(topic, payload)

    @property
    def lost(self) -> str:
        return self.bus.lost

    async def listen(self, filters: Sequence[str]) -> None:
        await self.bus.listen(filters)

    async def _later(self, seconds: float, topic: str, payload: bytes) -> None:
        await asyncio.sleep(seconds)
        await self.bus.publish(topic, payload)

    async def messages(self, patience: float) -> AsyncGenerator[Delivery | Connected, None]:
        queue: asyncio.Queue[Delivery | Connected | Exception] = asyncio.Queue()
        reading = asyncio.create_task(self._read(patience, queue))
        try:
            while True:
                event = await queue.get()
                if isinstance(event, Exception):
                    raise event
                yield event
        finally:
            for task in (reading, *self._sending):
                task.cancel()
            await asyncio.gather(reading, *self._sending, return_exceptions=True)

    async def _read(
        self, patience: float, queue: "asyncio.Queue[Delivery | Connected | Exception]"
    ) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with aclosing(self.bus.messages(patience)) as events:
                async for event in events:
                    if isinstance(event, Connected):
                        queue.put_nowait(event)
                        continue
                    self.trouble.heard()
                    for seconds in self.trouble.fate("in", event.topic):
                        loop.call_later(seconds, queue.put_nowait, event)
        except Exception as error:  # noqa: BLE001 - the reader raises it
            queue.put_nowait(error)


def _chance(seed: int, what: str) -> random.Random:
    return random.Random(blake2b(f"fault {seed} {what}".encode(), digest_size=8).digest())
