"""Curves from rows of a table, means with their intervals, and their comparison: parts of a finding
that several claims make."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.experiments.lab.claim import Check, Curve, curve

P = TypeVar("P")
M = TypeVar("M")
Rows: TypeAlias = list[tuple[P, M]]
Values: TypeAlias = Sequence[float] | Floats


@dataclass(frozen=True)
class Deltas:
    at: float  # the worst delta over all pairs of neighbours, at the stated loss
    below: float  # at a smaller epsilon, or with less noise


def curves(rows: Iterable[tuple[Any, ...]], *, grouped: bool = False) -> list[Curve]:
    """A measured curve for each label: rows of (label, x, y) or, with an interval, (label, x, y,
    low, high)."""
    points: dict[str, list[tuple[float, ...]]] = {}
    for label, *point in rows:
        points.setdefault(label, []).append(tuple(point))
    return [curve(label, each, group=label if grouped else "") for label, each in points.items()]


def first_wrong(statement: str, cases: Iterable[tuple[bool, str]], total: str) -> Check:
    """Whether each of many cases is true, and there is one; the evidence is the total, or the first
    three cases that are not true."""
    cases = list(cases)
    wrong = [text for true, text in cases if not true]
    return Check(statement, bool(cases) and not wrong, "; ".join(wrong[:3]) or total)


def crossing(pure: Mapping[int, float], other: Mapping[int, float]) -> float:
    """The least number of bits at which `pure` takes more than `other`, on lines between the
    measured sizes; infinite if there is none."""
    if not pure or not other:
        return math.inf
    sizes = np.arange(max(min(pure), min(other)), min(max(pure), max(other)) + 1)
    first, second = (
        np.interp(sizes, sorted(numbers), [numbers[bits] for bits in sorted(numbers)])
        for numbers in (pure, other)
    )
    return next((float(bits) for bits in sizes[first > second]), math.inf)
