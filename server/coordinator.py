"""The coordinator of a run, sans I/O: events and the time in, messages to publish and the next wake-up out. It touches no bus and no clock."""

import math
from collections import Counter
from dataclasses import dataclass, replace

from local_dp.errors import InputError, QuorumError, WireError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracle import LocalOracle
from local_dp.server.collecting import ASK_AGAIN, Answer, Collecting, Send, count
from local_dp.server.listening import Listening
from local_dp.server.members import Member, Members
from local_dp.server.progress import Progress, Turnout
from local_dp.server.quorum import Terms
from local_dp.server.reconciliation import Reconciliation, reconcile
from local_dp.server.roster import Roster
from local_dp.server.round import Closing, Past, Round
from local_dp.tallies import Tally
from local_dp.wire import EVERYBODY, MAX_RECEIPTS, Account, AnyMessage, End, Gone, Hello, Receipt, Reply, Roll

SAID_AGAIN = 0.4  # seconds after which the end is said once more to those who have not said theirs


@dataclass
class Gathering:
    """The wait for the members: until when, and when somebody new was last heard or the roll called."""

    patience: float
    end: float
    news: float


@dataclass
class Parting:
    """The wait for the members' accounts when the run is over: until when, when the end was said last, and who has not given one."""

    end: float
    said: float
    owing: set[str]


class Coordinator(LocalOracle):
    """Plays the rounds of a run with the clients 0..clients-1.

    Whoever drives it begins with `gather` or `open`, publishes what is `due` at once and at every `wake` (which events may make earlier) until it `is_settled`,
    and ends with `gathered` or `close`; `part` begins the last wait. With `fresh` a list, every reply of which something new was accepted is put there, to be
    kept, and taken out by whoever keeps it. `connected` and `receive` tell it what the bus brings; a message that does not fit is counted in `rejections`,
    never raised. `now` is in seconds, of any clock that does not run backwards.
    """

    def __init__(self, run: str, clients: int, coin_seed: int, budget: float, terms: Terms, roster: Roster | None = None) -> None:
        super().__init__(budget, run)
        self.coin_seed = coin_seed
        self.terms = terms
        self.members = Members(clients, roster)
        self.listening = Listening(run, self.members)
        self.rejections = Counter[str]()  # by the kind of what was wrong
        self.seconds: list[float] = []
        self.irregularities: list[float | None] = []  # of each round
        self._history: dict[int, Round] = {}
        self._gathering: Gathering | None = None
        self._collecting: Collecting | None = None
        self._parting: Parting | None = None
        self._accounts: dict[str, Account] = {}
        self._rejoined = False
        self.fresh: list[Reply] | None = None

    @property
    def rejected(self) -> int:
        """How many messages did not fit."""
        return self.rejections.total()

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

    def open(self, queries: tuple[LocalQuery, ...], now: float, past: Past | None = None) -> Round:
        """Begins a round, or goes on with one of the past. Raises InputError or RefusedError("budget") if it may not be asked."""
        round = self._round(queries, past)
        self._collecting = Collecting(round, self.members, self.terms.deadline, now)
        return round

    def repeat(self, queries: tuple[LocalQuery, ...], past: Past) -> tuple[Tally, ...]:
        """A round that was closed before: its tallies, as they were."""
        assert past.closing is not None
        return self._done(self._round(queries, past), past.closing.seconds)

    def _round(self, queries: tuple[LocalQuery, ...], past: Past | None) -> Round:
        highest = max(query.cohort.stop for query in queries)
        if highest > self.members.clients:
            raise InputError(f"the round asks client {highest - 1}, but there are {self.members.clients} clients")
        number = self.begin(queries)
        round = Round(self.run, number, queries, self.coin_seed)
        if past is not None:
            round.restore(past)
        self._history[number] = round
        return round

    def close(self, now: float) -> tuple[Tally, ...]:
        """Ends the round: the tally of each query. Raises RefusedError or QuorumError if a cohort has fewer replies than its quorum."""
        assert self._collecting is not None
        began, round = self._collecting.began, self.shut()
        self.terms.judge(round)
        return self._done(round, now - began)

    def _done(self, round: Round, seconds: float) -> tuple[Tally, ...]:
        self.seconds.append(seconds)
        self.irregularities.append(round.irregularity())
        self.finish(tuple(part.query for part in round.parts), round.counts.answered, round.digest())
        return round.tallies()

    def closing(self) -> Closing:
        """How the last round was closed."""
        return Closing(self._history[len(self.rounds)].counts, self.seconds[-1])

    def receipts(self) -> list[Send]:
        """For each group, what of the last round was accepted, member by member."""
        sums, sends = self._history[len(self.rounds)].sums, list[Send]()
        accepted: dict[str, list[tuple[int, int, int]]] = {}
        for member in self.members:
            if member.name in sums:
                accepted.setdefault(member.group, []).append((member.start, member.stop, sums[member.name].checksum))
        for group, all_of in accepted.items():
            for at in range(0, len(all_of), MAX_RECEIPTS):
                sends.append(Send(group, Receipt(run=self.run, round=len(self.rounds), accepted=tuple(all_of[at : at + MAX_RECEIPTS]))))
        return sends

    def part(self, patience: float, now: float) -> None:
        """Says the end, and begins to wait for the accounts of the members that are there, `patience` seconds at most."""
        self._collecting = self._gathering = None
        self._parting = Parting(now + patience, -math.inf, {member.name for member in self.members if member.gone_since is None})

    def reconciliation(self) -> Reconciliation:
        """What was accepted beside the accounts that came."""
        return reconcile({number: round.sums for number, round in self._history.items()}, self._accounts, (member.name for member in self.members))

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

    def opens(self, topic: str, now: float) -> bool:
        """Whether the envelope of what came under `topic` is worth opening. Counts it if not."""
        if self.members.roster is None:
            return True
        owner = self.members.owner(topic)
        if owner is None:
            self._shut_out(topic, now)  # it will be counted as forged
        return owner is None or self.members.opens(owner, now) or self._unread(topic, now)

    def reads(self, topic: str, now: float) -> bool:
        """Whether what came under `topic` is worth decoding: no reply of a stranger is, and of a member only so many messages are. Counts it if not."""
        parts = topic.split("/")
        member = self.members.get(parts[5]) if len(parts) == 6 else None
        if parts[3:4] == ["hello"] if member is None else member.read.take(now):
            return True
        return self._unread(topic, now)

    def _unread(self, topic: str, now: float) -> bool:
        self.rejections["unread"] += 1
        self._shut_out(topic, now)
        return False

    def _shut_out(self, topic: str, now: float) -> None:
        """Who floods is not heard for a while, and as good as gone."""
        member = self.members.get(self.listening.unread(topic, now) or "")
        if member is not None:
            self._lost(member, now)

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
            elif isinstance(message, Account):
                self._account(message)
        except WireError as error:
            self.reject(topic, error, now)

    def reject(self, topic: str, error: WireError, now: float) -> None:
        """Counts a message that came under `topic` and is not what it should be."""
        self.rejections[error.kind] += 1
        if self.members.owner(topic) is None:
            self._shut_out(topic, now)

    def _hello(self, group: str, hello: Hello, now: float) -> None:
        member, is_new = self.members.hello(group, hello)
        self._back(member)
        if is_new and self._gathering is not None:
            self._gathering.news = now
        if is_new and self._collecting is not None:
            self._collecting.joined(member)

    def _back(self, member: Member) -> None:
        if not self.listening.hears(member.name):
            return  # it said so before it was shut out
        member.gone_since = None
        if self._collecting is not None:
            self._collecting.back(member)

    def _gone(self, gone: Gone, now: float) -> None:
        member = self.members.get(gone.member)
        if member is not None and member.gone_since is None:
            self._lost(member, now)

    def _lost(self, member: Member, now: float) -> None:
        member.gone_since = now
        if self._collecting is not None:
            self._collecting.gone(member)
        if self._parting is not None:
            self._parting.owing.discard(member.name)

    def _account(self, account: Account) -> None:
        if self._parting is None or self.members.get(account.member) is None:
            raise WireError(f"an account of {account.member} that was not asked for")
        self._parting.owing.discard(account.member)
        self._accounts.setdefault(account.member, account)

    def _report(self, message: Answer, now: float) -> None:
        round = self._history.get(message.round)
        if round is None:
            raise WireError("a report for a round that was not asked")
        stop = message.start + len(message.reports) // message.width if isinstance(message, Reply) else message.stop
        member, answered = self.members.speaker(message.member, message.start, stop), round.counts.answered
        if self._collecting is not None and round is self._collecting.round:
            self._collecting.report(member, message, now)
        else:
            count(round, message)
        if self.fresh is not None and isinstance(message, Reply) and round.counts.answered > answered:
            self.fresh.append(message)
        self._back(member)

    def due(self, now: float) -> list[Send]:
        """What to publish now."""
        rejoined, self._rejoined = self._rejoined, False
        if self._parting is not None:
            if not rejoined and self._parting.said + SAID_AGAIN > now:
                return []
            self._parting.said = now
            return [Send(EVERYBODY, End(run=self.run))]
        roll = Send(EVERYBODY, Roll(run=self.run))
        sends = [roll] if rejoined else []
        if self._gathering is not None and self._gathering.news + ASK_AGAIN <= now:
            self._gathering.news = now
            sends = [roll]
        return sends if self._collecting is None else sends + self._collecting.due(rejoined, now)

    def is_settled(self, now: float) -> bool:
        """Whether there is nothing to wait for: all clients are present, or all that were asked have answered, refused or gone; or the time is up."""
        if self._parting is not None:
            return self._parting.said > -math.inf and (not self._parting.owing or self._parting.end <= now)
        if self._collecting is not None:
            return self._collecting.is_settled(now)
        return self._gathering is None or self.members.present >= self.members.clients or self._gathering.end <= now

    def wake(self, now: float) -> float:
        """When to look again, if nothing happens before; not after `now` if there is something to do at once."""
        return min(self._wake(now), self.listening.wake(now))

    def _wake(self, now: float) -> float:
        if self._rejoined or self.is_settled(now):
            return now
        if self._parting is not None:
            return min(self._parting.said + SAID_AGAIN, self._parting.end)
        if self._collecting is not None:
            return self._collecting.wake(now)
        assert self._gathering is not None
        return min(self._gathering.news + ASK_AGAIN, self._gathering.end)
