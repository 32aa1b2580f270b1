"""The mean vector: the chosen randomizer is never behind another, errors are those of the closed form, and spending epsilon / d a column costs what is said."""

import math
from typing import Any

import numpy as np
import pytest

from local_dp.bounds.means import Body, best_vector, vector_choices
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.vectors.mean_vector import FoundVector, MeanVector
from local_dp.queries.vectors import Coordinates
from local_dp.records import Records

N = 4000
RUNS = 150


def played(protocol: MeanVector, population: Population, seed: int, epsilon: float) -> FoundVector:
    return run(protocol.algorithm(epsilon, population.size), PopulationOracle(population, KeyedNoise(seed), seed, epsilon))


@pytest.mark.parametrize("body", ["cube", "ball"])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 8.0])
@pytest.mark.parametrize("d", [1, 2, 3, 10, 100])
def test_the_chosen_one_is_never_behind(body: Body, epsilon: float, d: int) -> None:
    """Of all randomizers that clients accept none has a smaller moment, whatever is chosen by name; one that is only proved on paper is never taken."""
    protocol = MeanVector(d=d, radius=1.0 if body == "ball" else None)
    chosen = protocol.chosen(epsilon)
    assert chosen.proven
    assert chosen == best_vector(epsilon, body, d)
    for choice in vector_choices(epsilon, body, d):
        assert chosen.moment <= choice.moment or not choice.proven
        assert choice.moment / d <= choice.coordinate * (1 + 1e-12)  # the worst coordinate is none better than all
    assert protocol.asked(epsilon, 10).randomizer.name == chosen.name


@pytest.mark.parametrize(("radius", "epsilon"), [(None, 1.0), (3.0, 4.0)])
def test_the_standard_errors_are_those_seen(radius: float | None, epsilon: float) -> None:
    """Over runs on made-up clients the squares of a coordinate's errors in standard errors average to 1 within 5 deviations, the whole's likewise."""
    protocol = MeanVector(d=3, radius=radius)
    seen, whole = [], []
    for seed in range(RUNS):
        population = protocol.synthetic(N, seed)
        found = played(protocol, population, seed, epsilon)
        away = found.estimate.value - protocol.truth(population)
        seen.append((away / found.estimate.standard_error) ** 2)
        whole.append(float((away**2).sum()) / found.total_error**2)
    assert (abs(np.mean(seen, axis=0) - 1) < 5 * math.sqrt(2 / RUNS)).all()
    assert abs(np.mean(whole) - 1) < 5 * math.sqrt(2 / RUNS)
    assert abs(np.mean(whole) * 4 - 1) > 5 * math.sqrt(2 / RUNS)  # half the error would show


@pytest.mark.parametrize("wrong", [
    {"centres": (0.0,)}, {"reaches": (1.0, 0.0)}, {"reaches": (1.0, -1.0)}, {"reaches": (1.0, math.inf)}, {"centres": (0.0, math.nan)},
    {"centres": (0.0, "1")}, {"reaches": (True, 1.0)}, {"kind": "sphere"}, {"steps": 3}, {"columns": ("a", "a")},
])  # fmt: skip
def test_queries_that_are_none_are_refused(wrong: dict[str, Any]) -> None:
    """From the wire: too few numbers, some that are none, bodies and grids that there are not."""
    with pytest.raises(InputError):
        Coordinates(**{"columns": ("a", "b"), "centres": (0.0, 0.0), "reaches": (1.0, 1.0), "kind": "cube", "steps": 4, **wrong})


TABLE = Records({"a": np.array([1.0, 2.0, 30.0]), "b": np.array([0.0, np.nan, 4.0]), "c": np.array([3, 4, 0]), "t": np.array(["x", "y", "z"])})


@pytest.mark.parametrize(("settings", "match"), [
    ({"columns": ("a", "c")}, "public bounds"), ({"columns": ("a", "c"), "low": ("0",), "high": ("10",)}, "outside the bounds"),
    ({"columns": ("b", "c"), "low": ("0",), "high": ("10",)}, "no value"), ({"columns": ("c", "t"), "low": ("0",), "high": ("10",)}, "text"),
    ({"columns": ("c", "x"), "low": ("0",), "high": ("10",)}, "no column"), ({"columns": ("a", "c"), "radius": 5.0}, "norm is above"),
])  # fmt: skip
def test_what_nobody_decided_is_refused(settings: dict[str, Any], match: str) -> None:
    """Numbers missing or beyond, text, and tables without public bounds."""
    with pytest.raises(InputError, match=match):
        MeanVector(**settings).for_table(Launch(TABLE, False))


def test_policies_decide() -> None:
    """Clipped and middled, the truth is that of the moved records; a private run needs both policies and does not look."""
    protocol = MeanVector(columns=("a", "b"), low=("0",), high=("10",), outside="clip", missing="middle")
    protocol.for_table(Launch(TABLE, False)).for_table(Launch(TABLE, True))
    assert protocol.truth(Rows(TABLE)) == pytest.approx([13 / 3, 3.0], abs=1e-3)
    for name in ("outside", "missing"):
        decided: dict[str, Any] = {"outside": "clip", "missing": "middle", name: "refuse"}
        careless = MeanVector(columns=("a", "c"), low=("0",), high=("40",), **decided)
        with pytest.raises(InputError, match="private run does not look"):
            careless.for_table(Launch(TABLE, True))


def test_a_column_nobody_was_asked_for_has_no_estimate() -> None:
    """With fewer clients than columns, those that no coin picked have no estimate: neither a number nor infinite."""
    protocol = MeanVector(d=40)
    found = played(protocol, protocol.synthetic(15, 1), 1, 1.0)
    told = protocol.describe(found)
    assert told["estimate"].count(None) == told["standard_error"].count(None) >= 25
    assert told["total_error"] is None
