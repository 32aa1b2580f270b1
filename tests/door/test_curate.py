"""What a trusted curator tells of a person's own table: in a line of Python and of shell, at a stated price."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from experiments.door import curate
from local_dp.curator.account import Account
from local_dp.curator.multisets import Multiset
from local_dp.curator.sanitizers.cells import NoisyCounts
from local_dp.curator.sanitizers.histogram import ThresholdedHistogram
from local_dp.draws import Draws
from local_dp.loss import Loss
from local_dp.records import Records
from tests.support.command import local_dp

Asked = Callable[..., Any]
QUESTIONS: dict[str, tuple[Asked, list[str]]] = {
    "histogram": (lambda rows, **how: ldp.curate.histogram(rows, "job", **how), ["--column", "job"]),
    "quantiles": (lambda rows, **how: ldp.curate.quantiles(rows, "income", levels=2, **how), ["--column", "income", "--levels", "2"]),
    "threshold": (lambda rows, **how: ldp.curate.threshold(rows, "age", "old", **how), ["--column", "age", "--label", "old"]),
    "point": (lambda rows, **how: ldp.curate.point(rows, "job", "age > 20", **how), ["--column", "job", "--label", "age > 20"]),
    "rectangle": (
        lambda rows, **how: ldp.curate.rectangle(rows, ["age", "income"], "old == 1", epsilon=8, **how),
        ["--column", "age", "--column", "income", "--label", "old == 1", "--epsilon", "8"],
    ),
}


def people(n: int = 4000) -> Records:
    """A table of jobs, ages, incomes, and who is old."""
    generator = np.random.default_rng(7)
    age = generator.integers(18, 90, n)
    job = generator.choice(["baker", "smith", "clerk"], n, p=[0.6, 0.3, 0.1])
    job[:2] = "astronaut"
    return Records({"age": age, "income": np.exp(generator.normal(10, 1, n)), "job": job, "old": (age >= 65).astype(np.int64)})


def written(folder: Path) -> Path:
    """The table as a file."""
    import polars

    path = folder / "people.csv"
    polars.DataFrame({name: values.tolist() for name, values in people().columns.items()}).write_csv(path)
    return path


@pytest.mark.parametrize("name", QUESTIONS)
def test_python_and_the_shell_say_the_same(name: str, tmp_path: Path) -> None:
    """A seed gives the same release both ways; its price is what the mechanism costs, and what it releases is stamped."""
    asked, arguments = QUESTIONS[name]
    path = written(tmp_path)
    typed = local_dp("curate", name, *arguments, "--records", str(path), "--seed", "3", "--json")
    assert typed.returncode == 0, typed.stderr
    shell, data = json.loads(typed.stdout), asked(str(path), seed=3).to_dict()
    assert {**shell, "wall_s": 0} == {**json.loads(json.dumps(data)), "wall_s": 0}
    assert data["epsilon"] <= (8 if name == "rectangle" else 1)
    assert 0 < data["delta"] <= 1e-6
    assert (data["privacy"], data["stamp"], data["seed"], data["n"]) == ("approximate", "simulation: not private", 3, 4000)
    assert data["result"]["rows"]


def test_the_answers_are_good() -> None:
    """At epsilon 1, 4,000 records: the common jobs and not the two astronauts; quartiles; the age that makes old; the right columns."""
    rows = people()
    told = dict(row[:2] for row in ldp.curate.histogram(rows, "job", seed=1).rows)
    assert set(told) == {"baker", "smith", "clerk"}
    assert abs(told["baker"] - np.sum(rows["job"] == "baker")) < 30
    quartiles = [row[1] for row in ldp.curate.quantiles(rows, "income", levels=2, seed=1).rows]
    ranks = [float(np.mean(rows["income"] <= value)) for value in quartiles]
    assert np.allclose(ranks, [0.25, 0.5, 0.75], atol=0.05)
    assert ldp.curate.threshold(rows, "age", "old", seed=1).rows[0][0] == pytest.approx(65, abs=4)
    assert ldp.curate.point(rows, "job", "age > 20", seed=1).rows == [["baker", 1]]
    bounds = {row[0]: row[1:] for row in ldp.curate.rectangle(rows, ["age"], "old", seed=1).rows}
    assert bounds["age"][0] == pytest.approx(66, abs=4)


PURE: dict[str, Asked] = {
    **{name: asked for name, (asked, _) in QUESTIONS.items() if name in ("quantiles", "threshold")},
    "histogram": lambda rows, **how: ldp.curate.histogram(rows, "age", **how),
    "point": lambda rows, **how: ldp.curate.point(rows, "age", "old", **how),
}


@pytest.mark.parametrize("name", PURE)
def test_pure_is_pure(name: str) -> None:
    """Without delta the price has none; numbers have a pure form of every question but the rectangle."""
    data = PURE[name](people(), delta=None, seed=1).to_dict()
    assert (data["privacy"], data["delta"], data["epsilon"]) == ("pure", 0.0, 1.0)


def test_a_private_release_computes_no_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has it a seed, a stamp or a time; a simulation has."""
    rows = people()
    assert ldp.curate.histogram(rows, "job").to_dict()["truth"]["values_that_occur"] == 4
    monkeypatch.setattr(curate.Histogram, "truth", lambda *_: pytest.fail("the truth was computed"))
    data = ldp.curate.histogram(rows, "job", private=True).to_dict()
    assert [data[name] for name in ("truth", "seed", "stamp", "wall_s")] == [None] * 4
    assert "private: operating-system entropy" in repr(ldp.curate.histogram(rows, "job", private=True))


def test_it_is_paid_before_anything_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The account is charged first: a mechanism that cannot be paid for is not asked."""
    done: list[str] = []
    charge, release = Account.charge, ThresholdedHistogram.release

    def charged(account: Account, loss: Loss) -> None:
        done.append("charged")
        charge(account, loss)

    def released(mechanism: ThresholdedHistogram, database: Multiset, draws: Draws) -> NoisyCounts:
        done.append("released")
        return release(mechanism, database, draws)

    monkeypatch.setattr(Account, "charge", charged)
    monkeypatch.setattr(ThresholdedHistogram, "release", released)
    ldp.curate.histogram(people(), "job")
    assert done == ["charged", "released"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda rows: ldp.curate.histogram(rows, "job", delta=1 / 4000), "whole record may be published"),
        (lambda rows: ldp.curate.histogram(rows, "job", delta=0.0), "delta is 0"),
        (lambda rows: ldp.curate.histogram(rows, "job", delta=math.nan), "delta is nan"),
        (lambda rows: ldp.curate.histogram(rows, "job", epsilon=0.0), "epsilon is 0"),
        (lambda rows: ldp.curate.histogram(rows, "job", delta=None), "no pure form"),
        (lambda rows: ldp.curate.point(rows, "job", "old", delta=None), "no pure form"),
        (lambda rows: ldp.curate.rectangle(rows, ["age"], "old", delta=None), "no pure form"),
        (lambda rows: ldp.curate.histogram(rows, "jbo"), "did you mean 'job'"),
        (lambda rows: ldp.curate.quantiles(rows, "job"), "is text"),
        (lambda rows: ldp.curate.quantiles(rows, "age", levels=0), "levels is 0"),
        (lambda rows: ldp.curate.threshold(rows, "age", "income"), "other than 0 and 1"),
        (lambda rows: ldp.curate.threshold(rows, "age", "old", alpha=2.0), "alpha is 2"),
        (lambda rows: ldp.curate.quantiles({"age": [1.0, math.nan]}, "age"), "1 missing number"),
        (lambda rows: ldp.curate.threshold({"age": [1.0, 2.0], "x": [1.0, math.nan]}, "age", "x > 0"), "no answer for 1 record"),
        (lambda rows: ldp.curate.histogram(rows, "job", seed=1, private=True), "takes no seed"),
        (lambda rows: ldp.curate.threshold(rows, "age", "old").plot("x.png"), "no figure of a threshold"),
    ],
)
def test_bad_input_gets_a_line(asked: Callable[[Records], Any], said: str) -> None:
    with pytest.raises(ldp.InputError, match=said):
        asked(people())


@pytest.mark.parametrize("name", ["histogram", "quantiles"])
def test_a_figure_is_drawn(name: str, tmp_path: Path) -> None:
    asked, arguments = QUESTIONS[name]
    asked(people(), seed=1).plot(tmp_path / "python.png")
    typed = local_dp("curate", name, *arguments, "--records", str(written(tmp_path)), "--seed", "1", "--plot", str(tmp_path / "shell.svg"))
    assert typed.returncode == 0, typed.stderr
    assert min((tmp_path / drawn).stat().st_size for drawn in ("python.png", "shell.svg")) > 5000


def test_mechanisms_are_listed_with_their_privacy() -> None:
    """Read off the class: pure or approximate, and whose neighbours."""
    said = local_dp("mechanisms").stdout
    for line in (
        "ThresholdedHistogram (approximate, neighbours: replace)",
        "OccamLearner (pure, neighbours: replace)",
        "LabelPrivateLearner (pure, neighbours: labels)",
    ):
        assert line in said
