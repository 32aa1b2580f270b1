"""The rejection step in exact arithmetic, and statistical queries answered by a trusted curator."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.bounds.curator import enough_records
from local_dp.bounds.simulations import conditional_draw_distance, draw_distance
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.clipped import NoisySum
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.experiments.claims.local.local_to_sq.claim import (
    Accept,
    Channel,
    Law,
    Tree,
    draw_laws,
    extremal_channel,
    mixture,
    random_law,
    signs,
    within_draw_bound,
)
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.loss import NANO, Pure, nano_epsilon, split_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.statistical.oracles import (
    ExactOracle,
    Statistical,
    StatisticalPlay,
    StatisticalQuery,
    StatisticalRounds,
)
from local_dp.populations.finite import Population, bernoulli
from local_dp.queries.tables import Bounded, Question
from local_dp.records import Records
from local_dp.theorems.curated import cni_from_ci, curated_from_sq
from local_dp.theorems.likelihood import acceptance, accepted_law, total_variation, truncated_law
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.wrong import wrong

GROWTHS = [Fraction(11, 10), Fraction(3, 2), Fraction(19, 7), Fraction(5), Fraction(20)]


def _cases(growth: Fraction, number: int) -> Iterator[tuple[Channel, Law]]:
    generator = np.random.default_rng([number, growth.numerator])
    for _ in range(number):
        values = int(generator.integers(2, 7))
        reports = int(generator.integers(2, 6))
        yield (extremal_channel(growth, values, reports, generator), random_law(values, generator))


def _taus(growth: Fraction) -> list[Fraction]:
    """Tolerances with tau' = 1/10, 1/2, 1 and 3, none above 9/10."""
    unit = growth**2 - 1
    return [
        min(Fraction(9, 10), share * 2 / unit)
        for share in (Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(3))
    ]


def _violations(growth: Fraction, number: int, accept: Accept = acceptance) -> int:
    """How many of the exact cases are farther from R(z) than the bound."""
    return sum(
        not within_draw_bound(total_variation(law, mixture(shares, channel)), growth, tau)
        for channel, shares in _cases(growth, number)
        for tau in _taus(growth)
        for law in draw_laws(channel, shares, growth, tau, accept)
    )


@wrong(
    "local_dp.theorems.likelihood:mean_ratio",
    "min(max(ratio, 1 / growth), growth)",
    "ratio",
    "an estimated ratio outside the range of true ones is used as it is",
    at="growth2",
)
@pytest.mark.parametrize("growth", short(GROWTHS, lambda growth: growth == GROWTHS[2]))
def test_every_sign_pattern_is_within_the_bound(growth: Fraction) -> None:
    """|Z| <= 6, |W| <= 5, 30 channels, 4 tolerances, all sign patterns of +-tau: total variation
    within the bound in every case, in Fractions."""
    assert _violations(growth, 30) == 0


@pytest.mark.parametrize("growth", GROWTHS[-1:])
@pytest.mark.parametrize(
    "twin",
    [lambda ratio, ceiling: acceptance(2 * ratio, ceiling), lambda ratio, ceiling: ratio / ratio],
    ids=["twice", "always"],
)
def test_wrong_acceptance_violates_the_bound(growth: Fraction, twin: Accept) -> None:
    assert _violations(growth, 10, twin) > 0


@pytest.mark.parametrize(
    "growth", short(GROWTHS, lambda growth: growth in (GROWTHS[1], GROWTHS[-1]))
)
def test_the_printed_query_is_within_its_bound(growth: Fraction) -> None:
    """The paper's uncentred query with acceptance clipped to [0, 1] only: within the bound, of a
    tolerance half as large."""
    worst, unit = 0.0, growth - 1 / growth
    for (channel, shares), tau in product(_cases(growth, 10), _taus(growth)):
        q = channel[0]
        p = mixture(shares, channel)
        for pattern in signs(len(q)):
            triples = zip(p, q, pattern, strict=True)
            ratios = [own / base + sign * tau / 2 * unit for own, base, sign in triples]
            accepts = [min(Fraction(1), max(Fraction(0), ratio / growth)) for ratio in ratios]
            distance = total_variation(accepted_law(q, accepts), p)
            assert within_draw_bound(distance, growth, tau)
            worst = max(
                worst,
                float(distance) / draw_distance(math.log(growth), float(tau / 2), centred=False),
            )
    assert 0.3 < worst <= 1
    # of tau' = (1.5^2 - 1) 0.4 / 2 = .25
    assert draw_distance(math.log(1.5), 0.4) == pytest.approx(0.25 / (1 + math.sqrt(0.9375)))
    assert total_variation([0.5, 0.5], [0.25, 0.75]) == 0.25


def test_truncation_by_enumeration() -> None:
    """The closed form of at most K trials is the sum over all trial sequences, and within the miss
    probability of the unlimited law."""
    q = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    accept = [Fraction(1, 4), Fraction(1), Fraction(2, 3)]
    hits = [a * b for a, b in zip(q, accept, strict=True)]
    law = [Fraction(0)] * 3
    miss = Fraction(1)
    for trials in range(1, 5):
        pairs = zip(law, q, strict=True)
        assert truncated_law(q, accept, trials) == [done + miss * last for done, last in pairs]
        law = [done + miss * hit for done, hit in zip(law, hits, strict=True)]
        miss *= 1 - sum(hits)
        assert total_variation(truncated_law(q, accept, trials), accepted_law(q, accept)) <= miss


def _tree(growths: tuple[Fraction, Fraction], seed: int) -> Tree:
    generator = np.random.default_rng(seed)
    second = [extremal_channel(growths[1], 4, 3, generator) for _ in range(2)]
    return Tree(
        extremal_channel(growths[0], 4, 2, generator), second, random_law(4, generator), growths
    )


@pytest.mark.parametrize(
    "growths",
    [(Fraction(3, 2), Fraction(2)), (Fraction(19, 7), Fraction(19, 7)), (Fraction(2), Fraction(9))],
)
def test_two_replies_of_one_client(growths: tuple[Fraction, Fraction]) -> None:
    """Depth-2 trees, all 256 sign patterns: the transcript law is exact at tau = 0 and within the
    sum of both bounds at tau' = 1/10, 1/2, 95/100."""
    both = growths[0] * growths[1]
    for seed in range(3):
        tree = _tree(growths, seed)
        truth = tree.law()
        assert sum(truth) == 1
        assert next(tree.simulated(Fraction(0), acceptance)) == truth
        for share in (Fraction(1, 10), Fraction(1, 2), Fraction(95, 100)):
            tau = share * 2 / (both**2 - 1)
            second = conditional_draw_distance(math.log(both), float(tau))
            assert second == pytest.approx(float(share) / (1 + math.sqrt(1 - share**2)))
            bound = draw_distance(math.log(growths[0]), float(tau)) + second
            assert all(
                float(total_variation(law, truth)) <= bound
                for law in tree.simulated(tau, acceptance)
            )


def test_the_ceiling_is_never_exceeded() -> None:
    """No answers within the tolerance push a conditional acceptance probability above 1: the
    constant E_k (1 + tau')/(1 - tau') leaves nothing to clip."""
    ratios: list[Fraction] = []

    def record(ratio: Fraction, ceiling: Fraction) -> Fraction:
        ratios.append(ratio / ceiling)
        return acceptance(ratio, ceiling)

    for seed in range(3):
        tree = _tree((Fraction(3, 2), Fraction(2)), seed)
        for _ in tree.simulated(Fraction(9, 10) * 2 / 8, record):
            pass
    assert max(ratios) <= 1


YES = StatisticalQuery(Question("vote == 1"), 0.1)


def asking(times: int) -> Statistical[tuple[float, ...]]:
    return Nonadaptive((YES,) * times, lambda answers: answers)


def trusted(population: Population, budget: float, seed: int = 0) -> TrustedOracle[Population]:
    return TrustedOracle(population, Account(Pure(nano_epsilon(budget))), Draws(KeyedNoise(seed)))


def test_budget_adds_up_and_is_never_exceeded() -> None:
    """Declared queries split the budget exactly; one more is refused before anything is drawn;
    queries and rounds are counted."""
    oracle = trusted(bernoulli("vote", 0.3, 1000, 0), 0.7)
    each = split_epsilon(0.7, 7)
    for times in (3, 4):
        run(curated_from_sq(asking(times), each, 1000), oracle)
    assert oracle.account.spent == Pure(7 * nano_epsilon(each))
    assert (oracle.queries, oracle.rounds) == (7, 2)
    with pytest.raises(RefusedError, match=r"exceeds the budget of epsilon 0\.7"):
        run(curated_from_sq(asking(1), each, 1000), oracle)
    assert (oracle.queries, oracle.rounds) == (7, 2)


def test_the_same_algorithms_run() -> None:
    """Non-adaptive and adaptive SQ algorithms run on noisy sums as they do on the exact oracle, and
    agree within the tolerance."""
    n = enough_records(2, 1.0, 0.1, 1e-6)
    population = bernoulli("vote", 0.3, n, 0)

    def play() -> StatisticalPlay[float]:
        (first,) = yield (YES,)
        (second,) = yield (YES,)
        return (first + second) / 2

    once: Statistical[float] = Nonadaptive((YES,), lambda answers: answers[0])
    twice: StatisticalRounds[float] = Adaptive(play)
    for algorithm in (once, twice):
        noisy = curated_from_sq(algorithm, split_epsilon(1.0, 2), n)
        assert (
            abs(run(noisy, trusted(population, 1.0, 1)) - run(algorithm, ExactOracle(population)))
            < 0.1
        )


@pytest.mark.parametrize(("epsilon", "t"), [(1.0, 1), (0.1, 5)])
def test_enough_records_are_enough(epsilon: float, t: int) -> None:
    """Half of tau is for sampling and half for the noise. By a union of the exact law of each
    answer, t answers are within tau except with probability beta."""
    n, tail = enough_records(t, epsilon, 0.2, 0.2), math.log(20 * t)
    assert n == math.ceil(max(200 * tail, 20 * t * tail / epsilon))
    noise = np.arange(-800, 801)
    ratio = math.exp(-epsilon / t)
    law = ratio ** np.abs(noise) * (1 - ratio) / (1 + ratio)
    # of the mean in [-1, 1]: tau
    means = (np.arange(n + 1)[:, None] + noise) / n
    beyond = np.abs(means - 0.5) > 0.1
    assert t * (binom.pmf(np.arange(n + 1), n, 0.5) @ beyond @ law) <= 0.2


def test_bad_input_is_refused() -> None:
    refuse(
        ("at least one query", lambda: enough_records(0, 1.0, 0.1, 0.1)),
        ("epsilon", lambda: curated_from_sq(asking(1), 0.0, 10)),
        ("records is 0", lambda: curated_from_sq(asking(1), 1.0, 0)),
    )
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
    """With the same draws the handed-over algorithm gives the same result in one round, for the
    same price."""
    interactive = oracle(NANO, seed)
    one_round = oracle(NANO, seed)
    assert run(cni_from_ci(Adaptive(two_rounds), Pure(NANO)), one_round) == run(
        Adaptive(two_rounds), interactive
    )
    assert (interactive.rounds, one_round.rounds) == (2, 1)
    assert interactive.account.spent == one_round.account.spent == Pure(NANO)


def test_it_spends_no_more_than_it_says() -> None:
    """An algorithm that asks for more than its budget is refused inside, and its budget is charged
    before anything is drawn."""
    with pytest.raises(RefusedError) as refusal:
        run(cni_from_ci(Adaptive(two_rounds), Pure(NANO // 2)), oracle(NANO, 1))
    assert refusal.value.code == "budget"
    with pytest.raises(RefusedError):
        run(cni_from_ci(Adaptive(two_rounds), Pure(NANO)), oracle(NANO // 2, 1))
