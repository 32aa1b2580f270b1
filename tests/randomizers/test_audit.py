"""The audit of a randomizer: what is broken is found, by the check that it is about, and what is right is not."""

import numpy as np
import pytest

from local_dp.loss import Pure
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.testing.audit import audit
from local_dp.testing.black_box import ALPHA, black_box_found
from local_dp.testing.findings import Finding
from local_dp.testing.sampler import PAIRS, drawn_found, pairs_of
from tests.support.zoo import BROKEN, CORRECT, Case, Opaque, OpaqueNoise


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{type(case.randomizer).__name__} {case.check}")
def test_what_is_broken_is_found(case: Case) -> None:
    """Each broken randomizer is flagged by the check that it is about."""
    found = audit(case.randomizer)
    assert not found.holds
    assert case.check in [each.check for each in found.findings if not each.holds], found


@pytest.mark.parametrize("randomizer", CORRECT, ids=lambda each: f"{type(each).__name__} {each.epsilon:g}")
def test_what_is_right_passes(randomizer: Randomizer) -> None:
    """No check finds fault with a randomizer that does what it says."""
    found = audit(randomizer)
    assert found.holds, found


@pytest.mark.parametrize("name", RANDOMIZERS.built_in)
def test_every_built_in_passes(name: str) -> None:
    """Every built-in randomizer has an exact loss of at most its epsilon, and a witness that reaches it."""
    found = audit(RANDOMIZERS[name](1.0))
    assert found.holds, found
    if not isinstance(RANDOMIZERS[name](1.0).loss, Pure) or found.evidence == "density":
        return  # a delta, or a claim about real numbers: tested where they are
    assert found.loss is not None
    witness = found.findings[0].witness
    assert witness is not None
    assert witness.ratio is not None
    assert np.log(witness.ratio) == pytest.approx(found.loss, rel=1e-9)


def test_the_witness_of_a_broken_sampler_is_what_it_sends() -> None:
    """That the last symbol is always told is shown by two inputs and a report, with an infinite ratio: the sampler's own, not the declared one."""
    (case,) = (case for case in BROKEN if type(case.randomizer).__name__ == "LastElement" and case.randomizer.domain.size == 8)
    (finding,) = (each for each in audit(case.randomizer).findings if each.check == "sampler, enumerated")
    assert finding.witness is not None
    assert (finding.witness.ratio, finding.witness.inputs[1]) == (None, 7)


def test_one_odd_level_is_found_with_its_witness() -> None:
    """One level among 65,537 that is always told is named, beside one that is not."""
    (case,) = (case for case in BROKEN if type(case.randomizer).__name__ == "OneLevel")
    (finding,) = (each for each in audit(case.randomizer).findings if not each.holds)
    assert finding.witness is not None
    assert 23456 in finding.witness.inputs
    assert finding.witness.ratio is None or finding.witness.ratio > 1.3


def test_a_black_box_is_rarely_blamed_wrongly() -> None:
    """Of 60 audits of the two tightest correct black boxes at most 3 find fault: at ALPHA each, more have a probability below 1e-10."""
    assert ALPHA <= 1e-4
    flags = [black_box_found(made, 1000 * seed).holds for made in (Opaque(1.0, k=2), OpaqueNoise(1.0, k=2)) for seed in range(100, 400, 10)]
    assert flags.count(False) <= 3


def by_chance(randomizer: Randomizer, seed: int) -> Finding:
    """The one check of an audit that may go wrong by chance."""
    if isinstance(randomizer, FiniteChannel | PerCoin):
        return drawn_found(randomizer, pairs_of(randomizer, PAIRS), seed)
    return black_box_found(randomizer, seed)


@pytest.mark.slow
def test_what_is_right_is_rarely_blamed_wrongly() -> None:
    """Of 200 audits of each of 15 right randomizers at most 3 find fault (reliability 14); those of packed bits leave nothing to chance."""
    drawn = [randomizer for randomizer in CORRECT if not isinstance(randomizer, BitVector)]
    assert len(drawn) >= 15
    flags = [by_chance(randomizer, 100_000 * seed).holds for randomizer in drawn for seed in range(1, 201)]
    assert flags.count(False) <= 3
