"""Sample sizes: against published figures, exact binomial probabilities and simulation in law."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds import masked_parity
from local_dp.bounds.frequencies import frequency_clients, grouped_clients
from local_dp.bounds.response import response_gain, rr_clients, rr_clients_hoeffding
from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.interaction import run
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.frequencies.best import best_choice
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Tally
from tests.support.inputs.refusals import refuse

ALPHA = 1e-6
MOST = {"subset-selection": 1024, "affine-sets": 64}  # symbols
# limits 1: epsilon, tau, beta, RR CLT, RR exact for good (rows 1 and 5 recomputed: 18 and 22 more
# than printed), RR Hoeffding
RR_TABLE = [
    (0.1, 0.1, 0.05, 153_915, 154_129, 295_602),
    (0.5, 0.1, 0.05, 6_404, 6_451, 12_299),
    (1.0, 0.1, 0.05, 1_799, 1_840, 3_455),
    (1.0, 0.05, 0.01, 12_428, 12_508, 19_848),
    (1.0, 0.01, 0.05, 179_884, 180_258, 345_478),
    (2.0, 0.1, 0.05, 662, 683, 1_272),
    (4.0, 0.1, 0.05, 413, 426, 794),
]
# d, the first round's part of beta = .1, the union bound of limits 3.2, the best simple protocol of
# limits 0
MASKED_PARITY = [
    (4, 0.08, 1_271, 1_195), (8, 0.08, 6_216, 5_756), (16, 0.095, 28_847, 28_400),
    (32, 0.095, 137_600, 134_000), (64, 0.095, 641_000, 620_000),
]  # fmt: skip


def failure(epsilon: float, tau: float, n: int, mean: float = 0.0) -> float:
    """Pr[the randomized-response estimate of a [-1, 1] mean is off by more than tau], exactly, from
    the binomial law."""
    gain = response_gain(epsilon)
    p = 0.5 + mean / (2 * gain)
    below, above = n * (0.5 + (mean - tau) / (2 * gain)), n * (0.5 + (mean + tau) / (2 * gain))
    return float(
        stats.binom.cdf(math.ceil(below - 1e-9) - 1, n, p)
        + stats.binom.sf(math.floor(above + 1e-9), n, p)
    )


@pytest.mark.parametrize(("epsilon", "tau", "beta", "clt", "exact", "hoeffding"), RR_TABLE)
def test_randomized_response_fails_as_often_as_stated(
    epsilon: float, tau: float, beta: float, clt: int, exact: int, hoeffding: int
) -> None:
    """In the exact binomial law: the Hoeffding count never exceeds beta, at any mean; the CLT count
    is within 15 % of it; the published exact count holds."""
    for mean in (-0.9, -0.3, 0.0, 0.5, 1.0):
        assert failure(epsilon, tau, rr_clients_hoeffding(epsilon, tau, beta), mean) <= beta
        assert failure(epsilon, tau, rr_clients(epsilon, tau, beta), mean) <= 1.15 * beta
    assert all(failure(epsilon, tau, n) <= beta for n in range(exact, exact + 200))
    assert failure(epsilon, tau, exact - 1) > beta
    assert failure(epsilon, tau, rr_clients(epsilon, tau, beta)) >= beta / 1.15
    # the wrong twin: half of the clients
    assert failure(epsilon, tau, rr_clients(epsilon, tau, beta) // 2) > 2 * beta


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0])
def test_gain_is_the_randomizers(epsilon: float) -> None:
    """C = coth(eps / 2) = (e^eps + 1) / (e^eps - 1), and the randomizer's own gain exceeds it by
    rounding only."""
    assert response_gain(epsilon) == pytest.approx(
        (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1), rel=1e-9
    )
    assert -1e-15 <= BinaryRR(epsilon).gain / response_gain(epsilon) - 1 < 1e-4


@pytest.mark.parametrize("tail", [1e-9, 1e-4, 0.025, 0.3, 0.5, 0.9])
def test_normal_quantiles(tail: float) -> None:
    assert normal_quantile(tail) == pytest.approx(float(stats.norm.isf(tail)), abs=1e-7)
    assert normal_tail(normal_quantile(tail)) == pytest.approx(tail, rel=1e-7)


@pytest.mark.parametrize(
    ("epsilon", "information"), [(0.5, 0.0609), (1.0, 0.2256), (2.0, 0.678), (4.0, 1.21)]
)
def test_masked_parity_information(epsilon: float, information: float) -> None:
    """I_det of limits 3.2 to the printed digits."""
    assert 1 / masked_parity.one_bit_variance(epsilon, 0.5) == pytest.approx(information, rel=4e-3)


@pytest.mark.parametrize(("d", "part", "union", "best"), MASKED_PARITY)
def test_masked_parity_clients_match_the_tables(d: int, part: float, union: int, best: int) -> None:
    """At epsilon 1 and beta .1 the count is within 3 % of the best simple protocol of limits 0. It
    lies below the union bound of limits 3.2."""
    information = 1 / masked_parity.one_bit_variance(1.0, 0.5)
    bound = (
        4 * d * d / information * normal_quantile(part / d) ** 2
        + 4 / information * normal_quantile(0.1 - part) ** 2
    )
    assert bound == pytest.approx(union, rel=0.001)
    clients = masked_parity.masked_parity_clients(d, 1.0, 0.1)
    assert clients == pytest.approx(best, rel=0.03)
    assert 0.93 * union < clients <= union


def successes(d: int, epsilon: float, clients: int, trials: int) -> int:
    """How many of so many masked-parity runs, drawn in law, are exact."""
    learner, exact, generator = MaskedParityLearner(d=d), 0, np.random.default_rng(d)
    for seed in range(trials):
        population = learner.synthetic(clients, seed)
        exact += (
            learner.true_error(
                run(
                    learner.algorithm(epsilon, clients),
                    AggregateOracle(population, generator, epsilon),
                ),
                population,
            )
            == 0
        )
    return exact


@pytest.mark.long
@pytest.mark.parametrize(("d", "epsilon"), [(4, 1.0), (8, 1.0), (16, 1.0), (8, 0.5)])
def test_masked_parity_succeeds_as_often_as_stated(d: int, epsilon: float) -> None:
    """At the count for 90 %, 600 runs in law succeed between 87.5 % and 92.5 % of the time, up to
    chance of ALPHA; at half of it they fail the same test."""
    clients = masked_parity.masked_parity_clients(d, epsilon, 0.1)
    first = masked_parity.masked_parity_split(d, epsilon, clients)
    assert masked_parity.masked_parity_success(d, epsilon, first, clients - first) == pytest.approx(
        0.9, abs=2e-3
    )

    def as_stated(count: int) -> bool:
        exact = successes(d, epsilon, count, 600)
        return bool(
            stats.binom.cdf(exact, 600, 0.875) > ALPHA
            and stats.binom.sf(exact - 1, 600, 0.925) > ALPHA
        )

    assert as_stated(clients)
    assert not as_stated(clients // 2)


@pytest.mark.parametrize("d", [1, 4, 16, 64])
def test_the_split_is_the_best_one(d: int) -> None:
    """No other split of the clients does better, to a part in 10^9, and more clients never do
    worse."""
    for n in (2, 3, 10, 300, 30_000):
        first = masked_parity.masked_parity_split(d, 1.0, n)
        best = masked_parity.masked_parity_success(d, 1.0, first, n - first)
        others = np.unique(np.linspace(1, n - 1, 200).astype(int)).tolist()
        assert 1 <= first < n
        assert (
            best
            >= max(
                masked_parity.masked_parity_success(d, 1.0, other, n - other) for other in others
            )
            - 1e-9
        )


@pytest.mark.long(keep="1.0-4")
@pytest.mark.parametrize(("epsilon", "k"), [(1.0, 4), (1.0, 16), (1.0, 64), (2.0, 16), (3.0, 64)])
def test_frequency_clients_keep_every_label_within_tolerance(epsilon: float, k: int) -> None:
    """The stated count keeps all k frequencies within tau in 95 % of 300 runs, up to chance ALPHA,
    whatever the law; a third of it fails for some law."""
    tau, randomizer, generator = 0.05, frequency_randomizer(epsilon, k), np.random.default_rng(k)
    laws = [
        np.array([1 / held if rank < held else 0.0 for rank in range(k)]) for held in (1, 2, 3, k)
    ]

    def within(clients: int, law: Floats) -> int:
        good = 0
        for _ in range(300):
            held = dict(enumerate(generator.multinomial(clients, law).tolist()))
            good += bool(
                abs(randomizer.estimate(randomizer.draw_tally(held, generator)).value - law).max()
                <= tau
            )
        return good

    clients = frequency_clients(epsilon, k, tau, 0.05)
    assert all(stats.binom.cdf(within(clients, law), 300, 0.95) > ALPHA for law in laws)
    assert any(stats.binom.cdf(within(clients // 3, law), 300, 0.95) < ALPHA for law in laws)


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_clients_for_shares_within_groups(groups: int) -> None:
    """The count is that of a cell's largest variance by randomized response, at 0, 1/(2 G) or 1/G,
    G times over, with a union of two tails a group."""
    epsilon, tau, beta = 4.0, 0.05, 0.05
    k = 2 * groups + 1
    p, q = np.array([math.exp(epsilon), 1]) / (math.exp(epsilon) + k - 1)
    variance = max(
        (q + f * (p - q)) * (1 - q - f * (p - q)) / (p - q) ** 2
        for f in (0, 1 / (2 * groups), 1 / groups)
    )
    expected = variance * (groups * NormalDist().inv_cdf(1 - beta / (2 * groups)) / tau) ** 2
    assert grouped_clients(epsilon, groups, tau, beta) == math.ceil(expected)


@pytest.mark.parametrize(
    ("epsilon", "k", "grr", "hadamard"),
    [
        (1.0, 4, 8.31, 18.5),
        (1.0, 16, 99.7, 74.9),
        (1.0, 64, 1440, 299.7),
        (2.0, 64, 119.5, 110.3),
        (4.0, 64, 4.74, 68.9),
    ],
)
def test_frequency_variances_match_the_table(
    epsilon: float, k: int, grr: float, hadamard: float
) -> None:
    """n E||f^ - f||^2 at the uniform law, summed from the randomizers' own standard errors, is that
    of limits 2."""
    for randomizer, printed in ((GRR(epsilon, k=k), grr), (Hadamard(epsilon, k=k), hadamard)):
        law = (
            np.stack(
                [
                    randomizer.channel(cell).astype(np.float64).mean(axis=0)
                    for cell in range(randomizer.cells)
                ]
            )
            / randomizer.total
            / randomizer.cells
        )
        estimate = randomizer.estimate(Tally(np.rint(law * 2.0**40).astype(np.int64)))
        total = float((estimate.standard_error**2).sum()) * estimate.n
        assert total == pytest.approx(printed, rel=0.01)


@pytest.mark.long(keep="3.0")
@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
def test_the_best_frequency_oracle_is_chosen(epsilon: float) -> None:
    """For k symbols the chosen oracle's total variance at the uniform law is within 2 % of the
    least of all that there are; one-bit Hadamard's is not."""
    kinds = [
        kind
        for kind in map(RANDOMIZERS.__getitem__, RANDOMIZERS.built_in)
        if issubclass(kind, FrequencyOracle) and "k" in kind.__dataclass_fields__
    ]
    assert len(kinds) >= 10
    least = {}
    for k in (2, 3, 6, 8, 12, 16, 24, 50, 64, 100, 200, 500, 1000, 2000):
        built = (
            RANDOMIZERS.build(kind.name, {"epsilon": epsilon, "k": k})
            for kind in kinds
            if k <= MOST.get(kind.name, k)
        )
        totals = {
            oracle.name: _uniform_variance(oracle)
            for oracle in built
            if isinstance(oracle, FrequencyOracle)
        }
        least[k] = min(totals.values())
        chosen = frequency_randomizer(epsilon, k).name
        assert totals[chosen] <= 1.02 * least[k], (k, chosen, totals)
        assert totals[chosen] == pytest.approx(float(best_choice(epsilon, k).total), rel=1e-4)
    assert any(_uniform_variance(Hadamard(epsilon, k=k)) > 1.02 * best for k, best in least.items())


def _uniform_variance(oracle: FrequencyOracle) -> float:
    """n E||f^ - f||^2 at the uniform law, from the two values between which the oracle says that
    its estimates vary; infinite where it says none."""
    tally = oracle.empty()
    ends = oracle.estimate(replace(tally, counts=tally.counts + 1, n=int(tally.counts.size))).ends
    if ends is None:
        return math.inf
    share = 1 / oracle.shares
    return float(np.broadcast_to((ends[1] - share) * (share - ends[0]), oracle.shares).sum())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 3.0, 4.0, 8.0, 24.0])
def test_one_round_stays_above_its_proven_bound(epsilon: float) -> None:
    """At every epsilon the one-round protocol's count is above the bound for all non-interactive
    protocols, which grows as epsilon falls."""
    for d in (4, 8, 12):
        bound = masked_parity.masked_parity_one_round_bound(d, epsilon, 0.9)
        assert 0 < bound < masked_parity.masked_parity_one_round_clients(d, epsilon, 0.1)
        assert bound < masked_parity.masked_parity_one_round_bound(d, epsilon / 1.01, 0.9)


def test_the_proven_count_of_one_round() -> None:
    """The figure of README: no one-round protocol for 16 bits needs fewer clients at epsilon 1 and
    90 %."""
    assert math.ceil(masked_parity.masked_parity_one_round_bound(16, 1.0, 0.9)) == 925_221


@pytest.mark.parametrize("wrong", [0.0, 1.0, -1.0, math.nan, math.inf, 1e-12, 1e308])
def test_bad_input(wrong: float) -> None:
    """Epsilons out of range; failure probabilities that do not lie between 0 and 1; tolerances
    beyond (0, 2]."""
    bounds: list[Callable[[float], object]] = [
        lambda epsilon: rr_clients(epsilon, 0.1, 0.05),
        lambda epsilon: rr_clients_hoeffding(epsilon, 0.1, 0.05),
        lambda epsilon: frequency_clients(epsilon, 8, 0.1, 0.05),
        lambda epsilon: masked_parity.masked_parity_clients(4, epsilon, 0.05),
        lambda epsilon: masked_parity.masked_parity_split(4, epsilon, 100),
    ]  # fmt: skip
    if wrong != 1:
        refuse(*(("epsilon", partial(bound, wrong)) for bound in bounds))
    if wrong != 1e-12:
        refuse(
            (".", lambda: rr_clients_hoeffding(1.0, 0.1, wrong)),
            (".", lambda: normal_quantile(wrong)),
        )
    if wrong not in (1, 1e-12):
        refuse(("tolerance", lambda: rr_clients(1.0, wrong, 0.05)))
