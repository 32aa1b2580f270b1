"""Margin complexity by linear programs, against whole sign matrices; its certificates, and every way to alter one."""

import json
import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_dp.hardness.certificates import load_certificate, verify_certificate
from local_dp.hardness.margins import margin, margin_limit, on_the_matrix
from local_dp.populations.concepts import FUNCTIONS, BlockClass
from tests.support.inputs.refusals import refuse
from tests.support.runs.command import local_dp

Data = dict[str, Any]
LISTS = "odd-max-bit"
KNOWN = [
    (LISTS, 4, 2, 5.932),
    (LISTS, 8, 16, 88.975),
    ("and", 8, 4, 19.5),
    ("majority", 7, 4, 14.0),
    ("parity", 8, 4, 256.0),
    ("parity", 3, 1, 1.0),
]


@pytest.mark.parametrize(("function", "t", "b", "value"), KNOWN)
def test_both_sides_meet_and_are_certified(function: str, t: int, b: int, value: float) -> None:
    """The law and the polynomial bound MC on either side, to one part in a million, whatever the solver said; the certificate proves as much."""
    program = margin(BlockClass(function, t, b))
    assert program.at_least == pytest.approx(value, abs=5e-4)
    assert 1 - 1e-12 <= program.at_most / program.at_least <= 1 + 1e-6
    data = load_certificate(json.dumps(program.certificate(1.0)))
    verdict = verify_certificate(data)
    assert verdict.valid, verdict.statement
    assert f"{t * b} variables" in verdict.statement
    assert math.sqrt(1 / Fraction(data["squared_margin_at_most"])) == pytest.approx(value, abs=5e-4)
    assert verdict.figures["clients_at_least"] == data["clients_at_least"] == math.ceil(2.28752001414 * program.at_least**2 - 1e-4)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("t", "b"), [(1, 3), (2, 3), (3, 2)])
def test_the_symmetric_program_is_that_of_the_matrix(function: str, t: int, b: int) -> None:
    """The spectral norm of the whole matrix, and vectors of unit length for every concept and point, give the value of the program."""
    program = margin(BlockClass(function, t, b))
    assert np.array(on_the_matrix(program)) == pytest.approx(np.full(2, program.at_least), rel=1e-9)


def test_limits_are_fibonacci_numbers() -> None:
    """For large b odd-max-bit has sqrt(b) times 1, 2, 4, 7, 12, ...: near it from b = 10^6 on; AND has t, and parity, no halfspace, no limit."""
    for t, value in ((1, 1), (2, 2), (3, 4), (4, 7), (5, 12), (6, 20), (7, 33), (8, 54)):
        assert margin_limit(BlockClass(LISTS, t, 1)) == pytest.approx(value, rel=1e-9)
    assert margin_limit(BlockClass("and", 6, 1)) == pytest.approx(6)
    assert margin(BlockClass(LISTS, 3, 10**6)).at_least / 1e3 == pytest.approx(4, rel=1e-2)
    refuse(("parity", lambda: margin_limit(BlockClass("parity", 2, 1))))


def certified(function: str = LISTS, t: int = 4, b: int = 2) -> Data:
    """A certificate after a journey as JSON text."""
    return load_certificate(json.dumps(margin(BlockClass(function, t, b)).certificate(1.0)))


def test_the_certified_figure_is_the_definition() -> None:
    """max_S E_mu[f chi_S]^2 / b^|S| summed in fractions, set by set and point by point, for an uneven law."""
    data = certified()
    weights, signs = data["weights"], BlockClass(LISTS, 4, 2).signs().tolist()
    points = list(enumerate(zip(weights, signs, strict=True)))
    sums = {S: sum(w * f * (-1) ** (u & S).bit_count() for u, (w, f) in points) for S in range(16)}
    margins = [Fraction(value, sum(weights)) ** 2 / 2 ** S.bit_count() for S, value in sums.items()]
    assert max(margins) == Fraction(data["squared_margin_at_most"])


@pytest.mark.parametrize(("function", "t", "b"), [(LISTS, 4, 2), ("parity", 3, 4)])
def test_one_altered_weight_or_b_is_refused(function: str, t: int, b: int) -> None:
    """Every weight, one more or less or none; every b from 1 to 40 but the right one: the certificate does not hold."""
    data = certified(function, t, b)
    for place, weight in enumerate(data["weights"]):
        for other in {weight + 1, weight - 1, 0, 2 * weight} - {weight}:
            assert not verify_certificate(data | {"weights": [*data["weights"][:place], other, *data["weights"][place + 1 :]]}).valid
    for other in set(range(1, 41)) - {b}:
        assert not verify_certificate(data | {"b": other}).valid


FORGED: list[Data] = [
    {"clients_at_least": 82},
    {"clients_at_least": 80},
    {"squared_margin_at_most": "1/1000"},
    {"epsilon": 0.5},
    {"success": 0.99},
    {"variables": 9},
    {"t": 3},
    {"function": "and"},
    {"weights": [1] * 16, "total": 16},
    {"weights": [0] * 16},
    {"weights": [1] * 15},
    {"weights": [1.0] * 16, "total": 16},
    {"weights": [-1, *[1] * 15], "total": 14},
    {"weights": [1 << 61, *[1] * 15]},
]


def test_forged_margins_fail() -> None:
    """Another figure, law, function or size makes the certificate invalid."""
    data = certified()
    assert [change for change in FORGED if verify_certificate(data | change).valid] == []


MALFORMED: list[Callable[[Data], object]] = [
    lambda data: data.pop("weights"),
    lambda data: data.update(function="or"),
    lambda data: data.update(function=["and"]),
    lambda data: data.update(t=40),
    lambda data: data.update(t="4"),
    lambda data: data.update(b=0),
    lambda data: data.update(b=1 << 21),
    lambda data: data.update(epsilon=0.0),
    lambda data: data.update(epsilon="one"),
    lambda data: data.update(success=0.4),
    lambda data: data.update(weights=7),
    lambda data: data.update(total="many"),
]


def test_malformed_margins_are_refused() -> None:
    """A part that is missing, of the wrong type or out of range is refused with an InputError, never with another exception."""
    for spoil in MALFORMED:
        data = certified()
        spoil(data)
        refuse((".", partial(verify_certificate, data)))


def test_the_command_takes_it_and_refuses_it_altered(tmp_path: Path) -> None:
    """`local-dp certify` says what a file proves; with one weight or b altered it ends with code 4."""
    data, file = certified(LISTS, 8, 16), tmp_path / "certificate.json"
    weights = [*data["weights"][:-1], data["weights"][-1] + 1]
    results = []
    for change in ({}, {"weights": weights}, {"b": 17}):
        file.write_text(json.dumps(data | change))
        results.append(local_dp("certify", str(file)))
    assert [each.returncode for each in results] == [0, 4, 4]
    assert "fewer than 18,110 clients" in " ".join(results[0].stdout.split())
