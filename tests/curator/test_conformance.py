"""What every mechanism of the curator must do: one suite over all cases of `tests/support/mechanisms`, which says how a mechanism is added."""

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from local_dp.curator.mechanism import Mechanism, Neighbours, hockey_stick, mechanisms
from local_dp.loss import Approximate, Pure, exp_epsilon
from tests.support.inputs.documents import ROOT
from tests.support.mechanisms.case import Case, all_cases, delta, proved_elsewhere, share
from tests.support.mechanisms.paths import follows

CASES, KINDS = all_cases(), {kind.__name__ for kind in mechanisms()}
NAMED = [pytest.param(case, id=type(case.mechanism).__name__) for case in CASES]
FIRST = [pytest.param(case, id=name) for name, case in {type(case.mechanism).__name__: case for case in reversed(CASES)}.items() if name in KINDS]


def test_every_mechanism_has_a_case() -> None:
    cased = {type(case.mechanism).__name__ for case in CASES} & KINDS
    elsewhere = proved_elsewhere()
    assert sorted([*cased, *elsewhere]) == sorted(KINDS)
    for name, file in elsewhere.items():
        assert name in (ROOT / file).read_text(), f"{file} does not name {name}"


@pytest.mark.parametrize("case", NAMED)
def test_the_loss_holds_on_every_pair_of_neighbours(case: Case) -> None:
    """By enumeration in whole numbers: at its epsilon the mechanism has at most its delta; a stated share of its loss is too little."""
    loss = case.mechanism.loss
    assert isinstance(loss, Pure | Approximate)
    laws, less = list(case.laws(case.mechanism)), case.too_little
    assert max(hockey_stick(*pair, exp_epsilon(loss.nano)) for pair in laws) <= delta(loss)
    short = any(hockey_stick(*pair, exp_epsilon(less.nano)) > delta(less) for pair in laws)
    assert short, f"{less} is enough on these databases; give the case a lower `tight`, or more records `n`"


@pytest.mark.parametrize("case", NAMED)
def test_wrong_twins_lose_more(case: Case) -> None:
    assert case.wrong, "give the case a wrong twin"
    assert [twin for twin in case.wrong if not case.exceeds(twin)] == []


@pytest.mark.parametrize("case", NAMED)
def test_every_path_of_the_sampler_adds_up_to_its_law(case: Case) -> None:
    """The law that is proven private is that of the releases, exactly, on several databases."""
    mechanism = case.tried
    for records in case.samples:
        database = case.build(records)
        assert follows(lambda draws, on=database: case.listed(mechanism.release(on, draws), on), mechanism.law(database), len(records) + 2)  # type: ignore[misc]


@pytest.mark.parametrize("case", FIRST)
def test_the_order_of_the_records_does_not_matter(case: Case) -> None:
    records = case.example
    laws = [share(case.mechanism.law(case.build(ordered))) for ordered in (records, records[::-1], records[1:] + records[:1])]
    assert all(law == laws[0] for law in laws)


@pytest.mark.parametrize("kind", mechanisms(), ids=lambda kind: str(kind.__name__))
def test_a_mechanism_is_data_and_its_loss_is_computed(kind: type[Mechanism[Any, Any, Any]]) -> None:
    """A frozen dataclass without a field for its loss or its neighbours; the loss is a property, the neighbours a known kind; its docstring states privacy."""
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert not {"loss", "neighbours"} & {field.name for field in fields(kind)}
    assert isinstance(kind.loss, property)
    assert kind.neighbours in get_args(Neighbours)
    assert "Privacy" in (kind.__doc__ or "") or any("Privacy" in (base.__doc__ or "") for base in kind.__mro__[1:-2]), Path(kind.__module__).name
