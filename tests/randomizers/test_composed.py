"""Randomizers that are no small table: packed bits and public seeds, verified by the evidence of their parts."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.conformance import conform
from local_dp.errors import RefusedError
from local_dp.loss import Approximate, exp_epsilon
from local_dp.randomizers.evidence import PROVEN, check_loss, exact_epsilon, exact_ratio
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Estimate, Tally
from tests.support.plugin_package.frequency_oracles import GreedyUnary, LocalHash, OptimisedUnary, estimated


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("randomizer", [OptimisedUnary, LocalHash], ids=["product", "per coin"])
@pytest.mark.parametrize("k", [2, 9])
def test_they_conform(epsilon: float, randomizer: Any, k: int) -> None:
    """Privacy from the parts, every threshold of the sampler, the tally and an unbiased estimate, at three epsilons and two sizes."""
    conform(randomizer(epsilon, k=k))


def test_the_loss_of_a_thousand_bits_is_exact() -> None:
    """Unary encoding of 1,024 symbols loses epsilon up to the rounding of its thresholds: two bits change between any two values."""
    loss = exact_epsilon(OptimisedUnary(1.0, k=1024))
    assert 1 - 1e-8 < loss <= 1


def test_the_product_is_that_of_the_whole_channel() -> None:
    """For three symbols the ratio from the parts is the largest over all eight reports and all pairs of values, enumerated outright."""
    randomizer = OptimisedUnary(1.0, k=3)
    total = 1 << randomizer.word_bits
    weights = [[randomizer.ones[symbol] for symbol in row] for row in randomizer.code.tolist()]
    laws = [[math.prod(ones if report >> place & 1 else total - ones for place, ones in enumerate(row)) for report in range(8)] for row in weights]
    worst = max(a * 10**40 // b for first in laws for second in laws for a, b in zip(first, second, strict=True))
    ratio = exact_ratio(randomizer)
    assert worst == ratio.numerator * 10**40 // ratio.denominator


def test_bits_that_change_together_cost_together() -> None:
    """Randomizing each of two changing bits with the whole epsilon spends twice as much, and a client refuses it."""
    greedy = GreedyUnary(1.0, k=4)
    assert exact_epsilon(greedy) == pytest.approx(2.0, abs=1e-6)
    with pytest.raises(RefusedError, match="claims epsilon 1 but its channel has"):
        check_loss(greedy)


@dataclass(frozen=True, kw_only=True)
class Shifted(OptimisedUnary):
    """Draws its bits with other weights than it declares."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words + words.dtype.type(1), cells)


@dataclass(frozen=True, kw_only=True)
class Biased(OptimisedUnary):
    """Divides by the wrong difference of probabilities."""

    def estimate(self, tally: Tally) -> Estimate:
        return estimated(tally, 0.5, 0.3)


@dataclass(frozen=True, kw_only=True)
class Peeking(LocalHash):
    """Sends the value itself under one coin in sixteen."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports = super().respond(values, words, cells)
        return np.where(cells % np.uint64(16) == 0, values.astype(reports.dtype) % reports.dtype.type(self.g), reports)


@pytest.mark.parametrize("twin", [Shifted(1.0, k=5), Biased(1.0, k=5), Peeking(1.0, k=5)], ids=lambda twin: type(twin).__name__)
def test_wrong_twins_do_not_conform(twin: Randomizer) -> None:
    """A sampler off by one word, a wrong estimate and a leak under some coins are found."""
    with pytest.raises(AssertionError):
        conform(twin)


@dataclass(frozen=True)
class OnlyAudited(BinaryRR):
    """Asks to be believed."""

    name: ClassVar[str] = "only-audited"
    evidence: ClassVar[Evidence] = "audited"


@dataclass(frozen=True)
class Gaussian(BinaryRR):
    """Has a delta."""

    name: ClassVar[str] = "gaussian"

    @property
    def loss(self) -> Approximate:
        return Approximate(10**9, 10**12)


def test_a_client_decides_which_evidence_it_accepts() -> None:
    """What is only audited is refused unless the client says otherwise, and so is any delta; what is proven is repeated, not believed."""
    with pytest.raises(RefusedError) as refused:
        check_loss(OnlyAudited(1.0))
    assert refused.value.code == "evidence"
    check_loss(OnlyAudited(1.0), PROVEN | {"audited"})
    with pytest.raises(RefusedError, match="delta"):
        check_loss(Gaussian(1.0))
    with pytest.raises(RefusedError, match="accepts product"):
        check_loss(BinaryRR(1.0), frozenset({"product"}))
    assert exact_ratio(BinaryRR(1.0)) <= exp_epsilon(10**9)
