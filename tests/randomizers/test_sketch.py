"""The count-mean sketch: collisions taken off exactly, the closed-form variance, the audit of bits behind a coin, and wrong twins."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.bounds.frequencies import sketch_variance, sue_variance
from local_dp.errors import InputError
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.frequencies.count_mean_sketch import CountMeanSketch
from local_dp.tallies import Tally
from local_dp.verification.audit import audit

ALPHA = 1e-6  # failure probability of each statistical check
N = 300_000


def _law(k: int) -> Floats:
    shares = 1.0 / np.arange(1, k + 1) ** 2
    law: Floats = shares / shares.sum()
    return law


def _expected(randomizer: CountMeanSketch, law: Floats, n: int) -> Counts:
    """The ones of each row and bucket that n clients report on average."""
    family, (other, own) = randomizer.hash, randomizer.inner.ones
    held = family.gathered(law[None])[0]
    ones: Counts = np.rint(n / family.rows * (other + held * (own - other)) / randomizer.inner.total).astype(np.int64)
    return ones


@pytest.mark.parametrize(("epsilon", "k", "m"), [(0.5, 9, 3), (1.0, 40, 7), (1.0, 64, 8), (4.0, 200, 16), (1.0, 6, 8)])
def test_collisions_are_taken_off_exactly(epsilon: float, k: int, m: int) -> None:
    """On a sketch in exact proportion to a law the estimate is the law, whatever collides, with the closed-form variance."""
    randomizer, law, n = CountMeanSketch(epsilon, k=k, m=m), _law(k), 1 << 48
    estimate = randomizer.estimate(Tally(_expected(randomizer, law, n), n))
    np.testing.assert_allclose(estimate.value, law, atol=1e-6)
    if k > m:
        closed = [sketch_variance(epsilon, m, randomizer.hash.points, share) for share in law.tolist()]
    else:
        closed = [sue_variance(epsilon, share) for share in law.tolist()]
    np.testing.assert_allclose(estimate.standard_error**2 * n, closed, rtol=1e-5)


def _check_moments(randomizer: CountMeanSketch, honest: CountMeanSketch) -> None:
    """Every mean within Bernstein's deviation, every variance of a client's own two-valued estimate within 3 % of the closed form. Raises AssertionError.

    A squared error of a two-valued estimate with chance s varies by s2^2 (1 - 2 s)^2 / (s (1 - s)); that N clients are enough for 3 % is asserted too.
    """
    law, sure = _law(honest.k), math.log(2 / ALPHA)
    values = np.random.default_rng(8).choice(honest.k, N, p=law)
    coins = public_coins(stream_key("coins", 7, 1), 0, N)
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(11), Draw(1), 0, N), coins)
    bits = np.unpackbits(reports, axis=1, count=honest.hash.g, bitorder="little")
    buckets = np.stack([honest.encode(np.full(N, symbol), coins) for symbol in range(honest.k)], axis=1).astype(np.int64)
    seen = np.take_along_axis(bits, buckets, axis=1).astype(np.float64)
    closed = np.array([sketch_variance(honest.epsilon, honest.hash.g, honest.hash.points, share) for share in law.tolist()])
    p = honest.inner.ones[1] / honest.inner.total
    shared = (honest.hash.points / honest.hash.g - 1) / (honest.hash.points - 1)
    q = shared * p + (1 - shared) * (1 - p)
    away = (seen - q) / (p - q) - law
    part = abs(away).max() * sure / (3 * N)
    assert (abs(away.mean(axis=0)) < part + np.sqrt(part**2 + 2 * closed * sure / N)).all(), f"biased by {away.mean(axis=0)}"
    chance = q + law * (p - q)
    part = np.maximum(chance / (1 - chance), (1 - chance) / chance) * sure / (3 * N)
    assert float(np.max(part + np.sqrt(part**2 + 2 * (1 - 2 * chance) ** 2 / (chance * (1 - chance)) * sure / N))) < 0.03
    assert (abs((away**2).mean(axis=0) / closed - 1) < 0.03).all(), f"variances {(away**2).mean(axis=0)} for {closed}"
    np.testing.assert_allclose(randomizer.estimate(randomizer.tally(reports, coins)).value, (away + law).mean(axis=0), atol=1e-9)


@dataclass(frozen=True, kw_only=True)
class OneRow(CountMeanSketch):
    """Ignores the coin: the same symbols share a bucket for everybody."""

    def _rows(self, coins: Words) -> Ints:
        return np.zeros(len(coins), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Louder(CountMeanSketch):
    """Sets every bit of a few clients."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words, cells) | np.where(words[:, :1] % 50 == 0, np.uint8(3), np.uint8(0))


@pytest.mark.parametrize(("epsilon", "k", "m"), [(1.0, 9, 3), (2.0, 20, 5)])
def test_simulated_reports_have_the_closed_form(epsilon: float, k: int, m: int) -> None:
    """Simulated clients show every share without bias and the closed-form variance within 3 %."""
    _check_moments(CountMeanSketch(epsilon, k=k, m=m), CountMeanSketch(epsilon, k=k, m=m))


@pytest.mark.parametrize("twin", [OneRow, Louder])
def test_wrong_twins_show(twin: type[CountMeanSketch]) -> None:
    """One row for all, and reports with ones of their own, fail the comparison."""
    with pytest.raises(AssertionError):
        _check_moments(twin(1.0, k=9, m=3), CountMeanSketch(1.0, k=9, m=3))


def test_the_audit_looks_behind_the_coin() -> None:
    """The audit passes the sketch, and finds a report that is not the inner vector's."""
    assert audit(CountMeanSketch(1.0, k=200, m=16)).holds
    found = audit(Louder(1.0, k=200, m=16))
    assert not found.holds
    assert "inner vector" in next(each.said for each in found.findings if not each.holds)


def test_bad_parameters_are_refused() -> None:
    """A number of buckets that is no prime power, or beyond the range, is refused in one line."""
    for m in (1, 6, 12, 1025, True, 4.0):
        with pytest.raises(InputError, match="m is"):
            CountMeanSketch(1.0, k=64, m=m)  # type: ignore[arg-type]
