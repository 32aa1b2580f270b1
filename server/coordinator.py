"""The coordinator of a run, sans I/O: events and the time in, messages to publish and the next
wake-up out. It touches no bus and no clock."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from local_dp.errors import InputError, QuorumError, WireError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import LocalOracle
from local_dp.server.archive import RECENT, Archive, Missed
from local_dp.server.losses import ALPHA, TESTS, Loss
from local_dp.server.members import Listening, Member, Members, Roster
from local_dp.server.pace import Pace
from local_dp.server.phases import (
    Answer,
    Collecting,
    Gathering,
    Parting,
    Phase,
    Send,
    count,
    receipts,
)
from local_dp.server.progress import Progress, RoundProgress, Turnout
from local_dp.server.quorum import Lack, Terms, named
from local_dp.server.rolls import Rolls
from local_dp.server.round import Closing, Past, Reconciliation, Round, reconcile
from local_dp.shuffle.central import Crowds
from local_dp.tallies import Tally
from local_dp.wire import Account, AnyMessage, Gone, Hello, Reply


class Coordinator(LocalOracle):
    """Plays the rounds of a run with the clients 0..clients-1, in phases: it gathers the members,
    opens and closes rounds, and parts.

    Its driver begins a phase by `open`, or sets `phase`. It publishes the messages that are `due`
    at once and at every `wake`, until the phase is settled, and ends it with `gathered` or `close`.
    `connected` and `receive` take events from the bus, after which `wake` may be earlier.

    A message that does not fit is counted in `rejections`, never raised. `now` is in seconds, of
    any clock that does not run backwards. Replies with new reports are added to `fresh`, if that is
    a list, for the driver to store. `crowds` accounts for the reports behind a shuffler.
    """

    def __init__(
        self,
        run: str,
        clients: int,
        coin_seed: int,
        budget: float,
        terms: Terms,
        roster: Roster | None = None,
        crowds: Crowds | None = None,
    ) -> None:
        super().__init__(budget, run)
        self.coin_seed = coin_seed
        self.terms = terms
        self.crowds = crowds
        self.members = Members(clients, roster)
        self.listening = Listening(run, self.members)
        self.pace = Pace()
        self.rolls = Rolls(run)
        self.rejections = Counter[str]()  # by their fault
        self._fault = ""  # the last of them
        self.seconds: list[float] = []
        self.irregularities: list[float | None] = []  # of each round
        self.fresh: list[Reply] | None = None
        self.phase = Phase()  # the present wait
        self._history: dict[int, Round] = {}  # the last ones
        self._archive = Archive()  # those before
        self._accounts: dict[str, Account] = {}
        self._has_rejoined = False
        self.trouble = ""  # why the bus has no connection
        self.forgeries = 0  # messages without a signature
        self._before = 0  # messages rejected before the last round that counts was over
        # how a member's process ended, where that is known
        self.ending_of: Callable[[str], str] = lambda name: ""

    @property
    def rejected(self) -> int:
        return self.rejections.total()

    @property
    def counts(self) -> Turnout:
        return sum((round.counts for round in self._history.values()), self._archive.counts)

    def gather(self, patience: float, now: float) -> None:
        """Begins the wait for the members."""
        self.phase = Gathering(self.members, self.rolls, patience, now)

    def gathered(self) -> None:
        """Ends the wait for the members. Raises QuorumError if nobody came; it says why, as far as
        it is known."""
        phase, self.phase = self.phase, Phase()
        if self.members.present == 0:
            assert isinstance(phase, Gathering)
            names = [lack.name for lack in self._lacks(0) if lack.cause == "gone"]
            why = f"{len(names)} of their processes ended{named(names)}; start them again"
            advice = (
                "; ".join(filter(None, (self.trouble, why if names else "", self._rejections())))
                or "start them, with this run's name and broker"
            )
            raise QuorumError(
                f"none of the {self.members.clients} clients joined run {self.run!r} in "
                f"{phase.patience:g} seconds; {advice}"
            )

    def _rejections(self) -> str:
        """The messages that were rejected lately, and what to do."""
        total = self.rejected + self.forgeries
        if total <= self._before:
            return ""
        why = []
        if self.forgeries:
            why.append(f"{self.forgeries} without a signature of the roster")
        if self._fault:
            why.append(f"{self.rejected} (the last one: {self._fault})")
        return f"messages rejected: {', '.join(why)}; correct their keys and places"

    def _lacks(self, rejoins: int) -> tuple[Lack, ...]:
        """Who owes reports, or never joined, and why, in a round in which the server's own
        connection was made again so many times."""
        lacks = [
            Lack(self._cause(each, rejoins), each.name, each.start, each.stop)
            for each in self.members
            if each.owes
        ]
        lacks += [Lack("absent", name, start, stop) for name, start, stop in self.members.absent()]
        return tuple(map(self._explain, lacks))

    def _explain(self, lack: Lack) -> Lack:
        """The same, as gone, where it is known how the member's process ended."""
        how = self.ending_of(lack.name)
        return replace(lack, cause="gone", name=f"{lack.name}: {how}") if how else lack

    def _cause(self, member: Member, rejoins: int) -> str:
        """Why a member that owes reports may not have answered."""
        if not self.listening.hears(member.name):
            return "silenced"
        if member.returns > rejoins:
            return "cut"
        if member.gone_since is not None:
            return "gone"
        return (
            "away"
            if self.trouble
            else "unasked"
            if rejoins > 1
            else "unheard"
            if member.reachable
            else "silent"
        )

    def open(self, queries: tuple[LocalQuery, ...], now: float, past: Past | None = None) -> Round:
        """Begins a round, or resumes one of the past. Raises InputError or RefusedError("budget")
        if it may not be asked."""
        highest = max(query.cohort.stop for query in queries)
        if highest > self.members.clients:
            raise InputError(
                f"the round asks client {highest - 1}, but there are {self.members.clients} clients"
            )
        if self.crowds is not None:
            self.crowds.check(queries)
        number = self.begin(queries)
        round = Round(self.run, number, queries, self.coin_seed)
        if past is not None:
            round.restore(past)
        while len(self._history) >= RECENT:
            old = self._history.pop(min(self._history))
            self._archive.add(old.number, old.counts, old.sums, self._absence(old))
        self._history[number] = round
        if not round.closed:
            self.phase = self._collecting(round, now)
        return round

    def _collecting(self, round: Round, now: float) -> Collecting:
        return Collecting(round, self.members, self.terms, self.pace, self.rolls, now)

    def repeat(self, queries: tuple[LocalQuery, ...], past: Past) -> tuple[Tally, ...]:
        """A round that was closed before: its tallies, as they were."""
        assert past.closing is not None
        return self._done(self.open(queries, 0.0, past), past.closing.seconds)

    def close(self, now: float) -> tuple[Tally, ...]:
        """Ends the round: the tally of each query. Raises RefusedError or QuorumError if a cohort
        has fewer replies than its quorum."""
        assert isinstance(self.phase, Collecting)
        began, round = self.phase.began, self.shut()
        self.terms.judge(round)
        return self._done(round, now - began)

    def _done(self, round: Round, seconds: float) -> tuple[Tally, ...]:
        self._before = self.rejected + self.forgeries
        self.seconds.append(seconds)
        self.irregularities.append(round.irregularity())
        queries, tallies = tuple(part.query for part in round.parts), round.tallies()
        self.finish(queries, round.counts.answered, round.digest())
        if self.crowds is not None:
            self.crowds.add(queries, tallies)
        return tallies

    @property
    def last(self) -> Round:
        """The last round that was closed."""
        return self._history[len(self.rounds)]

    def closing(self) -> Closing:
        round = self.last
        assert round.shortfall is not None
        return Closing(round.counts, self.seconds[-1], round.shortfall)

    def receipts(self) -> list[Send]:
        """For each group, the accepted reports of the last round, member by member."""
        return receipts(self.last, self.members)

    def reconciliation(self) -> Reconciliation:
        """The accepted reports beside the members' accounts."""
        sums = {number: round.sums for number, round in self._history.items()}
        return reconcile(
            {**self._archive.sums(), **sums},
            self._accounts,
            (member.name for member in self.members),
        )

    def losses(self) -> tuple[Loss, ...]:
        """The losses of reports that chance does not explain, once the members have given their
        accounts."""
        rounds = (*self._archive.absences.values(), *map(self._absence, self._history.values()))
        losses = [
            loss
            for absence in rounds
            if absence is not None
            for loss in absence.losses(self._accounts)
        ]
        return tuple(loss for loss in losses if loss.chance <= ALPHA / (TESTS * self._round_count))

    def _absence(self, round: Round) -> Missed | None:
        owing = round.shortfall.owing if round.shortfall else ()
        members = [self.members.by_name[name] for name in owing if name in self.members.by_name]
        return round.missed({member.name: (member.start, member.stop) for member in members})

    def shut(self) -> Round:
        """Ends the round, however few have answered."""
        assert isinstance(self.phase, Collecting)
        phase, self.phase = self.phase, Phase()
        round, shortfall = phase.round, phase.waves.unanswered(phase.round.sums)
        if round.outstanding:
            round.lacks = self._lacks(phase.rejoins)
            round.trouble, round.rejections = self.trouble, self._rejections()
        round.shortfall = shortfall
        round.close()
        return round

    def forget(self, round: Round) -> None:
        """Drops a round that is over: later reports for it are rejected."""
        del self._history[round.number]

    def progress(self, now: float) -> Progress | None:
        """The state of the open round; before the first, who is present."""
        progress = self.phase.progress(now)
        return (
            replace(progress, spent=self.ledger.max_spent)
            if isinstance(progress, RoundProgress)
            else progress
        )

    def connected(self) -> None:
        """The bus was joined, or joined again: earlier messages may be lost."""
        self._has_rejoined = True

    def opens(self, topic: str, now: float) -> bool:
        """True if the envelope of a message under `topic` is worth opening. Counts it if not."""
        if self.members.roster is None:
            return True
        owner = self.members.owner(topic)
        if owner is None:
            self._shut_out(topic, now)  # it will be counted as forged
        return owner is None or self.members.openings[owner].take(now) or self._unread(topic, now)

    def reads(self, topic: str, now: float) -> bool:
        """True if a message under `topic` is worth decoding: no reply of a stranger, and few
        messages of one member are. Counts it if not."""
        parts = topic.split("/")
        member = self.members.by_name.get(parts[5]) if len(parts) == 6 else None
        if parts[3:4] == ["hello"] if member is None else member.read.take(now):
            return True
        return self._unread(topic, now)

    def _unread(self, topic: str, now: float) -> bool:
        self.rejections["unread"] += 1
        self._shut_out(topic, now)
        return False

    def _shut_out(self, topic: str, now: float) -> None:
        """A member that floods is silenced for a while, and counts as gone."""
        member = self.members.by_name.get(self.listening.unread(topic, now) or "")
        if member is not None:
            self._drop(member, now)

    def receive(self, topic: str, message: AnyMessage, now: float) -> None:
        """A message that came under `topic`."""
        try:
            parts = topic.split("/")
            if (
                message.run != self.run
                or len(parts) != 6
                or getattr(message, "member", None) != parts[5]
            ):
                raise WireError("a message under another name than its topic's")
            if isinstance(message, Hello):
                self._hello(parts[4], message, now)
            elif isinstance(message, Gone):
                self._depart(message, now)
            elif isinstance(message, Answer):
                self._report(message, now)
            elif isinstance(message, Account):
                self._account(message)
        except WireError as error:
            self.reject(topic, error, now)

    def reject(self, topic: str, error: WireError, now: float) -> None:
        """Counts a wrong message under `topic`."""
        self.rejections[error.kind] += 1
        self._fault = str(error)
        if self.members.owner(topic) is None:
            self._shut_out(topic, now)

    def _hello(self, group: str, hello: Hello, now: float) -> None:
        member, is_new = self.members.hello(group, hello)
        self._back(member)
        if is_new:
            self.phase.joined(member, now)
        else:
            self.phase.returned(member)

    def _back(self, member: Member) -> None:
        if not self.listening.hears(member.name):
            return  # this message is older than its silence
        member.returns += member.gone_since is not None
        member.gone_since = None
        self.phase.back(member)

    def _depart(self, message: Gone, now: float) -> None:
        member = self.members.by_name.get(message.member)
        if member is not None and member.gone_since is None:
            self._drop(member, now)

    def _drop(self, member: Member, now: float) -> None:
        member.gone_since = now
        self.phase.gone(member)

    def _account(self, account: Account) -> None:
        if not isinstance(self.phase, Parting) or self.members.by_name.get(account.member) is None:
            raise WireError(f"an account of {account.member} that was not asked for")
        self.phase.owing.discard(account.member)
        self._accounts.setdefault(account.member, account)

    def _report(self, message: Answer, now: float) -> None:
        round = self._history.get(message.round)
        if round is None:
            self._archive.late(message.round, message.member)
        stop = (
            message.start + len(message.reports) // message.width
            if isinstance(message, Reply)
            else message.stop
        )
        member = self.members.speaker(message.member, message.start, stop)
        before = round.counts.answered
        if isinstance(self.phase, Collecting) and round is self.phase.round:
            self.phase.report(member, message, now)
        else:
            count(round, message)
        if self.fresh is not None and isinstance(message, Reply) and round.counts.answered > before:
            self.fresh.append(message)
        self._back(member)

    def due(self, now: float) -> list[Send]:
        has_rejoined, self._has_rejoined = self._has_rejoined, False
        return self.phase.due(self.run, has_rejoined, now)

    def wake(self, now: float) -> float:
        """The time of the next look, if nothing happens before; not after `now` if there is
        something to do at once."""
        at_once = self._has_rejoined or self.phase.is_settled(now)
        return min(now if at_once else self.phase.wake(now), self.listening.wake(now))
