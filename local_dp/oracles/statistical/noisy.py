"""The oracle whose every answer is off by fresh noise."""

import numpy as np

from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.exact import ExactOracle
from local_dp.populations.population import Population


class NoisyOracle(ExactOracle):
    """Answers with the expectation plus normal noise of standard deviation `sd` on the [-1, 1] scale: what an attack is up against, not a private release.

    Tolerances are not kept. Noise in floats protects nobody; a curator's answers come from `TrustedOracle`.
    """

    def __init__(self, population: Population, sd: float, generator: np.random.Generator) -> None:
        super().__init__(population)
        self.sd = sd
        self.generator = generator

    def answer_one(self, query: StatisticalQuery) -> float:
        return super().answer_one(query) + self.sd * float(self.generator.normal())
