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
    own = [each for each in calls() if count > 100 or each[0] not in (ldp.heavy_hitters, ldp.sweep)]
    assert not [*filter(None, (fault(*call) for call in random.Random(count).sample(own, count)))]


@pytest.mark.parametrize("number", [np.float32(0.5), Decimal("0.5"), Fraction(1, 2), np.log(3)])
def test_numbers_of_any_library_are_numbers(number: Any) -> None:
    def result(epsilon: Any, **how: Any) -> Any:
        how["notice"] = str
        return ldp.histogram({"x": [1, 2] * 50}, "x", epsilon=epsilon, **how).value

    one = result(number, bounds=np.array([0, 4]), bins=np.int64(2), seed=np.uint8(1))
    assert one == result(float(number), bounds=(0, 4), bins=2, seed=1)
    with pytest.raises(ldp.InputError, match="bins is True"):
        result(1.0, bounds=(0, 4), bins=True)


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
