"""The trusted curator: a mechanism is to its database what a randomizer is to a client's value; and
its privacy, proved by enumeration in whole numbers."""

import math
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import import_module
from itertools import combinations, combinations_with_replacement, permutations, product
from pkgutil import walk_packages
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, get_args, get_type_hints

from local_dp import curator
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Game
from local_dp.loss import (
    Approximate,
    Concentrated,
    Loss,
    Pure,
    approximate,
    exp_epsilon,
    nano_epsilon,
)

D = TypeVar("D")
R = TypeVar("R")
S = TypeVar("S")
D_contra = TypeVar("D_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)
L_co = TypeVar("L_co", bound=Loss | Concentrated, covariant=True)

Neighbours: TypeAlias = Literal["replace", "add-remove", "edge", "labels", "person"]
"""How two neighbours differ: a record replaced, one added or removed, an edge of a graph flipped, a
label (the last entry) or all rows of a person replaced."""

Law: TypeAlias = Mapping[R, int]
"""Pr[each outcome] as whole weights; their total may depend on the database.

A sampler draws from whole weights, a common factor costs nothing, and two laws are compared by
cross-multiplying whole numbers.
"""


def whole_weights(probabilities: Mapping[R, Fraction]) -> Law[R]:
    """Probabilities as whole weights, by their common denominator. Raises InputError unless they
    sum to 1: otherwise an outcome is missing or wrong."""
    total = math.lcm(*(share.denominator for share in probabilities.values()))
    law = {outcome: int(share * total) for outcome, share in probabilities.items()}
    if missing := total - sum(law.values()):
        raise InputError(
            f"the probabilities of {len(law)} outcomes miss 1 by "
            f"{float(Fraction(missing, total)):.3g}; list every outcome once"
        )
    return law


def check_listed(what: str, size: int, most: int, unit: str = "") -> None:
    """Raises InputError for more outcomes than a law is listed for."""
    if size > most:
        raise InputError(f"there are {what}; a law is listed up to {most}{unit}")


def probabilities(law: Law[R]) -> dict[R, Fraction]:
    total = sum(law.values())
    return {outcome: Fraction(weight, total) for outcome, weight in law.items()}


def mixture(parts: Iterable[tuple[Fraction, Mapping[R, Fraction]]]) -> dict[R, Fraction]:
    """The probabilities of a mixture of laws, each with its own probability."""
    shares: defaultdict[R, Fraction] = defaultdict(Fraction)
    for share, law in parts:
        for outcome, chance in law.items():
            shares[outcome] += share * chance
    return dict(shares)


def image(law: Law[R], function: Callable[[R], S]) -> Law[S]:
    """The law of a function of the outcome."""
    weights: Counter[S] = Counter()
    for outcome, weight in law.items():
        weights[function(outcome)] += weight
    return weights


def independent(laws: Sequence[Mapping[R, Any]]) -> Iterator[tuple[tuple[R, ...], Any]]:
    """The law of independent outcomes, one of each law: in weights or in probabilities."""
    for outcomes in product(*(law.items() for law in laws)):
        yield tuple(outcome for outcome, _ in outcomes), math.prod(weight for _, weight in outcomes)


@dataclass(frozen=True)
class Mechanism(ABC, Generic[D_contra, R_co, L_co]):
    """A private function from a database D to a result R. Its type states its loss L: Pure,
    Approximate or Concentrated.

    A curator's algorithm is a `Nonadaptive` or an `Adaptive` over mechanisms: it sees their results
    and no record.
    """

    summary: ClassVar[str] = ""
    neighbours: ClassVar[Neighbours] = "replace"

    def __post_init__(self) -> None:
        """Checks the parameters; an override calls this one."""

    @property
    @abstractmethod
    def loss(self) -> L_co:
        """The cost of one release, computed from the parameters."""

    @abstractmethod
    def release(self, database: D_contra, draws: Draws) -> R_co:
        """The private result. Its law does not depend on the order of the records."""

    def law(self, database: D_contra) -> Law[R_co]:
        """The law of `release`, where the outcomes are few enough to list. Raises InputError
        otherwise."""
        raise InputError(f"{type(self).__name__} has too many outcomes to list")


class WithinEpsilon(Mechanism[D_contra, R_co, Pure]):
    """A mechanism that makes its noise for a given `epsilon`, and loses all of it. Its subclasses
    are dataclasses with that field."""

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))


class WithinDelta(Mechanism[D_contra, R_co, Approximate]):
    """A mechanism that makes its noise for a given (eps, delta). Its subclasses are dataclasses
    with an `epsilon` and a `delta`."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        approximate(self.epsilon, self.delta)

    @property
    def loss(self) -> Approximate:
        return approximate(self.epsilon, self.delta)


class OfRelease(Mechanism[D_contra, R_co, L_co]):
    """A function of another mechanism's release, which sees no record: as private. Its subclasses
    are dataclasses with that `mechanism`."""

    mechanism: Mechanism[D_contra, Any, L_co]

    @abstractmethod
    def after(self, release: Any) -> R_co:
        """The result."""

    @property
    def loss(self) -> L_co:
        return self.mechanism.loss

    def release(self, database: D_contra, draws: Draws) -> R_co:
        return self.after(self.mechanism.release(database, draws))

    def law(self, database: D_contra) -> Law[R_co]:
        return image(self.mechanism.law(database), self.after)


_KINDS: dict[Any, str] = {Pure: "pure", Approximate: "approximate", Concentrated: "concentrated"}


def mechanisms() -> list[type[Mechanism[Any, Any, Any]]]:
    """Every mechanism that the curator's modules define, sorted by the name of its class."""
    for module in walk_packages(curator.__path__, f"{curator.__name__}."):
        import_module(module.name)
    kinds = [
        kind
        for kind in _below(Mechanism)
        if not kind.__abstractmethods__ and kind.__module__.startswith(curator.__name__)
    ]
    return sorted(kinds, key=lambda kind: kind.__name__)


def _below(kind: type[Any]) -> set[type[Any]]:
    return {each for child in kind.__subclasses__() for each in (child, *_below(child))}


def privacy_in(kind: type[Mechanism[Any, Any, Any]]) -> str:
    """Pure, approximate or concentrated, by the type of its loss; "that of its parts" where another
    mechanism decides it."""
    owner = vars(next(each for each in kind.__mro__ if "loss" in vars(each)))["loss"]
    loss = get_type_hints(owner.fget)["return"]
    kinds = [_KINDS[each] for each in (loss, *get_args(loss)) if each in _KINDS]
    return " or ".join(kinds) or "that of its parts"


MAX_PAIRS = 1 << 18
Z = TypeVar("Z", bound=tuple[int, ...])


def hockey_stick(law: Law[R], other: Law[R], growth: Fraction) -> Fraction:
    """The largest Pr[S] - growth Pr'[S] over all sets S of outcomes, exactly. With growth =
    e^epsilon it is the least delta of this pair of databases."""
    total, others = sum(law.values()), sum(other.values())
    here, there = others * growth.denominator, total * growth.numerator
    excess = 0
    for outcome, weight in law.items():
        excess += max(0, weight * here - other.get(outcome, 0) * there)
    return Fraction(excess, total * here)


@dataclass(frozen=True)
class SmallDatabases(Generic[Z, D]):
    """All databases of `n` records (edges of a graph) from a small universe, given as multisets to
    `build`.

    Under "add-remove" and "edge" the neighbours have n - 1 records: enumerate every n up to the
    largest.
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
                f"n is {self.n}: nothing or too many to enumerate; give 1 or more, with at most "
                f"{MAX_PAIRS} pairs of neighbours"
            )
        for rest in (combinations if graph else combinations_with_replacement)(
            universe, self.n - 1
        ):
            databases = {
                record: tuple(sorted((*rest, record)))
                for record in universe
                if not graph or record not in rest
            }
            if neighbours in ("edge", "add-remove"):
                for larger in databases.values():
                    yield from ((larger, rest), (rest, larger))
            else:
                for record, other in permutations(databases, 2):
                    if neighbours == "replace" or record[:-1] == other[:-1]:
                        yield databases[record], databases[other]

    def laws(self, mechanism: Mechanism[D, R, Loss]) -> Iterator[tuple[Law[R], Law[R]]]:
        """The laws of the mechanism on each pair of neighbours; each law is computed once."""
        law = cache(lambda records: mechanism.law(self.build(records)))
        for records, others in self.pairs(mechanism.neighbours):
            yield law(records), law(others)

    def worst_delta(self, mechanism: Mechanism[D, R, Loss], loss: Loss | None = None) -> Fraction:
        """The least delta that the mechanism has at the epsilon of `loss`, by default its own:
        private if at most the delta of the loss."""
        growth = exp_epsilon((mechanism.loss if loss is None else loss).nano)
        return max(hockey_stick(law, other, growth) for law, other in self.laws(mechanism))

    def worst_ratios(self, mechanism: Mechanism[D, R, Loss]) -> dict[R, Fraction]:
        """For each outcome the largest ratio of its probabilities; the largest of all is e^(pure
        loss). Raises InputError where a ratio is infinite."""
        return _worst(self.laws(mechanism), "an outcome")


def _worst(laws: Iterable[tuple[Law[R], Law[R]]], what: str) -> dict[R, Fraction]:
    worst: dict[R, Fraction] = {}
    for law, other in laws:
        total, others = sum(law.values()), sum(other.values())
        for outcome, weight in law.items():
            if weight and not other.get(outcome):
                raise InputError(
                    f"{what} is possible on one database and impossible on its neighbour: the "
                    "loss is infinite"
                )
            most = worst.setdefault(outcome, Fraction(1))
            if weight * others * most.denominator > most.numerator * other.get(outcome, 0) * total:
                worst[outcome] = Fraction(weight * others, other[outcome] * total)
    return worst


def epsilon_of(ratio: Fraction) -> float:
    """ln `ratio`, in nats: accurate for ratios just above 1 too."""
    return math.log1p(float(ratio - 1))


A = TypeVar("A")
M = TypeVar("M", bound=Mechanism[Any, Any, Any])
Transcript: TypeAlias = tuple[tuple[A, ...], ...]  # the answers of each round

_LISTED = 1 << 18


def transcripts(algorithm: Algorithm[M, A, R], database: D) -> dict[Transcript[A], Fraction]:
    """Pr[each transcript] on this database, by playing all of them: their loss is the algorithm's.
    Raises InputError above 2^18."""
    complete: dict[Transcript[A], Fraction] = {}
    prefixes: list[tuple[Transcript[A], Fraction]] = [((), Fraction(1))]
    while prefixes:
        transcript, chance = prefixes.pop()
        game = Game(algorithm)
        for answers in transcript:
            game.send(answers)
        if game.queries is None:
            complete[transcript] = chance
            continue
        laws = [probabilities(mechanism.law(database)) for mechanism in game.queries]
        if len(prefixes) + len(complete) + math.prod(map(len, laws)) > _LISTED:
            raise InputError(
                f"there are more than {_LISTED:,} transcripts; at most so many are listed"
            )
        for answers, share in independent(laws):
            prefixes.append(((*transcript, answers), chance * share))
    return complete


def worst_transcripts(
    algorithm: Algorithm[M, A, R], databases: SmallDatabases[Z, D]
) -> dict[Transcript[A], Fraction]:
    """For each transcript the largest ratio of its probabilities on neighbours. Raises InputError
    where a transcript is possible on one of them only."""
    law = cache(lambda records: whole_weights(transcripts(algorithm, databases.build(records))))
    return _worst(
        ((law(records), law(others)) for records, others in databases.pairs("replace")),
        "a transcript",
    )
