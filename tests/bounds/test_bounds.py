"""Sample sizes: against published figures, exact binomial probabilities and simulation in law."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.bounds import frequencies, masked_parity
from local_dp.bounds.frequencies import frequency_clients, grouped_clients
from local_dp.bounds.response import rr_clients, rr_clients_hoeffding
from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.frequencies.best import best_choice
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.inputs.refusals import refuse


@pytest.mark.parametrize("tail", [1e-9, 1e-4, 0.025, 0.3, 0.5, 0.9])
def test_normal_quantiles(tail: float) -> None:
    assert normal_quantile(tail) == pytest.approx(float(stats.norm.isf(tail)), abs=1e-7)
    assert normal_tail(normal_quantile(tail)) == pytest.approx(tail, rel=1e-7)


def test_masked_parity_information() -> None:
    """I_det of limits 3.2 to the printed digits."""
    for epsilon, information in ((0.5, 0.0609), (1.0, 0.2256), (2.0, 0.678), (4.0, 1.21)):
        assert 1 / masked_parity.one_bit_variance(epsilon, 0.5) == pytest.approx(
            information, rel=4e-3
        )


@pytest.mark.parametrize(
    ("d", "union", "best"), [(4, 1_271, 1_195), (16, 28_847, 28_400), (64, 641_000, 620_000)]
)
def test_masked_parity_clients_match_the_tables(d: int, union: int, best: int) -> None:
    """At epsilon 1 and beta .1 within 3 % of the best simple protocol (P2), below the union
    bound of limits 3.2; no other split does better."""
    clients = masked_parity.masked_parity_clients(d, 1.0, 0.1)
    first = masked_parity.masked_parity_split(d, 1.0, clients)
    assert clients == pytest.approx(best, rel=0.03)
    assert 0.93 * union < clients <= union
    parts = np.linspace(1, clients - 1, 200)
    chances = [
        masked_parity.masked_parity_success(d, 1.0, part, clients - part)
        for part in parts.astype(int).tolist()
    ]
    assert (
        0.9 + 2e-3
        > masked_parity.masked_parity_success(d, 1.0, first, clients - first)
        >= max([*chances, 0.9]) - 1e-9
    )


@pytest.mark.parametrize("groups", [1, 2, 5])
def test_clients_for_shares_within_groups(groups: int) -> None:
    """The count is that of a cell's largest variance by randomized response, at 0, 1/(2 G) or 1/G,
    G times over, with a union of two tails a group."""
    p, q = np.array([math.exp(4), 1]) / (math.exp(4) + 2 * groups)
    rates = q + np.array([0, 0.5, 1]) / groups * (p - q)
    variance = (rates * (1 - rates)).max() / (p - q) ** 2
    quantile = stats.norm.isf(0.05 / (2 * groups))
    # e^2 + e + 3 = 13.1
    assert [frequencies.prefers_grr(1.0, symbols) for symbols in (13, 14)] == [True, False]
    assert grouped_clients(4.0, groups, 0.05, 0.05) == math.ceil(
        variance * (groups * quantile / 0.05) ** 2
    )


def _uniform_variance(oracle: FrequencyOracle) -> float:
    """n E||f^ - f||^2 at the uniform law, from the two values between which the oracle says that
    its estimates vary; infinite where it says none."""
    tally, share = oracle.empty(), 1 / oracle.shares
    ends = oracle.estimate(replace(tally, counts=tally.counts + 1, n=int(tally.counts.size))).ends
    if ends is None:
        return math.inf
    return float(np.broadcast_to((ends[1] - share) * (share - ends[0]), oracle.shares).sum())


@pytest.mark.long(keep="3.0")
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0, 6.0])
def test_the_best_frequency_oracle_is_chosen(epsilon: float) -> None:
    """For k symbols the chosen oracle's total variance at the uniform law is within 2 % of the
    least of all that there are; one-bit Hadamard's is not."""
    kinds: list[Any] = [
        kind
        for kind in map(RANDOMIZERS.__getitem__, RANDOMIZERS.built_in)
        if issubclass(kind, FrequencyOracle) and "k" in kind.__dataclass_fields__
    ]
    worse, most = [], {"subset-selection": 1024, "affine-sets": 64}  # symbols
    assert len(kinds) >= 10
    for k in (2, 3, 6, 8, 12, 16, 24, 50, 64, 100, 200, 500, 1000, 2000):
        totals = {
            kind.name: _uniform_variance(kind(epsilon, k=k))
            for kind in kinds
            if k <= most.get(kind.name, k)
        }
        choice = totals[frequency_randomizer(epsilon, k).name]
        least = min(totals.values())
        assert choice <= 1.02 * least, (k, totals)
        assert choice == pytest.approx(float(best_choice(epsilon, k).total), rel=1e-4)
        worse.append(_uniform_variance(Hadamard(epsilon, k=k)) > 1.02 * least)
    assert any(worse)


def test_chances_of_pairs_add_up_to_all_pairs_of_a_set() -> None:
    for order, w in ((2, 1), (5, 2), (7, 3)):
        p, _ = frequencies._chances(1.0, order, w)
        one, none = frequencies._pair_chances(p, order, w)
        assert (order - 1) * (2 * one + (order - 2) * none) == pytest.approx(w * (w - 1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 24.0])
def test_one_round_stays_above_its_proven_bound(epsilon: float) -> None:
    """At every epsilon the one-round protocol's count is above the bound for all non-interactive
    protocols, which grows as epsilon falls."""
    for d in (4, 12):
        bound = masked_parity.masked_parity_one_round_bound(d, epsilon, 0.9)
        assert 0 < bound < masked_parity.masked_parity_one_round_clients(d, epsilon, 0.1)
        assert bound < masked_parity.masked_parity_one_round_bound(d, epsilon / 1.01, 0.9)
    wide = masked_parity.masked_parity_one_round_bound(16, 3.0, 0.9)  # where K is 1 + sqrt 2
    assert wide == pytest.approx(50_367.807)
    # the figure of README
    assert math.ceil(masked_parity.masked_parity_one_round_bound(16, 1.0, 0.9)) == 1_350_555


BOUNDS: list[Callable[[float], object]] = [
    lambda epsilon: rr_clients(epsilon, 0.1, 0.05),
    lambda epsilon: rr_clients_hoeffding(epsilon, 0.1, 0.05),
    lambda epsilon: frequency_clients(epsilon, 8, 0.1, 0.05),
    lambda epsilon: masked_parity.masked_parity_clients(4, epsilon, 0.05),
    lambda epsilon: masked_parity.masked_parity_split(4, epsilon, 100),
]  # fmt: skip


def test_bad_input() -> None:
    """Epsilons out of range; failure probabilities that do not lie between 0 and 1; tolerances
    beyond (0, 2]."""
    for wrong in (0.0, -1.0, math.nan, math.inf, 1e308):
        refuse(
            *(("epsilon", partial(bound, wrong)) for bound in BOUNDS),
            *(
                (".", partial(call, wrong))
                for call in (partial(rr_clients_hoeffding, 1.0, 0.1), normal_quantile)
            ),
            ("tolerance", partial(rr_clients, 1.0, wrong, 0.05)),
        )
