"""The suite's proven numbers, worked out by hand: the tolerance that each guarantee allows (limits 9), and the clients that it takes (limits 5.1)."""

import math
from typing import Any, Final

from local_dp.experiments.claims.local.suite.runs import BETA, EPSILON, records_needed
from local_dp.experiments.lab.claim import Check
from local_dp.learners.examples import Task

TOLERANCES: Final = {
    "conjunctions": 0.1 / 10,  # alpha over 2 d literals, d = 5
    "stumps": 0.1,  # alpha
    "thresholds": 0.1 / 8,  # alpha / (2 bits), 4 bits
    "naive-bayes": 0.1 / 25,  # alpha / (4 d + 1), d = 6
    "low-degree": math.sqrt(0.1 / 16),  # sqrt(alpha / N), N = 1 + 5 + 10
    "linear-regression": 1 / (1 / (math.sqrt(0.02 * 0.3 / 3) / 2) + 3 / 0.3),  # s / (1 + s d / l), s = sqrt(alpha l / d) / (1 + B); d = 3, l = 0.3, B = 1
    "decision-lists": 0.1 / 5,  # alpha / (d + 1), d = 4
    "perceptron": 0.3 * 0.25 / 8,  # gamma alpha / (8 sqrt(d) bound), bound = 1 / sqrt(d)
    "trees": 0.1 / 16,  # alpha / 2^(depth + 1), depth 3
    "k-means": 2 * 0.1 * 0.2 / 3,  # 2 alpha c / 3, c = 0.2
    "logistic-regression": 0.1 / 8,  # alpha / (4 R sqrt(d) bound), R = 2, bound = 1 / sqrt(d)
}


def bounds_check(known: dict[str, Task[Any]]) -> Check:
    """Whether each learner's tolerance, and its sufficient number of local clients t ceil(2 C^2 ln(2 t / beta) / tau^2), are those of its guarantee."""
    square = (math.exp(EPSILON) + 1) ** 2 / (math.exp(EPSILON) - 1) ** 2
    wrong = []
    for name, task in known.items():
        learner, tolerance = task.learner, TOLERANCES[name]
        clients = learner.queries * 2 * square * math.log(2 * learner.queries / BETA) / tolerance**2
        counted = records_needed("local clients", learner)
        if not (math.isclose(learner.tolerance, tolerance) and clients * (1 - 1e-6) <= counted <= clients * (1 + 1e-6) + learner.queries):
            wrong.append(f"{name}: {learner.tolerance:.4g} for {tolerance:.4g}, {counted:,} clients for {clients:,.0f}")
    return Check("Every tolerance and every sufficient bound is what its proof says", not wrong, "; ".join(wrong) or f"{len(known)} learners")
