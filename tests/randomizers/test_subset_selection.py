"""Subset selection: exact channel, sets that hold every two symbols equally often, the minimax table, and reports that have the closed forms."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints, Words
from local_dp.bounds.frequencies import subset_variance
from local_dp.conformance.channels import conform_channel
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection, Translates, best_blocks, field_order, products

ALPHA = 1e-6  # failure probability of each statistical check
N = 400_000
TABLE = [(1.0, 4, 8.31), (1.0, 16, 51.9), (1.0, 64, 228.4), (1.0, 1024, 3763.7), (2.0, 64, 44.9), (4.0, 64, 4.74), (4.0, 1024, 77.7)]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("k", "w"), [(2, 1), (5, 2), (8, 3), (8, 7), (13, 6)])
def test_translates_conform(epsilon: float, k: int, w: int) -> None:
    """The channel behind the coin is private, and its sampler has the declared weights at every word of narrow ones and every boundary of wide ones."""
    conform_channel(Translates(epsilon, k=k, w=w), symbols=False)


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


def test_bad_parameters_are_refused() -> None:
    """Too many symbols, sets of nobody or of all, and words too narrow are refused; so is reading the channel without its coin."""
    with pytest.raises(InputError, match="at most 1024"):
        SubsetSelection(1.0, k=1025)
    for w in (0, 5, True, 2.0):
        with pytest.raises(InputError, match="w is"):
            Translates(1.0, k=5, w=w)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too narrow"):
        SubsetSelection(0.01, k=64, word_bits=8)
    channel = Translates(1.0, k=5, w=2)
    with pytest.raises(InputError, match="subset-selection"):
        channel.estimate(channel.empty())


def _own_estimates(randomizer: SubsetSelection, honest: SubsetSelection, values: Ints) -> Floats:
    """Each client's own estimate of every share, shape (n, k), by the sets that the reports name."""
    coins = randomizer.cells_of(public_coins(stream_key("coins", 7, 1), 0, len(values)))
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(11), Draw(1), 0, len(values)), coins).astype(np.int64)
    codes = np.stack([honest.encode(np.full(len(values), symbol), coins) for symbol in range(honest.k)], axis=1)
    p = honest.inner.w * honest.inner.held / honest.inner.total
    q = (honest.inner.w - p) / (honest.inner.k - 1)
    seen = honest.inner.away(codes, reports[:, None]) < honest.inner.w
    own: Floats = (seen.astype(np.float64) - q) / (p - q)
    estimate = randomizer.estimate(randomizer.tally(reports.astype(randomizer.report_dtype), coins))
    np.testing.assert_allclose(own.mean(axis=0), estimate.value, atol=1e-9, err_msg="the tally's estimate is not the mean of the clients' own")
    return own


def _uneven(k: int) -> Floats:
    shares = 1.0 / np.arange(1, k + 1) ** 2
    law: Floats = shares / shares.sum()
    return law


def _worst(randomizer: SubsetSelection) -> Floats:
    """The share of the first symbol with the largest variance, the rest evenly on the others."""
    order, w = randomizer.inner.k, randomizer.inner.w
    share = max(np.linspace(0, 1, 101).tolist(), key=lambda share: subset_variance(randomizer.epsilon, order, w, share))
    return np.append(share, np.full(randomizer.k - 1, (1 - share) / (randomizer.k - 1)))


def _check_moments(randomizer: SubsetSelection, honest: SubsetSelection, shares: Floats) -> None:
    """Means within Bernstein's deviation of the shares, variances within 3 % of the closed form. Raises AssertionError.

    The squared error of a two-valued estimate with chance s varies by s2^2 (1 - 2 s)^2 / (s (1 - s)): Bernstein's inequality says for N clients how far it
    may be off but with probability ALPHA; that this is below 3 % is asserted too.
    """
    away = _own_estimates(randomizer, honest, np.random.default_rng(8).choice(honest.k, N, p=shares)) - shares
    order, w, sure = honest.inner.k, honest.inner.w, math.log(2 / ALPHA)
    variances = np.array([subset_variance(honest.epsilon, order, w, share) for share in shares.tolist()])
    p = honest.inner.w * honest.inner.held / honest.inner.total
    q = (w - p) / (order - 1)
    seen = q + shares * (p - q)
    reach = abs(away).max() * sure / (3 * N)
    assert (abs(away.mean(axis=0)) < reach + np.sqrt(reach**2 + 2 * variances * sure / N)).all(), f"biased by {away.mean(axis=0)}"
    largest = np.maximum(seen / (1 - seen), (1 - seen) / seen)
    part = largest * sure / (3 * N)
    assert float(max(part + np.sqrt(part**2 + 2 * (1 - 2 * seen) ** 2 / (seen * (1 - seen)) * sure / N))) < 0.03
    assert (abs((away**2).mean(axis=0) / variances - 1) < 0.03).all(), f"variances {(away**2).mean(axis=0)} for {variances}"


@dataclass(frozen=True, kw_only=True)
class OneMultiplier(SubsetSelection):
    """Ignores the coin: neighbouring symbols share more sets than others."""

    def encode(self, values: Ints, coins: Ints) -> Ints:
        return super().encode(values, np.zeros_like(coins))


@dataclass(frozen=True, kw_only=True)
class MorePrivate(SubsetSelection):
    """Spends three quarters of its epsilon."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        inner = Translates(0.75 * self.epsilon, word_bits=self.word_bits, k=self.inner.k, w=self.inner.w)
        return inner.respond(self.encode(values, cells), words, cells)


@pytest.mark.parametrize(("epsilon", "k"), [(0.5, 6), (1.0, 8), (1.0, 13), (2.0, 16), (2.0, 4)])
def test_simulated_reports_have_the_closed_forms(epsilon: float, k: int) -> None:
    """Simulated clients show every share without bias and the closed-form variance within 3 %, for an uneven law and the worst; so does the tally."""
    randomizer = SubsetSelection(epsilon, k=k)
    for shares in (_uneven(k), _worst(randomizer)):
        _check_moments(randomizer, randomizer, shares)


@pytest.mark.parametrize("twin", [OneMultiplier(1.0, k=13), MorePrivate(1.0, k=13)], ids=lambda twin: type(twin).__name__)
def test_wrong_twins_show(twin: SubsetSelection) -> None:
    """One multiplier for all, and more noise than declared, fail the comparison."""
    with pytest.raises(AssertionError):
        _check_moments(twin, SubsetSelection(1.0, k=13), _uneven(13))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0, 24.0])
def test_a_thousand_symbols_lose_epsilon(epsilon: float) -> None:
    """For 1,024 symbols the exact loss is at most epsilon, and within 1e-6 of it."""
    randomizer = SubsetSelection(epsilon, k=1024)
    ratio = exact_ratio(randomizer)
    assert ratio <= exp_epsilon(randomizer.nano)
    assert math.log(ratio) > epsilon - 1e-6
