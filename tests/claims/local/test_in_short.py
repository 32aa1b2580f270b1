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


@pytest.mark.slow(only=("map",))
@pytest.mark.parametrize("name", short(NAMES, lambda name: name not in DEAR))
def test_a_point_is_a_function_of_its_seed(name: str) -> None:
    """A measurement comes back from a file unchanged, and the point gives the same measurement
    again."""
    experiment = load(module_of(name))
    point = experiment.points("quick")[0]
    first = plain(experiment.measure(point, 1))
    assert first
    assert plain(experiment.read(point, json.loads(json.dumps(first)))) == first
    assert plain(experiment.measure(point, 1)) == first


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_has_a_wrong_twin(name: str) -> None:
    """A test of its module spoils the claim, and asserts that a check fails."""
    module = module_of(name).removesuffix(".claim").rpartition(".")[2]
    tests = [
        file.read_text(encoding="utf-8") for file in Path(__file__).parents[1].glob("*/test_*.py")
    ]
    spoils = any(
        re.search(rf"\bimport .*\b{module}\b|\.{module}\b", text)
        and re.search(r"\bTwin\(|\blost\b|not shown|not check\.shown", text)
        for text in tests
    )
    assert spoils
