"""What no protocol, learner, query or population can be: refused in one line, when it is made or at the latest when its algorithm is."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from local_dp.errors import InputError, LocalDPError
from local_dp.populations.concepts import BlockClass
from local_dp.protocols.registry import PROTOCOLS
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.signs.characters import Characters
from local_dp.records import Records

MADE: Any = PROTOCOLS
WRONG: dict[str, list[dict[str, Any]]] = {
    "compare": [{"labels": ("A",)}, {"labels": ("A", "A")}, {"labels": ("A", "B", "C")}],
    "heavy-hitters": [{"bits": 7}, {"bits": 65}, {"bits": 12, "text": True}, {"share": 0.0}, {"missing": "drop"}],
    "identity": [{"coins": "my"}, {"shares": ("0.5", "0.6")}, {"shares": ("x",) * 16}, {"alpha": 0.6}],
    "learn": [
        {"learner": "oracle"}, {"missing": "category"}, {"held_out": 1.0}, {"cuts": 0}, {"parameters": ("depth=3",)}, {"bounds": ("age",)},
        {"learner": "trees", "parameters": ("depth=x",)}, {"learner": "trees", "parameters": ("depth",)}, {"bounds": ("age=1",)}, {"bounds": ("age=2..1",)},
        {"bounds": ("age=nan..1",)}, {"tolerance": 2.0}, {"learner": "thresholds", "features": ("a", "b")}, {"features": ("a >",)}, {"label": "a =="},
        {"learner": "k-means", "parameters": ("k=1",)}, {"learner": "conjunctions", "parameters": ("monotone=maybe",)},
    ],
    "longitudinal": [
        {"columns": ("a",)}, {"columns": ("a", "a"), "labels": ("x", "y")}, {"columns": ("a", "b > 1"), "labels": ()}, {"times": 1}, {"changes": -1},
        {"first": 0.0}, {"first": 1.5}, {"method": "guess"}, {"method": "memoised"}, {"method": "tracked"}, {"method": "tracked", "changes": 0},
        {"method": "tracked", "changes": 1, "labels": ("a", "b", "c")}, {"tolerance": 0.0},
    ],
    "marginals": [{"ways": 0}, {"ways": 7}, {"columns": ("a", "a")}, {"columns": ()}, {"k": 1}, {"k": 65}, {"missing": "exclude"}, {"labels": ("x|y",)}],
    "masked-parity-list": [{"bits": 9}, {"share": 1.0}],
    "masked-parity-one-round": [{"form": "bend"}, {"d": 12, "form": "masks"}],
    "mean-vector": [
        {"low": ("1",), "high": ("0",)}, {"low": ("x",)}, {"low": ("nan",)}, {"high": ("inf",)}, {"low": ("-1e308",), "high": ("1e308",)},
        {"low": ("0", "0")}, {"radius": 0.0}, {"radius": 1.0, "low": ("0",)}, {"randomizer": "best-of-all"}, {"steps": 3}, {"d": 0},
        {"columns": ("a", "a")}, {"outside": "x"}, {"missing": "exclude"}, {"tolerance": 0.0},
    ],
    "parity-deny": [{"d": 13}],
    "parity": [{"d": 13}],
    "parity-one-round": [{"d": 3, "r": 8}],
    "parity-rounds": [{"d": 4, "rounds": 1}, {"d": 4, "rounds": 5}],
    "quantiles": [
        {"at": ()}, {"at": ("x",)}, {"at": ("0",)}, {"at": ("1e-9",)}, {"rounds": "two"}, {"missing": "zero"}, {"rounds": "one", "bins": 4000},
        {"low": 1.0, "high": 0.0},
    ],
    "local-sgd": [{"told": "privunit"}],
    "workload": [{"queries": (text,)} for text in ("prefxes", "1 2 3", "1 2 x 0 0 0 0", "1 1 1 1 1 1 1", "parities")],
}  # fmt: skip
FEW = {
    "heavy-hitters": 8, "longitudinal": 3, "marginals": 5, "masked-parity-list": 1, "masked-parity-fresh": 3, "parity": 1, "parity-rounds": 1,
}  # fmt: skip
OTHERS: list[tuple[Callable[[], object], str]] = [
    (lambda: MADE["quantiles"](column="x").for_table(Launch(Records({"x": np.ones(3)}), private=False)), "public grid"),
    (lambda: MADE["marginals"](columns=tuple(f"c{place}" for place in range(40)), ways=3), "9,880 marginals"),
    (lambda: MADE["learn-logistic-regression"](radius=-1.0), "radius"),
    (lambda: MADE["learn-logistic-regression"](d=0), "d is"),
    *[(lambda masks=masks: Characters(1.0, d=3, masks=masks), "hexadecimal|power of two") for masks in ("zz", "07", "00")],
    *[(lambda sizes=sizes: BlockClass(*sizes), r"\w") for sizes in (("or", 2, 2), ("and", 0, 2), ("and", 13, 2), ("and", 2, 0))],
    *[(lambda change=change: QUERIES.build("change-interval", {"waves": ("a", "b"), "labels": ("x", "y"), "change": 1, "width": 1, **change}), "not accept")
      for change in ({"waves": 3}, {"waves": ("a",)}, {"labels": ("x",)}, {"change": 9}, {"change": "1"}, {"width": 0})],
    *[(lambda masked=masked: QUERIES.build("masked-list", {"d": 4, "r": 0, **masked}), "not accept") for masked in ({"free": -1}, {"free": 0, "asked": 16})],
]  # fmt: skip


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, all_of in WRONG.items() for wrong in all_of])
def test_wrong_parameters_are_refused(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError) as refused:
        PROTOCOLS[name](**wrong).algorithm(1.0, 1000)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("name", FEW)
def test_too_few_clients_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"few|rounds|fresh"):
        PROTOCOLS[name]().algorithm(1.0, FEW[name])


@pytest.mark.parametrize("place", range(len(OTHERS)))
def test_the_rest_is_refused(place: int) -> None:
    make, words = OTHERS[place]
    with pytest.raises(LocalDPError, match=words):
        make()
