"""An experiment that shows a separation: the price of trusting nobody grows like sqrt n.

local-dp experiment examples/plugins/two_models.py --seed 1
"""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Claimed,
    Experiment,
    Finding,
    LogLogFigure,
    Normal,
    Points,
    Row,
    Scale,
    Sheet,
    curve,
    grid,
    holds,
    slope,
    tabulate,
)
from local_dp.interaction import run
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Rows
from local_dp.protocols.surveys.survey import Survey
from local_dp.records import Records

TRIALS = 4000


class Ratio(Row):
    """How many times larger the error of the local survey is, and the error of its logarithm."""

    ratio: float
    error: float


class People(Row):
    n: int

    def measure(self, seed: int) -> Ratio:
        """Root mean square errors of the share of yes, 0.3, among these people, at epsilon 1."""
        generator = np.random.default_rng([seed, self.n])
        records = Records({"yes": (np.arange(self.n) < 0.3 * self.n).astype(np.uint8)})
        people, algorithm = Rows(records), Survey().algorithm(1.0, self.n)
        oracles = (AggregateOracle(people, generator, 1.0) for _ in range(TRIALS))
        shares = np.array([float(run(algorithm, oracle).value) for oracle in oracles])
        local = shares - records["yes"].mean()
        curator = generator.laplace(scale=1 / self.n, size=TRIALS)
        ratio = math.sqrt((local**2).mean() / (curator**2).mean())
        return Ratio(ratio, math.sqrt((2 + 5) / TRIALS) / 2)  # moments of normal and Laplace errors


@dataclass(frozen=True)
class TwoModels(Experiment):
    name = "two-models"
    chapter = LOCAL_MODEL
    title = "What trust in a curator is worth grows like the square root of the people"
    claim = (
        "A curator who sees all answers adds noise once, and clients who trust nobody each add "
        "their own. The ratio of both errors grows like the square root of n."
    )
    source = "KLNRS 2008, Section 4.1"

    def points(self, scale: Scale) -> Points:
        return grid(People, [100, 1000, 10_000] + [100_000] * (scale == "full"))

    def finding(self, sheet: Sheet) -> Finding:
        rows = [(point.n, row.ratio, row.error) for point, row in sheet[People]]
        n, ratios, errors = map(np.array, zip(*rows, strict=True))
        power, error = slope(np.log(n), np.log(ratios), errors)
        check = holds(
            "The ratio grows as n to the power 1/2",
            {"power": Claimed(Normal(power, error), 0.5, 0.5)},
        )
        table = tabulate("Local error over the curator's", "people | ratio | error", rows)
        curves = [curve("ratio of errors", zip(n.tolist(), ratios.tolist(), strict=True))]
        figure = LogLogFigure("ratio", "The worth of trust", "people", "ratio of errors", curves)
        headline = f"The ratio grows as n to the power {power:.3f}."
        return Finding([check], [table], [figure], headline=headline)


EXPERIMENT = TwoModels()
