"""Every experiment, in short: one point of its quick run. The files beside this one have the whole verdicts, many of them in the long runs."""

import json

import pytest

from local_dp.experiments.lab.catalogue import NAMES, load, module_of
from local_dp.experiments.lab.store import canonical, plain

WHOLE = ("map", "masked-parity", "parity", "occam", "suite", "interaction", "pure-or-approximate", "oracles", "pairs")  # their verdicts need their points


@pytest.mark.parametrize("name", NAMES)
def test_a_point_is_a_function_of_its_seed(name: str) -> None:
    """Measured twice, also from what a file keeps of it, the first point of the quick run says the same, in plain data."""
    experiment = load(module_of(name))
    point = experiment.points("quick")[0]
    first = plain(experiment.measure(point, 1))
    assert first
    assert plain(experiment.measure(experiment.read_point(json.loads(canonical(point))), 1)) == first


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WHOLE])
def test_nothing_measured_shows_nothing(name: str) -> None:
    """Without measurements the verdict is "not shown", and the headline says so in a sentence."""
    finding = load(module_of(name)).conclude([], "quick")
    assert finding.verdict == "not shown"
    assert finding.headline.endswith(".")
