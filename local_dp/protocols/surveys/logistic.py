"""Logistic regression of a reported answer on reported traits: one round, with standard errors from
the noise of the reports."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_positive
from local_dp.errors import InputError
from local_dp.oracles.local.asked import Local, ask_all
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import (
    BETA,
    OfColumns,
    PlainData,
    describe_estimate,
    parameter,
    policy,
    target_error,
)
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.policies import Columns, Launch
from local_dp.records import Records
from local_dp.tallies import Estimate, Tally

_STEPS = 60
_FAR = 25.0  # log odds; beyond, the answers of a cell are as good as all alike
_MADE_UP = (-1.0, 1.0, -0.5)


@dataclass(frozen=True)
class Logistic(OfColumns[Estimate]):
    """Estimates how the odds of yes to `question` change with the traits `on`: log odds = intercept
    + the coefficients of a record's traits.

    A trait is a yes/no question, or a column with public labels, each compared with the first. One
    report encodes traits and answer together, so both are private. The estimate solves the score
    equation with the estimated shares of all cells; its target is the regression of the whole
    population, also where no model holds. The interval is normal, with the sandwich variance. Where
    the reports fix no solution there is no estimate, and the interval is open. Privacy: every
    report is epsilon-locally private. Utility: error of order C sqrt(cells / n) for small epsilon.
    `tolerance` sets the default number of clients: each coefficient within it with probability 95
    %, if all cells are equally large and yes is as frequent as no. Cost: log2 of the cells; one
    round.
    """

    name = "logistic"
    summary = "Estimates how traits change the odds of a yes"
    source = (
        "Scheers, Dayton 1988; van den Hout, van der Heijden, Gilchrist 2007 (randomized response "
        "with covariates)"
    )
    example = "--records fair.csv --question 'affairs > 0' --on 'age >= 30; religious >= 3'"
    question: str = parameter("yes == 1", "Yes/no question whose odds are explained", of_table=True)
    on: tuple[str, ...] = parameter(
        ("first == 1", "second == 1"),
        "Traits: yes/no questions or columns",
        of_table=True,
    )
    labels: tuple[str, ...] = parameter(
        (),
        "Public labels of each trait that is no question",
        help="In a shell '|' separates labels, and ';' traits. The first label is the reference",
    )
    labels_from_data: bool = parameter(
        False, "Read the labels from the table, and publish them", help="In a simulation only"
    )
    missing: str = policy("missing values", exclude="complete records only")
    other: str = policy("labels that are not listed", exclude="")
    tolerance: float = target_error(0.3, "log odds")

    def check(self) -> None:
        check_positive("tolerance", self.tolerance)
        if not self.on or len(set(self.parts.names)) <= len(self.on):
            raise InputError(
                f"the traits are {';'.join(self.on)!r}; give one or more different ones beside "
                f"the question {self.question!r}"
            )
        check_built(self.query)

    @property
    def parts(self) -> Columns:
        return Columns((*self.on, self.question), self.labels, 2, self.missing, self.other)

    @cached_property
    def traits(self) -> tuple[tuple[str, ...], Floats]:
        """The names of the coefficients, and the traits of each cell as numbers 0 and 1, shape
        (cells, coefficients)."""
        cells = np.indices(self.query.shape[:-1]).reshape(len(self.on), -1)
        names = ["intercept"]
        columns = [cells[0] >= 0]
        for axis, (part, side) in enumerate(zip(self.on, self.parts.sides, strict=False)):
            for place, label in enumerate(side[1:], 1):
                names.append(part if side == ["no", "yes"] else f"{part} {label} against {side[0]}")
                columns.append(cells[axis] == place)
        return tuple(names), np.stack(columns, axis=1).astype(np.float64)

    def _estimate(self, epsilon: float, tally: Tally) -> Estimate:
        traits = self.traits[1]
        joint = frequency_randomizer(epsilon, self.query.domain.size, joint=True).joint(
            tally, np.eye(2 * len(traits), self.query.domain.size)
        )
        cells = joint.value.reshape(-1, 2)
        coefficients = solution(traits, cells)
        if coefficients is None:
            nothing = np.full(traits.shape[1], np.nan)
            return Estimate(nothing, nothing, joint.n)
        covariance = sandwich(traits, cells, joint.covariance, coefficients)
        return Estimate(coefficients, np.sqrt(np.diag(covariance)), joint.n)

    @property
    def guess(self) -> tuple[float, float]:
        """No effect, and the standard deviation of the log odds of a uniform share."""
        return 0.0, float(np.pi / 3**0.5)

    def clients(self, epsilon: float) -> int:
        size, many = self.query.domain.size, 1 << 40
        cells = 2 * len(self.traits[1])
        tally = frequency_randomizer(epsilon, size, joint=True).draw_tally(
            dict.fromkeys(range(cells), many // cells), np.random.default_rng(0)
        )
        worst = float(np.max(self._estimate(epsilon, tally).standard_error))
        z = normal_quantile(BETA / (2 * len(self.traits[0])))
        return int(np.ceil(tally.answered * (z * worst / self.tolerance) ** 2))

    def algorithm(self, epsilon: float, clients: int) -> Local[Estimate]:
        oracle = frequency_randomizer(epsilon, self.query.domain.size, joint=True)
        return ask_all(self.query, oracle, clients, lambda tally: self._estimate(epsilon, tally))

    def synthetic(self, clients: int, seed: int) -> Population:
        """Two traits that half of all have each, independently; the coefficients are -1, 1 and
        -1/2."""
        own = (self.question, self.on) != (Logistic.question, Logistic.on)
        self.check_without_table("the question and its traits", own)
        first, second, yes = (column.ravel().astype(np.uint8) for column in np.indices((2, 2, 2)))
        odds = _chance(_MADE_UP[0] + _MADE_UP[1] * first + _MADE_UP[2] * second)
        kinds = Records({"first": first, "second": second, "yes": yes})
        return Finite(kinds, np.where(yes == 1, odds, 1 - odds), clients, seed)

    def for_table(self, table: Launch) -> Self:
        choice = "exclude (complete records only)"
        labels = self.parts.labels_of_table(
            table,
            self.labels_from_data,
            f"missing={choice}",
            f"other={choice}, or list all labels",
        )
        return replace(self, labels=labels)

    def describe(self, result: Estimate) -> PlainData:
        return {
            "question": self.question,
            "labels": list(self.traits[0]),
            **describe_estimate(result),
        }

    def truth(self, population: Population) -> Floats:
        """The coefficients of the distribution that the clients are drawn from; NaN where they are
        infinite: a cell with yes alone, or none."""
        traits = self.traits[1]
        cells = population.law(self.query)[: 2 * len(traits)].reshape(-1, 2)
        coefficients = solution(traits, cells)
        return np.full(traits.shape[1], np.nan) if coefficients is None else coefficients


def _chance(log_odds: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-log_odds)))


def solution(traits: Floats, cells: Floats) -> Floats | None:
    """The coefficients b with sum over cells of x (yes - all s(x b)) = 0, s the logistic function;
    None where Newton's method finds none.

    `cells` are the shares of no and yes in each, shape (cells, 2); estimated ones may be negative.
    """
    coefficients = np.zeros(traits.shape[1])
    whole = cells.sum(axis=1)
    for _ in range(_STEPS):
        chance = _chance(traits @ coefficients)
        slope = (traits * (whole * chance * (1 - chance))[:, None]).T @ traits
        if not np.all(np.linalg.eigvalsh(slope) > 0):
            return None
        step = np.linalg.solve(slope, traits.T @ (cells[:, 1] - whole * chance))
        reach = float(np.abs(step).max())
        coefficients = coefficients + step / max(1.0, reach)
        if reach < 1e-10:
            return coefficients
        if np.abs(coefficients).max() > _FAR:
            return None
    return None


def sandwich(traits: Floats, cells: Floats, covariance: Floats, coefficients: Floats) -> Floats:
    """The covariance of the solution by linear approximation, from that of the estimated cells,
    shape (2 cells, 2 cells)."""
    chance = _chance(traits @ coefficients)
    weights = cells.sum(axis=1) * chance * (1 - chance)
    bread = np.linalg.inv((traits * weights[:, None]).T @ traits)
    scores = np.stack([-traits * chance[:, None], traits * (1 - chance)[:, None]], axis=1)
    each = scores.reshape(-1, traits.shape[1])
    return np.asarray(bread @ (each.T @ covariance @ each) @ bread)
