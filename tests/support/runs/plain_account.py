"""A naive account of what a coordinator is told: sets and loops over single clients, written from the rules and not from the coordinator."""

import math
from dataclasses import dataclass, field

from local_dp.oracles.local.asked import Cohort
from local_dp.server.progress import Turnout
from local_dp.wire import AnyMessage, Gone, Hello, Refusal, Reply, Request

Asked = tuple[int, int]  # (cohort, client)


@dataclass
class Tale:
    """What was heard of one round: the first report of each client in each cohort, and who refused."""

    cohorts: list[Cohort]
    end: float
    reports: dict[Asked, int] = field(default_factory=dict)
    refused: set[Asked] = field(default_factory=set)
    late: set[Asked] = field(default_factory=set)
    asked_at: dict[str, float] = field(default_factory=dict)
    closed: bool = False
    counts: Turnout = field(default_factory=Turnout)

    def asked(self, start: int, stop: int) -> list[Asked]:
        """The clients among start..stop that are asked."""
        return [(at, client) for at, cohort in enumerate(self.cohorts) for client in range(max(start, cohort.start), min(stop, cohort.stop))]

    def owed(self, start: int, stop: int) -> list[Asked]:
        """Those of them that have neither answered nor refused."""
        return [asked for asked in self.asked(start, stop) if asked not in self.reports and asked not in self.refused]

    def answered(self, at: int) -> int:
        """How many of a cohort have answered."""
        return sum(cohort == at for cohort, _ in self.reports)

    def refusals(self, at: int) -> int:
        """How many of a cohort have refused and not answered."""
        return sum(asked[0] == at and asked not in self.reports for asked in self.refused)


@dataclass
class Account:
    """Who is known with which clients, who is gone since when, and the rounds."""

    run: str
    clients: int
    known: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)
    rounds: list[Tale] = field(default_factory=list)
    rejected: int = 0

    def hear(self, topic: str, message: AnyMessage, now: float) -> None:
        """A message that reaches the server."""
        _, _, run, _, group, name = topic.split("/")
        if message.run != run or run != self.run or getattr(message, "member", "") != name:
            self.rejected += 1
        elif isinstance(message, Hello):
            self._hello((group, message.start, message.stop), name)
        elif isinstance(message, Gone):
            if name in self.known:
                self.gone.setdefault(name, now)
        elif isinstance(message, Reply | Refusal):
            self._report(name, message)

    def _hello(self, claim: tuple[str, int, int], name: str) -> None:
        if self.known.get(name) == claim:
            self.gone.pop(name, None)
            return
        taken = {client for _, start, stop in self.known.values() for client in range(start, stop)}
        wanted = set(range(claim[1], claim[2]))
        if name in self.known or not wanted or wanted & taken or max(wanted) >= self.clients:
            self.rejected += 1
        else:
            self.known[name] = claim

    def _report(self, name: str, message: Reply | Refusal) -> None:
        stop = message.stop if isinstance(message, Refusal) else message.start + len(message.reports)
        _, low, high = self.known.get(name, ("", 0, -1))
        if not low <= message.start <= stop <= high or not 1 <= message.round <= len(self.rounds):
            self.rejected += 1
            return
        tale = self.rounds[message.round - 1]
        if isinstance(message, Refusal):
            tale.refused |= set() if tale.closed else set(tale.asked(message.start, stop))
        else:
            asked = [(message.ask, client) for client in range(message.start, stop)]
            if not asked or not set(asked) <= set(tale.asked(message.start, stop)):
                self.rejected += 1
                return
            for one, report in zip(asked, message.reports, strict=True):
                _count(tale, one, report)
        self.gone.pop(name, None)

    def begin(self, cohorts: list[Cohort], end: float) -> None:
        """A round that is to end at `end` at the latest."""
        self.rounds.append(Tale(cohorts, end))
        self.rounds[-1].counts.asked = len(self.rounds[-1].asked(0, self.clients))

    def published(self, request: Request, group: str, now: float) -> None:
        """A request that the server publishes: who is asked by it for the first time."""
        tale = self.rounds[-1]
        for name, (theirs, start, stop) in self.known.items():
            if theirs == group and (not request.missing or any(low < stop and start < high for low, high in request.missing)):
                tale.asked_at.setdefault(name, now)

    def owing(self) -> list[str]:
        """The members that owe a report in the last round."""
        return [name for name, (_, start, stop) in self.known.items() if self.rounds[-1].owed(start, stop)]

    def over_from(self, grace: float) -> float:
        """From when on everybody known has answered, refused or been gone for `grace` seconds, or the time is up."""
        return min(self.rounds[-1].end, max((self.gone.get(name, math.inf) + grace for name in self.owing()), default=-math.inf))

    def close(self) -> Tale:
        """No report of the last round counts any more."""
        tale = self.rounds[-1]
        tale.closed = True
        tale.counts.answered = len(tale.reports)
        tale.counts.refused = sum(tale.refusals(at) for at in range(len(tale.cohorts)))
        tale.counts.missing = len(tale.owed(0, self.clients))
        return tale

    @property
    def counts(self) -> Turnout:
        """The counts of all rounds together."""
        return sum((tale.counts for tale in self.rounds), Turnout())


def _count(tale: Tale, asked: Asked, report: int) -> None:
    if asked in tale.reports:
        tale.counts.duplicate += 1
        tale.counts.conflicting += tale.reports[asked] != report
    elif tale.closed:
        tale.counts.late += asked not in tale.late
        tale.counts.duplicate += asked in tale.late
        tale.late.add(asked)
    else:
        tale.reports[asked] = report
