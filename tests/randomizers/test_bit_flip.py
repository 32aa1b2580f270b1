"""dBitFlip: the exact loss of a life whose value stays, buckets that client and server agree on, and the closed-form variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from local_dp.bounds.longitudinal import bit_flip_variance
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins
from local_dp.randomizers.evidence import exact_epsilon
from local_dp.randomizers.repeated.change_tracking import BitFlip

KEY = b"0123456789abcdef"


@pytest.mark.parametrize(("k", "d"), [(3, 1), (5, 2), (4, 4)])
def test_the_loss_of_a_life_is_exact(k: int, d: int) -> None:
    """Under every coin tried, over all values and reports, which a label repeats for ever, the worst ratio is e^epsilon and no more."""
    randomizer, worst = BitFlip(1.0, k=k, d=d), Fraction(1)
    ones = [Fraction(weight, randomizer.inner.total) for weight in randomizer.inner.ones]
    for coin in public_coins(KEY, 0, 200):
        places = randomizer.encode(np.arange(k), np.full(k, coin)).tolist()
        for report in itertools.product((0, 1), repeat=d):
            laws = [math.prod((ones[at == place] if bit else 1 - ones[at == place] for at, bit in enumerate(report)), start=Fraction(1)) for place in places]
            worst = max(worst, max(laws) / min(laws))
    assert worst <= exp_epsilon(1_000_000_000)
    assert math.log(worst) == pytest.approx(1.0, abs=1e-6) == exact_epsilon(randomizer)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (7, 3), (10, 4), (9, 9)])
def test_the_client_and_the_server_mean_the_same_buckets(k: int, d: int) -> None:
    """At epsilon 24, where bits of the own bucket alone are 1, it is its own bucket that is counted; every bucket is picked by d / k of the coins."""
    randomizer, n = BitFlip(24.0, k=k, d=d), 20_000
    coins, values = public_coins(KEY, 0, n), np.arange(n) % k
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(1), Draw(1), 0, n), coins)
    tally = randomizer.tally(reports, coins)
    assert tally.counts.sum() == n * d
    assert abs(tally.counts.sum(axis=1) / n - d / k).max() < math.sqrt(math.log(2 * k / 1e-6) / (2 * n))
    for value in range(k):
        alone = randomizer.tally(reports[values == value], coins[values == value]).counts
        assert alone[np.arange(k) != value, 1].sum() == 0
        assert alone[value, 1] > 0


def test_a_label_repeats_the_report() -> None:
    """Under a label the words are the same for ever, so all reports of a life are one report."""
    randomizer, coins = BitFlip(1.0, k=9, d=4), public_coins(KEY, 0, 500)
    one, two, other = (
        randomizer.respond(np.arange(500) % 9, randomizer.draw(KeyedNoise(3), Draw(round, 0, label), 0, 500), coins)
        for round, label in ((1, "diary"), (2, "diary"), (2, ""))
    )
    assert (one == two).all()
    assert (one != other).any()


def test_unary_bits_beat_the_published_ones() -> None:
    """At every epsilon the variance for a rare bucket is below that of symmetric bits of half of epsilon, the same buckets asked."""
    for epsilon in (0.1, 1.0, 4.0):
        flip = 1 / (math.exp(epsilon / 2) + 1)
        published = 10 / 4 * flip * (1 - flip) / (1 - 2 * flip) ** 2
        assert bit_flip_variance(epsilon, 10, 4, 0.0) < published
