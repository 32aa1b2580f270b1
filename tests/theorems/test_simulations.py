"""The simulations between local and SQ algorithms, run: laws, query counts, budgets, types and
refusals."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.bounds.response import rr_clients_exact
from local_dp.bounds.simulations import density_error, relative_error
from local_dp.errors import InputError, RefusedError
from local_dp.experiments.claims.local.local_to_sq.laws import (
    Memoised,
    TwoReplies,
    two_questions,
    two_replies_law,
)
from local_dp.interaction import Adaptive, Nonadaptive, Watched, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery, LocalRounds
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import (
    ExactOracle,
    RealQuery,
    StatisticalPlay,
    StatisticalQuery,
    StatisticalRounds,
)
from local_dp.populations.finite import Finite
from local_dp.queries.tables import Bounded, Category, Question
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.theorems.from_sq import (
    local_from_sq,
    one_random_query,
    put_to_records,
    split_budget,
    tight_clients,
)
from local_dp.theorems.likelihood import (
    Joint,
    Observed,
    likelihood_query,
    mean_ratio,
    total_variation,
)
from local_dp.theorems.sq_from_local import _Transcript, sq_from_local
from tests.support.inputs.worlds import COLOUR, COLOURS, NUMBERS, WORLD, X, Y
from tests.support.wrong import wrong


def _same(answers: tuple[float, ...]) -> tuple[float, ...]:
    return answers


def fixed_trials(epsilon: float, draws: int) -> Local[int]:
    """One round in which `draws` clients are asked x; the result counts the reported ones."""
    return Nonadaptive(
        (LocalQuery(X, BinaryRR(epsilon), Cohort(0, draws)),),
        lambda tallies: int(tallies[0].counts[0, 1]),
    )


def _two_steps(first: float, second: float) -> StatisticalRounds[tuple[float, float]]:
    def play() -> StatisticalPlay[tuple[float, float]]:
        (x,) = yield (StatisticalQuery(X, first),)
        (y,) = yield (StatisticalQuery(Y, second),)
        return x, y

    return Adaptive(play)


# local from SQ


@wrong(
    "local_dp.theorems.from_sq:split_budget",
    "split_epsilon(epsilon, queries)",
    "epsilon",
    "a budget that is not split",
)
@wrong(
    "local_dp.theorems.from_sq:local_from_sq",
    "start = cohort.stop",
    "start = cohort.stop - 1",
    "a client answers two queries",
)
def test_every_way_spends_epsilon_at_most() -> None:
    """Fresh clients, one random query and split budgets all charge no client more than epsilon, and
    split budgets all of it."""
    queries = tuple(StatisticalQuery(query, 0.3) for query in (X, Y, X))
    algorithm = Nonadaptive(queries, _same)
    ways: tuple[Local[tuple[float, ...]] | LocalRounds[tuple[float, ...]], ...] = (
        local_from_sq(algorithm, 0.7, lambda query: 500),
        one_random_query(algorithm, 0.7, 1500, seed=1),
        split_budget(algorithm, 0.7, 1500, 3),
    )
    for way in ways:
        oracle = PopulationOracle(WORLD, KeyedNoise(1), 1, 0.7)
        answers = run(way, oracle)
        assert oracle.ledger.max_spent <= 0.7
        assert all(abs(answer) < 0.9 for answer in answers)
    assert oracle.ledger.max_spent == pytest.approx(0.7, abs=1e-8)
    assert len(oracle.rounds) == 1, "what was fixed beforehand is asked at once"


def test_adaptive_algorithms_keep_their_rounds() -> None:
    """An adaptive SQ algorithm runs in as many local rounds as it has, fresh or with a split
    budget, and its answers are near the truth."""
    for way in (
        local_from_sq(_two_steps(0.1, 0.2), 1.0, tight_clients(1.0, 1e-6)),
        split_budget(_two_steps(0.1, 0.2), 1.0, 100_000, 2),
    ):
        oracle = PopulationOracle(WORLD, KeyedNoise(2), 1, 1.0)
        x, y = run(way, oracle)
        assert abs(x) <= 0.1
        assert abs(y) <= 0.2
        assert len(oracle.rounds) == 2
    query = StatisticalQuery(X, 0.3)
    assert tight_clients(0.5, 0.1)(query) == rr_clients_exact(0.5, 0.3, 0.1)


# SQ from local


@pytest.mark.parametrize(("query", "randomizer", "population"), [
    (X, BinaryRR(1.0), WORLD), (COLOUR, GRR(2.0, k=5), COLOURS),
    (COLOUR, Hadamard(0.5, k=5), COLOURS),
    (Bounded("v", 0.0, 1.0), OneBitMean(1.0), NUMBERS),
])  # fmt: skip
def test_likelihood_queries_recover_the_law(
    query: Question | Category | Bounded, randomizer: FiniteChannel, population: Finite
) -> None:
    """The exact answers about every report of every shipped kind of randomizer give Pr[report] to
    1e-12, and legal ones give it within sinh(eps) tau q."""
    law = population.law(query)
    tau = 0.05
    growth = math.exp(randomizer.epsilon)
    for cell in range(randomizer.cells):
        channel = randomizer.channel(cell).astype(np.float64) / randomizer.total
        for report in range(randomizer.alphabet):
            question = likelihood_query((Observed(query, randomizer, cell, report),), tau)
            exact = question.expectation(law)
            q = channel[0, report]
            p = float(law @ channel[:, report])
            assert q * mean_ratio(exact, growth) == pytest.approx(p, abs=1e-12)
            for sign in (-1, 1):
                off = abs(q * mean_ratio(exact + sign * tau, growth) - p)
                assert off <= q * density_error(randomizer.epsilon, tau) + 1e-12
                assert off <= p * relative_error(randomizer.epsilon, tau) + 1e-12


def test_joint_likelihood_of_several_replies() -> None:
    """Replies to two different queries, one of them asked twice, give the probability of all three
    reports together."""
    replies = (
        Observed(X, BinaryRR(0.5), 0, 1),
        Observed(Y, GRR(1.0, k=2), 0, 0),
        Observed(X, BinaryRR(0.25), 0, 1),
    )
    question = likelihood_query(replies, 0.01)
    assert question.query == Joint((X, Y))
    first, second, third = (
        reply.randomizer.channel()[:, reply.report] / reply.randomizer.total for reply in replies
    )
    law = np.outer(first * third, second)
    mean = mean_ratio(question.expectation(WORLD.law(question.query)), math.exp(1.75))
    joint = law * [[0.4, 0.1], [0.1, 0.4]]
    assert mean * law[0, 0] == pytest.approx(joint.sum(), rel=1e-12)


@pytest.mark.long
def test_dependent_replies_follow_their_law() -> None:
    """Two dependent replies of each of 1,500 simulated clients: within the distance that chance
    exceeds once in 10^6; two independent ones are far outside."""
    epsilon, n = 1.5, 1500
    tolerance = 0.01 / relative_error(2 * epsilon, 1.0)
    limit = math.sqrt((4 * math.log(2) + math.log(1e6)) / (2 * n))
    distances = []
    for same in (True, False):
        counts = run(
            sq_from_local(two_questions(epsilon, n, same=same), tolerance, 400, 6),
            ExactOracle(WORLD),
        )
        distances.append(
            total_variation(
                [count / n for count in counts],
                two_replies_law(TwoReplies("sq", epsilon, "correlated", "exact", n)),
            )
        )
    assert distances[0] <= limit < distances[1]


def test_a_second_reply_takes_its_ceiling_of_candidates() -> None:
    """A conditional reply takes its acceptance constant c of candidates, n c within 5.1 deviations
    (4e-7); three quarters of it miss by 10."""
    epsilon, n, tolerance = 1.5, 1500, 0.01 / relative_error(3.0, 1.0)
    rounds: list[tuple[StatisticalQuery, ...]] = []
    oracle = Watched(Memoised(ExactOracle(WORLD)), before=rounds.append)
    run(sq_from_local(two_questions(epsilon, n), tolerance, 400, 6), oracle)
    counts = list(map(len, rounds))
    second = counts.index(n, 1)
    transcript, growth = _Transcript((Observed(X, BinaryRR(0.5), 0, 1),)), math.exp(epsilon)
    exact = math.e * (1 + math.expm1(3) / 20) / (1 - math.expm1(1) / 20)
    assert transcript.ceiling(1.0, 0.1) == pytest.approx(exact)
    for sizes, expected in ((counts[:second], growth), (counts[second:], 1.01 * growth)):
        deviation = math.sqrt(n * expected * (expected - 1))
        assert abs(sum(sizes) - n * expected) <= 5.1 * deviation


def test_nonadaptive_simulation_asks_everything_first() -> None:
    """The non-interactive simulation has trials x draws queries before any answer, the same for one
    seed, and keeps the last candidate after a miss."""
    algorithm = sq_from_local(fixed_trials(1.0, 50), 0.05, 7, 11)
    again = sq_from_local(fixed_trials(1.0, 50), 0.05, 7, 11)
    assert len(algorithm.queries) == 350
    assert algorithm.queries == again.queries
    answers = ExactOracle(WORLD).answer(algorithm.queries)
    assert algorithm.decode(answers) == algorithm.decode(answers) == again.decode(answers)
    assert sq_from_local(fixed_trials(1.0, 50), 0.05, 7, 12).queries != algorithm.queries


@dataclass(frozen=True)
class Leaky(BinaryRR):
    """A randomizer that spends a ten-thousandth more than it claims."""

    name: ClassVar[str] = "leaky"

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        leak = np.uint64(2**32 * math.exp(1.0001))
        return np.where(reports == values, leak, np.uint64(2**32))


def _one(randomizer: Randomizer) -> Local[int]:
    return Nonadaptive((LocalQuery(X, randomizer, Cohort(0, 2)),), lambda tallies: tallies[0].n)


def test_a_real_function_is_not_rounded() -> None:
    """A record's place is that of its value; the client rounds it at random."""
    values = tuple(np.random.default_rng(2).uniform(-1, 1, 200).tolist())
    question = put_to_records(RealQuery(Category("x", tuple(map(str, range(200)))), 0.1, values))
    places = question.values(Records({"x": np.array(list(map(str, range(200))))}))
    answers = places / (1 << 16) * 2 - 1
    assert np.abs(answers - np.array(values)).max() <= 1e-12


@wrong(
    "local_dp.theorems.likelihood:Observed.ratios",
    "1e-09",
    "0.01",
    "a randomizer that spends more than it claims is simulated as if it did not",
    at="<lambda>-RefusedError-density varies by more",
)
@pytest.mark.parametrize(("wrong", "error", "says"), [
    (lambda: sq_from_local(_one(OUE(1.0, k=2)), 0.1, 4, 1), InputError, "not a finite channel"),
    (lambda: sq_from_local(_one(Leaky(1.0)), 0.1, 4, 1), RefusedError, "density varies by more"),
    (lambda: sq_from_local(_one(BinaryRR(1.0)), 0.0, 4, 1), InputError, "tolerance"),
    (lambda: sq_from_local(_one(BinaryRR(1.0)), 0.1, 0, 1), InputError, "trials"),
    (lambda: run(sq_from_local(two_questions(2.0, 3), 0.05, 50, 1), ExactOracle(WORLD)), InputError,
    "too coarse"),
    (lambda: Joint((Bounded("v", 0.0, 1.0), Bounded("v", 0.0, 2.0))), InputError, "joint values"),
    (lambda: run(split_budget(_two_steps(0.1, 0.1), 1.0, 10, 1),
    PopulationOracle(WORLD, KeyedNoise(1), 1, 1.0)), InputError, "asks more"),
    (lambda: one_random_query(Nonadaptive((StatisticalQuery(X, 0.1),) * 50, _same), 1.0, 3, 1),
    InputError, "nobody"),
    (lambda: RealQuery(COLOUR, 0.1, (0.0, 1.0)), InputError, "needs 5 values"),
    (lambda: RealQuery(X, 0.1, (0.0, 1.5)), InputError, "values in"),
])  # fmt: skip
def test_refusals(wrong: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as refusal:
        wrong()
    assert "\n" not in str(refusal.value)
