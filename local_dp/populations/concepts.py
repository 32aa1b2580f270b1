"""Finite concept classes: named families of +1/-1 labellings of finitely many points, a user's own
sign matrix, and functions of one variable a block."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from local_dp.arrays import Bools, Counts, Floats, Ints
from local_dp.checks import check_dimension, check_whole
from local_dp.cube import character, parity, sign
from local_dp.errors import InputError, unknown
from local_dp.populations.finite import Finite
from local_dp.records import Records

Signs: TypeAlias = NDArray[np.int8]
MAX_ENTRIES = 1 << 28  # concepts x points of a whole label matrix, one byte each


@dataclass(frozen=True)
class ConceptClass:
    """`size` concepts over `points` of whole `weights`; `row(c)` has a +1/-1 label a point. Errors
    are exact multiples of 1 / `total`."""

    name: str
    params: Mapping[str, Any]
    points: Records
    weights: Counts
    size: int
    row: Callable[[int], Signs]

    @property
    def total(self) -> int:
        return int(self.weights.sum())

    @property
    def shares(self) -> Floats:
        """The probability of each point."""
        return np.asarray(self.weights / self.total)

    @cached_property
    def labels(self) -> Signs:
        """Every concept's labels, shape (size, points). Raises InputError where that would not fit
        in memory."""
        if self.size * len(self.points) > MAX_ENTRIES:
            raise InputError(
                f"{self.name}: {self.size} concepts on {len(self.points)} points are more than "
                "2^28 labels; take a smaller class"
            )
        return np.stack([self.row(concept) for concept in range(self.size)])

    def correlations(self) -> Counts:
        """total E[c(x) c'(x)] of every pair, exact, shape (size, size)."""
        signs = self.labels.astype(np.float64)  # whole numbers below 2^53: exact, and fast
        return np.rint((signs * self.weights) @ signs.T).astype(np.int64)

    def labelled(self, concept: int) -> Records:
        """The points with the label column y of one concept."""
        return label(self.points, self.row(concept))

    def population(self, concept: int, size: int, seed: int) -> Finite:
        """Examples (x, c(x)) drawn from the points' distribution."""
        return Finite(self.labelled(concept), self.shares.tolist(), size, seed)


def label(points: Records, y: Signs) -> Records:
    return Records({**points.columns, "y": y})


def _cube(d: int, most: int = 16) -> Records:
    """{0,1}^d as columns x0, x1, ... and as the number x, whose bit j is x_j."""
    check_dimension(d, most)
    x = np.arange(1 << d, dtype=np.uint64)
    bits = {f"x{j}": ((x >> np.uint64(j)) & np.uint64(1)).astype(np.uint8) for j in range(d)}
    return Records({**bits, "x": x})


def _uniform(
    name: str, params: Mapping[str, Any], points: Records, size: int, row: Callable[[int], Signs]
) -> ConceptClass:
    return ConceptClass(name, dict(params), points, np.ones(len(points), dtype=np.int64), size, row)


def _all_ones(x: Ints, mask: int) -> Signs:
    """+1 where every bit of the mask is set."""
    return -sign((x & np.uint64(mask)) == np.uint64(mask)).astype(np.int8)


def parities(d: int) -> ConceptClass:
    """The 2^d parities (-1)^<r, x> on {0,1}^d."""
    cube = _cube(d)
    return _uniform(
        "parities", {"d": d}, cube, 1 << d, lambda r: character(r, cube["x"]).astype(np.int8)
    )


def monotone_conjunctions(d: int) -> ConceptClass:
    """The 2^d conjunctions of unnegated variables; +1 is true."""
    cube = _cube(d)
    return _uniform(
        "monotone-conjunctions", {"d": d}, cube, 1 << d, lambda mask: _all_ones(cube["x"], mask)
    )


def signed_conjunctions(d: int) -> ConceptClass:
    """The 3^d consistent conjunctions of literals: digit j of the index in base 3 leaves x_j out,
    asks for it, or for its negation."""
    cube = _cube(d, 12)

    def row(index: int) -> Signs:
        digits = [index // 3**j % 3 for j in range(d)]
        ones = sum(1 << j for j, digit in enumerate(digits) if digit == 1)
        zeros = sum(1 << j for j, digit in enumerate(digits) if digit == 2)
        return np.minimum(_all_ones(cube["x"], ones), _all_ones(~cube["x"], zeros))

    return _uniform("signed-conjunctions", {"d": d}, cube, 3**d, row)


def thresholds(d: int) -> ConceptClass:
    """x >= t on the line of N = 2^d points, for t = 0..N-1."""
    cube = _cube(d)

    def row(t: int) -> Signs:
        return -sign(cube["x"] >= np.uint64(t)).astype(np.int8)

    return _uniform("thresholds", {"d": d}, cube, 1 << d, row)


def stumps(d: int) -> ConceptClass:
    """The 2d literals: concept 2j is the sign of x_j, 2j + 1 its negation."""
    cube = _cube(d)

    def row(index: int) -> Signs:
        return (sign(cube[f"x{index // 2}"]) * (1 - 2 * (index % 2))).astype(np.int8)

    return _uniform("stumps", {"d": d}, cube, 2 * d, row)


def point_functions(d: int) -> ConceptClass:
    """The 2^d indicators of one point."""
    cube = _cube(d)

    def row(point: int) -> Signs:
        return -sign(cube["x"] == np.uint64(point)).astype(np.int8)

    return _uniform("points", {"d": d}, cube, 1 << d, row)


def juntas(d: int, k: int = 3) -> ConceptClass:
    """Every Boolean function of at most k of the d variables, once each."""
    cube = _cube(d, 10)
    if (
        type(k) is not int
        or not 0 <= k <= min(d, 4)
        or math.comb(d, k) << ((1 << k) + d) > MAX_ENTRIES
    ):
        raise InputError(
            f"k is {k!r} and d is {d}; give from 0 to 4 variables of the d, and at most 2^28 "
            "labels in all"
        )
    tables: Signs = 1 - 2 * np.array(list(product((0, 1), repeat=1 << k)), dtype=np.int8)
    read = [
        sum(cube[f"x{j}"].astype(np.int64) << place for place, j in enumerate(variables))
        for variables in combinations(range(d), k)
    ]
    every = np.concatenate([tables[:, np.broadcast_to(cells, len(cube))] for cells in read])
    distinct = np.unique(every, axis=0)
    return _uniform("juntas", {"d": d, "k": k}, cube, len(distinct), lambda index: distinct[index])


def masked_parity(d: int) -> ConceptClass:
    """The 2^(d+1) concepts of KLNRS Section 5 on the points (x, i, b); the index of (r, a) is 2 r +
    a."""
    cube = _cube(d, 12)
    x = np.tile(cube["x"], 2 * d)
    i = np.repeat(np.tile(np.arange(d, dtype=np.uint8), 2), 1 << d)
    b = np.repeat(np.array([0, 1], dtype=np.uint8), d << d)

    def row(index: int) -> Signs:
        r, a = index >> 1, index & 1
        bits = sign((np.uint64(r) >> i.astype(np.uint64)) & np.uint64(1))
        return np.where(b == 0, character(r, x) * np.int8(1 - 2 * a), bits).astype(np.int8)

    return _uniform("masked-parity", {"d": d}, Records({"x": x, "i": i, "b": b}), 2 << d, row)


def sign_matrix(labels: Ints, weights: Ints | None = None) -> ConceptClass:
    """A class given by its labels, +1 or -1, shape (concepts, points); the points are numbered in
    the column `point`. Uniform without `weights`."""
    if labels.ndim != 2 or 0 in labels.shape or not bool(np.isin(labels, (-1, 1)).all()):
        raise InputError(
            f"a sign matrix is concepts x points of +1 and -1; this one has shape {labels.shape} "
            f"and values {np.unique(labels)[:5].tolist()}"
        )
    if weights is None:
        weights = np.ones(labels.shape[1], dtype=np.int64)
    shares = np.asarray(weights).astype(np.int64)
    if (
        shares.shape != labels.shape[1:]
        or np.any(shares != weights)
        or shares.min() < 0
        or not 0 < sum(shares.tolist()) < 1 << 40  # in Python's whole numbers, which do not wrap
    ):
        raise InputError(
            f"give one whole, non-negative weight for each of the {labels.shape[1]} points, not "
            "all zero and below 2^40 in sum"
        )
    signs = labels.astype(np.int8)
    points = Records({"point": np.arange(labels.shape[1])})
    params = {"labels": signs.tolist(), "weights": shares.tolist()}
    return ConceptClass(
        "sign-matrix", params, points, shares, len(signs), lambda index: signs[index]
    )


CLASSES: dict[str, Callable[..., ConceptClass]] = {
    "parities": parities,
    "monotone-conjunctions": monotone_conjunctions,
    "signed-conjunctions": signed_conjunctions,
    "thresholds": thresholds,
    "stumps": stumps,
    "points": point_functions,
    "juntas": juntas,
    "masked-parity": masked_parity,
}


def build_class(name: str, params: Mapping[str, Any]) -> ConceptClass:
    """The class `name` with these parameters; `sign-matrix` takes labels and weights as lists.
    Raises InputError on what it does not know."""
    try:
        if name == "sign-matrix":
            return sign_matrix(np.array(params["labels"]), np.array(params["weights"]))
        return CLASSES[name](**params)
    except (KeyError, TypeError, ValueError):
        raise InputError(
            f"no concept class {name!r} with parameters {sorted(params)}; there are "
            f"{', '.join(CLASSES)} (d; juntas also k)"
        ) from None


MAX_BLOCKS = 12
MAX_BLOCK = 1 << 20


FUNCTIONS: dict[str, Callable[[Counts, int], Bools]] = {  # where f is -1, of every u below 2^t
    # if the last block whose bit is set is the first, third, ...: a decision list
    "odd-max-bit": lambda u, t: np.frexp(u.astype(np.float64))[1] % 2 == 1,
    "and": lambda u, t: u == (1 << t) - 1,
    "majority": lambda u, t: 2 * np.bitwise_count(u) > t,
    "parity": lambda u, t: parity(u.astype(np.uint64)) == 1,
}


@dataclass(frozen=True)
class BlockClass:
    """f(x_{1, j_1} xor w_1, ..., x_{t, j_t} xor w_t) and its negation, for all choices j of one of
    b variables in each of t blocks and all w in {0,1}^t.

    A concept labels x, which has t b bits, +1 or -1; there are 2 (2b)^t names of concepts. Closed
    under negation. Raises InputError.
    """

    function: str
    t: int
    b: int

    def __post_init__(self) -> None:
        if self.function not in FUNCTIONS:
            raise InputError(unknown("no function named", str(self.function), tuple(FUNCTIONS)))
        check_whole("t", self.t, 1, MAX_BLOCKS)
        check_whole("b", self.b, 1, MAX_BLOCK)

    @property
    def variables(self) -> int:
        return self.t * self.b

    def signs(self) -> Signs:
        """f on {0,1}^t: bit i of the index u is what block i + 1 says."""
        return sign(FUNCTIONS[self.function](np.arange(1 << self.t), self.t)).astype(np.int8)

    def told(self) -> Counts:
        """What each (j, w) reads of each x, a number below 2^t: shape (b^t 2^t, 2^(t b)). Raises
        InputError for more than 2^28 entries."""
        if (self.b << (self.b + 1)) ** self.t > MAX_ENTRIES:
            raise InputError(
                f"(2b)^t 2^(t b) is more than 2^28 labels at t = {self.t}, b = {self.b}; take a "
                "smaller class"
            )
        bits = np.arange(1 << self.variables) >> np.arange(self.variables)[:, None] & 1
        blocks = np.arange(self.t)
        values = [
            (bits[blocks * self.b + j] << blocks[:, None]).sum(axis=0) for j in self.choices()
        ]
        flips = np.stack(values)[:, None] ^ np.arange(1 << self.t)[:, None]
        return np.asarray(flips.reshape(-1, len(bits[0])))

    def choices(self) -> Counts:
        """Every choice j of one variable a block, a row each."""
        return np.asarray(np.indices((self.b,) * self.t).reshape(self.t, -1).T)

    def masks(self, S: int) -> Counts:
        """For each choice j, the variables that it takes from the blocks of S, as a mask of t b
        bits: shape (b^t,)."""
        inside = np.array([S >> i & 1 for i in range(self.t)])
        return np.asarray((1 << self.choices() + np.arange(self.t) * self.b) @ inside)
