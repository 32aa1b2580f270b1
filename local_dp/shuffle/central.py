"""What a run behind a shuffler loses: the epsilon of each client's reports alone, and of all reports together, for the crowds that answered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from local_dp.arrays import Words
from local_dp.checks import check_share, check_whole
from local_dp.draws import Draws
from local_dp.errors import InputError, QuorumError
from local_dp.interaction import Algorithm, translate
from local_dp.loss import NANO, Pure
from local_dp.noise import KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.steps import Steps
from local_dp.tallies import Tally

R = TypeVar("R")

MOST_CROWD = 1 << 40


@dataclass
class Shuffler:
    """Passes on the reports of one batch together: no names, no indices, in a uniform order.

    `crowd` is the least number of clients in a batch: below it nothing is passed on, ever. What is promised: the server sees the multiset of the reports and
    how many they are, no more. What is NOT promised: that the shuffler does not look; it sees who sent what unless clients encrypt for the server, and it is
    trusted not to tell, to draw its order at random, and not to let one client's report through beside its own inventions. From the shuffler a client is
    protected by its local randomizer alone.
    """

    draws: Draws
    crowd: int

    def __post_init__(self) -> None:
        check_crowd(self.crowd)

    @classmethod
    def of(cls, seed: int | None, crowd: int) -> "Shuffler":
        """One that draws its order from the system's entropy, or in a simulation from the words of a round that no client answers."""
        return cls(Draws(SystemNoise() if seed is None else KeyedNoise(seed), 0), crowd)

    @property
    def private(self) -> bool:
        """Whether its order is nobody's to compute."""
        return self.draws.private

    def passed(self, reports: Words) -> Words:
        """The reports, one a row, in a uniform order; none if they are no crowd."""
        if len(reports) < self.crowd:
            return reports[:0]
        return reports[self.draws.order(len(reports))]


def check_crowd(crowd: int) -> None:
    """Raises InputError for a crowd of one."""
    check_whole("the crowd", crowd, 2, MOST_CROWD)


def check_shufflable(query: LocalQuery) -> None:
    """Raises InputError where reports mean something only beside their client's public coin, or where a report is repeated and tells that it is."""
    name = query.randomizer.name
    if query.session:
        raise InputError(f"a session of {name} cannot be shuffled: what its rounds tell together is known for clients who are told apart")
    if query.memo:
        raise InputError(f"memoised answers of {name} cannot be shuffled: whoever repeats a report is known by it from round to round")
    if query.randomizer.uses_coins:
        raise InputError(f"{name} uses a public coin for each client, and shuffled reports have no client: its coin would name it; ask with-coin of it")


def with_coins(algorithm: Algorithm[LocalQuery, Tally, R]) -> Algorithm[LocalQuery, Tally, R]:
    """The same algorithm, asked so that its reports can be shuffled: a client draws by itself what would be its public coin, and sends it along.

    Tallies are of the same form and law, so that nothing else changes. Raises InputError, when it is asked, where a coin cannot be sent along.
    """
    return translate(algorithm, lambda queries, before: tuple(map(_with_coin, queries)), lambda queries, asked, tallies: tallies)


def _with_coin(query: LocalQuery) -> LocalQuery:
    return replace(query, randomizer=WithCoin.of(query.randomizer)) if query.randomizer.uses_coins and not query.memo else query


if TYPE_CHECKING:
    from local_dp.shuffle.accountant import Amplified

_LOOKED_AT = 4  # kinds of batch whose channels are looked at: of more, the bound for any randomizer of their epsilon is taken


@dataclass(frozen=True)
class Behind:
    """Clients behind a shuffler: the least that make a crowd, and the delta beside which all their reports together are accounted for."""

    crowd: int = 100
    delta: float = 1e-6

    def __post_init__(self) -> None:
        check_crowd(self.crowd)
        check_share("delta", self.delta)


@dataclass(frozen=True)
class Batch:
    """One ask of a cohort: so many of its clients have answered, and their reports were passed on together."""

    query: LocalQuery
    answered: int

    @property
    def kind(self) -> tuple[Randomizer, int]:
        """What its loss depends on."""
        return self.query.randomizer, self.answered


@dataclass(frozen=True)
class Central:
    """Epsilons in nats: `local` is that of a client's reports if it were known whose they are, `upper` and `lower` enclose that of the shuffled ones.

    Beside `delta`, against the server, if the shuffler keeps silent and all that answered follow the protocol. `times`: the most reports of one client; of
    several, `upper` is a sum by basic composition, and `lower` that of one of them.
    """

    local: float
    upper: float
    lower: float
    delta: float
    times: int

    @property
    def exact(self) -> bool:
        """Whether both sides are as good as equal."""
        return self.upper - self.lower <= 1e-4 * self.upper


@dataclass
class Crowds:
    """The batches of a run, as they are passed on."""

    behind: Behind
    batches: list[Batch] = field(default_factory=list)

    def check(self, queries: tuple[LocalQuery, ...]) -> None:
        """Raises InputError for what cannot be shuffled, before anybody answers; QuorumError for cohorts that are no crowd even if all answer."""
        for query in queries:
            check_shufflable(query)
            if len(query.cohort) < self.behind.crowd:
                raise QuorumError(
                    f"a cohort of {len(query.cohort)} clients is less than the shuffler's minimum crowd of {self.behind.crowd}, and none of its reports would "
                    f"be passed on; ask more clients, or allow a smaller --crowd"
                )

    def add(self, queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> None:
        """A round is over."""
        self.batches += [Batch(query, tally.n) for query, tally in zip(queries, tallies, strict=True)]

    def central(self) -> Central:
        """What all of them lose."""
        return central(self.batches, self.behind.delta)


def central(batches: Sequence[Batch], delta: float) -> Central:
    """The loss of the client that loses most: what its batches lose, each beside its part of `delta`, is added up."""
    times, local, upper = Steps(), Steps(), Steps()
    for each in batches:
        times.add(each.query.cohort.start, each.query.cohort.stop, 1)
    most = max(1, times.maximum)
    found = _by_kind(batches, delta / most)
    for each in batches:
        start, stop = each.query.cohort.start, each.query.cohort.stop
        local.add(start, stop, each.query.randomizer.nano)
        upper.add(start, stop, math.ceil(found[each.kind].upper * NANO))
    lower = max((bounds.lower for bounds in found.values()), default=0.0)
    return Central(local.maximum / NANO, min(local.maximum, upper.maximum) / NANO, lower, delta, most)


def _by_kind(batches: Sequence[Batch], delta: float) -> "dict[tuple[Randomizer, int], Amplified]":
    kinds = dict.fromkeys(each.kind for each in batches)
    looked_at = len(kinds) <= _LOOKED_AT
    return {kind: _lost(*kind, delta, looked_at) for kind in kinds}


def _lost(randomizer: Randomizer, answered: int, delta: float, looked_at: bool) -> "Amplified":
    """Of one batch. More clients than are counted lose no more."""
    from local_dp.shuffle.accountant import MAX_CLIENTS, Amplified, accounted_for_any, amplified  # here: every run imports this file

    local, clients = randomizer.nano / NANO, min(answered, MAX_CLIENTS)
    if clients < 2 or not isinstance(randomizer.loss, Pure):
        return Amplified({"no shuffler": local}, {"nothing": 0.0}, False)
    if looked_at:
        try:
            return amplified(randomizer, clients, delta)
        except InputError:  # no finite channel, or too large a table
            pass
    return accounted_for_any(local, clients, delta)
