"""Algorithms ask oracles, all at once or in rounds, and their type says which.

Q is a query, A an answer, R the result. LocalQuery + Nonadaptive is a non-interactive local
algorithm (LNI), LocalQuery + Adaptive an interactive one (LI), LocalQuery + Repeated one that asks
the same clients again (FI); StatisticalQuery + Nonadaptive and + Adaptive are non-adaptive and
adaptive SQ algorithms (NASQ, SQ).
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, overload

from local_dp.errors import InputError

Q = TypeVar("Q")
A = TypeVar("A")
R = TypeVar("R")
Q_contra = TypeVar("Q_contra", contravariant=True)
A_co = TypeVar("A_co", covariant=True)
NewQ = TypeVar("NewQ")
NewA = TypeVar("NewA")


@dataclass(frozen=True)
class Nonadaptive(Generic[Q, A, R]):
    """All queries exist before any answer: KLNRS Definitions 4.2 and 4.4, the non-adaptive and
    non-interactive case."""

    queries: tuple[Q, ...]
    decode: Callable[[tuple[A, ...]], R]


Play: TypeAlias = Generator[tuple[Q, ...], tuple[A, ...], R]


@dataclass(frozen=True)
class Adaptive(Generic[Q, A, R]):
    """Queries may depend on earlier answers: `play()` is a generator that yields a tuple of queries
    a round and is sent as many answers."""

    play: Callable[[], Play[Q, A, R]]


@dataclass(frozen=True)
class Repeated(Adaptive[Q, A, R]):
    """Adaptive, and a client may be asked again in a later round: a fully interactive algorithm,
    which over local queries is FI."""


Algorithm: TypeAlias = Nonadaptive[Q, A, R] | Adaptive[Q, A, R]


class Game(Generic[Q, A, R]):
    """A running algorithm: `queries` is the current round, None once it has its `result`."""

    result: R

    def __init__(self, algorithm: Algorithm[Q, A, R]) -> None:
        self._play = as_play(algorithm)
        self.queries: tuple[Q, ...] | None = ()
        self.send(None)

    def send(self, answers: tuple[A, ...] | None) -> None:
        """Gives the answers to `queries`; None begins the play."""
        try:
            self.queries = next(self._play) if answers is None else self._play.send(answers)
        except StopIteration as stop:
            self.queries, self.result = None, stop.value
        if not isinstance(self.queries, tuple | None):
            raise InputError(
                f"a round is a tuple of queries, and this one is a {type(self.queries).__name__}; "
                "write (query,) for one query"
            )
        if self.queries == ():
            raise InputError("a round asks nothing; ask a query, or return the result")


def as_play(algorithm: Algorithm[Q, A, R]) -> Play[Q, A, R]:
    """A play of the algorithm, of one round if it is non-adaptive: another play can `yield from`
    it. Raises InputError for what is no algorithm."""
    if not isinstance(algorithm, Nonadaptive | Adaptive):
        raise InputError(
            f"an algorithm is a Nonadaptive or an Adaptive, and this one is a "
            f"{type(algorithm).__name__}"
        )
    if isinstance(algorithm, Nonadaptive):
        return algorithm.decode((yield algorithm.queries))
    return (yield from algorithm.play())


class Oracle(Protocol[Q_contra, A_co]):
    """Answers one round of queries."""

    def answer(self, queries: tuple[Q_contra, ...]) -> tuple[A_co, ...]: ...


class AsyncOracle(Protocol[Q_contra, A_co]):
    """Answers one round of queries, over a network."""

    async def answer(self, queries: tuple[Q_contra, ...]) -> tuple[A_co, ...]: ...


def run(algorithm: Algorithm[Q, A, R], oracle: Oracle[Q, A]) -> R:
    """The algorithm's result when `oracle` answers."""
    game = Game(algorithm)
    while game.queries is not None:
        game.send(oracle.answer(game.queries))
    return game.result


async def run_async(algorithm: Algorithm[Q, A, R], oracle: AsyncOracle[Q, A]) -> R:
    """`run` with an asynchronous oracle."""
    game = Game(algorithm)
    while game.queries is not None:
        game.send(await oracle.answer(game.queries))
    return game.result


Ask: TypeAlias = Callable[[tuple[Q, ...], tuple[NewQ, ...]], tuple[NewQ, ...]]
Read: TypeAlias = Callable[[tuple[Q, ...], tuple[NewQ, ...], tuple[NewA, ...]], tuple[A, ...]]


@overload
def translate(
    algorithm: Nonadaptive[Q, A, R], ask: Ask[Q, NewQ], read: Read[Q, NewQ, NewA, A]
) -> Nonadaptive[NewQ, NewA, R]: ...
@overload
def translate(
    algorithm: Adaptive[Q, A, R], ask: Ask[Q, NewQ], read: Read[Q, NewQ, NewA, A]
) -> Adaptive[NewQ, NewA, R]: ...
def translate(
    algorithm: Algorithm[Q, A, R], ask: Ask[Q, NewQ], read: Read[Q, NewQ, NewA, A]
) -> Nonadaptive[NewQ, NewA, R] | Adaptive[NewQ, NewA, R]:
    """The same algorithm for another kind of oracle, round for round: every "preserves adaptivity"
    clause of KLNRS Section 4.

    `ask(queries, before)` writes a round in the new language, `before` all queries of earlier
    rounds; `read(queries, translated, answers)` reads its answers.
    """
    if isinstance(algorithm, Nonadaptive):
        queries, decode = algorithm.queries, algorithm.decode
        translation = ask(queries, ())
        return Nonadaptive(translation, lambda answers: decode(read(queries, translation, answers)))

    def begin() -> Callable[[tuple[Q, ...]], Play[NewQ, NewA, tuple[A, ...]]]:
        before: tuple[NewQ, ...] = ()

        def play_round(queries: tuple[Q, ...]) -> Play[NewQ, NewA, tuple[A, ...]]:
            nonlocal before
            translation = ask(queries, before)
            before += translation
            return read(queries, translation, (yield translation))

        return play_round

    return expand(algorithm, begin)


def expand(
    algorithm: Adaptive[Q, A, R],
    begin: Callable[[], Callable[[tuple[Q, ...]], Play[NewQ, NewA, tuple[A, ...]]]],
) -> Adaptive[NewQ, NewA, R]:
    """The same algorithm with each of its rounds played as several: `begin()` starts a play and
    returns the function that plays one round's queries."""

    def play() -> Play[NewQ, NewA, R]:
        play_round, game = begin(), Game(algorithm)
        while game.queries is not None:
            game.send((yield from play_round(game.queries)))
        return game.result

    return Adaptive(play)


def _nothing(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Watched(Generic[Q, A]):
    """Passes queries and answers on unchanged, and shows every round to `before(queries)` and
    `after(queries, answers)`, which may raise."""

    oracle: Oracle[Q, A]
    before: Callable[[tuple[Q, ...]], object] = _nothing
    after: Callable[[tuple[Q, ...], tuple[A, ...]], object] = _nothing

    def answer(self, queries: tuple[Q, ...]) -> tuple[A, ...]:
        self.before(queries)
        answers = self.oracle.answer(queries)
        self.after(queries, answers)
        return answers
