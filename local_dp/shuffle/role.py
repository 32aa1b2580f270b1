"""The shuffler, sans I/O: the reports of a batch in, and if they are a crowd, the same reports in random order and without senders out."""

from dataclasses import dataclass, replace
from typing import TypeVar

from local_dp.arrays import Words
from local_dp.checks import check_whole
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, translate
from local_dp.noise import KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import LocalQuery
from local_dp.randomizers.with_coin import WithCoin
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
        mixed: Words = reports[self.draws.order(len(reports))]
        return mixed


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
