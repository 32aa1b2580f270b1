"""What the experiment `margins` measures: linear programs, certificates and their forgeries, sign matrices, and votes."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.interaction import margin_clients, vote_clients
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.experiments.lab.cross_check import Trial, cross_check
from local_dp.experiments.lab.store import as_data
from local_dp.hardness.certificates import verify_certificate
from local_dp.hardness.margins import Margin, margin, margin_limit, on_the_matrix
from local_dp.populations.concepts import BlockClass
from local_dp.protocols.learning.block_vote import advantage, cohorts, hard_examples, vote

EPSILON: Final = 1.0
SUCCESS: Final = 0.9
MULTIPLES: Final = (4.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0, 16.0)  # of MC^2: how many clients vote
RUN: Final = BlockClass("odd-max-bit", 4, 2)  # small enough to be run client by client


def measure(point: Point, seed: int) -> Measurement:
    """One point: a function of the point, and of the seed where something is drawn."""
    return _MEASURES[point["kind"]](point, seed)


def _sides(found: Margin) -> dict[str, Any]:
    return {"t": found.concepts.t, "b": found.concepts.b, "at_least": found.at_least, "at_most": found.at_most}


def _certificate(point: Point, seed: int) -> Measurement:
    found = margin(BlockClass(point["function"], point["t"], point["b"]))
    certificate = found.certificate(EPSILON, SUCCESS)
    verdict = verify_certificate(certificate)
    forged = [accepted(forgery) for forgery in forgeries(certificate)]
    checked = {"valid": verdict.valid, "statement": verdict.statement, "forgeries": len(forged), "forgeries_accepted": sum(forged)}
    return {**_sides(found), "certificate": certificate, "check": checked}


def forgeries(certificate: dict[str, Any]) -> list[dict[str, Any]]:
    """The certificate with one weight altered, for each of them; with b altered; and with a figure that says more."""
    weights = certificate["weights"]
    altered = [{**certificate, "weights": [*weights[:place], weight + 1, *weights[place + 1 :]]} for place, weight in enumerate(weights)]
    altered += [{**certificate, "b": b} for b in (certificate["b"] - 1, certificate["b"] + 1)]
    return [*altered, {**certificate, "clients_at_least": certificate["clients_at_least"] + 1}, {**certificate, "squared_margin_at_most": "1/1000000000"}]


def accepted(certificate: dict[str, Any]) -> bool:
    """Whether the checker takes it; what is malformed it does not."""
    try:
        return verify_certificate(certificate).valid
    except InputError:
        return False


def _blocks(point: Point, seed: int) -> Measurement:
    """MC of one function for several numbers of blocks; `b` variables in each, or as many as the square of their number."""
    return {"margins": [_sides(margin(BlockClass(point["function"], t, point.get("b", t * t)))) for t in point["ts"]]}


def _limits(point: Point, seed: int) -> Measurement:
    return {"limits": [margin_limit(BlockClass(point["function"], t, 1)) for t in point["ts"]]}


def _matrix(point: Point, seed: int) -> Measurement:
    found = margin(BlockClass(point["function"], point["t"], point["b"]))
    return {**_sides(found), "matrix": on_the_matrix(found)}


def _vote(point: Point, seed: int) -> Measurement:
    """How often votes of several sizes are right more often than wrong, for the concept and the law that are hardest."""
    found = margin(BlockClass(point["function"], point["t"], point["b"]))
    squared = found.at_least**2
    clients = [margin_clients(squared, EPSILON, SUCCESS) - 1, *(round(multiple * squared) for multiple in MULTIPLES), vote_clients(squared, EPSILON, SUCCESS)]
    generator = np.random.default_rng([seed, point["t"], point["b"]])
    won = [int((advantages(found, n, point["trials"], generator) > 1e-9).sum()) for n in clients]
    return {"squared": squared, "clients": clients, "won": won, "trials": point["trials"]}


def advantages(found: Margin, clients: int, trials: int, generator: np.random.Generator) -> Floats:
    """n E[y h] of so many votes under the hardest law, by the law of the answers.

    Of each set of blocks those clients count whose mask has the right variables in it; of other masks the label is independent.
    """
    total: Floats = np.zeros(trials)
    for S, cohort in cohorts(found, clients).items():
        correlation = float(found.correlations[S])
        asked = generator.binomial(len(cohort), float(found.concepts.b) ** -S.bit_count(), size=trials)
        agreed = generator.binomial(asked, min(1.0, (1 + correlation / response_gain(EPSILON)) / 2))
        total += correlation * (2 * agreed - asked)
    return total


def _run(point: Point, seed: int) -> Measurement:
    found, n = margin(RUN), point["clients"]

    def make() -> Trial:
        return Trial(vote(found, EPSILON, n), lambda drawn: hard_examples(found, n, drawn), lambda words, _: advantage(found, words) > 1e-12, n, EPSILON)

    return as_data(cross_check(make, seed, users=point["users"], laws=4 * point["users"]))


_MEASURES: Final[dict[str, Callable[[Point, int], Measurement]]] = {
    "certificate": _certificate,
    "blocks": _blocks,
    "squares": _blocks,
    "limits": _limits,
    "matrix": _matrix,
    "vote": _vote,
    "run": _run,
}
