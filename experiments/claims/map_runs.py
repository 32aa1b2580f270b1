"""The runs behind the map: one class, one model of computation, one dimension each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.lab.claim import Measurement
from local_dp.bounds.curator import parity_examples
from local_dp.bounds.masked_parity import success_bound
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import amplified_learner, draw_examples
from local_dp.draws import Draws
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import Nonadaptive, run
from local_dp.learners.base import Learner
from local_dp.learners.conjunctions import AllOf, Conjunctions, Literal
from local_dp.learners.examples import cube, error_rate, labelled, uniform_examples
from local_dp.learners.stumps import Stumps
from local_dp.masked_parity.concept import Concept
from local_dp.masked_parity.midpoint import MidpointOracle, hidden_set_certificate
from local_dp.masked_parity.statistical import bent_learner, two_round_learner
from local_dp.masked_parity.two_rounds import MaskedParityLearner
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.populations.finite import Finite
from local_dp.theorems.local_from_sq import enough_clients, local_from_sq

EPSILON = 1.0
BETA = 0.05  # every learner gets the people it needs to fail this seldom


def _stump(d: int, rng: np.random.Generator, size: int) -> Finite:
    """A random literal, every label wrong with probability 5 %."""
    literal = Literal(int(rng.integers(d)), int(rng.integers(2)))
    return labelled(cube(d), [1.0] * (1 << d), AllOf((literal,)), size, flip=0.05)


def _conjunction(d: int, rng: np.random.Generator, size: int) -> Finite:
    """A conjunction of two to four random literals, examples uniform."""
    places = rng.permutation(d)[: rng.integers(2, 5)]
    return uniform_examples(d, AllOf(tuple(Literal(int(place), int(rng.integers(2))) for place in places)), size)


def _point(d: int, rng: np.random.Generator, size: int) -> Finite:
    """The indicator of one random point, which is half of the examples: guessing a constant label is wrong half of the time."""
    point = int(rng.integers(1 << d))
    shares = np.full(1 << d, 0.5 / ((1 << d) - 1))
    shares[point] = 0.5
    return labelled(cube(d), shares, AllOf(tuple(Literal(place, point >> place & 1) for place in range(d))), size)


@dataclass(frozen=True)
class OneRoundClass:
    """A class that one round should learn: its learner for dimension d, and how a target is drawn. `alpha` is added to the least error a hypothesis has."""

    title: str
    learner: Callable[[int], Learner[Any]]
    draw: Callable[[int, np.random.Generator, int], Finite]
    least: float = 0.0


ONE_ROUND = {
    "points": OneRoundClass("Point functions", lambda d: Conjunctions(d=d), _point),
    "stumps": OneRoundClass("Decision stumps", lambda d: Stumps(d=d), _stump, 0.05),
    "conjunctions": OneRoundClass("Conjunctions", lambda d: Conjunctions(d=d), _conjunction),
}


def measure_one_round(name: str, d: int, trials: int, seed: int) -> Measurement:
    """How often the class is learned to within alpha by a local protocol of one round; `rounds` is counted, `fixed` read off the protocol's type."""
    kind = ONE_ROUND[name]
    learner = kind.learner(d)
    local = local_from_sq(learner.algorithm(), EPSILON, enough_clients(EPSILON, learner.beta_each(BETA)))
    n, wins, rounds = learner.clients(EPSILON, BETA), 0, 0
    for trial in range(trials):
        rng = np.random.default_rng([seed, sorted(ONE_ROUND).index(name), d, trial])
        population = kind.draw(d, rng, n)
        oracle = AggregateOracle(population, rng, EPSILON)
        wins += error_rate(run(local, oracle), population) <= kind.least + learner.alpha + 1e-12
        rounds = max(rounds, len(oracle.rounds))
    return {"n": n, "wins": wins, "rounds": rounds, "fixed": isinstance(local, Nonadaptive)}


def measure_masked_parity(d: int, trials: int, seed: int) -> Measurement:
    """How often two local rounds recover a masked parity exactly."""
    learner, wins, rounds = MaskedParityLearner(d), 0, 0
    n = learner.clients(EPSILON)
    for trial in range(trials):
        rng = np.random.default_rng([seed, 100, d, trial])
        population = learner.synthetic(n, int(rng.integers(1 << 62)))
        oracle = AggregateOracle(population, rng, EPSILON)
        wins += learner.true_error(run(learner.algorithm(EPSILON, n), oracle), population) == 0
        rounds = max(rounds, len(oracle.rounds))
    return {"n": n, "wins": wins, "rounds": rounds}


def measure_worst_case(d: int, trials: int, seed: int) -> Measurement:
    """Masked parity against the oracle that hides what it may: two rounds of queries play it; one round with as many, as precise, gets a certificate."""
    tolerance = 0.9 / (2 * d)
    rng = np.random.default_rng([seed, 200, d])
    wins = 0
    for _ in range(trials):
        target = Concept(d, int(rng.integers(1 << d)), int(rng.integers(2)))
        wins += run(two_round_learner(d), MidpointOracle(d, target.r, target.a)) == target
    one_round = bent_learner(d, tolerance)
    checked = verify_certificate(hidden_set_certificate(one_round.queries, d))
    return {
        "wins": wins,
        "queries": len(one_round.queries),
        "tolerance": tolerance,
        "certificate": checked.valid,
        "success_at_most": checked.figures.get("success_at_most"),
        "any_learner": success_bound(d, len(one_round.queries), tolerance),
    }


def measure_parity(d: int, trials: int, seed: int) -> Measurement:
    """How often a trusted curator recovers a parity exactly, from as many examples as its exact law asks for."""
    learner = amplified_learner(EPSILON, BETA)
    n, wins = parity_examples(learner, d, 1 - BETA), 0
    for trial in range(trials):
        rng = np.random.default_rng([seed, 300, d, trial])
        r = gf2.pack(rng.integers(0, 2, d, dtype=np.uint8))
        found = learner.release(draw_examples(d, r, n, rng), Draws(KeyedNoise(int(rng.integers(1 << 62)))))
        wins += found == gf2.mask(r)
    return {"n": n, "wins": wins}
