"""The law of everything that a curator's algorithm is told: all its transcripts, whatever it asks next, in exact fractions."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any, TypeAlias, TypeVar

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Game

D = TypeVar("D")
A = TypeVar("A")
R = TypeVar("R")
M = TypeVar("M", bound=Mechanism[Any, Any, Any])
Z = TypeVar("Z", bound=tuple[int, ...])
Transcript: TypeAlias = tuple[tuple[A, ...], ...]
"""The answers of each round."""

_LISTED = 1 << 18


def transcripts(algorithm: Algorithm[M, A, R], database: D) -> dict[Transcript[A], Fraction]:
    """Pr[each transcript] on this database, by playing them all: each answer of each law, and what is asked then. Raises InputError above 2^18.

    All transcripts of a private algorithm are possible on all databases, and what is asked is a function of them: their loss is the algorithm's.
    """
    found: dict[Transcript[A], Fraction] = {}
    open_ones: list[tuple[Transcript[A], Fraction]] = [((), Fraction(1))]
    while open_ones:
        told, chance = open_ones.pop()
        game = Game(algorithm)
        for answers in told:
            game.send(answers)
        if game.queries is None:
            found[told] = chance
            continue
        laws = [_chances(each.law(database)) for each in game.queries]
        if len(open_ones) + len(found) + prod(map(len, laws)) > _LISTED:
            raise InputError(f"there are more than {_LISTED:,} transcripts; they are listed up to as many")
        for answered in product(*laws):
            share = chance
            for _, each in answered:
                share *= each
            open_ones.append(((*told, tuple(answer for answer, _ in answered)), share))
    return found


def _chances(law: Law[A]) -> list[tuple[A, Fraction]]:
    whole = sum(law.values())
    return [(answer, Fraction(weight, whole)) for answer, weight in law.items()]


def worst_transcripts(algorithm: Algorithm[M, A, R], databases: SmallDatabases[Z, D]) -> dict[Transcript[A], Fraction]:
    """For each transcript the largest ratio of its probabilities on two neighbours, a record replaced; the largest of all is e^(the algorithm's pure loss).

    Raises InputError where a transcript is possible on one of them only.
    """
    law = cache(lambda records: transcripts(algorithm, databases.build(records)))
    worst: dict[Transcript[A], Fraction] = {}
    for records, others in databases.pairs("replace"):
        here, there = law(records), law(others)
        for told, chance in here.items():
            if chance and not there.get(told):
                raise InputError("a transcript is possible on one database and impossible on its neighbour: the loss is infinite")
            worst[told] = max(worst.get(told, Fraction(1)), chance / there[told])
    return worst
