"""dBitFlip: the exact loss of a life whose value stays, buckets that client and server agree on, and the closed-form variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from local_dp.bounds.longitudinal import bit_flip_variance
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins
from local_dp.randomizers.evidence import exact_epsilon
from local_dp.randomizers.repeated.bit_flip import BitFlip

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


@pytest.mark.parametrize(("k", "d", "epsilon"), [(2, 1, 1.0), (6, 2, 1.0), (6, 6, 2.0)])
def test_the_variance_is_the_closed_form(k: int, d: int, epsilon: float) -> None:
    """What a report stands for, k / d times its bit where the bucket is asked, has the closed-form variance within 3 %; so has the stated standard error."""
    randomizer, n, share = BitFlip(epsilon, k=k, d=d), 1_500_000, 0.5
    coins, values = public_coins(KEY, 0, n), np.where(np.arange(n) < share * n, 0, 1)
    order = np.random.default_rng(2).permutation(n)
    reports = randomizer.respond(values[order], randomizer.draw(KeyedNoise(4), Draw(1), 0, n), coins)
    estimate = randomizer.estimate(randomizer.tally(reports, coins))
    closed = bit_flip_variance(epsilon, k, d, share)
    assert n * float(estimate.standard_error[0]) ** 2 == pytest.approx(closed, rel=0.01)
    parts = np.array_split(np.arange(n), 3000)  # of 500 clients each
    shares = np.array([randomizer.estimate(randomizer.tally(reports[part], coins[part])).value[0] for part in parts])
    assert abs(shares.mean() - share) < 6 * math.sqrt(closed / n) + 4 * k / d / 500
    seen = 500 * float(shares.var())
    assert seen == pytest.approx(closed * (1 + k / d / 500), rel=5 * math.sqrt(2 / 3000))  # five deviations of a variance of 3,000 nearly normal means


def test_unary_bits_beat_the_published_ones() -> None:
    """At every epsilon the variance for a rare bucket is below that of symmetric bits of half of epsilon, the same buckets asked."""
    for epsilon in (0.1, 1.0, 4.0):
        flip = 1 / (math.exp(epsilon / 2) + 1)
        published = 10 / 4 * flip * (1 - flip) / (1 - 2 * flip) ** 2
        assert bit_flip_variance(epsilon, 10, 4, 0.0) < published


@pytest.mark.parametrize("wrong", [{"d": 0}, {"d": 5}, {"d": 1.0}, {"k": 1}, {"word_bits": 1}])
def test_bad_parameters_are_refused(wrong: dict[str, int]) -> None:
    """No bucket, more than there are, and words too narrow are refused in one line."""
    with pytest.raises(InputError):
        BitFlip(0.5, **{"k": 4, "d": 2, **wrong})
