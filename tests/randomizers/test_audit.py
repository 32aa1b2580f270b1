"""The audit of a randomizer: what is broken is found, by the check that it is about, and what is right is not."""

from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.loss import Pure
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.verification.audit import audit
from local_dp.verification.bits import check_bits
from local_dp.verification.black_box import ALPHA, check_black_box
from local_dp.verification.decoding import check_decoding
from local_dp.verification.findings import Finding
from local_dp.verification.sampler import PAIRS, check_drawn, pairs_of
from tests.support.adversaries.cases import BROKEN, CORRECT, Case
from tests.support.adversaries.zoo import Opaque, OpaqueNoise
from tests.support.figures import figure
from tests.support.long import short

WITHOUT = {  # two inputs are no witness of these: it is about what the object says of itself, or how reports are added up
    *((kind, "claims") for kind in ("CheaperAndCheaper", "Afterwards", "Mutable")),
    *((kind, "tally") for kind in ("Forgets", "Swaps", "Rejects")),
    ("Unsummed", "loss"),
}


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: f"{type(case.randomizer).__name__} {case.check}")
def test_what_is_broken_is_found(case: Case) -> None:
    found = audit(case.randomizer)
    wrong = {each.check: each for each in found.findings if not each.holds}
    assert case.check in wrong, found
    assert found.grade in ("exact", "declared", "black box")
    assert wrong[case.check].witness is not None or (type(case.randomizer).__name__, case.check) in WITHOUT, wrong[case.check]
    figure(14, f"{len(BROKEN)} broken ones, each flagged by the check that it is about")


@pytest.mark.parametrize("name", short(RANDOMIZERS.built_in, lambda name: name in ("grr", "sue", "she", "olh", "with-coin", "wide-hashing")))
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


D: dict[str, Any] = {"d": 1000}
MANY: list[tuple[str, dict[str, Any]]] = [("projunit", {}), ("nearest-direction", {}), ("privunit", D), ("she", {"k": 1024}), ("projunit", D)]


@pytest.mark.parametrize(("name", "params"), short(MANY, lambda case: case[0] == "she", several=True))
def test_an_audit_asks_for_no_more_than_it_may(name: str, params: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """However many words a report takes and coordinates a value has, all reports together take less than 2^27, and few are asked for one by one."""
    randomizer = RANDOMIZERS.build(name, {"epsilon": 1.0, **params})
    owner: type[Randomizer] = next(kind for kind in type(randomizer).__mro__ if "respond" in vars(kind))
    respond, numbers = owner.respond, list[int]()

    def counted(self: Randomizer, values: Ints, words: Words, cells: Words) -> Words:
        numbers.append(max(values.size, words.size))
        return respond(self, values, words, cells)

    monkeypatch.setattr(owner, "respond", counted)
    assert audit(randomizer).holds
    assert len(numbers) < 5000
    assert 1 << 20 < sum(numbers) < 1 << 27


def test_the_witness_of_a_broken_sampler_is_what_it_sends() -> None:
    """Two inputs and a report with an infinite ratio show the last symbol's leak: the sampler's own, not the declared one."""
    (case,) = (case for case in BROKEN if type(case.randomizer).__name__ == "LastElement" and case.randomizer.domain.size == 8)
    (finding,) = (each for each in audit(case.randomizer).findings if each.check == "sampler, enumerated")
    assert finding.witness is not None
    assert (finding.witness.ratio, finding.witness.inputs[1]) == (None, 7)


def test_one_odd_level_is_found_with_its_witness() -> None:
    """One level of 65,537 that is always reported is named, beside another one."""
    (case,) = (case for case in BROKEN if type(case.randomizer).__name__ == "OneLevel")
    (finding,) = (each for each in audit(case.randomizer).findings if not each.holds)
    assert finding.witness is not None
    assert 23456 in finding.witness.inputs
    assert finding.witness.ratio is None or finding.witness.ratio > 1.3


def test_a_black_box_is_rarely_blamed_wrongly() -> None:
    """Of 20 audits of the two tightest correct black boxes at most 2 find fault: at ALPHA each, more have a probability below 1e-8."""
    assert ALPHA <= 1e-4
    flags = [check_black_box(made, 1000 * seed).holds for made in (Opaque(1.0, k=2), OpaqueNoise(1.0, k=2)) for seed in range(100, 400, 30)]
    assert flags.count(False) <= 2


def by_chance(randomizer: Randomizer, seed: int) -> list[Finding]:
    """The checks of an audit that may go wrong by chance: those of drawn reports."""
    found = list(check_decoding(randomizer, seed))
    if isinstance(randomizer, FiniteChannel | PerCoin):
        found.append(check_drawn(randomizer, pairs_of(randomizer, PAIRS), seed))
    elif isinstance(randomizer, BitVector):
        found.append(check_bits(randomizer, seed))
    else:
        found.append(check_black_box(randomizer, seed))
    return found


def holds(place: int, seed: int) -> bool:
    """Whether drawn reports speak for the right randomizer at this place of the zoo."""
    return all(each.holds for each in by_chance(CORRECT[place], seed))


DRAWN = ("sampler, drawn", "black box", "tally", "estimate", "law")  # findings of `by_chance`, and none else, may differ from audit to audit


@pytest.mark.parametrize("randomizer", CORRECT, ids=lambda each: f"{type(each).__name__} {each.epsilon:g}")
def test_what_is_not_drawn_is_found_again(randomizer: Randomizer) -> None:
    """No check rejects a right randomizer. Checks without chance say the same with another seed, word by word, so 200 audits need them once."""
    audits = [audit(randomizer, seed) for seed in (7, 4_200_000)]
    assert all(each.holds for each in audits), audits
    one, other = ([each for each in audited.findings if each.check not in DRAWN] for audited in audits)
    assert one == other
    assert len(one) > 5


@pytest.mark.slow
def test_what_is_right_is_rarely_blamed_wrongly() -> None:
    """Of 200 audits of each of 15 right randomizers, of every kind in the zoo, at most 3 find fault (reliability 14)."""
    kinds = {type(randomizer): place for place, randomizer in enumerate(CORRECT)}
    others = [place for place in range(len(CORRECT)) if place not in kinds.values()]
    chosen = [*kinds.values(), *others[: max(0, 15 - len(kinds))]]
    assert len(chosen) >= 15
    with get_context("fork").Pool(2) as pool:
        flags = pool.starmap(holds, [(place, 100_000 * seed) for place in chosen for seed in range(1, 201)], chunksize=20)
    assert flags.count(False) <= 3
    figure(14, f"{len(chosen)} right randomizers, 200 audits each: {flags.count(False)} blamed")
