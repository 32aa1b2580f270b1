"""The coordinator of a run, sans I/O: events and the time in, messages to publish and the next wake-up out. It touches no bus and no clock."""

from dataclasses import dataclass, replace

from local_dp.errors import InputError, QuorumError, WireError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.base import LocalOracle
from local_dp.tallies import Tally
from local_dp.wire import EVERYBODY, AnyMessage, Gone, Hello, Reply, Roll
from server.collecting import ASK_AGAIN, Answer, Collecting, Send, count
from server.members import Member, Members
from server.progress import Progress, Turnout
from server.roster import Roster
from server.round import Round
from server.terms import Terms


@dataclass
class Gathering:
    """The wait for the members: until when, and when somebody new was last heard or the roll called."""

    patience: float
    end: float
    news: float


class Coordinator(LocalOracle):
    """Plays the rounds of a run with the clients 0..clients-1.

    Whoever drives it begins with `gather` or `open`, publishes what is `due` at once and at every `wake` (which events may make earlier) until it `is_settled`,
    and ends with `gathered` or `close`. `connected` and `receive` tell it what the bus brings; a message that does not fit is counted in `rejected`, never
    raised. `now` is in seconds, of any clock that does not run backwards.
    """

    def __init__(self, run: str, clients: int, coin_seed: int, budget: float, terms: Terms, roster: Roster | None = None) -> None:
        super().__init__(budget, run)
        self.coin_seed = coin_seed
        self.terms = terms
        self.members = Members(clients, roster)
        self.rejected = 0
        self.seconds: list[float] = []
        self._history: dict[int, Round] = {}
        self._gathering: Gathering | None = None
        self._collecting: Collecting | None = None
        self._rejoined = False

    @property
    def counts(self) -> Turnout:
        """The counts of all rounds together."""
        return sum((round.counts for round in self._history.values()), Turnout())

    def gather(self, patience: float, now: float) -> None:
        """Begins to wait until every client is present, `patience` seconds at most: who is missing then is counted as missing in each round."""
        self._gathering = Gathering(patience, now + patience, now)

    def gathered(self) -> None:
        """Ends that wait. Raises QuorumError if nobody came."""
        assert self._gathering is not None
        patience, self._gathering = self._gathering.patience, None
        if self.members.present == 0:
            raise QuorumError(f"none of the {self.members.clients} clients joined run {self.run!r} in {patience:g} seconds; start them, or check their broker")

    def open(self, queries: tuple[LocalQuery, ...], now: float) -> None:
        """Begins a round. Raises InputError or RefusedError("budget") if it may not be asked."""
        highest = max(query.cohort.stop for query in queries)
        if highest > self.members.clients:
            raise InputError(f"the round asks client {highest - 1}, but there are {self.members.clients} clients")
        number = self.begin(queries)
        round = Round(self.run, number, queries, self.coin_seed)
        self._history[number] = round
        self._collecting = Collecting(round, self.members, self.terms.deadline, now)

    def close(self, now: float) -> tuple[Tally, ...]:
        """Ends the round: the tally of each query. Raises RefusedError or QuorumError if a cohort has fewer replies than its quorum."""
        assert self._collecting is not None
        began, round = self._collecting.began, self.shut()
        self.terms.judge(round)
        self.seconds.append(now - began)
        self.finish(tuple(part.query for part in round.parts), round.counts.answered, round.digest())
        return round.tallies()

    def shut(self) -> Round:
        """Ends the round, however few have answered."""
        assert self._collecting is not None
        round, self._collecting = self._collecting.round, None
        round.close()
        return round

    def forget(self, round: Round) -> None:
        """Keeps nothing of a round that is over: what still comes for it is rejected."""
        del self._history[round.number]

    def progress(self, now: float) -> Progress | None:
        """How far the open round is; before the first, who is there."""
        if self._collecting is not None:
            return replace(self._collecting.progress(now), spent=self.ledger.max_spent)
        return None if self._gathering is None else self.members.attendance()

    def connected(self) -> None:
        """The bus was joined, or joined again: whatever was sent before may be lost."""
        self._rejoined = True

    def receive(self, topic: str, message: AnyMessage, now: float) -> None:
        """A message that came under `topic`."""
        try:
            parts = topic.split("/")
            if message.run != self.run or len(parts) != 6 or getattr(message, "member", None) != parts[5]:
                raise WireError("a message under another name than its topic's")
            if isinstance(message, Hello):
                self._hello(parts[4], message, now)
            elif isinstance(message, Gone):
                self._gone(message, now)
            elif isinstance(message, Answer):
                self._report(message, now)
        except WireError:
            self.rejected += 1

    def _hello(self, group: str, hello: Hello, now: float) -> None:
        member, is_new = self.members.hello(group, hello)
        self._back(member)
        if is_new and self._gathering is not None:
            self._gathering.news = now
        if is_new and self._collecting is not None:
            self._collecting.joined(member)

    def _back(self, member: Member) -> None:
        member.gone_since = None
        if self._collecting is not None:
            self._collecting.back(member)

    def _gone(self, gone: Gone, now: float) -> None:
        member = self.members.get(gone.member)
        if member is not None and member.gone_since is None:
            member.gone_since = now
            if self._collecting is not None:
                self._collecting.gone(member)

    def _report(self, message: Answer, now: float) -> None:
        round = self._history.get(message.round)
        if round is None:
            raise WireError("a report for a round that was not asked")
        stop = message.start + len(message.reports) // message.width if isinstance(message, Reply) else message.stop
        member = self.members.speaker(message.member, message.start, stop)
        if self._collecting is not None and round is self._collecting.round:
            self._collecting.report(member, message, now)
        else:
            count(round, message)
        self._back(member)

    def due(self, now: float) -> list[Send]:
        """What to publish now."""
        rejoined, self._rejoined = self._rejoined, False
        roll = Send(EVERYBODY, Roll(run=self.run))
        sends = [roll] if rejoined else []
        if self._gathering is not None and self._gathering.news + ASK_AGAIN <= now:
            self._gathering.news = now
            sends = [roll]
        return sends if self._collecting is None else sends + self._collecting.due(rejoined, now)

    def is_settled(self, now: float) -> bool:
        """Whether there is nothing to wait for: all clients are present, or all that were asked have answered, refused or gone; or the time is up."""
        if self._collecting is not None:
            return self._collecting.is_settled(now)
        return self._gathering is None or self.members.present >= self.members.clients or self._gathering.end <= now

    def wake(self, now: float) -> float:
        """When to look again, if nothing happens before; not after `now` if there is something to do at once."""
        if self._rejoined or self.is_settled(now):
            return now
        if self._collecting is not None:
            return self._collecting.wake(now)
        assert self._gathering is not None
        return min(self._gathering.news + ASK_AGAIN, self._gathering.end)
