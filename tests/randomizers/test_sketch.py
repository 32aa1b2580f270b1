"""The count-mean sketch: collisions taken off exactly, the closed-form variance, the audit of bits behind a coin, and wrong twins."""

from dataclasses import dataclass

import numpy as np
import pytest

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.bounds.frequencies import sketch_variance, sue_variance
from local_dp.randomizers.frequencies.local_hashing import CountMeanSketch
from local_dp.tallies import Tally
from local_dp.verification.audit import audit


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


@dataclass(frozen=True, kw_only=True)
class Louder(CountMeanSketch):
    """Sets every bit of a few clients."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words, cells) | np.where(words[:, :1] % 50 == 0, np.uint8(3), np.uint8(0))


def test_the_audit_looks_behind_the_coin() -> None:
    """The audit passes the sketch, and finds a report that is not the inner vector's."""
    assert audit(CountMeanSketch(1.0, k=200, m=16)).holds
    found = audit(Louder(1.0, k=200, m=16))
    assert not found.holds
    assert "inner vector" in next(each.said for each in found.findings if not each.holds)
