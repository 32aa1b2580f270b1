"""The best frequency oracle for k symbols, by closed form."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from local_dp.domains import symbols
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.frequencies.affine_sets import MAX_SYMBOLS as MAX_EXACT
from local_dp.randomizers.frequencies.affine_sets import AffineSets, best_size
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.local_hashing import OLH, best_hash
from local_dp.randomizers.frequencies.projective import PGR, best_geometry, points
from local_dp.randomizers.frequencies.subset_selection import (
    MAX_SYMBOLS,
    SubsetSelection,
    best_blocks,
    is_field,
    total_variance,
)

MAX_JOINT = 64  # symbols up to which the covariances of sets are quick
NEAR = Fraction(101, 100)  # what is within 1 % of the best is as good, and the simpler one is taken

Kind: TypeAlias = type[GRR] | type[OLH] | type[PGR] | type[SubsetSelection] | type[AffineSets]


@dataclass(frozen=True)
class Choice:
    """An oracle whose reports name sets of w of `order` points, every two symbols in equally many,
    and n times its total variance at the uniform law.

    Every oracle of `choices` has this form: single symbols (w = 1), hyperplanes of affine and
    projective geometries, or blocks.
    """

    kind: Kind
    order: int
    w: int
    total: Fraction


def choices(epsilon: float, k: int, *, joint: bool = False) -> list[Choice]:
    """Every oracle that may be the best for k symbols, the simplest to decode first; with `joint`
    only those whose covariances are cheap."""
    nano = nano_epsilon(epsilon)
    growth = Fraction(float(exp_epsilon(nano)))
    return [
        Choice(kind, order, w, total_variance(growth, order, w, k))
        for kind, order, w in _sets(nano, symbols(k).size, joint)
    ]


def _sets(nano: int, k: int, joint: bool) -> Iterator[tuple[Kind, int, int]]:
    yield GRR, k, 1
    hashed = best_hash(nano, k)
    if hashed.m > 1:
        yield OLH, hashed.points, hashed.points // hashed.g
    g, t = best_geometry(nano, k)
    if t > 2:
        yield PGR, points(g, t), points(g, t - 1)
    if k <= (MAX_JOINT if joint else MAX_SYMBOLS):
        order, w = best_blocks(nano, k)
        if w > 1:
            yield SubsetSelection, order, w
    if k <= MAX_EXACT and not is_field(k):
        yield AffineSets, k, best_size(nano, k)


@lru_cache(maxsize=4096)
def best_choice(epsilon: float, k: int, *, joint: bool = False, of: str = "population") -> Choice:
    """The first of `choices` whose total variance is within 1 % of the least; `of` records without
    the sample's. It is largest at the uniform law: the noise's is the same at all laws."""
    candidates = choices(epsilon, k, joint=joint)
    sample = Fraction(k - 1, k) if of == "records" else 0
    least = min(choice.total for choice in candidates) - sample
    return next(choice for choice in candidates if choice.total - sample <= NEAR * least)
