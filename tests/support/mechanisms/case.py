"""What a case of the conformance tests is, the databases it is built on, and where all cases
are."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from importlib import import_module
from itertools import combinations, cycle, islice, product
from pkgutil import iter_modules
from typing import Any

import numpy as np

from local_dp.arrays import Counts
from local_dp.curator.counts import ColumnCounts, NoisyCounts
from local_dp.curator.intervals import cell_counts
from local_dp.curator.mechanism import Law, Mechanism, Neighbours, SmallDatabases, hockey_stick
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.draws import Draws
from local_dp.loss import ATTO, Approximate, Loss, Pure, exp_epsilon
from local_dp.populations.graphs import Graph


@dataclass(frozen=True)
class Twin:
    """A wrong mechanism: its delta at the case's epsilon exceeds the case's delta and `above`, on
    databases of `n` records, by default the case's."""

    mechanism: Mechanism[Any, Any, Loss]
    above: float = 0.0
    n: tuple[int, ...] = ()


@dataclass(frozen=True)
class Case:
    """A mechanism on all databases of `n` records from `universe`; `build` makes a database of the
    records. `tight`: this share of the loss is too little on these databases, of epsilon if the
    loss is pure and of delta if it is not; 1 means one nano-nat less. By default a hundredth of
    epsilon, without delta, is too little. `name_of` gives a release the name that the law has for
    it. The paths of the sampler are enumerated on `samples`, among them `sample`; at epsilon
    `steep` where they are too many at the mechanism's own."""

    mechanism: Mechanism[Any, Any, Loss]
    universe: list[Any]
    build: Callable[[Any], Any]
    n: tuple[int, ...] = (1, 2)
    twins: tuple[Twin, ...] = ()
    tight: float = 0.0
    factor: float = 2.0
    name_of: Callable[[Any, Any], Any] = lambda release, database: release
    sample: tuple[Any, ...] = ()
    steep: float = 0.0

    @property
    def wrong(self) -> tuple[Twin, ...]:
        mechanism: Any = self.mechanism
        if not self.factor or "epsilon" not in {field.name for field in fields(mechanism)}:
            return self.twins
        return (Twin(replace(mechanism, epsilon=self.factor * mechanism.epsilon)), *self.twins)

    @property
    def too_little(self) -> Loss:
        """A loss that the mechanism exceeds."""
        loss = self.mechanism.loss
        if not self.tight:
            return Pure(loss.nano // 100)
        if isinstance(loss, Pure):
            return Pure(min(loss.nano - 1, int(self.tight * loss.nano)))
        return Approximate(loss.nano, int(Fraction(self.tight) * loss.atto))

    def laws(
        self, mechanism: Mechanism[Any, Any, Loss], sizes: tuple[int, ...] = ()
    ) -> Iterator[tuple[Law[Any], Law[Any]]]:
        return (
            pair
            for n in sizes or self.n
            for pair in SmallDatabases(self.universe, n, self.build).laws(mechanism)
        )

    def exceeds(self, twin: Twin) -> bool:
        loss = self.mechanism.loss
        growth, most = exp_epsilon(loss.nano), max(delta(loss), Fraction(twin.above))
        return any(hockey_stick(*pair, growth) > most for pair in self.laws(twin.mechanism, twin.n))

    @property
    def tried(self) -> Mechanism[Any, Any, Loss]:
        mechanism: Any = self.mechanism
        return replace(mechanism, epsilon=self.steep) if self.steep else mechanism

    @property
    def samples(self) -> list[tuple[Any, ...]]:
        """Records in turn, and mostly the last one, of each number `n`."""
        databases = [self._in_turn(n) for n in self.n]
        if self.mechanism.neighbours != "edge":
            for n in self.n:
                databases.append(tuple(self.universe[-(place % 3 > 0)] for place in range(n)))
        return list(dict.fromkeys([*databases, self.example]))

    @property
    def example(self) -> tuple[Any, ...]:
        return self.sample or self._in_turn(self.n[-1])

    def _in_turn(self, n: int) -> tuple[Any, ...]:
        return tuple(islice(cycle(self.universe), n))


@dataclass(frozen=True)
class Judged(Mechanism[Any, Any, Loss]):
    """A mechanism judged by another kind of neighbours, or at another loss."""

    of: Any
    kind: Neighbours
    price: Loss

    @property
    def neighbours(self) -> Neighbours:  # type: ignore[override]
        return self.kind

    @property
    def loss(self) -> Loss:
        return self.price

    def release(self, database: Any, draws: Draws) -> Any:
        return self.of.release(database, draws)

    def law(self, database: Any) -> Law[Any]:
        law: Law[Any] = self.of.law(database)
        return law


def twin_of(kind: type[Any], **changes: Callable[[Any, Any], Any]) -> type[Any]:
    """A wrong twin of a kind of mechanism: each of these properties or methods is a function of the
    mechanism and of the right one."""

    def override(name: str, change: Callable[[Any, Any], Any]) -> property:
        return property(lambda mechanism: change(mechanism, getattr(super(twin, mechanism), name)))

    twin = type(
        f"Wrong{kind.__name__}",
        (kind,),
        {name: override(name, change) for name, change in changes.items()},
    )
    return twin


def cut(release: NoisyCounts, database: Any) -> NoisyCounts:
    """The released counts, cut to 0..n."""
    return NoisyCounts(np.clip(release.counts, 0, database.size))


def points(bits: int) -> Callable[[tuple[tuple[int], ...]], Multiset]:
    """Databases of points of 0..2^bits - 1."""
    return lambda records: Multiset.of([value for (value,) in records], bits)


LOST = (-1,)
"""A record without a value."""


def present(bits: int) -> Callable[[tuple[tuple[int], ...]], Multiset]:
    """Databases of the points that there are: the number of records is public, and how many of them
    have a value is not."""
    return lambda records: Multiset.of([value for (value,) in records if value >= 0], bits)


def numbered(kind: type[Any]) -> type[Any]:
    """A wrong twin that releases the number of records with a value beside its answer."""

    def law(mechanism: Any, database: Multiset) -> Law[Any]:
        return {
            (answer, database.size): weight
            for answer, weight in kind.law(mechanism, database).items()
        }

    return type(f"Numbered{kind.__name__}", (kind,), {"law": law})


def labelled(bits: int) -> Callable[[Iterable[tuple[int, int]]], LabelledMultiset]:
    """Databases of labelled points of 0..2^bits - 1."""

    def build(records: Iterable[tuple[int, int]]) -> LabelledMultiset:
        pairs = list(records)
        labels = np.array([label for _, label in pairs], dtype=np.int64)
        return LabelledMultiset.of([point for point, _ in pairs], labels, bits)

    return build


def graph(nodes: int) -> Callable[[tuple[tuple[int, int], ...]], Graph]:
    return lambda edges: Graph.of(list(edges), nodes)


def columns(rows: tuple[tuple[int, ...], ...]) -> ColumnCounts:
    return ColumnCounts.of(np.array(rows))


def frequencies(database: Multiset) -> Counts:
    """How often each point of the domain occurs."""
    return cell_counts(database, database.bits, 1, 1 << database.bits)


def tallied(records: tuple[tuple[int], ...]) -> Counts:
    """How often each of the points 0..3 occurs."""
    return frequencies(points(2)(records))


POINTS: list[Any] = [(0,), (1,), (3,)]
PAIRS: list[Any] = list(product((0, 1, 3), (0, 1)))
EDGES: list[Any] = list(combinations(range(4), 2))


def bits(k: int) -> list[Any]:
    return list(product((0, 1), repeat=k))


def share(law: Law[Any]) -> dict[Any, Fraction]:
    """The possible outcomes with their probabilities."""
    total = sum(law.values())
    return {outcome: Fraction(weight, total) for outcome, weight in law.items() if weight}


def delta(loss: Loss) -> Fraction:
    return Fraction(loss.atto, ATTO)


def _rooms() -> list[Any]:
    package = import_module(__package__)
    return [
        module
        for entry in iter_modules(package.__path__)
        if hasattr(module := import_module(f"{__package__}.{entry.name}"), "CASES")
    ]


def all_cases() -> list[Case]:
    return [case for room in _rooms() for case in room.CASES]
