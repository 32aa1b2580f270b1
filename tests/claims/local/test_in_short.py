"""Every experiment, in short: one point of its quick run. The files beside this one have the whole
verdicts, many of them in the long runs."""

import json
import re
from pathlib import Path

import pytest

from local_dp.experiments.lab.catalogue import NAMES, load, module_of
from local_dp.experiments.lab.store import plain
from tests.support.long import short

DEAR = (  # whose points take long
    "interaction", "planning", "map", "randomized-response", "sq-to-local", "reconstruction",
    "pairs", "stability", "oracles",
)  # fmt: skip
# their verdicts need their points
WHOLE = (
    "map",
    "masked-parity",
    "parity",
    "occam",
    "suite",
    "interaction",
    "pure-or-approximate",
    "oracles",
    "pairs",
)


@pytest.mark.slow(only=("map",))
@pytest.mark.parametrize("name", short(NAMES, lambda name: name not in DEAR))
def test_a_point_is_a_function_of_its_seed(name: str) -> None:
    """A point and its measurement come back from a file unchanged, and the point gives the same
    measurement again."""
    experiment = load(module_of(name))
    point = experiment.points("quick")[0]
    first = plain(experiment.measure(point, 1))
    assert first
    again, measurement = experiment.read(
        json.loads(json.dumps(plain(point))), json.loads(json.dumps(first))
    )
    assert again == point
    assert plain(measurement) == first
    assert plain(experiment.measure(again, 1)) == first


@pytest.mark.parametrize(
    "name",
    short(
        [name for name in NAMES if name not in WHOLE],
        lambda name: name not in ("asking-again", "parity-any-rounds"),
    ),
)
def test_nothing_measured_shows_nothing(name: str) -> None:
    finding = load(module_of(name)).conclude([], "quick")
    assert finding.verdict == "not shown"
    assert finding.headline.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_has_a_wrong_twin(name: str) -> None:
    """A test of its module spoils the claim, and asserts that a check fails."""
    module = module_of(name).removesuffix(".claim").rpartition(".")[2]
    tests = [
        file.read_text(encoding="utf-8") for file in Path(__file__).parents[1].glob("*/test_*.py")
    ]
    spoiled = any(
        re.search(rf"\bimport .*\b{module}\b|\.{module}\b", text)
        and re.search(r"\bTwin\(|\blost\b|not shown", text)
        for text in tests
    )
    assert spoiled
