"""Subset selection: exact channel, sets that hold every two symbols equally often, the minimax table, and reports that have the closed forms."""

import math

import numpy as np
import pytest

from local_dp.bounds.frequencies import subset_variance
from local_dp.loss import nano_epsilon
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection, Translates, best_blocks, field_order, products

TABLE = [(1.0, 4, 8.31), (1.0, 16, 51.9), (1.0, 64, 228.4), (1.0, 1024, 3763.7), (2.0, 64, 44.9), (4.0, 64, 4.74), (4.0, 1024, 77.7)]


@pytest.mark.parametrize("order", [2, 3, 4, 7, 8, 16, 61, 64])
def test_over_the_coins_every_two_codes_differ_by_everything_equally_often(order: int) -> None:
    """The differences of two symbols' codes are all elements but 0, each once: over coins and translates every two symbols share equally many sets."""
    codes, group = products(order), Translates(1.0, k=order)
    assert codes.shape == (order - 1, order)
    for u in range(min(order, 12)):
        for v in range(u):
            assert np.sort(group.away(codes[:, u], codes[:, v])).tolist() == list(range(1, order))


def test_orders_are_primes_and_powers_of_two() -> None:
    """The least field at each size, by hand."""
    assert [field_order(k) for k in (2, 3, 4, 6, 8, 9, 14, 24, 62, 90, 1000)] == [2, 3, 4, 7, 8, 11, 16, 29, 64, 97, 1009]


@pytest.mark.parametrize(("epsilon", "k", "minimax"), TABLE)
def test_it_meets_the_minimax_table(epsilon: float, k: int, minimax: float) -> None:
    """n E||f^ - f||^2 at the uniform law is Ye and Barg's lower bound of limits 2: of all set sizes, the chosen one's."""
    order, w = best_blocks(nano_epsilon(epsilon), k)
    growth = math.exp(epsilon)
    bound = min((k - 1) ** 2 * (w * growth + k - w) ** 2 / (k * w * (k - w) * (growth - 1) ** 2) for w in range(1, k))
    assert order == k
    assert k * subset_variance(epsilon, order, w, 1 / k) == pytest.approx(bound, rel=1e-9)
    assert bound == pytest.approx(minimax, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_between_the_fields_little_is_lost(epsilon: float) -> None:
    """At sizes that are no field's, the total variance is at most 5 % above the minimax bound (6.3 % at k = 6), and never above k-ary response's."""
    growth = math.exp(epsilon)
    for k in range(2, 130):
        spent = k * subset_variance(epsilon, *best_blocks(nano_epsilon(epsilon), k), 1 / k)
        bound = min((k - 1) ** 2 * (w * growth + k - w) ** 2 / (k * w * (k - w) * (growth - 1) ** 2) for w in range(1, k))
        assert bound * (1 - 1e-9) <= spent <= (1.063 if k == 6 else 1.05) * bound
        assert spent <= k * subset_variance(epsilon, k, 1, 1 / k) * (1 + 1e-9)


def test_sets_of_one_are_k_ary_response() -> None:
    """Where sets of one symbol are best the channel is that of k-ary randomized response, to the word."""
    single, direct = SubsetSelection(4.0, k=6), GRR(4.0, k=6)
    assert (single.inner.w, single.inner.k) == (1, 6)
    assert (single.inner.channel() == direct.channel()).all()
