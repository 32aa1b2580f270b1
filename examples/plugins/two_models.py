"""An experiment that shows a separation: the price of trusting nobody grows like sqrt n.

local-dp experiment examples/plugins/two_models.py --seed 1
"""

import math
from dataclasses import dataclass

import numpy as np

import local_dp.experiments.lab.parts as lab
from local_dp.randomizers.signs.binary_rr import BinaryRR

TRIALS = 4000


class Ratio(lab.Row):
    """How many times larger the error of the local survey is, and the error of its logarithm."""

    ratio: float
    error: float


class People(lab.Row):
    n: int

    def measure(self, seed: int) -> Ratio:
        """Root mean square errors of the share of yes, 0.3, among these people, at epsilon 1."""
        generator, randomizer = np.random.default_rng([seed, self.n]), BinaryRR(1.0)
        answers = {0: self.n - 3 * self.n // 10, 1: 3 * self.n // 10}
        tallies = (randomizer.draw_tally(answers, generator) for _ in range(TRIALS))
        local = np.array([float(randomizer.estimate(tally).value) - 0.3 for tally in tallies])
        curator = generator.laplace(scale=1 / self.n, size=TRIALS)
        ratio = math.sqrt((local**2).mean() / (curator**2).mean())
        return Ratio(ratio, math.sqrt((2 + 5) / TRIALS) / 2)  # moments of normal and Laplace errors


@dataclass(frozen=True)
class TwoModels(lab.Experiment):
    name, chapter, source = "two-models", lab.LOCAL_MODEL, "KLNRS 2008, Section 4.1"
    title = "What trust in a curator is worth grows like the square root of the people"
    claim = "With local noise the error is larger than with a curator's, in a ratio like sqrt n."

    def points(self, scale: lab.Scale) -> lab.Points:
        return lab.grid(People, [100, 1000, 10_000] + [100_000] * (scale == "full"))

    def finding(self, sheet: lab.Sheet) -> lab.Finding:
        rows = [(point.n, row.ratio, row.error) for point, row in sheet[People]]
        n, ratios, errors = map(np.array, zip(*rows, strict=True))
        power, error = lab.slope(np.log(n), np.log(ratios), errors)
        claimed = lab.Claimed(lab.Normal(power, error), 0.5, 0.5)
        check = lab.holds("The ratio grows as n to the power 1/2", {"power": claimed})
        table = lab.tabulate("Local error over the curator's", "people | ratio | error", rows)
        curves = [lab.curve("ratio of errors", zip(n.tolist(), ratios.tolist(), strict=True))]
        figure = lab.LogLogFigure("ratio", "The worth of trust", "people", "ratio", curves)
        return lab.Finding([check], [table], [figure], headline=f"It grows as n^{power:.3f}.")


EXPERIMENT = TwoModels()
