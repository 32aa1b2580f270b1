"""The record that every local oracle keeps: the queries, the clients asked, the rounds, the cost, and so the kind of interaction."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from local_dp.errors import RefusedError
from local_dp.ledger import Ledger, Steps
from local_dp.loss import NANO
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.randomizers.randomizer import Randomizer

Interaction: TypeAlias = Literal["non-interactive", "sequentially interactive", "fully interactive"]


@dataclass(frozen=True)
class RoundSummary:
    """What happened in one round, however it was run: n reports; the most epsilon and bits that any one client was asked for; the randomizers, each once."""

    n: int
    epsilon: float
    bits_per_client: int
    digest: str | None
    randomizers: tuple[Randomizer, ...] = ()


class LocalOracle:
    """Checks and charges each round before anybody is asked, and keeps the summaries of the rounds.

    Its ledger is what the clients' own ledgers will say: an honest server does not ask for more than `budget` nats.
    """

    def __init__(self, budget: float, run: str = "run") -> None:
        self.run = run
        self.ledger = Ledger(budget)
        self.rounds: list[RoundSummary] = []
        self._opened = 0
        self._rounds_of = Steps()  # in how many rounds each client was asked

    def begin(self, queries: tuple[LocalQuery, ...]) -> int:
        """The number of the round, from 1, once it is charged. Raises RefusedError("budget") and leaves no trace."""
        self.ledger.charge(self.run, [query.charge() for query in queries])
        self._opened += 1
        for start, stop, _ in _sums(queries, [1] * len(queries)).spans():
            self._rounds_of.add(start, stop, 1)
        return self._opened

    def finish(self, queries: tuple[LocalQuery, ...], n: int, digest: str | None) -> None:
        """The round is over, with n reports."""
        bits = _sums(queries, [query.randomizer.bits for query in queries]).maximum
        randomizers = tuple(dict.fromkeys(query.randomizer for query in queries))
        self.rounds.append(RoundSummary(n, epsilon_of(queries), bits, digest, randomizers))

    def refuse_repeats(self, queries: tuple[LocalQuery, ...]) -> None:
        """Raises RefusedError("asked-twice") if a client is asked two things, now or in two rounds."""
        for start, stop, times in _sums(queries, [1] * len(queries)).spans():
            if times + self._rounds_of.most(start, stop) > 1:
                raise RefusedError(
                    "asked-twice", f"client {start} is asked more than once, and tallies drawn from their law forget its record; use --tier population"
                )

    @property
    def interaction(self) -> Interaction:
        """One round is non-interactive; several are sequentially interactive if nobody was asked in two of them, else fully interactive."""
        if self._opened <= 1:
            return "non-interactive"
        return "sequentially interactive" if self._rounds_of.maximum <= 1 else "fully interactive"


def epsilon_of(queries: tuple[LocalQuery, ...]) -> float:
    """The most epsilon that one client pays for all that it is asked, in nats; for what a cohort is asked again under a label it pays once."""
    due, paid = [], set[tuple[str, Cohort]]()
    for query in queries:
        due.append(0 if query.memo and (query.memo, query.cohort) in paid else query.randomizer.nano)
        paid.add((query.memo, query.cohort))
    return _sums(queries, due).maximum / NANO


def _sums(queries: tuple[LocalQuery, ...], amounts: list[int]) -> Steps:
    """The sum over each client's asks."""
    sums = Steps()
    for query, amount in zip(queries, amounts, strict=True):
        sums.add(query.cohort.start, query.cohort.stop, amount)
    return sums
