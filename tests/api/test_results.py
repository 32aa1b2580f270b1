"""What every result has: numbers with their errors, frames, a figure; and warnings at the caller's
line."""

import inspect
import math
import re
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
import local_dp.sklearn
from local_dp.api.curate import QUESTIONS
from local_dp.curator.clipped import laplace_error, laplace_tail
from local_dp.errors import LocalDPWarning
from local_dp.loss import NANO
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.storage.columns import values_of
from tests.support.inputs.documents import ROOT, blocks
from tests.support.long import short
from tests.support.runs.people import people
from tests.support.wrong import wrong

PAGE = ROOT / "docs" / "guide.md"
TABLE: dict[str, Any] = {
    "age": [20.0, 30.0, 40.0, 55.0] * 100,
    "town": ["a", "b", "c", "c"] * 100,
    "yes": [0, 1] * 200,
}
HOW: dict[str, Any] = {"epsilon": 2.0, "seed": 1, "notice": str}


def test_every_name_has_an_example_that_runs() -> None:
    """Each name of the interface occurs in a Python block of docs/guide.md; tests/test_documents.py
    runs these."""
    text = "\n".join(blocks(PAGE, "python"))
    names = [f"ldp.{name}" for name in ldp.__all__ if name != "curate"]
    names += [f"ldp.curate.{name}" for name in QUESTIONS] + local_dp.sklearn.__all__
    assert [name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)] == []


@pytest.mark.parametrize(
    "result",
    [
        lambda: ldp.mean(TABLE, "age", bounds=(0, 60), **HOW),
        lambda: ldp.curate.mean(TABLE, "age", bounds=(0, 60), seed=1),
        lambda: ldp.curate.histogram(people(), "job", seed=1),
        pytest.param(
            lambda: ldp.curate.intervals(people(), "age", bounds=(10, 90), bins=1024, seed=1),
            marks=pytest.mark.long,
        ),
    ],
    ids=["clients, a number", "curator, a number", "curator, counts", "curator, a factorization"],
)
def test_local_and_curator_results_have_the_same_names(result: Any, tmp_path: Path) -> None:
    """The interval lies around the value, at about two standard errors; frames have a row for each;
    the figure is drawn; the truth is in most intervals."""
    answer = result()
    value, error, interval = (
        np.array(each, dtype=float)
        for each in (answer.value, answer.standard_error, answer.interval)
    )
    assert value.shape == error.shape == interval.shape[:-1]
    assert np.all((interval[..., 0] <= value + 1e-9) & (value - 1e-9 <= interval[..., 1]))
    assert np.all(np.diff(interval, axis=-1)[..., 0] <= 6 * error)
    assert len(answer.to_pandas()) == answer.to_polars().height == max(1, value.size)
    assert list(answer.to_pandas().columns) == answer.to_polars().columns
    assert answer.to_dict()["result"]
    picture = answer.plot()
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert "png" not in repr(picture)
    answer.plot(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 1000


@wrong(
    "local_dp.curator.clipped:laplace_error",
    "(1 / (math.sqrt(2) * math.sinh(step / 2)), least_tail(nano, misses / 2) - 1)",
    "(1 / (2 * math.sqrt(2) * math.sinh(step / 2)), least_tail(2 * nano, misses / 2) - 1)",
    "the interval of a release holds the truth in three of four cases",
    at="step0",
)
@pytest.mark.parametrize("step", [Fraction(1), Fraction(1, 2), Fraction(1, 100)])
def test_the_error_of_discrete_laplace_noise_is_that_of_its_law(step: Fraction) -> None:
    """Summed over the law: the variance, and the least bound that the noise stays within with
    probability 95 %."""
    deviation, reach = laplace_error(step * NANO)
    y = np.arange(1, int(60 / step))
    law = np.exp(-float(step) * y)
    assert deviation == pytest.approx(
        float(np.sqrt((2 * y**2 * law).sum() / (1 + 2 * law.sum()))), rel=1e-9
    )
    assert (
        2 * laplace_tail(step * NANO, reach + 1)
        <= Fraction(1, 20)
        < 2 * laplace_tail(step * NANO, reach)
    )


@wrong(
    "local_dp.api.tables:warn",
    "stacklevel=level",
    "stacklevel=2",
    "the warning names a line that its reader did not write",
)
def test_a_warning_points_at_the_line_of_its_caller() -> None:
    """Too few clients and cut texts, in a function, by name, from an estimator: the file and the
    line are the caller's."""
    from local_dp.sklearn import LocalClassifier

    long = {"yes": [0, 1] * 20, "text": ["x" * 2000] * 40}
    X, y = np.zeros((100, 1)), np.arange(100) % 2
    calls = (
        lambda: ldp.survey(TABLE, "yes == 1", seed=1),
        lambda: ldp.run("survey", TABLE, question="yes == 1", seed=1),
        lambda: ldp.curate.threshold(long, "yes", "yes > 0", seed=1),
        lambda: LocalClassifier(bounds=(-1, 1), random_state=1).fit(X, y),
    )
    for call in calls:
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            call()
        assert [(each.category, each.filename, each.lineno) for each in records] == [
            (LocalDPWarning, __file__, call.__code__.co_firstlineno)
        ]


def test_pandas_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    result = ldp.survey(TABLE, "yes == 1", **HOW)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ldp.InputError, match="pip install pandas, or use to_polars"):
        result.to_pandas()
    assert result.to_polars().height == 1


def test_parameters_are_written_as_python_writes_them() -> None:
    """By name or by function, lists, numbers, mappings and pairs give one and the same protocol."""
    labels: dict[str, Any]
    labels, how = {"town": ["a", "b", "c"], "yes": [0, 1]}, {**HOW, "columns": ["town", "yes"]}
    one = ldp.run("crosstab", TABLE, labels=labels, **how).value
    assert (
        one
        == ldp.crosstab(TABLE, labels=labels, **how).value
        == ldp.run("crosstab", TABLE, labels=[["a", "b", "c"], [0.0, 1.0]], **how).value
    )
    assert one == ldp.run("crosstab", TABLE, labels=("a|b|c", "0|1"), **how).value
    assert list(inspect.signature(ldp.marginals).parameters)[:3] == ["table", "columns", "ways"]
    with pytest.raises(ldp.InputError, match="by place"):
        ldp.marginals(TABLE, ["town"], 1)  # type: ignore[call-arg]


# of other protocols 0 and 1
ENDS: dict[str, Any] = {
    "compare": ([0, 0, -1], 1),
    "sq": (-1, 1),
    "mean-found": (-512, 2048),
    "logistic": (-1e99, 1e99),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "sets": {"low": 0, "high": 1},
    "mean-found": {"clients": 600, "epsilon": 4},
    "heavy-hitters": {"share": 0.9, "bits": 8, "epsilon": 4},
    "heavy-hitters-asked": {"share": 0.9, "bits": 8, "epsilon": 2},
}
# of how many wholes the numbers are the parts
WHOLES = {"marginals": 15, "crosstab": 1, "frequency": 1, "histogram": 1, "heavy-hitters-asked": 1}
FEW = {"some": [None, "a", "b", "c"] * 5, "age": [*range(20)], "yes": [0, 1] * 10}
# options, the most, and how many wholes
RELEASES: dict[str, tuple[dict[str, Any], int, int]] = {
    "mean": ({"column": "age", "bounds": (0, 5), "outside": "exclude"}, 5, 0),
    "histogram": ({"column": "some", "missing": "exclude", "delta": 0.04}, 20, 1),
    "intervals": ({"column": "age", "bounds": (0, 19), "bins": 8}, 20, 1),
    "marginals": ({"columns": ["yes", "age"], "other": "category", "ways": 1, "epsilon": 9}, 20, 2),
    "triangles": ({"source": "age", "target": "yes", "nodes": 5, "other": "exclude"}, 10, 0),
}
# a rule and its score, records, or any number
FREE = {"median", "quantiles", "synthetic", "threshold", "point", "rectangle", "learn"}


def check_possible(
    ask: Callable[..., Any], least: float, most: float, wholes: int, value: str = "estimate"
) -> None:
    """At a tiny epsilon, numbers and intervals are in their range exactly, and each holds its
    number; parts of a whole add up to it at most, up to 1e-9 of it. Raw numbers are not moved."""
    for seed in range(4):
        raw, plain = (ask(seed=seed, raw=each).data["result"] for each in (True, False))
        bare, numbers = (np.array(each[value], dtype=float, ndmin=1) for each in (raw, plain))
        low, high = np.array(plain["interval"], dtype=float).reshape(-1, 2).T
        assert not np.any((low < least) | (low > numbers) | (numbers > high) | (high > most))
        if wholes:
            assert np.all(numbers.reshape(wholes, -1).sum(axis=1) <= most * (1 + 2e-9))
        else:
            assert np.array_equal(numbers, np.clip(bare, least, most), equal_nan=True)
        assert plain.get("moved", False) == (not np.array_equal(bare, numbers, equal_nan=True))
        assert not raw.get("moved")


@wrong("local_dp.tallies:Possible.nearest", "1 + 1e-09", "3", "shares add up to 3", "frequency")
@pytest.mark.parametrize(
    "name",
    short(
        [name for name in PROTOCOLS.usable() if not PROTOCOLS[name].figureless],
        lambda name: name != "heavy-hitters",
    ),
)
def test_every_number_of_a_run_can_be(name: str) -> None:
    least, most = ENDS.get(name, (0, 1))
    how = {"clients": 50, "epsilon": 0.05, "notice": str, **OPTIONS.get(name, {})}
    check_possible(partial(ldp.run, name, **how), least, most, WHOLES.get(name, 0))


@pytest.mark.parametrize("name", RELEASES)
def test_every_number_of_a_release_can_be(name: str) -> None:
    """No question is left out."""
    assert RELEASES.keys() | FREE == QUESTIONS.keys()
    options, most, wholes = RELEASES[name]
    ask = partial(getattr(ldp.curate, name), FEW, **{"epsilon": 0.05, **options})
    check_possible(ask, 0, most, wholes, "value")
    if name == "histogram":
        assert sum(row[2] for row in ask(seed=0).rows) <= 1 + 1e-9


def test_the_sentence_of_an_interval_names_what_it_holds() -> None:
    """And the printed numbers are those of the data."""
    release = ldp.curate.mean(
        {"x": [2.0, 2.0, 2.0, 3.0]}, "x", bounds=(15, 45), outside="clip", epsilon=0.01, seed=1
    )
    text = release.text().replace("\xa0", " ")
    assert "the true mean of these records lies in 15 .. 45." in text.replace("\n", " ")
    assert "True mean 15" in text
    assert "0.7" in ldp.survey({"x": [1, 0, 1]}, "x == 1", epsilon=0.01, seed=1).text().split()


def test_what_is_missing_has_no_count() -> None:
    """Excluded records are neither a value that occurs nor an error; a median's distance counts who
    lies between; missing numbers alone are numbers."""
    table = {"x": [1.0] * 200 + [2.0] * 200 + [math.nan] * 100}
    release = ldp.curate.histogram(table, "x", missing="exclude", seed=1)
    assert release.truth["values_that_occur"] == 2
    assert release.truth["largest_error"] == max(abs(row[1] - 200) for row in release.rows[:2])
    median = ldp.curate.median(
        {"x": [0.0] * 100 + [2.0] * 120 + [4.0] * 80}, "x", epsilon=0.5, seed=0
    )
    assert 0 < median.value < 2
    assert median.to_dict()["truth"] == {"median": 2.0, "records_between": 0}
    assert values_of("x", [math.nan] * 3).dtype == np.float64
