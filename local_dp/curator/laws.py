"""Privacy proved by enumeration: every database over a small universe, every neighbour, every outcome, every transcript, in whole numbers."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, combinations_with_replacement, permutations, product
from math import prod
from typing import Any, Generic, TypeAlias, TypeVar

from local_dp.curator.mechanism import D, Law, Mechanism, Neighbours, R, probabilities
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Game
from local_dp.loss import Loss, exp_epsilon

MAX_PAIRS = 1 << 18
Z = TypeVar("Z", bound=tuple[int, ...])


def hockey_stick(law: Law[R], other: Law[R], growth: Fraction) -> Fraction:
    """The largest Pr[S] - growth Pr'[S] over all sets S of outcomes, exactly. With growth = e^epsilon it is the least delta of this pair of databases."""
    total, others = sum(law.values()), sum(other.values())
    here, there = others * growth.denominator, total * growth.numerator
    excess = sum(more for outcome, weight in law.items() if (more := weight * here - other.get(outcome, 0) * there) > 0)
    return Fraction(excess, total * here) if excess else Fraction(0)


@dataclass(frozen=True)
class SmallDatabases(Generic[Z, D]):
    """All databases of `n` records (edges of a graph) from a small universe, given as multisets to `build`.

    Under "add-remove" and "edge" the neighbours have n - 1 records: enumerate every n up to the largest.
    """

    universe: Sequence[Z]
    n: int
    build: Callable[[tuple[Z, ...]], D]

    def pairs(self, neighbours: Neighbours) -> Iterator[tuple[tuple[Z, ...], tuple[Z, ...]]]:
        """Every ordered pair of neighbours. Raises InputError above 2^18 pairs."""
        universe, graph = sorted(self.universe), neighbours == "edge"
        places = len(universe) if graph else len(universe) + self.n - 2
        if self.n < 1 or math.comb(places, self.n - 1) * len(universe) ** 2 > MAX_PAIRS:
            raise InputError(
                f"n is {self.n} over a universe of {len(universe)}: nothing or too many to enumerate; give 1 or more and at most {MAX_PAIRS} pairs"
            )
        for rest in (combinations if graph else combinations_with_replacement)(universe, self.n - 1):
            completed = {record: tuple(sorted((*rest, record))) for record in universe if not graph or record not in rest}
            if neighbours in ("edge", "add-remove"):
                for larger in completed.values():
                    yield from ((larger, rest), (rest, larger))
            else:
                for record, other in permutations(completed, 2):
                    if neighbours == "replace" or record[:-1] == other[:-1]:
                        yield completed[record], completed[other]

    def laws(self, mechanism: Mechanism[D, R, Loss]) -> Iterator[tuple[Law[R], Law[R]]]:
        """The laws of the mechanism on each pair of neighbours; each law is computed once."""
        law = cache(lambda records: mechanism.law(self.build(records)))
        for records, others in self.pairs(mechanism.neighbours):
            yield law(records), law(others)

    def worst_delta(self, mechanism: Mechanism[D, R, Loss], loss: Loss | None = None) -> Fraction:
        """The least delta that the mechanism has at the epsilon of `loss`, by default its own: private if at most the delta of the loss."""
        growth = exp_epsilon((mechanism.loss if loss is None else loss).nano)
        return max(hockey_stick(law, other, growth) for law, other in self.laws(mechanism))

    def worst_ratios(self, mechanism: Mechanism[D, R, Loss]) -> dict[R, Fraction]:
        """For each outcome the largest ratio of its probabilities; the largest of all is e^(pure loss). Raises InputError where a ratio is infinite."""
        worst: dict[R, Fraction] = {}
        for law, other in self.laws(mechanism):
            total, others = sum(law.values()), sum(other.values())
            for outcome, weight in law.items():
                if weight and not other.get(outcome):
                    raise InputError("an outcome is possible on one database and impossible on its neighbour: the loss is infinite")
                most = worst.setdefault(outcome, Fraction(1))
                if weight * others * most.denominator > most.numerator * other.get(outcome, 0) * total:
                    worst[outcome] = Fraction(weight * others, other[outcome] * total)
        return worst


def epsilon_of(ratio: Fraction) -> float:
    """ln `ratio`, in nats: accurate for ratios just above 1 too."""
    return math.log1p(float(ratio - 1))


A = TypeVar("A")
M = TypeVar("M", bound=Mechanism[Any, Any, Any])
Transcript: TypeAlias = tuple[tuple[A, ...], ...]
"""The answers of each round."""

_LISTED = 1 << 18


def transcripts(algorithm: Algorithm[M, A, R], database: D) -> dict[Transcript[A], Fraction]:
    """Pr[each transcript] on this database, by playing all of them: each answer of each law, and the next queries. Raises InputError above 2^18.

    All transcripts of a private algorithm are possible on all databases, and its queries are a function of them: their loss is the algorithm's.
    """
    ended: dict[Transcript[A], Fraction] = {}
    unfinished: list[tuple[Transcript[A], Fraction]] = [((), Fraction(1))]
    while unfinished:
        transcript, chance = unfinished.pop()
        game = Game(algorithm)
        for answers in transcript:
            game.send(answers)
        if game.queries is None:
            ended[transcript] = chance
            continue
        laws = [probabilities(mechanism.law(database)) for mechanism in game.queries]
        if len(unfinished) + len(ended) + prod(map(len, laws)) > _LISTED:
            raise InputError(f"there are more than {_LISTED:,} transcripts; at most so many are listed")
        for outcomes in product(*(law.items() for law in laws)):
            share = prod((each for _, each in outcomes), start=chance)
            unfinished.append(((*transcript, tuple(answer for answer, _ in outcomes)), share))
    return ended


def worst_transcripts(algorithm: Algorithm[M, A, R], databases: SmallDatabases[Z, D]) -> dict[Transcript[A], Fraction]:
    """For each transcript the largest ratio of its probabilities on two databases that differ in one record; the largest of all is e^(pure loss).

    Raises InputError where a transcript is possible on one of them only.
    """
    law = cache(lambda records: transcripts(algorithm, databases.build(records)))
    worst: dict[Transcript[A], Fraction] = {}
    for records, others in databases.pairs("replace"):
        here, there = law(records), law(others)
        for transcript, chance in here.items():
            if chance and not there.get(transcript):
                raise InputError("a transcript is possible on one database and impossible on its neighbour: the loss is infinite")
            worst[transcript] = max(worst.get(transcript, Fraction(1)), chance / there[transcript])
    return worst
