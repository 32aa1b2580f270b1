"""The narrow waist: an algorithm asks an oracle, all at once or in rounds, and its type says which.

Q is what may be asked, A what is answered, R the result. LocalQuery + Nonadaptive is a non-interactive local algorithm (LNI), LocalQuery + Adaptive an
interactive one (LI); StatisticalQuery + Nonadaptive and + Adaptive are non-adaptive and adaptive SQ algorithms (NASQ, SQ).
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
Q_contra = TypeVar("Q_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True)
class Nonadaptive(Generic[Q, A, R]):
    """All queries exist before any answer: KLNRS Definitions 4.2 and 4.4, the non-adaptive and non-interactive case."""

    queries: tuple[Q, ...]
    decode: Callable[[tuple[A, ...]], R]


Play: TypeAlias = Generator[tuple[Q, ...], tuple[A, ...], R]


@dataclass(frozen=True)
class Adaptive(Generic[Q, A, R]):
    """Queries may depend on earlier answers: `play()` is a generator that yields a tuple of queries a round and is sent as many answers."""

    play: Callable[[], Play[Q, A, R]]


Algorithm: TypeAlias = Nonadaptive[Q, A, R] | Adaptive[Q, A, R]


class Oracle(Protocol[Q_contra, A_co]):
    """Answers one round of queries."""

    def answer(self, queries: tuple[Q_contra, ...]) -> tuple[A_co, ...]: ...


class AsyncOracle(Protocol[Q_contra, A_co]):
    """Answers one round of queries, over a network."""

    async def answer(self, queries: tuple[Q_contra, ...]) -> tuple[A_co, ...]: ...


def run(algorithm: Algorithm[Q, A, R], oracle: Oracle[Q, A]) -> R:
    """The algorithm's result when `oracle` answers."""
    if isinstance(algorithm, Nonadaptive):
        return algorithm.decode(oracle.answer(algorithm.queries))
    play = algorithm.play()
    try:
        queries = next(play)
        while True:
            queries = play.send(oracle.answer(queries))
    except StopIteration as finished:
        result: R = finished.value
        return result


async def run_async(algorithm: Algorithm[Q, A, R], oracle: AsyncOracle[Q, A]) -> R:
    """`run`, with an oracle that takes its time."""
    if isinstance(algorithm, Nonadaptive):
        return algorithm.decode(await oracle.answer(algorithm.queries))
    play = algorithm.play()
    try:
        queries = next(play)
        while True:
            queries = play.send(await oracle.answer(queries))
    except StopIteration as finished:
        result: R = finished.value
        return result
