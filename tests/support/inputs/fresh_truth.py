"""Right answers by pandas and numpy alone, the share of the rows that each is about, and bounds of
its standard error from the literature."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
MISSED = 4.9  # standard errors: a right estimate is farther away once in a million


@dataclass(frozen=True)
class Truth:
    """The right numbers; `whole`: the share of the rows that each is about, where the bounds of the
    standard error are known; `width` of their range.

    `slack`: how far the program's own truth may be away, by a grid for instance, as a share of it.
    """

    value: Any
    whole: Any = None
    width: float = 1.0
    slack: float = 1e-9
    grid: float = 0.0

    def same(self, truth: Any) -> bool:
        """Whether the program knows this truth."""
        claim, right = (np.atleast_1d(np.array(each, dtype=float)) for each in (truth, self.value))
        return claim.shape == right.shape and np.allclose(
            claim, right, rtol=self.slack, atol=self.grid + 1e-9
        )

    def near(self, estimate: Any, error: Any) -> bool:
        """Whether the estimate lies within the errors that chance makes."""
        return bool(
            np.all(
                np.abs(np.atleast_1d(estimate) - self.value)
                <= MISSED * np.atleast_1d(error) + self.grid + 1e-9
            )
        )

    def plausible(self, error: Any, epsilon: float, n: int) -> bool:
        """Whether the standard error lies between half that of one randomized bit from each row of
        the whole, and twice the best for many labels.

        Kairouz et al. 2016: no report of privacy epsilon gives a share with less noise than
        randomized response, e / (e - 1)^2 for e = exp(epsilon). Wang et al. 2017: optimised unary
        encoding has 4 e / (e - 1)^2, and a quotient by the whole as much again, divided by the
        share of the whole.
        """
        if self.whole is None:
            return True
        bit, whole = np.exp(epsilon) / np.expm1(epsilon) ** 2, np.array(self.whole, dtype=float)
        least, most = (
            self.width * np.sqrt(bit / n) / 2,
            2 * self.width * np.sqrt((4 * bit + 1) / n) / whole,
        )
        return bool(np.all((least <= error) & (error <= most)))


def share(yes: Any, among: Any = True) -> Truth:
    """The share of yes among the rows that count."""
    rows = np.broadcast_to(np.asarray(among, dtype=bool), len(yes))
    return Truth(np.asarray(yes, dtype=float)[rows].mean(), rows.mean())


def shares(column: Any, labels: Iterable[Any], among: Any = True) -> Truth:
    """The share of each label. `column` may have the counted rows alone."""
    values, rows = np.asarray(column), np.asarray(among, dtype=bool)
    values = values[rows] if rows.shape == values.shape else values
    return Truth([float(np.mean(values == label)) for label in labels], rows.mean())


def binned(column: Any, low: float, high: float, bins: int) -> Truth:
    """The share below, in each interval, the last one with both its ends, and above; among the
    numbers that there are."""
    numbers = column.dropna()
    inside = np.histogram(numbers, bins, (low, high))[0]
    return Truth(
        np.array([(numbers < low).sum(), *inside, (numbers > high).sum()]) / len(numbers),
        column.notna().mean(),
    )


def mean(column: Any, low: float, high: float) -> Truth:
    """The mean of the numbers that there are."""
    return Truth(column.mean(), column.notna().mean(), high - low)


def means(column: Any, low: float, high: float, by: Any, labels: Iterable[Any]) -> Truth:
    groups = [column[by == label].dropna() for label in labels]
    return Truth(
        [each.mean() for each in groups],
        [len(each) / len(column) for each in groups],
        high - low,
    )


def grouped(yes: Any, by: Any, labels: Iterable[Any], among: Any = True) -> Truth:
    each = [share(yes, (by == label) & among) for label in labels]
    return Truth([one.value for one in each], [one.whole for one in each])


def weighted(yes: Any, by: Any, weights: Mapping[Any, float], among: Any = True) -> Truth:
    """The share in each group, and of all by the weights of the groups."""
    groups = grouped(yes, by, weights, among).value
    return Truth([*groups, np.average(groups, weights=list(weights.values()))])


def difference(yes: Any, by: Any, first: Any, second: Any) -> Truth:
    one, other = grouped(yes, by, [first, second]).value
    return Truth([one, other, other - one])


def quantile(column: Any, at: list[float], grid: float) -> Truth:
    """The least numbers that at least these shares of the rows do not exceed."""
    return Truth(np.quantile(column.dropna(), at, method="inverted_cdf"), grid=grid)


def log_odds(yes: Any, trait: Any) -> Truth:
    """The intercept and the coefficient of a trait, by the odds in the four cells."""
    odds = [
        np.log(share(yes, trait == each).value / (1 - share(yes, trait == each).value))
        for each in (False, True)
    ]
    return Truth([odds[0], odds[1] - odds[0]], slack=1e-6)


def commoner(label: Any, among: Any = True) -> Truth:
    """How often the commoner of two labels is right, which a rule must beat."""
    yes = share(label, among).value
    return Truth(max(yes, 1 - yes))


def found(column: Any) -> Truth:
    """The shares of the values, the most frequent first."""
    return Truth(column.value_counts(normalize=True))


def counts(column: Any) -> Truth:
    return Truth(column.value_counts())


def clients(accuracy: float, epsilon: float, mean: float = 0.5) -> Truth:
    """How many people make the error of one randomized bit stay within the accuracy in 95 % of
    runs, for this mean; a half is the worst one."""
    return Truth(
        np.ceil(
            (1 / (4 * np.tanh(epsilon / 2) ** 2) - (mean - 0.5) ** 2) * (1.959964 / accuracy) ** 2
        )
    )


def reach(yes: Any, epsilon: float, n: int) -> Truth:
    """The error of one randomized bit in 95 % of runs, for people drawn like the rows."""
    p, e = np.mean(yes), np.exp(epsilon)
    return Truth(1.959964 * np.sqrt((e / (e - 1) ** 2 + p * (1 - p)) / n))
