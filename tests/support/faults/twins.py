"""Wrong twins of client and server, each without one of the things that keep the promises."""

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np

from local_dp.arrays import Words
from local_dp.clients.journal import Commit
from local_dp.clients.role import ClientRole
from local_dp.loss import NANO
from local_dp.server.round import Part, Round
from local_dp.wire import Refusal, Reply, Request
from tests.support.faults.client import Disk, DurableStore
from tests.support.faults.server import Server
from tests.support.faults.world import Makers


# sends what it has computed, and charges and keeps it when it has nothing else to do
class SendsFirst(ClientRole):
    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        store = self.store
        assert isinstance(store, LazyStore)
        store.settle()
        return super().handle(request)


class LazyStore(DurableStore):  # commits later
    _later: Commit | None = None

    def commit(self, commit: Commit) -> None:
        self._later = commit

    def settle(self) -> None:
        later, self._later = self._later, None
        if later is not None:
            super().commit(later)


class RandomizesAgain(ClientRole):  # answers a repeated request with fresh noise, and pays nothing
    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        again = self.store.get(request.run, request.round) is not None
        answers = super().handle(request)
        if not again or not answers or isinstance(answers[0], Refusal):
            return answers
        fresh = type(self)(
            self.member, self.start, self.records, self.noise, DurableStore(Disk()), self.policy
        )
        return fresh.handle(request)


class AnyDigest(bytes):  # a digest that is never another one
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = bytes.__hash__


class LooksAwayStore(DurableStore):  # does not know with which request a round was asked before
    def get(self, run: str, round: int) -> Commit | None:
        commit = super().get(run, round)
        return None if commit is None else replace(commit, request=AnyDigest())


class ForgetfulStore(DurableStore):  # remembers after a crash what it has sent, without a field
    def __init__(self, disk: Disk, field: str) -> None:
        commits = [replace(commit, **{field: ()}) for commit in disk.commits]  # type: ignore[arg-type]
        super().__init__(Disk(commits=commits))
        self.disk = disk


class Trusting(ClientRole):  # charges what the request says that it costs, where it says so
    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        store, asks = self.store, []
        assert isinstance(store, TrustingStore)
        store.claim = None
        for ask in request.asks:
            params = dict(ask.randomizer_params)
            claim = params.pop("stated", None)
            if isinstance(claim, float):
                store.claim = round(claim * NANO)
            asks.append(ask.model_copy(update={"randomizer_params": params}))
        return super().handle(request.model_copy(update={"asks": tuple(asks)}))


class TrustingStore(DurableStore):  # charges what was stated
    claim: int | None = None

    def commit(self, commit: Commit) -> None:
        if self.claim is not None:
            commit = replace(
                commit,
                charges=tuple(replace(charge, nano=self.claim) for charge in commit.charges),
            )
        super().commit(commit)


class CountsTwice(Round):  # does not look whether a client has been counted
    def _count(self, part: Part, start: int, stop: int, reports: Words) -> None:
        window = part.window(start, stop)
        assert window is not None
        part.answered[window] &= self.closed
        super()._count(part, start, stop, reports)


class AcceptsLate(Round):  # counts what comes after the end
    def _count(self, part: Part, start: int, stop: int, reports: Words) -> None:
        closed, self.closed = self.closed, False
        super()._count(part, start, stop, reports)
        self.closed = closed


class CountingTwice(Server):  # a server whose rounds count twice
    round: type[Round] = CountsTwice

    def begin(self, which: int) -> None:
        with patch("local_dp.server.coordinator.Round", self.round):
            super().begin(which)


class AcceptingLate(CountingTwice):  # a server whose rounds have no end
    round = AcceptsLate


class Forgetful(Server):  # keeps over a restart how many have answered, and not who
    def restart(self) -> None:
        super().restart()
        if self.open is not None:
            for part in self.open.parts:
                part.answered[:] = np.False_


TWINS = {  # with a seed in whose world each breaks a promise
    "send before charge": (0, Makers(role=SendsFirst, store=LazyStore)),
    "randomize again": (0, Makers(role=RandomizesAgain)),
    "no equivocation check": (0, Makers(store=LooksAwayStore)),
    "volatile ledger": (8, Makers(store=partial(ForgetfulStore, field="charges"))),
    "trust the server's epsilon": (3, Makers(role=Trusting, store=TrustingStore)),
    "no deduplication": (4, Makers(server=CountingTwice)),
    "volatile deduplication": (1, Makers(server=Forgetful)),
    "accept late": (0, Makers(server=AcceptingLate)),
    "volatile outcomes of labels": (383, Makers(store=partial(ForgetfulStore, field="outcomes"))),
    "a second truth after a crash": (21, Makers(store=partial(ForgetfulStore, field="speakers"))),
}
