"""The shuffler sans I/O, and the loss of a run behind it: of each client's reports alone, and of
all reports together, for the crowds that answered."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from local_dp.arrays import Words
from local_dp.checks import check_share, check_whole
from local_dp.draws import Draws
from local_dp.errors import InputError, QuorumError
from local_dp.interaction import Algorithm, translate
from local_dp.ledger import Steps
from local_dp.loss import NANO, Pure
from local_dp.noise import KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.memory import Memoised, Session
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.tallies import Tally

R = TypeVar("R")

MOST_CROWD = 1 << 40


@dataclass
class Shuffler:
    """Passes on the reports of one batch together: no names, no indices, in a uniform order.

    `crowd` is the least number of clients in a batch: a smaller batch is never passed on. Promise:
    the server sees only the multiset of reports and their number. The shuffler itself sees who sent
    each report, unless clients encrypt for the server. It is trusted to keep silent and to draw its
    order at random. It is trusted not to pass on one client's report among invented ones. Only the
    local randomizer protects a client from the shuffler.
    """

    draws: Draws
    crowd: int

    def __post_init__(self) -> None:
        check_crowd(self.crowd)

    @classmethod
    def of(cls, seed: int | None, crowd: int) -> "Shuffler":
        """Draws its order from the system's entropy, or in a simulation from the words of a round
        that no client answers."""
        return cls(Draws(SystemNoise() if seed is None else KeyedNoise(seed), 0), crowd)

    @property
    def private(self) -> bool:
        """True if nobody can compute its order."""
        return self.draws.private

    def passed(self, reports: Words) -> Words:
        """The reports, one a row, in a uniform order; none if there are fewer than a crowd."""
        if len(reports) < self.crowd:
            return reports[:0]
        return reports[self.draws.order(len(reports))]


def check_crowd(crowd: int) -> None:
    check_whole("the crowd", crowd, 2, MOST_CROWD)


def check_shufflable(query: LocalQuery) -> None:
    """Raises InputError for reports that need their client's public coin, and for reports that a
    client repeats."""
    name = query.randomizer.name
    if isinstance(query.repeat, Session):
        raise InputError(
            f"a session of {name} cannot be shuffled: its joint loss is known only for reports "
            "with senders"
        )
    if isinstance(query.repeat, Memoised):
        raise InputError(
            f"memoised answers of {name} cannot be shuffled: a repeated report identifies its "
            "client in every round"
        )
    if query.randomizer.uses_coins:
        raise InputError(
            f"{name} uses a public coin for each client, which would name the client of a "
            "shuffled report; use with-coin of it"
        )


def with_coins(algorithm: Algorithm[LocalQuery, Tally, R]) -> Algorithm[LocalQuery, Tally, R]:
    """The same algorithm, each client drawing its own coin and sending it along. Tallies keep their
    form and law. Raises InputError where that cannot be."""

    def with_coin(query: LocalQuery) -> LocalQuery:
        return (
            replace(query, randomizer=WithCoin.of(query.randomizer))
            if query.randomizer.uses_coins and not query.label
            else query
        )

    return translate(
        algorithm,
        lambda queries, before: tuple(map(with_coin, queries)),
        lambda queries, translation, tallies: tallies,
    )


if TYPE_CHECKING:
    from local_dp.shuffle.accountant import Amplified

# kinds of batch with bounds of their own channels; with more kinds, the bound for any randomizer of
# their epsilon
_LOOKED_AT = 4


@dataclass(frozen=True)
class Behind:
    """Options of a shuffler: the least number of clients in a crowd, and the delta of all their
    reports together."""

    crowd: int = 100
    delta: float = 1e-6

    def __post_init__(self) -> None:
        check_crowd(self.crowd)
        check_share("delta", self.delta)


@dataclass(frozen=True)
class Batch:
    """One question to a cohort: how many of its clients answered; their reports were passed on
    together."""

    query: LocalQuery
    reports: int

    @property
    def kind(self) -> tuple[Randomizer, int]:
        return self.query.randomizer, self.reports


@dataclass(frozen=True)
class Central:
    """Epsilons in nats: `local` of a client's reports if their sender were known; `upper` and
    `lower` enclose that of the shuffled reports.

    Beside `delta`, against the server, if the shuffler keeps silent and all that answered follow
    the protocol. `times`: the most reports of one client. For several reports, `upper` is a sum by
    basic composition, and `lower` that of one report.
    """

    local: float
    upper: float
    lower: float
    delta: float
    times: int

    @property
    def exact(self) -> bool:
        return self.upper - self.lower <= 1e-4 * self.upper


@dataclass
class Crowds:
    """The batches of a run."""

    behind: Behind
    batches: list[Batch] = field(default_factory=list)

    def check(self, queries: tuple[LocalQuery, ...]) -> None:
        """Raises InputError for queries that cannot be shuffled, and QuorumError for cohorts below
        the crowd, before anybody answers."""
        for query in queries:
            check_shufflable(query)
            if len(query.cohort) < self.behind.crowd:
                raise QuorumError(
                    f"a cohort of {len(query.cohort)} clients is less than the shuffler's minimum "
                    f"crowd of {self.behind.crowd}; ask more clients, or allow a smaller --crowd"
                )

    def add(self, queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...]) -> None:
        self.batches += [
            Batch(query, tally.n) for query, tally in zip(queries, tallies, strict=True)
        ]

    def central(self) -> Central:
        return central(self.batches, self.behind.delta)


def central(batches: Sequence[Batch], delta: float) -> Central:
    """The loss of the client that loses most: the sum over its batches, each beside its part of
    `delta`."""
    times, local, upper = Steps(), Steps(), Steps()
    for each in batches:
        times.add(each.query.cohort.start, each.query.cohort.stop, 1)
    most = max(1, times.maximum)
    kinds = dict.fromkeys(each.kind for each in batches)
    losses = {kind: _batch_loss(*kind, delta / most, len(kinds) <= _LOOKED_AT) for kind in kinds}
    for each in batches:
        start = each.query.cohort.start
        stop = each.query.cohort.stop
        local.add(start, stop, each.query.randomizer.nano)
        upper.add(start, stop, math.ceil(losses[each.kind].upper * NANO))
    lower = max((bounds.lower for bounds in losses.values()), default=0.0)
    return Central(
        local.maximum / NANO, min(local.maximum, upper.maximum) / NANO, lower, delta, most
    )


def _batch_loss(
    randomizer: Randomizer, reports: int, delta: float, by_channel: bool
) -> "Amplified":
    """The loss of one batch. More clients than can be counted lose no more."""
    # here: every run imports this file
    from local_dp.shuffle.accountant import MAX_CLIENTS, Amplified, accounted_for_any, amplified

    local = randomizer.nano / NANO
    clients = min(reports, MAX_CLIENTS)
    if clients < 2 or not isinstance(randomizer.loss, Pure):
        return Amplified({"no shuffler": local}, {"nothing": 0.0}, False)
    if by_channel:
        try:
            return amplified(randomizer, clients, delta)
        except InputError:  # no finite channel, or too large a table
            pass
    return accounted_for_any(local, clients, delta)
