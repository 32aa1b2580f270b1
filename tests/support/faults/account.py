"""What must hold whatever happens, kept apart from the code that is to uphold it: each message that
is sent, and each report that is counted."""

from collections import Counter

from local_dp.loss import nano_epsilon
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.server.round import Round
from local_dp.wire import Ask, Refusal, Reply, Request
from tests.support.faults.client import BUDGET, Client
from tests.support.faults.server import Server

Asked = tuple[str, int]  # a run and a round


class BrokenError(AssertionError):
    """A promise was not kept."""


def check(holds: bool, reason: str) -> None:
    if not holds:
        raise BrokenError(reason)


class Sent:
    """What one client has sent: for what, at what cost."""

    def __init__(self) -> None:
        self.nano = 0
        self._requests: dict[Asked, tuple[Ask, ...]] = {}
        self._replies: dict[tuple[str, int, int, int], bytes] = {}
        # memoised answers that were sent, each with all that it depends on, and sessions
        self._answers: set[tuple[object, ...]] = set()
        self._spoke: dict[Asked, Counter[str]] = {}  # the truths of each session, in what was sent

    def add(self, client: Client, request: Request, answer: Reply | Refusal) -> None:
        """One more message."""
        key = (answer.run, answer.round)
        check(
            key == (request.run, request.round) and answer.member == client.name,
            "an answer under another name than its request's",
        )
        if isinstance(answer, Refusal):
            return
        check(
            self._requests.setdefault(key, request.asks) == request.asks,
            "two requests of one round are answered",
        )
        reply = (*key, answer.ask, answer.start)
        if reply not in self._replies:
            places = [
                place
                for place, commit in enumerate(client.disk.commits)
                if (commit.run, commit.round) == key
            ]
            check(
                len(places) == 1 and answer in client.disk.commits[places[0]].replies,
                "a reply is sent before it is charged and kept",
            )
            self._replies[reply] = answer.reports
            self._spoke[key] = client.disk.truths[places[0]]
            check(
                max([0, *sum(self._spoke.values(), Counter()).values()]) <= 1,
                "a client has told two truths in one session",
            )
            self._charge(request.asks[answer.ask], answer.reports)
        check(self._replies[reply] == answer.reports, "two replies to one question")

    def _charge(self, ask: Ask, reports: bytes) -> None:
        content: tuple[object, ...] = (
            ask.once,
            ask.query,
            repr(ask.query_params),
            ask.randomizer,
            repr(ask.randomizer_params),
            ask.coins,
            reports,
        )
        if ask.randomizer == OneOfRounds.name and ask.once:
            # one truth, whatever is asked and however often
            content = (ask.once, repr(ask.randomizer_params))
        if ask.once and content in self._answers:
            return  # the same report once more reveals nothing new
        self._answers.add(content)
        epsilon = ask.randomizer_params["epsilon"]
        assert isinstance(epsilon, int | float)
        self.nano += nano_epsilon(epsilon)
        check(
            self.nano <= nano_epsilon(BUDGET),
            f"a client has spent {self.nano} nano-nats of {BUDGET}",
        )


class Counted:
    """The reports that reached the server while their round was open, the first of each client to
    each ask."""

    def __init__(self) -> None:
        self._first: dict[int, dict[tuple[int, int], bytes]] = {}
        self._closed: dict[int, tuple[str, int]] = {}

    def add(self, reply: Reply, open: Round | None) -> None:
        """A reply that was not rejected."""
        if open is not None and open.number == reply.round:
            first = self._first.setdefault(reply.round, {})
            width = reply.width
            for place in range(len(reply.reports) // width):
                report = reply.reports[place * width : (place + 1) * width]
                first.setdefault((reply.ask, reply.start + place), report)

    def closed(self, server: Server) -> None:
        """Looks at the rounds that have been closed since."""
        for number in server.closed.keys() - self._closed.keys():
            round, first = server.rounds[number], self._first.get(number, {})
            reports = dict[tuple[int, int], bytes]()
            for ask, part in enumerate(round.parts):
                for place in map(int, part.answered.nonzero()[0]):
                    client = part.query.cohort.start + place
                    reports[ask, client] = part.reports[place].tobytes()
            check(
                reports == first,
                f"round {number} holds other reports than the first of each client that came in "
                "time",
            )
            counts = round.counts
            reports_in_tallies = sum(int(tally.n) for tally in round.tallies())
            check(
                counts.answered == len(first) == reports_in_tallies,
                f"round {number} counts a report twice or never",
            )
            check(
                counts.answered + counts.refused + counts.missing == counts.asked,
                f"the counts of round {number} do not add up",
            )
            self._closed[number] = server.closed[number]

    def over(self, server: Server) -> None:
        """At the end, and after a restart: what was said of a closed round still holds."""
        self.closed(server)
        for number, messages in self._closed.items():
            round = server.rounds[number]
            check(
                server.closed.get(number) == messages == (round.digest(), round.counts.answered),
                f"round {number} has changed after it was closed",
            )
