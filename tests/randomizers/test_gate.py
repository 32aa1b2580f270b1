"""The gate: every tier verifies a randomizer by the same function, once for a class and its parameters."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.clients import helper, verification_budget
from local_dp.clients.fleet import packed
from local_dp.clients.refusals import line
from local_dp.errors import RefusedError
from local_dp.experiments.tiers import execute as verified
from local_dp.experiments.tiers.execute import Verified
from local_dp.randomizers.evidence import PROVEN, entries
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.verification import gate
from local_dp.verification.gate import is_built_in, verify
from local_dp.wire import Refusal
from tests.support.inputs.builders import request, role, survey_query, yes_records


@dataclass(frozen=True, kw_only=True)
class Teller(GRR):
    """Declares randomized response, and reports the last symbol as it is."""

    name: ClassVar[str] = "teller"

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        told: Words = np.where(values == self.k - 1, np.array(self.k - 1, dtype=self.report_dtype), super().respond(values, words, cells))
        return told


@dataclass(frozen=True, kw_only=True)
class Impostor(Teller):
    """Is equal to everything, and to a built-in randomizer above all."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(GRR(self.epsilon, k=self.k))


def test_a_refusal_says_what_failed_where_and_how_to_see_more() -> None:
    """One line: the check, two inputs, the report, the ratio, and the command that shows all findings."""
    with pytest.raises(RefusedError) as refused:
        verify(Teller(1.0, k=3))
    said = str(refused.value)
    assert refused.value.code == "unverifiable"
    assert said.startswith("teller: over all words of 20 bits")
    assert "input 0 sends report 0, input 2 never does" in said
    assert said.endswith("local-dp audit tests.randomizers.test_gate:Teller --epsilon 1 --set k=3 shows more")
    assert "\n" not in said


@pytest.mark.parametrize("name", ["privunit", "projunit"])
def test_a_density_is_taken_by_whom_it_is_enough_for(name: str) -> None:
    """A client answers by a built-in randomizer of that evidence if its policy accepts it, at the cost of no enumeration, and else not."""
    randomizer = RANDOMIZERS[name](1.0)
    verify(randomizer, PROVEN | {"density"})
    with pytest.raises(RefusedError, match="is density"):
        verify(randomizer)
    assert entries(randomizer) == 0
    taken = verification_budget.Work(PROVEN | {"density"}, yes_records(1))
    taken.begin()
    taken.verify([taken.build(name, randomizer.params())])
    assert taken.done < verification_budget.FOR_ONE


def test_only_the_classes_of_this_library_are_built_in() -> None:
    """A class derived from a built-in one is audited, under whatever name; so is one that says it is equal to it."""
    assert all(is_built_in(RANDOMIZERS[name](1.0)) for name in RANDOMIZERS.built_in)
    assert not is_built_in(Teller(1.0, k=3))
    verify(GRR(1.0, k=3))
    with pytest.raises(RefusedError, match="never does"):
        verify(Impostor(1.0, k=3))
    named = type("GRR", (Teller,), {"name": "grr", "__module__": GRR.__module__, "__qualname__": "GRR"})
    with pytest.raises(RefusedError, match="never does"):
        verify(named(1.0, k=3))


@pytest.mark.parametrize(("held", "put"), [("flip", 1), ("_cut", np.array([1], dtype=np.uint32))])
def test_what_was_changed_after_it_was_made_is_refused(held: str, put: object) -> None:
    """A built-in randomizer whose thresholds were replaced is not what its parameters make, though it is equal to it; before and after it was verified."""
    right, wrong = BinaryRR(1.0), BinaryRR(1.0)
    verify(right)
    object.__setattr__(wrong, held, put)
    assert wrong == right
    with pytest.raises(RefusedError, match=f"changed after it was made: {held}"):
        verify(wrong)
    right.private_report(1)
    object.__setattr__(right, "epsilon", 0.5)
    with pytest.raises(RefusedError, match="changed after it was made: _cut, flip"):
        verify(right)


@dataclass(frozen=True, kw_only=True)
class Counting(BinaryRR):
    """Right, and counts how often one is made."""

    name: ClassVar[str] = "counting"
    made: ClassVar[list[int]] = [0]

    def prepare(self) -> None:
        super().prepare()
        self.made[0] += 1


def test_a_randomizer_is_audited_once() -> None:
    """The verdict is kept by class, name and parameters: another one with the same is not audited again."""
    before = gate._verdict.cache_info().misses
    for _ in range(5):
        verify(Counting(1.0))
    assert gate._verdict.cache_info().misses == before + 1
    verify(Counting(2.0))
    assert gate._verdict.cache_info().misses == before + 2


def test_every_tier_and_client_asks_the_same_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in memory, a client, and the process that clients are forked from call one function."""
    assert all(vars(home)["verify"] is verify for home in (verified, verification_budget, helper))

    def closed(*anything: Any) -> None:
        raise RefusedError("unverifiable", "closed")

    for home in (verification_budget, verified):
        monkeypatch.setattr(home, "verify", closed)
    (refusal,) = role(yes_records(3)).handle(request(survey_query(3)))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.text) == ("unverifiable", line("unverifiable", request(survey_query(3))))
    with pytest.raises(RefusedError, match="closed"):
        Verified(None, False).check((survey_query(3),))


def test_the_first_randomizers_are_verified_before_the_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those from outside are named to the helper, once each, and its children find their verdict; what is refused waits for a client to say so."""
    for kind in (Counting, Teller):
        monkeypatch.setitem(RANDOMIZERS._loaded, kind.name, kind)
    before = gate._verdict.cache_info().misses
    helper.verify_first(packed([BinaryRR(1.0), Counting(3.0), Counting(3.0), BinaryRR(0.5), Teller(1.0, k=2)]))
    assert gate._verdict.cache_info().misses == before + 2
    verify(Counting(3.0))
    assert gate._verdict.cache_info().misses == before + 2
