"""The runs behind the map: one class, one model of computation, one dimension each; every count of people is the least one for the same success."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from local_dp.bounds.curator import parity_examples, parity_success
from local_dp.bounds.masked_parity import masked_parity_clients, masked_parity_one_round_clients
from local_dp.bounds.parity import parity_halving_clients
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import amplified_learner, draw_examples
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.experiments.lab.claim import Measurement
from local_dp.experiments.lab.cross_check import Trial, cross_check
from local_dp.experiments.lab.minimal_clients import exact_recovery, minimal_clients
from local_dp.experiments.lab.store import as_data
from local_dp.interaction import Algorithm, Nonadaptive, run
from local_dp.learners.examples import cube, error_rate, labelled, uniform_examples
from local_dp.learners.fourier import LowDegree
from local_dp.learners.learner import Learner
from local_dp.learners.rules import AllOf, Conjunctions, Literal, Stumps
from local_dp.noise import KeyedNoise, stream_key
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.protocols.registry import find_protocol
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import largest_local
from local_dp.tallies import Tally
from local_dp.theorems.local_from_sq import local_from_sq

EPSILON = 1.0
SHUFFLE_DELTA = 1e-6
_STEP = 1.05  # from one crowd that is accounted for to the next
SUCCESS = 0.9  # the probability of success that every count of people is for
USER_RUNS = 200
CURATOR_BETA = 0.05  # how seldom the curator's learner gives no answer


def _stump(d: int, rng: np.random.Generator, size: int) -> Finite:
    """A random literal, every label wrong with probability 5 %."""
    literal = Literal(int(rng.integers(d)), int(rng.integers(2)))
    return labelled(cube(d), [1.0] * (1 << d), AllOf((literal,)), size, flip=0.05)


def _conjunction(d: int, rng: np.random.Generator, size: int) -> Finite:
    """A conjunction of two random literals, examples uniform."""
    return uniform_examples(d, AllOf(tuple(Literal(int(place), int(rng.integers(2))) for place in rng.permutation(d)[:2])), size)


def _point(d: int, rng: np.random.Generator, size: int) -> Finite:
    """The indicator of one random point, which is half of the examples: guessing a constant label is wrong half of the time."""
    point = int(rng.integers(1 << d))
    shares = np.full(1 << d, 0.5 / ((1 << d) - 1))
    shares[point] = 0.5
    return labelled(cube(d), shares, AllOf(tuple(Literal(place, point >> place & 1) for place in range(d))), size)


def _within(learner: Learner[Any], tolerance: float) -> Learner[Any]:
    """The learner with this tolerance."""
    return replace(learner, slack=tolerance / learner.proven)


@dataclass(frozen=True)
class OneRoundClass:
    """A class that one round should learn: its learner for dimension d, and how a target is drawn; `least` is the error of the best hypothesis.

    The learner asks within a tolerance that suffices for these very examples, as masked parity's protocols do for theirs; a constant label always fails.
    """

    title: str
    learner: Callable[[int], Learner[Any]]
    draw: Callable[[int, np.random.Generator, int], Finite]
    least: float = 0.0

    def clients(self, d: int) -> int:
        """Enough people, by Hoeffding's bound and one share of the failures a query: a sufficient bound, not a least number."""
        return self.learner(d).clients(EPSILON, 1 - SUCCESS)

    def local(self, d: int, n: int, epsilon: float = EPSILON) -> Algorithm[LocalQuery, Tally, Any]:
        """The learner on n people, fresh ones for every query."""
        learner = self.learner(d)
        return local_from_sq(learner.algorithm(), epsilon, lambda query: max(1, n // learner.queries))

    def behind_shuffler(self, d: int, n: int) -> float:
        """What a report may lose if those to one query are shuffled together and may lose EPSILON, beside SHUFFLE_DELTA: of a crowd some percent smaller."""
        crowd = n // self.learner(d).queries
        return _report_epsilon(math.floor(_STEP ** math.floor(math.log(max(crowd, 1)) / math.log(_STEP))))

    def learned(self, d: int, hypothesis: Any, population: Finite) -> bool:
        """Whether the hypothesis is within alpha of the best one."""
        return error_rate(hypothesis, population) <= self.least + self.learner(d).alpha + 1e-12


ONE_ROUND = {
    # a literal of the target is false on none of the positive examples, another one on half of all examples
    "points": OneRoundClass("Point functions", lambda d: _within(Conjunctions(d=d), 0.49), _point),
    # one correlation is 0.9, the others are 0
    "stumps": OneRoundClass("Decision stumps", lambda d: _within(Stumps(d=d), 0.44), _stump, 0.05),
    # the linear part of such a conjunction is at least 1/2 from 0 everywhere, and d + 1 coefficients are asked for
    "conjunctions": OneRoundClass("Conjunctions of two literals", lambda d: _within(LowDegree(d=d, degree=1), 0.49 / (d + 1)), _conjunction),
}


@dataclass(frozen=True)
class Hidden:
    """A shipped protocol that finds a hidden concept exactly, and the n to start the search at."""

    protocol: str
    guess: Callable[[int, float, float], int]


PROTOCOLS = {
    "masked-parity": Hidden("masked-parity", masked_parity_clients),
    "masked-parity-one-round": Hidden("masked-parity-one-round", masked_parity_one_round_clients),
    "parity-halving": Hidden("parity", parity_halving_clients),
}


def _least(success: Callable[[int, int], int], guess: int, trials: int, least: int) -> Measurement:
    """The least n with a 95 % interval; what went wrong where there is none."""
    try:
        found = minimal_clients(success, guess, target=SUCCESS, trials=trials, least=least)
    except InputError as error:
        return {"failed": str(error)}
    return {"n": found.n, "low": found.low, "high": found.high, "trials": found.trials}


def _seed(name: str, seed: int, d: int) -> int:
    return int.from_bytes(stream_key(f"map {name}", seed, d)[:8], "little")


@lru_cache(maxsize=256)
def _report_epsilon(crowd: int) -> float:
    """The largest epsilon of one yes or no at which so many, shuffled, lose EPSILON at most."""
    return EPSILON if crowd < 2 else largest_local(BinaryRR, crowd, EPSILON, SHUFFLE_DELTA)


def measure_one_round(name: str, d: int, trials: int, seed: int, shuffled: bool = False) -> Measurement:
    """The least number of people that learn the class to within alpha in one round; `rounds` is counted, `fixed` read off the protocol's type.

    `shuffled`: with a shuffler, and EPSILON for what all reports lose together; `report` is then what one may lose.
    """
    kind, generator = ONE_ROUND[name], np.random.default_rng([_seed(f"{name} shuffled" if shuffled else name, seed, d)])
    rounds = 0

    def success(n: int, runs: int) -> int:
        nonlocal rounds
        epsilon = kind.behind_shuffler(d, n) if shuffled else EPSILON
        local, wins = kind.local(d, n, epsilon), 0
        for _ in range(runs):
            population = kind.draw(d, generator, n)
            oracle = AggregateOracle(population, generator, epsilon)
            wins += kind.learned(d, run(local, oracle), population)
            rounds = max(rounds, len(oracle.rounds))
        return wins

    enough = kind.clients(d)
    found = _least(success, enough // 2, trials, kind.learner(d).queries)
    told = {"report": kind.behind_shuffler(d, found["n"])} if shuffled and "n" in found else {}
    return {**found, **told, "rounds": rounds, "fixed": isinstance(kind.local(d, enough), Nonadaptive), "enough": enough}


def measure_protocol(name: str, d: int, trials: int, seed: int) -> Measurement:
    """The least number of people for which a shipped protocol finds its hidden concept exactly, and the rounds it takes."""
    hidden = PROTOCOLS[name]
    protocol = find_protocol(hidden.protocol).from_settings({"d": str(d)})
    own_seed = _seed(name, seed, d)
    guess = hidden.guess(d, EPSILON, 1 - SUCCESS)
    oracle = AggregateOracle(protocol.synthetic(guess, own_seed), np.random.default_rng([own_seed]), EPSILON)
    run(protocol.algorithm(EPSILON, guess), oracle)
    return {**_least(exact_recovery(protocol, EPSILON, own_seed), guess, trials, 2 * d), "rounds": len(oracle.rounds)}


def measure_parity(d: int, trials: int, seed: int) -> Measurement:
    """How often a trusted curator recovers a parity exactly, from the least number of examples that its exact law allows."""
    learner = amplified_learner(EPSILON, CURATOR_BETA)
    n, wins = parity_examples(learner, d, SUCCESS), 0
    for trial in range(trials):
        rng = np.random.default_rng([seed, 300, d, trial])
        r = gf2.pack(rng.integers(0, 2, d, dtype=np.uint8))
        found = learner.release(draw_examples(d, r, n, rng), Draws(KeyedNoise(int(rng.integers(1 << 62)))))
        wins += found == gf2.mask(r)
    return {"n": n, "low": n, "high": n, "wins": wins, "predicted": parity_success(learner, d, n)}


def measure_users(name: str, d: int, n: int, seed: int) -> Measurement:
    """One small point client by client beside its law."""
    if name in PROTOCOLS:
        protocol = find_protocol(PROTOCOLS[name].protocol).from_settings({"d": str(d)})

        def exactly(found: Any, people: Population) -> bool:
            return protocol.true_error(found, people) == 0

        return as_data(cross_check(
            lambda: Trial(protocol.algorithm(EPSILON, n), lambda drawn: protocol.synthetic(n, drawn), exactly, n, EPSILON),
            seed, users=USER_RUNS, laws=4 * USER_RUNS,
        ))  # fmt: skip
    kind = ONE_ROUND[name]

    def learned(hypothesis: Any, population: Population) -> bool:
        assert isinstance(population, Finite)
        return kind.learned(d, hypothesis, population)

    def people(drawn: int) -> Finite:
        generator = np.random.default_rng([drawn])
        drawn_kinds = kind.draw(d, generator, n)
        return Finite(drawn_kinds.kinds, drawn_kinds.shares.tolist(), n, drawn)

    asked = n // kind.learner(d).queries * kind.learner(d).queries
    return as_data(cross_check(lambda: Trial(kind.local(d, n), people, learned, n, EPSILON, asked == n), seed, users=USER_RUNS, laws=4 * USER_RUNS))
