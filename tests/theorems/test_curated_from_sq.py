"""Statistical queries answered by a trusted curator's noisy sums."""

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.bounds.curator import enough_records
from local_dp.curator.account import Account, DeclaredAccount
from local_dp.curator.sums import NoisySum
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.loss import NANO, Approximate, Pure, approximate, nano_epsilon, split_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.statistical.oracles import ExactOracle, Statistical, StatisticalPlay, StatisticalQuery, StatisticalRounds
from local_dp.populations.finite import bernoulli
from local_dp.populations.population import Population
from local_dp.queries.tables import Bounded, Question
from local_dp.records import Records
from local_dp.theorems.curated import cni_from_ci, curated_from_sq

YES = StatisticalQuery(Question("vote == 1"), 0.1)


def asking(times: int) -> Statistical[tuple[float, ...]]:
    return Nonadaptive((YES,) * times, lambda answers: answers)


def trusted(population: Population, budget: float, seed: int = 0) -> TrustedOracle[Population]:
    return TrustedOracle(population, Account(Pure(nano_epsilon(budget))), Draws(KeyedNoise(seed)))


def test_budget_adds_up_and_is_never_exceeded() -> None:
    """Declared queries split the budget exactly; one more is refused before anything is drawn; queries and rounds are counted."""
    oracle, each = trusted(bernoulli("vote", 0.3, 1000, 0), 0.7), split_epsilon(0.7, 7)
    for times in (3, 4):
        run(curated_from_sq(asking(times), each, 1000), oracle)
    assert oracle.account.spent == Pure(7 * nano_epsilon(each))
    assert (oracle.queries, oracle.rounds) == (7, 2)
    with pytest.raises(RefusedError, match=r"exceeds the budget of epsilon 0\.7"):
        run(curated_from_sq(asking(1), each, 1000), oracle)
    assert (oracle.queries, oracle.rounds) == (7, 2)


def test_the_same_algorithms_run() -> None:
    """Non-adaptive and adaptive SQ algorithms run on noisy sums as they do on the exact oracle, and agree within the tolerance."""
    n = enough_records(2, 1.0, 0.1, 1e-6)
    population = bernoulli("vote", 0.3, n, 0)

    def play() -> StatisticalPlay[float]:
        (first,) = yield (YES,)
        (second,) = yield (YES,)
        return (first + second) / 2

    once: Statistical[float] = Nonadaptive((YES,), lambda answers: answers[0])
    twice: StatisticalRounds[float] = Adaptive(play)
    for algorithm in (once, twice):
        curated = curated_from_sq(algorithm, split_epsilon(1.0, 2), n)
        assert abs(run(curated, trusted(population, 1.0, 1)) - run(algorithm, ExactOracle(population))) < 0.1


def test_a_delta_buys_less_noise() -> None:
    """Four hundred questions within (1, 1e-6) are answered with a fifth of the noise that adding up leaves them, and no question more is answered."""
    account, population = DeclaredAccount(approximate(1, 1e-6), 400), bernoulli("vote", 0.3, 1000, 0)
    oracle, each = TrustedOracle(population, account, Draws(KeyedNoise(0))), account.part.epsilon
    answers = run(curated_from_sq(asking(400), each, 1000), oracle)
    added = run(curated_from_sq(asking(400), split_epsilon(1.0, 400), 1000), trusted(population, 1.0))
    assert each == pytest.approx(4.753 / 400, rel=1e-3)
    truth = run(asking(1), ExactOracle(population))[0]
    off, off_by_adding_up = (sum(abs(answer - truth) for answer in each) for each in (answers, added))
    assert off < off_by_adding_up / 3  # 4.75 expected, each a mean of 400 absolute values: failure below 1e-6
    assert isinstance(account.spent, Approximate)
    with pytest.raises(RefusedError, match="exceed the 400"):
        run(curated_from_sq(asking(1), each, 1000), oracle)


@pytest.mark.parametrize(("epsilon", "t"), [(1.0, 1), (0.1, 5)])
def test_enough_records_are_enough(epsilon: float, t: int) -> None:
    """All t answers are within tau in at least a share 1 - beta of 150 runs (binomial, failure 1e-6); a sixtieth of the records is caught failing."""
    tau, beta = 0.2, 0.2

    def failures(n: int) -> int:
        curated, failed = curated_from_sq(asking(t), split_epsilon(epsilon, t), n), 0
        for seed in range(150):
            answers = run(curated, trusted(bernoulli("vote", 0.5, n, seed), epsilon, seed))
            failed += max(map(abs, answers)) > tau
        return failed

    n = enough_records(t, epsilon, tau, beta)
    assert failures(n) <= binom(150, beta).isf(1e-6)
    assert failures(n // 60) > binom(150, beta).isf(1e-6)


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="at least one query"):
        enough_records(0, 1.0, 0.1, 0.1)
    with pytest.raises(InputError, match="epsilon"):
        curated_from_sq(asking(1), 0.0, 10)
    with pytest.raises(InputError, match="records is 0"):
        curated_from_sq(asking(1), 1.0, 0)
    assert curated_from_sq(asking(2), 1.0, 10).queries == (NoisySum(YES.query, 1.0),) * 2
    assert Bounded("v", 0, 1).domain.kind == "levels"


RECORDS = Records({"x": np.arange(100) % 2, "y": np.arange(100) % 5})


def two_rounds() -> Play[NoisySum, int, int]:
    """Asks about y or about x, as a first noisy sum says."""
    (first,) = yield (NoisySum(Question("x == 1"), 0.5),)
    (second,) = yield (NoisySum(Question("y == 0" if first > 50 else "x == 0"), 0.5),)
    return second


def oracle(budget: int, seed: int) -> TrustedOracle[Records]:
    return TrustedOracle(RECORDS, Account(Pure(budget)), Draws(KeyedNoise(seed)))


@pytest.mark.parametrize("seed", range(8))
def test_the_result_is_that_of_the_interaction(seed: int) -> None:
    """With the same draws the handed-over algorithm gives the same result in one round, for the same price."""
    interactive, handed = oracle(NANO, seed), oracle(NANO, seed)
    assert run(cni_from_ci(Adaptive(two_rounds), Pure(NANO)), handed) == run(Adaptive(two_rounds), interactive)
    assert (interactive.rounds, handed.rounds) == (2, 1)
    assert interactive.account.spent == handed.account.spent == Pure(NANO)


def test_it_spends_no_more_than_it_says() -> None:
    """An algorithm that asks for more than its budget is refused inside, and its budget is charged before anything is drawn."""
    with pytest.raises(RefusedError) as refused:
        run(cni_from_ci(Adaptive(two_rounds), Pure(NANO // 2)), oracle(NANO, 1))
    assert refused.value.code == "budget"
    with pytest.raises(RefusedError):
        run(cni_from_ci(Adaptive(two_rounds), Pure(NANO)), oracle(NANO // 2, 1))
