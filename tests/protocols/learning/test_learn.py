"""Learning on a table: parameters, public and private bounds, missing values, intervals that hold,
and what is refused."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from local_dp.api.tables import sample_rows
from local_dp.errors import InputError
from local_dp.learners.halfspaces import Halfspace
from local_dp.learners.moments import AtLeast
from local_dp.learners.rules import AllOf, Literal, Stump, Tree
from local_dp.learners.tabular import TABULAR, in_words
from local_dp.populations.finite import Resampled
from local_dp.protocols.learning.learn import Learn, Lesson, _score
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.encoded import Encoding
from local_dp.queries.grammar import parse
from local_dp.queries.questions import evaluate
from local_dp.records import Records
from local_dp.tallies import Estimate
from tests.support.inputs.builders import small
from tests.support.inputs.refusals import refuse
from tests.support.inputs.tables import bounds, cars, fair
from tests.support.runs.protocols import by_client, by_law
from tests.support.wrong import wrong

GENERATOR = np.random.default_rng(11)
AGE = GENERATOR.integers(18, 80, 500).astype(float)
VISITS = GENERATOR.poisson(3, 500)
ILL = (AGE + 8 * VISITS + GENERATOR.normal(0, 8, 500) > 75).astype(np.int64)
CLINIC = Records(
    {
        "age at visit": AGE,
        "visits": VISITS,
        "sex": np.where(GENERATOR.random(500) < 0.5, "F", "M"),
        "ill": ILL,
    }
)
GIVEN = ("age at visit=18..80", "visits=0..12")


def asked_for(learner: str, **more: Any) -> Learn:
    label = {"linear-regression": "visits", "k-means": ""}.get(learner, "ill")
    features = {
        "thresholds": ("age at visit",),
        "linear-regression": ("age at visit", "ill == 1"),
        "k-means": ("age at visit", "visits"),
    }.get(learner, ())
    return Learn(learner=learner, label=label, features=features, bounds=GIVEN, **more).for_table(
        Launch(CLINIC, False)
    )


@pytest.mark.parametrize("learner", TABULAR)
def test_every_learner_runs_on_a_table(learner: str) -> None:
    """With many clients each is as good as on exact expectations, and beats or equals the trivial
    hypothesis. It describes its hypothesis in words."""
    protocol = asked_for(
        learner,
        cuts=3,
        parameters=("steps=30",) if learner in ("logistic-regression", "local-sgd") else (),
    )
    clients = min(protocol.clients(1.0), 4_000_000 if learner == "linear-regression" else 10**9)
    population = Resampled(CLINIC, clients, 1)
    lesson = by_law(protocol, population, 1.0, 1)
    comparison = protocol.compared(lesson, population)
    assert abs(comparison["true_score"] - comparison["score_on_exact_expectations"]) <= 0.03
    unit = 12**2 if learner == "linear-regression" else 1  # the squared range of the visits
    away = abs(lesson.score.value * unit - comparison["true_score"])
    assert protocol.true_error(lesson, population) == pytest.approx(away)
    assert (
        lesson.score.low - 0.02
        <= protocol.true_score(lesson, population)
        <= lesson.score.high + 0.02
    )
    if learner in ("linear-regression", "k-means"):
        assert comparison["true_score"] < comparison["true_baseline"]
    elif learner != "conjunctions":  # which has none to learn: the label is no conjunction
        assert comparison["true_score"] >= comparison["true_baseline"] - 0.01
    description = json.loads(json.dumps(protocol.describe(lesson)))
    assert "x0" not in description["hypothesis"]["rule"]
    assert "\n" not in description["hypothesis"]["rule"]
    assert set(description["bounds"]) <= {"age at visit", "visits"}


@pytest.mark.long
@pytest.mark.parametrize("make", [fair, cars])
def test_a_hundred_clients_state_an_interval_that_holds(make: Any) -> None:
    """With 100 clients, as many as there may be processes, the true accuracy lies within the stated
    95 % interval in at least 93 of 100 seeds."""
    table = make()
    label, exclude = (
        ("affairs > 0", "refuse") if "affairs" in table.columns else ("Origin == 'USA'", "exclude")
    )
    protocol = Learn(label=label, bounds=bounds(table), missing=exclude).for_table(
        Launch(table, False)
    )
    hits = widths = 0.0
    for seed in range(100):
        population = sample_rows(table, 100, seed)
        lesson = by_client(protocol, population, 1.0, seed)
        truth = protocol.true_score(lesson, population)
        hits += lesson.score.low <= truth <= lesson.score.high
        widths += lesson.score.high - lesson.score.low
        assert 0 <= lesson.score.low <= lesson.score.high <= 1
    assert hits >= 93
    assert widths < 100  # 100 intervals from 0 to 1 would cover as well


def test_missing_rows_do_not_move_the_estimates() -> None:
    """Of 10^12 clients the stated accuracy and the baseline are those of the complete rows."""
    # the ill are missing more often
    holes = np.random.default_rng(3).random(500) < np.where(ILL == 1, 0.6, 0.1)
    table = Records({"age": np.where(holes, np.nan, AGE), "ill": ILL})
    protocol = Learn(
        learner="stumps", label="ill", features=("age >= 50",), missing="exclude"
    ).for_table(Launch(table, False))
    population = Resampled(table, 10**12, 1)
    lesson = by_law(protocol, population, 1.0, 1)
    complete = ILL[~holes].mean()
    assert lesson.baseline.value == pytest.approx(max(complete, 1 - complete), abs=1e-4)
    assert lesson.score.value == pytest.approx(
        protocol.compared(lesson, population)["true_score"], abs=1e-4
    )


def test_what_only_the_table_holds_is_refused_with_the_choice() -> None:
    """Rows with something missing are refused with their number and the choice; a private run must
    choose before anybody looks."""
    refuse(
        (
            r"14 of 406 records .* missing=exclude",
            lambda: Learn(label="Origin == 'USA'").for_table(Launch(cars(), False)),
        )
    )
    complete = Learn(label="Origin == 'USA'", features=("Cylinders", "Acceleration"))
    complete.for_table(Launch(cars(), False))
    refuse(("private run does not look", lambda: complete.for_table(Launch(cars(), True))))
    Learn(label="Origin == 'USA'", missing="exclude").for_table(Launch(cars(), True))


def test_clients_who_only_find_bounds_and_judge_are_too_few() -> None:
    """Of 30 columns with bounds to be found by three rounds each, 100 clients leave nobody to learn
    from: refused with what to do."""
    table = Records({f"x{place}": AGE for place in range(30)} | {"ill": ILL})
    protocol = Learn(label="ill").for_table(Launch(table, False))
    with pytest.raises(
        InputError,
        match=(
            r"100 clients are too few to learn: 358,320 find the bounds of 30 columns, 20 "
            r"judge.*bounds='x0=.*', name fewer features"
        ),
    ):
        protocol.algorithm(1.0, 100)
    with pytest.raises(
        InputError, match="31 queries a step, each of its own clients; 6 are too few"
    ):
        replace(protocol, bounds=tuple(f"x{place}=18..90" for place in range(30))).algorithm(1.0, 8)


@pytest.mark.parametrize(("labels", "match"), [
    (ILL + (AGE > 60),
    "the label 'y' is neither 0 nor 1: choose a question as the label, such as 'y == 1'"),
    (ILL.astype(str), "is text"),
])  # fmt: skip
def test_a_label_of_three_classes_is_not_made_yes_and_no_in_silence(
    labels: Any, match: str
) -> None:
    """A column of 0 and 1, with a number missing too, is a label; one of other numbers or of text
    is not. A private run does not look."""
    refuse(
        (match, lambda: Learn(label="y").for_table(Launch(Records({"x": AGE, "y": labels}), False)))
    )
    Learn(label="y", missing="exclude").for_table(
        Launch(Records({"x": AGE, "y": np.where(AGE > 60, np.nan, ILL)}), False)
    )
    refuse(
        (
            "a private run does not look",
            lambda: Learn(label="y").for_table(Launch(Records({"x": AGE, "y": ILL}), True)),
        )
    )


@wrong(
    "local_dp.protocols.learning.learn:_score",
    "min(max(each, -1.0), 1.0)",
    "each",
    "a square error below 0",
    at="-3.0",
)
@pytest.mark.parametrize("answer", [-3.0, 0.2, 5.0])
def test_no_score_is_impossible(answer: float) -> None:
    """Noise may put an answer beyond [-1, 1]: the score and its interval stay within [0, 1], and in
    order."""
    for share in (None, Estimate(np.asarray(0.5), np.asarray(0.1), 50)):
        score = _score(Estimate(np.asarray(answer), np.asarray(0.1), 50), share)
        assert 0 <= score.low <= score.value <= score.high <= 1


def test_a_rule_no_better_than_the_constant_guess_is_said_to_be_so() -> None:
    """Where the intervals are apart; where they meet, a rule that looks worse is only not shown to
    be better."""
    for learner, guess in (
        ("stumps", "the more frequent label"),
        ("linear-regression", "the middle of the bounds"),
    ):
        protocol = Learn(
            learner=learner, label="ill", features=("age",), bounds=("age=18..90", "ill=0..1")
        )
        lesson = by_client(
            protocol, Resampled(Records({"age": AGE, "ill": ILL}), 20_000, 2), 8.0, 2
        )

        def sentence(
            value: float, reach: float, lesson: Lesson = lesson, protocol: Learn = protocol
        ) -> str:
            score, baseline = (
                replace(lesson.score, value=each, low=each - reach, high=each + reach)
                for each in (value, 0.5)
            )
            return protocol.explain(replace(lesson, score=score, baseline=baseline))

        worse, better = (0.4, 0.6) if learner == "stumps" else (0.6, 0.4)
        assert f"no better than {guess}" in sentence(worse, 0.01)
        assert f"not shown to be better than {guess}" in sentence(worse, 0.2)
        assert not any(guess in sentence(better, reach) for reach in (0.01, 0.2))


def _rules() -> Iterator[tuple[Any, Encoding]]:
    """Hypotheses about columns called x1 to x3, questions with `or`, years, and seconds since
    1970."""
    bits = Encoding(
        features=("x1 >= 0.5", "x2 >= 0.5 or x3 >= 0.5", "x1"),
        lows=(0.0, 0.0, 0.0),
        highs=(1.0, 1.0, 1.0),
        form="bits",
    )
    yield from ((Stump(Literal(place, value)), bits) for place in range(3) for value in (0, 1))
    yield AllOf((Literal(0, 1), Literal(1, 1))), bits
    yield AllOf((Literal(1, 0), Literal(2, 1))), bits
    for threshold in (0, 1, 7):
        yield (
            AtLeast(threshold),
            Encoding(
                features=("x2 >= 0.5 or x3 >= 0.5",),
                lows=(0.0,),
                highs=(1.0,),
                form="grid",
                steps=8,
            ),
        )
    for column, low, high in (("year", 2000.0, 2020.0), ("seconds", 1.65e9, 1.65e9 + 86400.0)):
        yield (
            AtLeast(517),
            Encoding(features=(column,), lows=(low,), highs=(high,), form="grid", steps=1024),
        )
        yield (
            Stump(Literal(0, 1)),
            Encoding(features=(column,), lows=(low,), highs=(high,), form="bits"),
        )
        yield (
            Halfspace((0.6, -0.061)),
            Encoding(features=(column,), lows=(low,), highs=(high,), constant=1),
        )
        yield (
            Halfspace((0.6, 0.2, -0.061)),
            Encoding(features=(column, "x1"), lows=(low, 0.0), highs=(high, 1.0), constant=1),
        )


def test_a_printed_rule_is_the_hypothesis() -> None:
    """Read as a question about the table it gives the hypothesis's own answers, whatever the
    columns are called and however far from 0 they lie."""
    generator = np.random.default_rng(5)
    columns = {f"x{place}": generator.random(5000) for place in (1, 2, 3)}
    table = Records(
        columns
        | {
            "year": generator.integers(2000, 2021, 5000),
            "seconds": 1.65e9 + generator.integers(0, 86400, 5000),
        }
    )
    for hypothesis, encoding in _rules():
        text = re.sub(r"(\d) (?=year|seconds|x1)", r"\1 * ", in_words(hypothesis, encoding))
        answers = (
            np.full(5000, text == "always")
            if text in ("always", "never")
            else evaluate(parse(text), table)
        )
        assert np.mean(answers == (hypothesis.predict(encoding.encode(table)) > 0)) > 0.997, text
    tree = Tree((((Literal(0, 1), Literal(1, 1)), 1), ((), -1)))
    assert (
        in_words(tree, next(_rules())[1])
        == "x1 >= 0.5 and (x2 >= 0.5 or x3 >= 0.5): +1; always: -1"
    )


def test_few_clients_are_told_what_to_expect() -> None:
    """The learner's guarantee and the clients who judge are two numbers: 4,000 of epsilon 4 tell a
    score to .03, though trees promise nothing."""
    notice = Learn(learner="trees", label="ill", features=("age",), bounds=("age=18..90",)).notice(
        4.0, 4000
    )
    assert notice is not None
    assert "the guarantee of trees at epsilon 4 needs" in notice
    assert "a score that is right to about +-0.0" in notice
    with pytest.raises(
        InputError, match=r"too few to learn: 1 judge, and nobody is left; use more clients"
    ):
        Learn(learner="trees", label="ill", features=("age",), bounds=("age=18..90",)).algorithm(
            4.0, 1
        )


def test_a_quarter_of_the_clients_doubles_the_error_of_the_score() -> None:
    learner = small("learn")
    assert isinstance(learner, Learn)
    notice = learner.notice(1.0, learner.clients(1.0) // 4)
    assert notice is not None
    assert f"right to about +-{2 * learner.tolerance:g}" in notice
