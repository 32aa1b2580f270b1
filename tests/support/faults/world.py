"""Four clients, a network and a server, to which a list of operations happens. Nothing is drawn but
by the seed; nothing waits."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from local_dp.clients.role import ClientRole
from local_dp.errors import WireError
from local_dp.wire import EVERYBODY, AnyMessage, Reply, Request, Roll, decode, encode, topic
from tests.support.faults.account import BrokenError, Counted, Sent
from tests.support.faults.client import RUN, Client, DurableStore, MakeRole, MakeStore
from tests.support.faults.hostile import corrupted, equivocated, hostile
from tests.support.faults.server import CLIENTS, Server

# a name, and two numbers that choose among whatever is there when its turn comes
Operation: TypeAlias = tuple[str, int, int]

WEIGHTS = {  # how often each is drawn
    "deliver": 46,  # the oldest message
    "reorder": 10,  # any message
    "tick": 16,  # time passes, and the server looks what is due
    "open": 5,  # the server begins a round, if none is open
    "drop": 3,
    "duplicate": 4,
    "delay": 3,  # behind all others
    "replay": 3,  # any message that was ever sent
    "corrupt": 3,  # a field or a byte of a message
    "equivocate": 2,  # a request that was sent, with something changed
    "hostile": 3,  # a request that no honest server sends
    "crash": 1,  # a client, at once
    "crash-before": 1,  # a client, before its next commit
    "crash-after": 1,  # a client, after its next commit and before it sends
    "crash-sending": 1,  # a client, after the first of its next replies
    "restart": 3,  # every client that is down, with what its store kept
    "server-restart": 1,
}
_NAMES, _WEIGHTS = tuple(WEIGHTS), tuple(WEIGHTS.values())


def drawn(seed: int, count: int) -> list[Operation]:
    chance = random.Random(seed)
    return [
        (name, chance.getrandbits(16), chance.getrandbits(16))
        for name in chance.choices(_NAMES, _WEIGHTS, k=count)
    ]


STEPS = (0.0, 0.3, 0.3, 1.1, 1.1, 2.5, 5.0)  # seconds
EVENTS = 150


@dataclass(frozen=True)
class Makers:
    """What the world is made of: the true roles, or wrong twins of them."""

    role: MakeRole = ClientRole
    store: MakeStore = DurableStore
    server: type[Server] = Server


@dataclass(frozen=True, slots=True)
class Message:
    """On its way: to the client of this index, or, under a topic, to the server."""

    body: AnyMessage
    to: int = -1
    topic: str = ""


class World:
    """The clients, the server, the messages between them; `trace` is a digest of all that has
    happened."""

    def __init__(self, seed: int, makers: Makers) -> None:
        self.clients = [Client(index, seed, makers.role, makers.store) for index in range(CLIENTS)]
        self.server = makers.server()
        self.accounts = [Sent() for _ in self.clients]
        self.reports = Counted()
        self.underway: list[Message] = []
        self.history: list[Message] = []
        self._trace = blake2b(digest_size=16)
        for client in self.clients:
            self._say(client, "hello", client.hello())

    @property
    def trace(self) -> str:
        return self._trace.hexdigest()

    def play(self, operations: Sequence[Operation]) -> str:
        """Lets them happen; the trace. Raises BrokenError if a promise was not kept, or whatever
        else was raised."""
        for name, first, second in operations:
            self._note(name.encode())
            if name.startswith("crash-"):
                self.clients[first % CLIENTS].disk.crash = name
            else:
                getattr(self, f"_{name.replace('-', '_')}")(first, second)
        self.reports.over(self.server)
        return self.trace

    def _note(self, what: bytes) -> None:
        self._trace.update(b"%d " % len(what) + what)

    def _send(self, message: Message) -> None:
        self.underway.append(message)
        self.history.append(message)

    def _say(self, client: Client, leaf: str, body: AnyMessage) -> None:
        self._note(encode(body))
        self._send(Message(body, topic=topic(RUN, leaf, client.group, client.name)))

    def _take(self, place: int) -> Message | None:
        return self.underway.pop(place % len(self.underway)) if self.underway else None

    # messages

    def _deliver(self, first: int, second: int) -> None:
        self._arrive(self._take(0))

    def _reorder(self, first: int, second: int) -> None:
        self._arrive(self._take(first))

    def _arrive(self, message: Message | None) -> None:
        if message is None:
            return
        if message.to >= 0:
            self._hand_over(self.clients[message.to], message.body)
        else:
            fits = self.server.hear(message.topic, message.body)
            if fits and isinstance(message.body, Reply):
                self.reports.add(message.body, self.server.open)

    def _hand_over(self, client: Client, body: AnyMessage) -> None:
        if not client.up:
            return
        if isinstance(body, Roll):
            if body.calls(client.index, client.index + 1):
                self._say(client, "hello", client.hello())
        elif isinstance(body, Request):
            for answer in client.answer(body):
                self.accounts[client.index].add(client, body, answer)
                self._say(client, "rep", answer)

    def _drop(self, first: int, second: int) -> None:
        self._take(first)

    def _duplicate(self, first: int, second: int) -> None:
        if self.underway:
            self.underway.append(self.underway[first % len(self.underway)])

    def _delay(self, first: int, second: int) -> None:
        message = self._take(first)
        if message is not None:
            self.underway.append(message)

    def _replay(self, first: int, second: int) -> None:
        self.underway.append(self.history[first % len(self.history)])

    def _corrupt(self, first: int, second: int) -> None:
        message = self._take(first)
        if message is None:
            return
        try:
            body = decode(corrupted(message.body, second))
        except WireError:
            return  # nobody reads it
        self.underway.append(Message(body, message.to, _under(message.topic, body)))

    # the server

    def _tick(self, first: int, second: int) -> None:
        sends = self.server.tick(STEPS[first % len(STEPS)])
        self.reports.closed(self.server)
        for send in sends:
            self._note(encode(send.message))
            for client in self.clients:
                if send.group in (client.group, EVERYBODY):
                    self._send(Message(send.message, client.index))

    def _open(self, first: int, second: int) -> None:
        self.server.begin(first)

    def _server_restart(self, first: int, second: int) -> None:
        self.reports.closed(self.server)
        self.server.restart()
        self.reports.over(self.server)

    def _equivocate(self, first: int, second: int) -> None:
        requests = [message.body for message in self.history if isinstance(message.body, Request)]
        if requests:
            self._spread(equivocated(requests[first % len(requests)], second))

    def _hostile(self, first: int, second: int) -> None:
        self._spread(hostile(first, second))

    def _spread(self, request: Request) -> None:
        self._note(encode(request))
        for client in self.clients:
            self._send(Message(request, client.index))

    # crashes

    def _crash(self, first: int, second: int) -> None:
        self.clients[first % CLIENTS].stop()

    def _restart(self, first: int, second: int) -> None:
        for client in self.clients:
            if not client.up:
                client.start()
                self._say(client, "hello", client.hello())


def _under(topic: str, body: AnyMessage) -> str:
    """A message that names somebody else comes, every other time, under that name's topic: the
    broker may be hostile too."""
    member = getattr(body, "member", "")
    return topic if not topic or len(member) % 2 else f"{topic.rpartition('/')[0]}/{member}"


def play(seed: int, operations: Sequence[Operation], makers: Makers = Makers()) -> str:
    """A world of this seed: its trace. Raises BrokenError if a promise was not kept, with an
    exception that nobody expected as one of them."""
    try:
        return World(seed, makers).play(operations)
    except BrokenError:
        raise
    except Exception as error:
        raise BrokenError(f"{type(error).__name__}: {error}") from error


def fault(seed: int, makers: Makers = Makers()) -> str:
    """Which promise was not kept in the world of this seed; empty if all were."""
    try:
        play(seed, drawn(seed, EVENTS), makers)
    except BrokenError as error:
        return str(error)
    return ""
