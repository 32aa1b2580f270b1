"""The checks of claims. One of measured figures states its chance to fail in spite of a true claim,
and what it catches; one of computed figures has none."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from local_dp.arrays import Floats, Ints
from local_dp.experiments.lab.shapes import ALPHA, Check
from local_dp.experiments.lab.statistics import POWER, Rate, Statistic


def every(
    statement: str, cases: Iterable[tuple[bool, str]], more: str = "", *, also: bool = True
) -> Check:
    """Whether each computed case (whether it is true, its figures) is true, and there is one. The
    evidence joins the figures and `more`."""
    cases = list(cases)
    evidence = "; ".join([*(text for _, text in cases if text), *filter(None, [more])])
    return Check(statement, bool(cases) and also and all(true for true, _ in cases), evidence)


def within(
    statement: str,
    figures: Mapping[str, float],
    low: float = -math.inf,
    high: float = math.inf,
    *,
    spec: str = ".3g",
    more: str = "",
    also: bool = True,
) -> Check:
    """Whether each computed figure lies from `low` to `high`, and there is one. The evidence lists
    them in the format `spec`."""
    return every(
        statement,
        ((low <= figure <= high, f"{name}: {figure:{spec}}") for name, figure in figures.items()),
        more,
        also=also,
    )


@dataclass(frozen=True)
class Claimed:
    """What is claimed of a measured figure: its truth lies from `low` to `high`."""

    figure: Statistic
    low: float = -math.inf
    high: float = math.inf

    @property
    def sides(self) -> list[tuple[float, int]]:
        return [
            (bound, side)
            for bound, side in ((self.low, -1), (self.high, 1))
            if math.isfinite(bound)
        ]

    def refuted(self, alpha: float) -> bool:
        """Whether a truth in these bounds would give the figure with probability `alpha` at most,
        on either side."""
        tests = {-1: self.figure.below, 1: self.figure.above}
        return not self.figure.known or any(tests[side](bound, alpha) for bound, side in self.sides)

    def caught(self, alpha: float) -> Iterable[tuple[float, str]]:
        """On either side, how far a truth lies from the bounds that is refuted with probability
        0.99."""
        return (
            self.figure.distance(bound, self.figure.caught(bound, alpha, side))
            for bound, side in self.sides
            if self.figure.known
        )


def holds(
    statement: str,
    claims: Mapping[str, Claimed],
    more: str = "",
    *,
    also: bool = True,
    alpha: float = ALPHA,
) -> Check:
    """Whether what is claimed of each named figure is not refuted, and there is one; `also` is what
    must be true besides.

    Where all claims are true the check fails with probability `alpha` at most: every look has an
    equal share of it. `catches` is what the weakest look catches, by kind of figure.
    """
    share = alpha / max(1, sum(len(claimed.sides) for claimed in claims.values()))
    shown = bool(claims) and also and not any(claimed.refuted(share) for claimed in claims.values())
    weakest: dict[type, tuple[float, str]] = {}
    for claimed in claims.values():
        for size in claimed.caught(share):
            weakest[type(claimed.figure)] = max(size, weakest.get(type(claimed.figure), size))
    figures = (
        (name, claimed.figure if claimed.figure.known else "not measured")
        for name, claimed in claims.items()
    )
    evidence = "; ".join(
        [
            *(f"{name}: {figure}" if name else str(figure) for name, figure in figures),
            *filter(None, [more]),
        ]
    )
    return Check(
        statement,
        shown,
        evidence,
        alpha,
        "; ".join(text for _, text in weakest.values()) or "nothing",
    )


def measured(
    statement: str,
    figures: Mapping[str, Statistic],
    low: float = -math.inf,
    high: float = math.inf,
    more: str = "",
    *,
    also: bool = True,
) -> Check:
    """`holds` where the same is claimed of every figure."""
    return holds(
        statement,
        {name: Claimed(figure, low, high) for name, figure in figures.items()},
        more,
        also=also,
    )


def drawn(
    statement: str,
    laws: Mapping[str, tuple[Sequence[int], Sequence[float]]],
    more: str = "",
    *,
    also: bool = True,
) -> Check:
    """Whether each (counts of outcomes, their probabilities) was drawn from that law: a count is
    binomial. The evidence is the furthest, and `more`."""
    looks = [
        (name, Rate(count, sum(counts)), share)
        for name, (counts, law) in laws.items()
        for count, share in zip(counts, law, strict=True)
    ]
    check = holds(
        statement,
        {f"{place}": Claimed(rate, share, share) for place, (_, rate, share) in enumerate(looks)},
        also=also,
    )
    if not looks:
        return replace(check, evidence=more or "nothing was drawn")
    name, rate, share = max(looks, key=lambda look: look[1].errors_off(look[2]))
    furthest = (
        f"furthest: {name}: {rate}, by its law {share:.4f}, {rate.errors_off(share):.1f} standard "
        "errors"
    )
    return replace(
        check,
        evidence="; ".join(
            [f"{len(looks)} outcomes of {len(laws)} laws", furthest, *filter(None, [more])]
        ),
    )


def alike(first: Rate, second: Rate, alpha: float) -> tuple[bool, float]:
    """Whether two rates may be one, and the difference caught with probability 0.99.

    Fisher's exact test: given the sum of the successes, the first is hypergeometric. Equal rates
    count as different with probability `alpha` at most.
    """
    total, runs = first.successes + second.successes, first.trials + second.trials
    counts = np.arange(max(0, total - second.trials), min(total, first.trials) + 1)
    logs = _log_choose(first.trials, counts) + _log_choose(second.trials, total - counts)
    law = np.exp(logs - logs.max())
    place, law = first.successes - int(counts[0]), law / law.sum()
    same = min(law[: place + 1].sum(), law[place:].sum()) >= alpha / 2
    pooled = (total + 1) / (runs + 2)
    errors = -special.ndtri(alpha / 2) + special.ndtri(POWER)
    return bool(same), float(
        errors * math.sqrt(pooled * (1 - pooled) * (1 / first.trials + 1 / second.trials))
    )


def _log_choose(n: int, counts: Ints) -> Floats:
    logs: Floats = (
        special.gammaln(n + 1) - special.gammaln(counts + 1) - special.gammaln(n - counts + 1)
    )
    return logs


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
