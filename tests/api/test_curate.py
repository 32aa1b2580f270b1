"""A trusted curator's releases of a user's table, in Python and in shell, at a stated price."""

import json
import math
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import local_dp as ldp
from local_dp.api.curate import QUESTIONS as EVERY
from local_dp.api.curating.learned import LearnedRule
from local_dp.api.curating.values import Histogram
from local_dp.curator.account import DeclaredAccount, TrustedOracle
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise
from local_dp.protocols.surveys.policies import Launch
from local_dp.storage.budget_file import KeptBudget
from tests.support.long import short
from tests.support.runs.asked import EVERY_QUESTION, QUESTIONS, Asked, asked, edges
from tests.support.runs.command import local_dp
from tests.support.runs.people import people, written

ALWAYS_PURE = ("median", "mean", "quantiles")


@pytest.mark.parametrize("name", QUESTIONS)
def test_python_and_the_shell_say_the_same(name: str, tmp_path: Path) -> None:
    """A seed gives the same release both ways; its price is what the mechanism costs, and what it
    releases is stamped."""
    question, arguments = QUESTIONS[name]
    path = written(tmp_path)
    done = local_dp(
        "curate", name, *shlex.split(arguments), "--records", str(path), "--seed", "3", "--json"
    )
    assert done.returncode == 0, done.stderr
    shell, data = json.loads(done.stdout), question(str(path), seed=3).to_dict()
    assert {**shell, "wall_s": 0} == {**json.loads(json.dumps(data)), "wall_s": 0}
    assert data["epsilon"] <= (8 if name == "rectangle" else 1)
    assert (data["delta"] == 0) if name in ALWAYS_PURE else (0 < data["delta"] <= 1e-6)
    assert data["privacy"] == ("pure" if name in ALWAYS_PURE else "approximate")
    assert data["stamp"] == "simulation: not private"
    assert data["seed"] == 3
    assert data["n"] == 4000
    assert data["result"]["rows"]


@pytest.mark.parametrize("least", [-(2**63), 2**53, 2**64 - 2])
def test_whole_numbers_are_counted_each(least: int) -> None:
    """Also those that are one double, and those at the ends of their type; a rule for one value
    names it."""
    rows = {
        "x": np.array([least, least + 1, least + 1] * 1000, dtype="i8" if least < 2**63 else "u8"),
        "y": np.array([1, 0, 0] * 1000),
    }
    for how in ({}, {"delta": None}, {"missing": "exclude"}):
        release = ldp.curate.histogram(rows, "x", seed=1, **how)
        assert [row[0] for row in release.rows[:2]] == [least + 1, least]
        assert release.to_dict()["truth"]["of_rows"][:2] == [2000, 1000]
    assert ldp.curate.point(rows, "x", "y == 1", seed=1).rows == [[least, 1]]


def test_labels_of_fractions_have_marginals() -> None:
    """In the fewest digits; labels of numbers that no value can equal are refused."""
    rows = {"x": np.array([0.1, 0.7, 0.7, np.nan] * 500)}
    release = ldp.curate.marginals(
        rows, labels={"x": [0.1, 0.7]}, missing="category", ways=1, seed=1
    )
    assert release.to_dict()["truth"]["of_rows"] == [500, 1000, 500]
    with pytest.raises(InputError, match="no value of 'x' can equal the label 'low'"):
        ldp.curate.marginals(
            rows, labels={"x": ["low", 0.1]}, missing="category", other="category", ways=1, seed=1
        )


def test_printed_numbers_are_the_released_ones() -> None:
    """Values, cuts and bins in full; a mean, its interval and its truth to the digits of its error;
    a median and quantiles of whole numbers in full."""
    prices = {"price": np.repeat([104.95, 104.99, 1299.49, 1299.99, 1234567.1, 1234567.2], 100)}
    release = ldp.curate.histogram(prices, "price", seed=1)
    assert {line.split()[0] for line in release.text().splitlines()[5:11]} == {
        "104.95",
        "104.99",
        "1,299.49",
        "1,299.99",
        "1,234,567.1",
        "1,234,567.2",
    }
    close = {"x": np.random.default_rng(0).normal(52347.8, 100, 400_000).clip(50000, 55000)}
    text = " ".join(ldp.curate.mean(close, "x", bounds=(50000, 55000), seed=1).text().split())
    assert "x 52,347.827" in text
    assert "lies in 52,347.789 .. 52,347.864." in text
    assert "True mean 52,347.816;" in text
    days = {"day": np.repeat([20200101, 20200102, 20200103], 1000)}
    assert "day     20,200,102" in ldp.curate.median(days, "day", seed=1).text()
    assert "20,200,101 .. 20,200,103" in ldp.curate.quantiles(
        days, "day", levels=2, seed=1
    ).text().replace("\xa0", " ")
    assert "50,312.5" in ldp.curate.intervals(close, "x", bounds=(50000, 55000), seed=1).text()
    assert (
        "20200101 to < 20200102"
        in ldp.curate.marginals(days, [], ways=1, cuts={"day": [20200101, 20200102]}, seed=1).text()
    )


def test_intervals_are_bins_of_prefix_counts() -> None:
    """The counts below 4,097 cells as bins of five years; the error that is said is theirs; the
    mechanism goes by their number."""
    rows = people()
    age = np.asarray(rows["age"], dtype=np.float64)
    output = QUESTIONS["intervals"][0](rows, seed=1)
    below = np.array(output.data["result"]["below"])
    assert len(below) == 4097
    assert abs(below[2048] - np.sum(age < 50)) < 150
    assert [row[:2] for row in output.rows] == [
        [10 + 5 * place, 15 + 5 * place] for place in range(16)
    ]
    assert output.data["truth"]["largest_error_of_an_interval"] == pytest.approx(
        np.ptp(below - [np.sum(age < 10 + cell / 51.2) for cell in range(4097)])
    )
    for cells, mechanism in ((64, "CountTree"), (4096, "PrefixFactorization")):
        assert (
            ldp.curate.intervals(people(), "age", bounds=(10, 90), bins=cells, seed=1).data[
                "mechanism"
            ]
            == mechanism
        )


@pytest.mark.parametrize("outside", ["clip", "exclude"])
@pytest.mark.parametrize("missing", ["middle", "exclude"])
@pytest.mark.parametrize(
    "numbers", [[math.nan, 0, 0, 50], [math.nan, 1, 2, 99, -3], [math.nan, 4, 10.1]]
)
def test_missing_and_outside_numbers_each_have_their_own_rule(
    numbers: list[float], missing: str, outside: str
) -> None:
    """A mean and the counts of intervals follow both policies; each record is taken here by
    itself."""
    middle, low, high = 5.0, 0.0, 10.0
    present = [
        middle if math.isnan(each) else each
        for each in numbers
        if missing == "middle" or not math.isnan(each)
    ]
    usable = [
        min(max(each, low), high) for each in present if outside == "clip" or low <= each <= high
    ]
    table = {"x": numbers * 1000}
    mean = ldp.curate.mean(
        table, "x", bounds=(low, high), missing=missing, outside=outside, epsilon=20, seed=1
    )
    assert mean.truth["mean"] == pytest.approx(sum(usable) / len(usable), abs=1e-3)
    assert mean.value == pytest.approx(sum(usable) / len(usable), abs=0.02)
    assert mean.interval[0] <= sum(usable) / len(usable) <= mean.interval[1]
    if missing == "exclude":
        counts = ldp.curate.intervals(
            table,
            "x",
            bounds=(low, high),
            bins=2,
            missing=missing,
            outside=outside,
            epsilon=20,
            seed=1,
        ).value
        assert counts == pytest.approx(
            [
                1000 * sum(each < middle for each in usable),
                1000 * sum(each >= middle for each in usable),
            ],
            abs=20,
        )


def test_a_rule_leaves_out_rows_that_lack_something() -> None:
    """A learner of numbers with a label between bounds: its mean square error is in the label's own
    units."""
    rows = people()
    column = np.where(np.arange(4000) % 10, rows["age"], np.nan)
    table = {"age": column, "twice": 2.0 * rows["age"]}
    question: dict[str, Any] = {
        "features": ["age"],
        "bounds": {"age": (18, 90), "twice": (36, 180)},
        "learner": "linear-regression",
        "seed": 1,
        "epsilon": 8,
    }
    with pytest.raises(ldp.InputError, match="in 400 of 4000 records"):
        ldp.curate.learn(table, "twice", **question)
    output = ldp.curate.learn(table, "twice", missing="exclude", **question).data
    score, plain = output["truth"]["score"], output["truth"]["trivial"]
    assert plain == pytest.approx(
        np.nanmean(np.where(np.isnan(column), np.nan, 2 * column - 108) ** 2), rel=1e-3
    )
    assert score < plain / 10
    assert output["result"]["rows"][1][1] == pytest.approx(plain, rel=0.1)


@pytest.mark.parametrize(("missing", "more"), [("refuse", 2), ("exclude", 4)])
def test_a_rule_pays_for_what_it_asks(missing: str, more: int) -> None:
    """Two verdicts beside the learner's queries, and twice the share of complete rows where others
    are left out: as many places as are taken."""
    rows = people()
    rule = LearnedRule(
        "old",
        learner="linear-regression",
        features=["age"],
        bounds={"age": (18, 90), "old": (0, 1)},
        missing=missing,
    )
    offer = rule.task(Launch(rows, private=False)).offer(len(rows))
    oracle = TrustedOracle(rows, offer.account, Draws(KeyedNoise(1)))
    run(offer.algorithm, oracle)
    assert isinstance(offer.account, DeclaredAccount)
    assert oracle.queries == offer.account.queries == rule.protocol.built.queries + more


def test_triangles_of_a_table_of_edges(tmp_path: Path) -> None:
    """The number of nodes is public and is n; the number of edges is not released."""
    path, true = edges(tmp_path)
    arguments = shlex.split(f"curate triangles --records {path} --source from --target to --json")
    data = json.loads(local_dp(*arguments, "--nodes", "60", "--seed", "1").stdout)
    assert data["n"] == 60
    assert data["neighbours"] == "edge"
    assert data["privacy"] == "pure"
    assert data["truth"]["triangles"] == true
    assert abs(data["result"]["rows"][0][1] - true) < 400  # farther in 1 of 4,000 seeds
    (tmp_path / "schema.json").write_text('{"from": "whole", "to": "whole"}')
    path.write_text(path.read_text().replace("n", "") + "3,3\n70,1\n1,-1\n")
    options = shlex.split(f"--nodes 70 --other exclude --schema {tmp_path}/schema.json")
    assert (
        json.loads(local_dp(*arguments, *options, "--seed", "1").stdout)["truth"]["triangles"]
        == true
    )
    path, _ = edges(tmp_path)
    few = local_dp(*arguments, "--nodes", "59")
    assert few.returncode == 2
    assert "the 59 nodes that are declared" in few.stderr


def test_a_column_of_whole_numbers_has_whole_quantiles() -> None:
    """They are those of the same column in floats rounded down, also below zero: as many records
    are at most each. Rounded to the nearest, some have more."""
    numbers = np.random.default_rng(1).integers(-9, 9, 2001)
    for seed in range(3):
        whole, floats = (
            ldp.curate.quantiles({"x": numbers.astype(kind)}, "x", seed=seed).value
            for kind in (np.int64, np.float64)
        )
        assert whole == [math.floor(each) for each in floats]
        assert any(round(each) != math.floor(each) for each in floats)
        assert [np.sum(numbers <= each) for each in whole] == [
            np.sum(numbers <= each) for each in floats
        ]


PURE: dict[str, Asked] = {
    **{
        name: question
        for name, (question, _) in QUESTIONS.items()
        if name not in ("histogram", "point", "rectangle")
    },
    "histogram": asked("histogram", "age"),
    "point": asked("point", "age", "old"),
}


@pytest.mark.parametrize("name", PURE)
def test_pure_is_pure(name: str) -> None:
    """Without delta the price has none; numbers have a pure form of every question but the
    rectangle."""
    data = PURE[name](people(), delta=None, seed=1).to_dict()
    # equal parts are rounded down
    assert data["privacy"] == "pure"
    assert data["delta"] == 0.0
    assert data["epsilon"] == pytest.approx(1.0, rel=1e-8)
    assert data["epsilon"] <= 1
    assert ("CountTree" in data["mechanism"]) == (name == "intervals")


def test_a_private_release_computes_no_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor has it a seed, a stamp or a time; a simulation has."""
    rows = people()
    assert ldp.curate.histogram(rows, "job").to_dict()["truth"]["values_that_occur"] == 4
    monkeypatch.setattr(Histogram, "truth", lambda *_: pytest.fail("the truth was computed"))
    data = ldp.curate.histogram(rows, "job", private=True, missing="category").to_dict()
    assert [data[name] for name in ("truth", "seed", "stamp", "wall_s")] == [None] * 4
    assert "private: operating-system entropy" in repr(
        ldp.curate.histogram(rows, "job", private=True, missing="exclude")
    )


REFUSED = {  # a question to the curator, and the words that refuse it
    "histogram(rows, 'job', delta=1 / 4000)": "whole record may be published",
    "histogram(rows, 'job', delta=0.0)": "delta is 0",
    "histogram(rows, 'job', epsilon=0.0)": "epsilon is 0",
    "histogram(rows, 'job', delta=None)": "no pure form",
    "point(rows, 'job', 'old', delta=None)": "no pure form",
    "rectangle(rows, ['age'], 'old', delta=None)": "no pure form",
    "histogram(rows, 'job', private=True)": (
        "whether 'job' has no value: declare missing=.category. .a value of its own"
    ),
    "histogram({'job': ['baker', '']}, 'job')": "in 1 of 2 records 'job' has no value",
    (
        "marginals(rows, labels={'job': ['baker', 'smith']}, ways=1)"
    ): "that is not among the 2 labels: choose other=.category.",
    "quantiles(rows, 'age', levels=0)": "levels is 0",
    "threshold(rows, 'age', 'income')": "other than 0 and 1",
    "threshold(rows, 'age', 'old', alpha=2.0)": "alpha is 2",
    "quantiles({'age': [1.0, nan]}, 'age')": (
        "in 1 of 2 records 'age' has no value: choose missing=.exclude. "
    ),
    "threshold({'age': [1.0, 2.0], 'x': [1.0, nan]}, 'age', 'x > 0')": "leaves 'x > 0' open",
    "histogram(rows, 'job', seed=1, private=True, missing='category')": "takes no seed",
    "mean(rows, 'age', bounds=(0, 99), eps=1)": "mean has no option 'eps'; did you mean 'epsilon'",
    "mean(rows)": "mean needs column; add column=",
    "mean(rows, 'age', bounds=(90, 18))": "low < high",
    "mean(rows, 'age', bounds=(18, 40))": "outside the bounds .18, 40.: choose outside=.clip.",
    "mean(rows, 'age', bounds=(18, 90), private=True)": "does not look whether",
    "mean(rows, 'age', bounds=(18, 40), outside='drop')": "outside is 'drop'",
    "mean({'age': [1.0, nan]}, 'age', bounds=(0, 2))": "choose missing=.middle.",
    "intervals(rows, 'age', bounds=(18, 90), bins=1 << 23)": "bins is 8388608",
    "learn(rows, 'old')": "declare those of age, income",
    "triangles({'a': ['x', 'x'], 'b': ['y', 'x']}, 'a', 'b', nodes=10)": "joins a node with itself",
    "triangles({'a': ['x', None], 'b': ['y', 'x']}, 'a', 'b', nodes=10)": "lacks a node",
    "marginals(rows, ways=1)": "the columns are none",
    "marginals(rows, ['old', 'old'], ways=1)": "each once",
    "marginals(rows, ['age'], ways=1)": "other than 0 and 1",
    "marginals(rows, cuts={'age': [50, 30]}, ways=1)": "not in order",
    "marginals(rows, ['old'])": "ways is 2; give 1$",
    "marginals(rows, cuts={'age': list(range(2000))}, ways=1)": "2001 values",
}


@pytest.mark.parametrize("question", REFUSED)
def test_bad_input_gets_a_line(question: str) -> None:
    with pytest.raises(ldp.InputError, match=REFUSED[question]):
        # our own texts
        eval(f"curate.{question}", {"curate": ldp.curate, "rows": people(), "nan": math.nan})  # noqa: S307


@pytest.mark.parametrize(
    "name",
    short(
        EVERY, lambda name: name in ("mean", "histogram", "learn") or bool(EVERY[name].figureless)
    ),
)
def test_a_figure_is_drawn_or_refused(name: str, tmp_path: Path) -> None:
    """From Python and from the shell, as wide as `--size` says and in the format that `--format`
    says. A rule is not drawn, and then nothing is charged."""
    question, arguments = EVERY_QUESTION[name]
    path = edges(tmp_path)[0] if name == "triangles" else written(tmp_path)
    budget = tmp_path / "a.budget"
    KeptBudget.create(budget, approximate(16.0, 1e-4))
    how = shlex.split(
        f"--records {path} --seed 1 --plot {tmp_path}/shell.svg --size 3 --format pdf "
        f"--budget {budget}"
    )
    done = local_dp("curate", name, *shlex.split(arguments), *how)
    if EVERY[name].figureless:
        assert done.returncode == 2
        assert done.stdout == ""
        assert "leave out --plot" in done.stderr
        assert not KeptBudget(budget).standing().charges
        return
    question(str(path), seed=1).plot(tmp_path / "python.png")
    assert done.returncode == 0, done.stderr
    assert min((tmp_path / file).stat().st_size for file in ("python.png", "shell.pdf")) > 5000
    assert b"/MediaBox [ 0 0 216 " in (tmp_path / "shell.pdf").read_bytes()
