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
    passes = bool(cases) and also and all(true for true, _ in cases)
    return Check(statement, passes, _evidence(*(text for _, text in cases), more))


def _evidence(*texts: str) -> str:
    return "; ".join(filter(None, texts))


def within(
    statement: str,
    figures: Mapping[str, float],
    low: float = -math.inf,
    high: float = math.inf,
    *,
    spec: str = ".3g",
    also: bool = True,
) -> Check:
    """Whether each computed figure lies from `low` to `high`, and there is one. The evidence lists
    them in the format `spec`."""
    cases = [
        (low <= figure <= high, f"{name}: {figure:{spec}}") for name, figure in figures.items()
    ]
    return every(statement, cases, also=also)


@dataclass(frozen=True)
class Claimed:
    """What is claimed of a measured figure: its truth lies from `low` to `high`."""

    figure: Statistic
    low: float = -math.inf
    high: float = math.inf

    @property
    def sides(self) -> list[tuple[float, int]]:
        sides = (self.low, -1), (self.high, 1)
        return [(bound, side) for bound, side in sides if math.isfinite(bound)]

    def refuted(self, alpha: float) -> bool:
        """True if a truth in these bounds would give the figure with probability `alpha` at most,
        on either side."""
        tests = {-1: self.figure.below, 1: self.figure.above}
        if not self.figure.known:
            return True
        return any(tests[side](bound, alpha) for bound, side in self.sides)

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
) -> Check:
    """Whether what is claimed of each named figure is not refuted, and there is one; `also` is what
    must be true besides.

    Where all claims are true the check fails with probability ALPHA at most: every look has an
    equal share of it. `catches` is what the weakest look catches, by kind of figure.
    """
    share = ALPHA / max(1, sum(len(claim.sides) for claim in claims.values()))
    passes = bool(claims) and also
    weakest: dict[type, tuple[float, str]] = {}
    texts = []
    for name, claim in claims.items():
        passes = passes and not claim.refuted(share)
        kind = type(claim.figure)
        for size in claim.caught(share):
            weakest[kind] = max(size, weakest.get(kind, size))
        figure = str(claim.figure) if claim.figure.known else "not measured"
        texts.append(f"{name}: {figure}" if name else figure)
    catches = "; ".join(text for _, text in weakest.values()) or "nothing"
    return Check(statement, passes, _evidence(*texts, more), ALPHA, catches)


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
    claims = {name: Claimed(figure, low, high) for name, figure in figures.items()}
    return holds(statement, claims, more, also=also)


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
    claims = [Claimed(rate, share, share) for _, rate, share in looks]
    check = holds(statement, {str(place): claim for place, claim in enumerate(claims)}, also=also)
    if not looks:
        return replace(check, evidence=more or "nothing was drawn")
    name, rate, share = max(looks, key=lambda look: look[1].errors_off(look[2]))
    evidence = (
        f"{len(looks)} outcomes of {len(laws)} laws; furthest: {name}: {rate}, by its law "
        f"{share:.4f}, {rate.errors_off(share):.1f} standard errors"
    )
    return replace(check, evidence=_evidence(evidence, more))


def alike(first: Rate, second: Rate, alpha: float) -> tuple[bool, float]:
    """Whether two rates may be one, and the difference caught with probability 0.99.

    Fisher's exact test: given the sum of the successes, the first is hypergeometric. Equal rates
    count as different with probability `alpha` at most.
    """
    total, runs = first.successes + second.successes, first.trials + second.trials
    least = max(0, total - second.trials)
    counts = np.arange(least, min(total, first.trials) + 1)
    logs = log_choose(first.trials, counts) + log_choose(second.trials, total - counts)
    law = np.exp(logs - logs.max())
    place, law = first.successes - least, law / law.sum()
    same = min(law[: place + 1].sum(), law[place:].sum()) >= alpha / 2
    rate = (total + 1) / (runs + 2)
    errors = special.ndtri(POWER) - special.ndtri(alpha / 2)
    error = math.sqrt(rate * (1 - rate) * (1 / first.trials + 1 / second.trials))
    return bool(same), float(errors * error)


def log_choose(n: int, counts: Ints | Floats) -> Floats:
    """ln C(n, count) for each count."""
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
