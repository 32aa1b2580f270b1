"""Members as the network sees them: scripted ones, and real client roles."""

from dataclasses import dataclass

from local_dp.clients.role import ClientRole
from local_dp.wire import AnyMessage, Hello, Refusal, Reply, Request, Roll, decode, encode
from tests.support.inputs.builders import RUN


@dataclass
class Puppet:
    """A member as the network sees it: it answers from a script, or, with a `role`, as a real client does."""

    name: str
    group: str
    start: int
    stop: int
    habit: str  # answers, refuses, is mute, or is fickle: another report each time
    role: ClientRole | None = None
    alive: bool = True
    asked: int = 0

    def handle(self, message: Request | Roll) -> list[tuple[str, AnyMessage]]:
        """What it says to a message, each with its topic's leaf."""
        if isinstance(message, Roll):
            return [("hello", self.hello())]
        if self.role is not None:
            received = decode(encode(message))
            assert isinstance(received, Request)
            return [("rep", decode(encode(answer))) for answer in self.role.handle(received)]
        self.asked += 1
        spans = [(place, max(ask.start, self.start), min(ask.stop, self.stop)) for place, ask in enumerate(message.asks)]
        spans = [(place, start, stop) for place, start, stop in spans if start < stop and _wanted(message, start, stop)]
        if self.habit == "mute" or not spans:
            return []
        if self.habit == "refuses":
            return [("rep", Refusal(run=RUN, round=message.round, member=self.name, start=self.start, stop=self.stop, code="budget", text="spent"))]
        return [("rep", self._reply(message.round, place, start, stop)) for place, *whole in spans for start, stop in _halves(*whole)]

    def hello(self) -> Hello:
        """Its presence."""
        return Hello(run=RUN, member=self.name, start=self.start, stop=self.stop, private=False)

    def _reply(self, round: int, ask: int, start: int, stop: int) -> Reply:
        twist = self.asked if self.habit == "fickle" else 0
        return reply_of(round, self.name, start, bytes((client * 5 + ask + round + twist) % 2 for client in range(start, stop)), ask)


def reply_of(round: int, member: str, start: int, reports: bytes, ask: int = 0) -> Reply:
    """A member's reports of one byte each."""
    return Reply(run=RUN, round=round, member=member, ask=ask, start=start, width=1, reports=reports)


def _wanted(request: Request, start: int, stop: int) -> bool:
    return not request.missing or any(low < stop and start < high for low, high in request.missing)


def _halves(start: int, stop: int) -> list[tuple[int, int]]:
    middle = (start + stop) // 2
    return [(start, middle), (middle, stop)] if start < middle else [(start, stop)]
