"""The runs behind the map: one class, one model of computation, one dimension each; every count of
people is the least one for the same success."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds.curator import parity_examples, parity_success
from local_dp.bounds.masked_parity import masked_parity_clients, masked_parity_one_round_clients
from local_dp.bounds.parity import parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import amplified_learner, draw_examples
from local_dp.experiments.lab.parts import (
    Check,
    Claimed,
    ClientCount,
    Crossing,
    Row,
    Rows,
    Table,
    Trial,
    cross_check,
    exact_recovery,
    exact_trial,
    holds,
    least_count,
    log_choose,
    measured_clients,
    own_seed,
    seeded,
    tabulate,
)
from local_dp.interaction import Algorithm, Nonadaptive, run
from local_dp.learners.examples import cube, error_rate, labelled, uniform_examples
from local_dp.learners.learner import Learner
from local_dp.learners.moments import LowDegree
from local_dp.learners.rules import AllOf, Conjunctions, Literal, Stumps
from local_dp.optimise import crossing
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.local_protocol import find_protocol
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import largest_local
from local_dp.tallies import Tally
from local_dp.theorems.from_sq import local_from_sq

ALPHA = 0.1  # the excess error that counts as learned
SIZES = np.linspace(
    -0.05,
    0.05,
    21,
    # a number of people stands for these around it: reports are whole, and success is a saw-tooth
    # in n of about that period
)
DRAWS = 300  # at each size, for conjunctions, of which no closed form is known
EPSILON = 1.0
SHUFFLE_DELTA = 1e-6
_STEP = 1.05  # from one crowd that is accounted for to the next
SUCCESS = 0.9  # the probability of success that every count of people is for
USER_RUNS = 200
RATE_RUNS = 60  # at each number of people around the predicted one
CURATOR_BETA = 0.05  # how seldom the curator's learner gives no answer
# .63 to .69, .78 and .37, as measured at seeds 5 and 8
FEWER = {
    "points, d = 8": 0.75,
    "stumps, d = 8": 0.85,
    "conjunctions, d = 8": 0.42,
}


def answers(m: int, means: Floats) -> tuple[Floats, Floats]:
    """The answers of m people whose true mean is one of these, and the probability of each:
    (values, one row of probabilities a mean)."""
    gain, counts = response_gain(EPSILON), np.arange(m + 1.0)
    ones = (1 + np.asarray(means)[:, None] / gain) / 2
    logs = log_choose(m, counts) + counts * np.log(ones) + (m - counts) * np.log1p(-ones)
    return gain * (2 * counts / m - 1), np.exp(logs)


def points(d: int, m: int) -> float:
    """Each literal is kept where its answer, the share of positives that it rejects, is below .245;
    those of the point reject none, the others all.

    One of the others makes the conjunction empty. Without j of its own it accepts 2^j - 1 points
    more, which weigh 1/2 together with all negative ones.
    """
    values, (own, other) = answers(m, np.array([-1.0, 0.0]))
    accepts = (1 + values) / 2 <= 0.245 * (1 + 1e-9)
    right, wrong = float(own[accepts].sum()), float(other[accepts].sum())
    few = math.floor(math.log2(1 + 2 * ALPHA * ((1 << d) - 1) + 1e-9))
    missing = (math.comb(d, j) * (1 - right) ** j * right ** (d - j) for j in range(few + 1))
    return (1 - wrong) ** d * sum(missing)


def stumps(d: int, m: int) -> float:
    """The answer about the literal is the largest of d, of which the others are about nothing, and
    has its sign; of equal ones the first is taken."""
    values, (own, other) = answers(m, np.array([0.9, 0.0]))
    sizes = np.round(np.abs(values), 12)
    order, place = np.unique(sizes, return_inverse=True)
    equal = np.bincount(place, other, len(order))
    up_to = np.minimum(np.cumsum(equal), 1.0)
    below = np.maximum(up_to - equal, 0)
    first = sum(up_to**i * below ** (d - 1 - i) for i in range(d)) / d
    return float(own[values >= 0] @ np.asarray(first)[place[values >= 0]])


def conjunctions(d: int, m: int) -> float:
    """The sign of the linear part, every coefficient an answer: that of a conjunction of two is
    -1/2 and twice 1/2. Drawn, with the same numbers at every m."""
    generator, gain = default_rng([d, m]), response_gain(EPSILON)
    means = np.array([-0.5, 0.5, 0.5, *[0.0] * (d - 2)])
    ones = generator.binomial(m, (1 + means / gain) / 2, (DRAWS, d + 1))
    coefficients = gain * (2 * ones / m - 1)
    bits = 1 - 2 * (np.arange(1 << d)[:, None] >> np.arange(d) & 1)
    truth = (bits[:, 0] == 1) & (bits[:, 1] == 1)
    labels = coefficients @ np.column_stack([np.ones(1 << d), bits]).T > 0
    wrong = (labels != truth).mean(axis=1)
    return float(np.mean(wrong <= ALPHA + 1e-12))


def around(n: float) -> list[int]:
    """The numbers of people that stand for n."""
    return [round(n * (1 + size)) for size in SIZES.tolist()]


def _stump(d: int, rng: Generator) -> AllOf:
    """A random literal."""
    return AllOf((Literal(int(rng.integers(d)), int(rng.integers(2))),))


def _conjunction(d: int, rng: Generator) -> AllOf:
    """A conjunction of two random literals."""
    places = rng.permutation(d)[:2].tolist()
    return AllOf(tuple(Literal(place, int(rng.integers(2))) for place in places))


def _point(d: int, rng: Generator) -> AllOf:
    """The indicator of one random point."""
    point = int(rng.integers(1 << d))
    return AllOf(tuple(Literal(place, point >> place & 1) for place in range(d)))


def _noisy(d: int, target: AllOf) -> Finite:
    """Uniform examples, every label wrong with probability 5 %."""
    return labelled(cube(d), [1.0] * (1 << d), target, flip=0.05)


def _half(d: int, target: AllOf) -> Finite:
    """The point is half of the examples: guessing a constant label is wrong half of the time."""
    point = sum(literal.value << literal.place for literal in target.literals)
    shares = np.full(1 << d, 0.5 / ((1 << d) - 1))
    shares[point] = 0.5
    return labelled(cube(d), shares, target)


def _within(learner: Learner[Any], tolerance: float) -> Learner[Any]:
    """The learner with this tolerance."""
    return replace(learner, slack=tolerance / learner.proven)


def _conjunctions(d: int) -> Learner[Any]:
    """The linear part of such a conjunction is at least 1/2 from 0 everywhere, and d + 1
    coefficients are asked for."""
    return _within(LowDegree(d=d, degree=1), 0.49 / (d + 1))


@dataclass(frozen=True)
class OneRoundClass:
    """A class that one round should learn: its learner for dimension d, its success by d and the
    people of a query, and how a target is drawn; `least` is the error of the best hypothesis.

    The learner asks within a tolerance that suffices for these very examples, as masked parity's
    protocols do for theirs; a constant label always fails.
    """

    title: str
    learner: Callable[[int], Learner[Any]]
    law: Callable[[int, int], float]
    draw: Callable[[int, Generator], AllOf]
    examples: Callable[[int, AllOf], Finite]
    least: float = 0.0

    def local(self, d: int, n: int, epsilon: float = EPSILON) -> Algorithm[LocalQuery, Tally, Any]:
        """The learner on n people, fresh ones for every query."""
        learner = self.learner(d)
        return local_from_sq(
            learner.algorithm(), epsilon, lambda query: max(1, n // learner.queries)
        )

    def behind_shuffler(self, d: int, n: int) -> float:
        """What a report may lose if those to one query are shuffled together and may lose EPSILON,
        beside SHUFFLE_DELTA: of a crowd some percent smaller."""
        crowd = n // self.learner(d).queries
        steps = math.floor(math.log(max(crowd, 1)) / math.log(_STEP))
        return _report_epsilon(math.floor(_STEP**steps))

    def learned(self, d: int, hypothesis: Any, population: Finite) -> bool:
        """True if the hypothesis is within alpha of the best one."""
        return error_rate(hypothesis, population) <= self.least + self.learner(d).alpha + 1e-12


ONE_ROUND = {
    # a literal of the target is false on none of the positive examples, another one on half of all
    # examples
    "points": OneRoundClass(
        "Point functions", lambda d: _within(Conjunctions(d=d), 0.49), points, _point, _half
    ),
    # one correlation is 0.9, the others are 0
    "stumps": OneRoundClass(
        "Decision stumps", lambda d: _within(Stumps(d=d), 0.44), stumps, _stump, _noisy, 0.05
    ),
    "conjunctions": OneRoundClass(
        "Conjunctions of two literals", _conjunctions, conjunctions, _conjunction, uniform_examples
    ),
}


@cache
def people_by_law(name: str, d: int) -> float:
    """The number of people with which the class is learned with probability SUCCESS."""

    law, queries = ONE_ROUND[name].law, ONE_ROUND[name].learner(d).queries

    def fails(log: float) -> bool:
        chances = [law(d, max(1, n // queries)) for n in around(math.exp(log))]
        return float(np.mean(chances)) < SUCCESS

    return math.exp(sum(crossing(math.log(20.0 * d), math.log(1e5 * d), fails, 11)) / 2)


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


@lru_cache(maxsize=256)
def _report_epsilon(crowd: int) -> float:
    """The largest epsilon of one yes or no at which so many, shuffled, lose EPSILON at most."""
    return EPSILON if crowd < 2 else largest_local(BinaryRR, crowd, EPSILON, SHUFFLE_DELTA)


class Learned(Row):
    """The least number of people, and the rounds of a run; of a learner for one round also whether
    its type fixes the queries, and a number that suffices."""

    count: ClientCount
    rounds: int
    fixed: bool = False
    enough: int | None = None
    report: float | None = None  # behind a shuffler, the loss of one report
    right: tuple[int, int] | None = (
        None  # without one, (successes, runs) with the number that the law predicts
    )


class OneRound(Row):
    """The least number of people that learn the class to within alpha in one round; behind a
    shuffler, EPSILON is for all reports together."""

    name: str
    d: int
    trials: int
    shuffled: bool

    def measure(self, seed: int) -> Learned:
        kind, d, rounds = ONE_ROUND[self.name], self.d, 0
        label = f"map {self.name} shuffled" if self.shuffled else f"map {self.name}"
        generator = default_rng([own_seed(label, seed, d)])
        # with the laws of the queries, which the number of people does not change
        examples = cache(kind.examples)

        def success(n: int, runs: int) -> int:
            nonlocal rounds
            epsilon = kind.behind_shuffler(d, n) if self.shuffled else EPSILON
            local, wins = kind.local(d, n, epsilon), 0
            for _ in range(runs):
                population = examples(d, kind.draw(d, generator))
                oracle = AggregateOracle(population, generator, epsilon)
                wins += kind.learned(d, run(local, oracle), population)
                rounds = max(rounds, len(oracle.rounds))
            return wins

        # by Hoeffding's bound and one share of the failures a query: sufficient, not the least
        enough = kind.learner(d).clients(EPSILON, 1 - SUCCESS)
        count = measured_clients(
            success, enough // 2, target=SUCCESS, trials=self.trials, least=kind.learner(d).queries
        )
        report: float | None = None
        right: tuple[int, int] | None = None
        if not self.shuffled:
            sizes = around(people_by_law(self.name, d))
            right = sum(success(n, RATE_RUNS) for n in sizes), RATE_RUNS * len(sizes)
        elif not count.failed:
            report = kind.behind_shuffler(d, count.n)
        fixed = isinstance(kind.local(d, enough), Nonadaptive)
        return Learned(count, rounds, fixed, enough, report, right)


class HiddenConcept(Row):
    """The least number of people for which a shipped protocol finds its hidden concept exactly."""

    name: str
    d: int
    trials: int

    def measure(self, seed: int) -> Learned:
        kind = PROTOCOLS[self.name]
        protocol = find_protocol(kind.protocol).from_settings({"d": str(self.d)})
        own = own_seed(f"map {self.name}", seed, self.d)
        guess = kind.guess(self.d, EPSILON, 1 - SUCCESS)
        oracle = AggregateOracle(protocol.synthetic(guess, own), default_rng([own]), EPSILON)
        run(protocol.algorithm(EPSILON, guess), oracle)
        recovery = exact_recovery(protocol, EPSILON, own)
        count = measured_clients(
            recovery, guess, target=SUCCESS, trials=self.trials, least=2 * self.d
        )
        return Learned(count, len(oracle.rounds))


class Curated(Row):
    count: ClientCount  # of examples, by the exact law
    wins: int  # of the runs
    predicted: float  # the probability of success


class Parity(Row):
    """How often a trusted curator recovers a parity exactly."""

    d: int
    trials: int

    def measure(self, seed: int) -> Curated:
        learner = amplified_learner(EPSILON, CURATOR_BETA)
        n, wins = parity_examples(learner, self.d, SUCCESS), 0
        for trial in range(self.trials):
            rng = default_rng([seed, 300, self.d, trial])
            r = gf2.pack(rng.integers(0, 2, self.d, dtype=np.uint8))
            examples = draw_examples(self.d, r, n, rng)
            hypothesis = learner.release(examples, seeded(int(rng.integers(1 << 62))))
            wins += hypothesis == gf2.mask(r)
        return Curated(ClientCount(n, n, n, self.trials), wins, parity_success(learner, self.d, n))


class Users(Row):
    """One small point client by client beside its law."""

    name: str
    d: int
    n: int

    def measure(self, seed: int) -> Crossing:
        trial = self._concept_trial if self.name in PROTOCOLS else self._class_trial
        return cross_check(trial, seed, users=USER_RUNS, laws=4 * USER_RUNS)

    def _concept_trial(self) -> Trial:
        protocol = find_protocol(PROTOCOLS[self.name].protocol).from_settings({"d": str(self.d)})
        return exact_trial(protocol, EPSILON, self.n)

    def _class_trial(self) -> Trial:
        kind = ONE_ROUND[self.name]

        def succeeds(hypothesis: Any, population: Population) -> bool:
            assert isinstance(population, Finite)
            return kind.learned(self.d, hypothesis, population)

        def people(own: int) -> Finite:
            kinds = kind.examples(self.d, kind.draw(self.d, default_rng([own])))
            return Finite(kinds.kinds, kinds.shares.tolist(), self.n, own)

        everybody = self.n % kind.learner(self.d).queries == 0
        return Trial(kind.local(self.d, self.n), people, succeeds, self.n, EPSILON, everybody)


Rules = Rows[OneRound, Learned]


def whole(count: ClientCount) -> tuple[int, int, int]:
    """The number and the ends of its interval, rounded outwards."""
    return count.n, math.floor(count.low), math.ceil(count.high)


def shuffled_check(mixed: Rules) -> Check:
    """Against the number that the law predicts without a shuffler."""
    claims = {}
    for p, m in mixed:
        name, alone = f"{p.name}, d = {p.d}", people_by_law(p.name, p.d)
        claims[name] = Claimed(least_count(m.count) / alone, high=FEWER.get(name, 1.0))
    fewer = ", ".join(f"{most:g} of them ({name})" for name, most in FEWER.items())
    return holds(
        "With the reports shuffled, and the same ε for all of them together, one round takes "
        f"no more people than predicted without: {fewer} at most",
        claims,
        also=all((m.report or 0) >= EPSILON for _, m in mixed),
    )


def shuffled_line(mixed: Rules, name: str, d: int) -> str:
    """One line beside a class: how many people it takes behind a shuffler."""
    (count,) = (m.count for p, m in mixed if (p.name, p.d) == (name, d))
    n, low, high = whole(count)
    return f"\nmeasured behind a shuffler: {n:,} people at d = {d} [{low:,} to {high:,}]"


def shuffled_table(mixed: Rules, rules: Rules) -> Table:
    """The least people without a shuffler and with one, and what a report then loses."""
    alone = {(point.name, point.d): result.count.n for point, result in rules}
    rows = []
    for point, each in mixed:
        people = (alone[point.name, point.d], *whole(each.count))
        rows.append((ONE_ROUND[point.name].title, point.d, *people, each.report))
    return tabulate(
        f"One round behind a shuffler: {SUCCESS:.0%} success, ε = {EPSILON:g} and δ = "
        f"{SHUFFLE_DELTA:g} for all reports together",
        "class | d | least people, not shuffled | shuffled | 95 % from | to | ε of a report",
        rows,
    )
