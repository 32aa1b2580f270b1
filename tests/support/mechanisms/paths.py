"""Every path of a curator's sampler: `Draws` whose outcomes are enumerated, each with its exact
probability.

A draw is a `Number` that is not yet known. A comparison splits its range, and each part is a path
of its own. So a draw below 2^64 that is compared once has two outcomes, and discrete Laplace noise
that is clipped to 0..n has n + 1. The law of a release is the sum over its paths (`law_of`).
"""

import math
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise, permutations
from numbers import Integral, Real
from operator import floordiv, lshift, mod, mul, rshift
from typing import Any, TypeAlias

import numpy as np
import pytest

from local_dp.arrays import Ints
from local_dp.curator import inversion
from local_dp.curator.clipped import laplace_tail
from local_dp.curator.inversion import Cumulative
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.groups import Groups
from local_dp.curator.selection.sparse import PrintedChoice, SparseChoice
from local_dp.draws import WORD_BITS, Draws
from local_dp.loss import NANO
from local_dp.noise import KeyedNoise

DIGITS = 40  # of the probabilities of a table
ROUNDED = (
    1e-12  # the probabilities of a table, and tails without a bound, which count as their ends
)
_BITS, _FEW, _LAST = 3, 8, (1 << WORD_BITS) - 1
Tail: TypeAlias = Callable[[int], Fraction]
"""Pr[draw >= y] for every whole y."""
Ask: TypeAlias = tuple[Any, ...]


class Cut(Exception):
    """The path is too unlikely to be followed."""


class Tree(Draws):
    """The draws of one path: the first ones as `branches` says, all others at their first outcome,
    with the other outcomes noted in `others`.

    A path less likely than `least` is cut off.
    """

    least = Fraction(1, 10**7)

    def __init__(self, branches: tuple[int, ...], most: int) -> None:
        super().__init__(KeyedNoise(0))
        self.branches, self.most = branches, most
        self.chance, self.others, self.asks = Fraction(1), list[tuple[int, ...]](), list[Ask]()
        self._at, self.rough = 0, False

    def branch(self, shares: Sequence[Fraction]) -> int:
        """The index of one of these probabilities, which sum to 1."""
        if self._at == len(self.branches):
            possible = [index for index, share in enumerate(shares) if share]
            self.others += [
                (*self.branches, index)
                for index in possible[1:]
                if self.chance * shares[index] >= self.least
            ]
            self.branches = (*self.branches, possible[0])
        index = self.branches[self._at]
        self._at += 1
        self.chance *= shares[index]
        if self.chance < self.least:
            raise Cut
        return index

    def below(self, limit: int) -> Any:
        self.asks.append(("below", limit))
        return self.branch([Fraction(1, limit)] * limit) if limit < _FEW else self._uniform(limit)

    def many_below(self, limit: int, count: int) -> Any:
        self.asks.append(("many_below", limit, count))
        return _array([self._uniform(limit) for _ in range(count)])

    def words(self, count: int) -> Any:
        self.asks.append(("words", count))
        return _array([self._uniform(1 << WORD_BITS) for _ in range(count)])

    def order(self, count: int) -> Ints:
        self.asks.append(("order", count))
        orders = list(permutations(range(count)))
        return np.array(
            orders[self.branch([Fraction(1, len(orders))] * len(orders))], dtype=np.int64
        )

    def discrete_laplace(self, epsilon: Fraction) -> Any:
        self.asks.append(("laplace", epsilon))
        nano = epsilon * NANO
        return Number(Variable(self, lambda y: laplace_tail(nano, y)))

    def discrete_laplaces(self, epsilon: Fraction, count: int) -> Any:
        return _array([self.discrete_laplace(epsilon) for _ in range(count)])

    def invert(self, cumulative: Cumulative, count: int) -> Any:
        self.rough = True
        sums = [Fraction(share) for share in cumulative(DIGITS)]
        last = len(sums) - 1

        def tail(y: int) -> Fraction:
            return Fraction(1) if y < 1 else 1 - sums[y - 1] if y <= last else Fraction(0)

        return _array([Number(Variable(self, tail, 0, last)) for _ in range(count)])

    def _uniform(self, limit: int) -> "Number":
        return Number(
            Variable(self, lambda y: Fraction(limit - min(max(y, 0), limit), limit), 0, limit - 1)
        )


class Variable:
    """A draw of which the path knows that it lies in low..high; None is no bound."""

    def __init__(
        self, tree: Tree, tail: Tail, low: int | None = None, high: int | None = None
    ) -> None:
        self.tree, self.tail, self.low, self.high = tree, tail, low, high

    def below(self, bound: int) -> bool:
        if self.high is not None and self.high < bound:
            return True
        if self.low is not None and self.low >= bound:
            return False
        less = self._share(self.low, bound - 1) / self._share(self.low, self.high)
        if self.tree.branch([less, 1 - less]) == 0:
            self.high = bound - 1
            return True
        self.low = bound
        return False

    def settle(self) -> int:
        """One value. Without a bound the tails count as the values `most` below and above 0; a word
        has few bits, the others are 0."""
        self.tree.rough |= self.low is None or self.high is None
        low = -self.tree.most if self.low is None else self.low
        high = self.tree.most if self.high is None else self.high
        if (low, high) == (0, _LAST):
            return self.coins(_BITS)
        ends = [self.tail(y) - self.tail(y + 1) for y in (low, high)]
        if ends[0] == ends[1] and self.tree.chance < self.tree.least * (high - low + 1):
            raise Cut
        assert high - low < 1 << 12, (
            f"a draw from {high - low + 1} values is used as it is; compare it, or let it be one "
            "of fewer"
        )
        if high > low:
            first = Fraction(1) if self.low is None else self.tail(low)
            last = Fraction(0) if self.high is None else self.tail(high + 1)
            tails, whole = [first, *map(self.tail, range(low + 1, high + 1)), last], first - last
            low += self.tree.branch([(more - less) / whole for more, less in pairwise(tails)])
        self.low = self.high = low
        return low

    def coins(self, count: int) -> int:
        """The last bits of a word."""
        self.low = self.high = self.tree.branch([Fraction(1, 1 << count)] * (1 << count))
        return self.low

    def _share(self, low: int | None, high: int | None) -> Fraction:
        return (Fraction(1) if low is None else self.tail(low)) - (
            Fraction(0) if high is None else self.tail(high + 1)
        )


class Number:
    """A variable or its opposite, plus `shift`; arithmetic beyond that settles it."""

    def __init__(self, variable: Variable, sign: int = 1, shift: int = 0) -> None:
        self._variable, self._sign, self._shift = variable, sign, shift

    def _less(self, bound: int) -> bool:
        if self._sign > 0:
            return self._variable.below(bound - self._shift)
        return not self._variable.below(self._shift - bound + 1)

    def __int__(self) -> int:
        return self._sign * self._variable.settle() + self._shift

    __index__ = __int__

    def __float__(self) -> float:
        return float(int(self))

    def __hash__(self) -> int:
        return hash(int(self))

    def __lt__(self, other: Any) -> bool:
        return self._less(math.ceil(_real(other)))

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __le__(self, other: Any) -> bool:
        return self._less(math.floor(_real(other)) + 1)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Real) and self <= other and self >= other

    def __neg__(self) -> "Number":
        return Number(self._variable, -self._sign, -self._shift)

    def __abs__(self) -> "Number":
        return -self if self < 0 else self

    def __add__(self, other: Any) -> "Number":
        return Number(self._variable, self._sign, self._shift + int(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> "Number":
        return self + -int(other)

    def __rsub__(self, other: Any) -> "Number":
        return Number(self._variable, -self._sign, int(other) - self._shift)

    def __and__(self, mask: Any) -> int:
        word = (self._variable.low, self._variable.high, int(mask) & (int(mask) + 1)) == (
            0,
            _LAST,
            0,
        )
        return self._variable.coins(int(mask).bit_length()) if word else int(self) & int(mask)

    def __bool__(self) -> bool:
        return self != 0

    @property
    def numerator(self) -> int:
        return int(self)

    denominator = 1


Integral.register(Number)
for _name, _operation in (
    ("mul", mul),
    ("floordiv", floordiv),
    ("mod", mod),
    ("lshift", lshift),
    ("rshift", rshift),
):
    setattr(
        Number,
        f"__{_name}__",
        lambda self, other, operation=_operation: operation(int(self), other),
    )
    setattr(
        Number,
        f"__r{_name}__",
        lambda self, other, operation=_operation: operation(other, int(self)),
    )


def law_of(
    release: Callable[[Draws], Any], most: int = 0, kind: type[Tree] = Tree
) -> dict[Any, Fraction]:
    """The probability of each outcome, by all paths. What is cut off is missing."""
    return _explore(release, most, kind)[0]


def _explore(
    release: Callable[[Draws], Any], most: int, kind: type[Tree]
) -> tuple[dict[Any, Fraction], bool]:
    """The same, and whether some path is exact only to `ROUNDED`."""
    law, rough = defaultdict[Any, Fraction](Fraction), False
    left: list[tuple[int, ...]] = [()]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("discrete_laplaces", "invert"):
            _dispatch(patch, name)
        while left:
            tree = kind(left.pop(), most)
            with suppress(Cut):
                law[settled(release(tree))] += tree.chance
            left += tree.others
            rough |= tree.rough
    return dict(law), rough


def follows(release: Callable[[Draws], Any], law: Mapping[Any, Any], most: int = 0) -> bool:
    """Whether the paths add up to the law exactly, except for unlikely paths that are cut off, less
    than 1e-5 in all."""
    (paths, rough), total = _explore(release, most, Tree), sum(map(Fraction, law.values()))
    cut, rounded = 1 - sum(paths.values()), ROUNDED if rough else 0
    assert cut < 1e-5, "too many paths are cut off; try a larger epsilon"
    shares = {outcome: Fraction(weight) / total for outcome, weight in law.items()}
    gaps = (share - paths.get(outcome, 0) for outcome, share in shares.items())
    near = all(-rounded <= gap <= cut + rounded for gap in gaps)
    return near and paths.keys() <= shares.keys()


def _dispatch(patch: pytest.MonkeyPatch, name: str) -> None:
    """`name` of `curator.inversion` asks a tree where it would draw from words; in every module
    that has imported it."""

    def dispatch(original: Any) -> Any:
        def draw(*arguments: Any) -> Any:
            trees = [each for each in arguments if isinstance(each, Tree)]
            if not trees:
                return original(*arguments)
            return getattr(trees[0], name)(*(each for each in arguments if each is not trees[0]))

        return draw

    _replace(patch, name, dispatch)


def _replace(patch: pytest.MonkeyPatch, name: str, wrap: Callable[[Any], Any]) -> None:
    """Wraps a function of `curator.inversion` in every module that has imported it."""
    original = getattr(inversion, name)
    for key, module in list(sys.modules.items()):
        if key.startswith(("local_dp.", "tests.")) and vars(module).get(name) is original:
            patch.setattr(module, name, wrap(original))


def settled(result: Any) -> Any:
    """The result with every number settled."""
    if isinstance(result, Number):
        return int(result)
    if isinstance(result, np.ndarray):
        return result.astype(np.int64) if result.dtype == object else result
    if isinstance(result, tuple):
        return tuple(map(settled, result))
    if is_dataclass(result) and not isinstance(result, type):
        return replace(
            result,
            **{
                field.name: settled(getattr(result, field.name))
                for field in fields(result)
                if field.init
            },
        )
    return result


def _real(other: Any) -> Any:
    return int(other) if isinstance(other, Number) else other


def _array(numbers: list[Number]) -> Any:
    array = np.empty(len(numbers), dtype=object)
    array[:] = numbers
    return array


class Recorder(Draws):
    """Draws as usual, with a note of what a mechanism asks for: the kind of draw and its exact
    parameters, without the draws that it is made of."""

    def __init__(self) -> None:
        super().__init__(KeyedNoise(0))
        self.asks, self._inside = list[Ask](), False

    def note(self, ask: Ask, draw: Callable[[], Any]) -> Any:
        if self._inside:
            return draw()
        self.asks.append(ask)
        self._inside = True
        try:
            return draw()
        finally:
            self._inside = False


def _record(kind: Any, name: str) -> None:
    original = getattr(Draws, name)
    setattr(
        kind,
        name,
        lambda self, *arguments: self.note((name, *arguments), lambda: original(self, *arguments)),
    )


for _name in (
    "below",
    "many_below",
    "words",
    "order",
    "coin",
    "discrete_laplace",
    "discrete_cauchy",
):
    _record(Recorder, _name)


def asks_of(release: Callable[[Draws], Any]) -> list[Ask]:
    """What a release asks for, in order; a choice by scores counts as one draw, by its own
    parameters."""
    source = Recorder()

    def noting(name: str, original: Any) -> Any:
        def draw(*arguments: Any) -> Any:
            parameters = [
                each for each in arguments if each is not source and not isinstance(each, Groups)
            ]
            return source.note((name, *parameters), lambda: original(*arguments))

        return draw

    with pytest.MonkeyPatch.context() as patch:
        for name in ("discrete_laplaces", "rounded_normals", "signed"):
            _replace(patch, name, partial(noting, name))
        for kind in (ExponentialChoice, SparseChoice, PrintedChoice):
            for name in ("choose", "choose_many"):
                if name in vars(kind):
                    patch.setattr(kind, name, noting("choose", vars(kind)[name]))
        release(source)
    return source.asks
