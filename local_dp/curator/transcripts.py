"""The law of all transcripts of a curator's algorithm, whatever it asks next, in exact fractions."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import prod
from typing import Any, TypeAlias, TypeVar

from local_dp.curator.laws import D, SmallDatabases, Z, probabilities
from local_dp.curator.mechanism import Mechanism, R
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Game

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
