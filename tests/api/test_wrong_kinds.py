"""Values of a wrong kind get a line, and numbers of any library are numbers."""

import random
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from tests.support.inputs.wrong_kinds import calls, fault


@pytest.mark.parametrize("count", [100, pytest.param(2000, marks=pytest.mark.long)])
def test_a_wrong_kind_gets_a_line(
    count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = [each for each in calls() if count > 100 or each[0] not in ("heavy_hitters", "sweep")]
    assert not [*filter(None, (fault(*call) for call in random.Random(count).sample(own, count)))]


@pytest.mark.parametrize("number", [np.float32(0.5), Decimal("0.5"), Fraction(1, 2), np.log(3)])
def test_numbers_of_any_library_are_numbers(number: float) -> None:
    table = {"x": [1, 2] * 50}
    how = {"bounds": np.array([0, 4]), "bins": np.int64(2), "seed": np.uint8(1)}
    answer = ldp.histogram(table, "x", epsilon=number, notice=str, **how)  # type: ignore[arg-type]
    plain = {"bounds": (0, 4), "bins": 2, "seed": 1, "notice": str}
    assert (
        answer.to_dict()["result"]
        == ldp.histogram(
            table,
            "x",
            epsilon=float(number),
            **plain,  # type: ignore[arg-type]
        ).to_dict()["result"]
    )
    with pytest.raises(ldp.InputError, match="bins is True"):
        ldp.histogram(table, "x", bounds=(0, 4), bins=True)


def test_a_series_is_no_column() -> None:
    series = pytest.importorskip("pandas").Series([7.5, 8.5], name="x")
    for function in (ldp.mean, ldp.std, ldp.quantiles, ldp.curate.mean):
        with pytest.raises(ldp.InputError, match=r"^columns? is a Series; name the column: 'x'$"):
            function({"x": series}, series, bounds=(0, 9))


def test_advice_comes_after_validation() -> None:
    """Settings that are refused get no notice."""
    notices: list[str] = []
    with pytest.raises(ldp.InputError, match="100 are too few"):
        ldp.run("local-sgd", clients=100, notice=notices.append)
    assert not notices


def test_a_name_of_an_import_is_no_name_of_the_interface() -> None:
    for home in (ldp, ldp.curate, ldp.attack):
        names = dir(home)
        assert not {"Any", "import_module", "Callable", "np"} & {*names}
        assert all(hasattr(home, name) for name in names)


def test_an_unknown_keyword_names_the_nearest() -> None:
    cases: list[tuple[Any, dict[str, str]]] = [
        (ldp.best_for, {"task": "survey"}),
        (ldp.price, {"mechanisms": "pure 1"}),
    ]
    for function, how in cases:
        with pytest.raises(
            ldp.InputError, match="has no option 'epsilonn'; did you mean 'epsilon'"
        ):
            function(**how, epsilonn=1)
