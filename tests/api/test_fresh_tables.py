"""A session about twelve tables that the program was not written for: each line is answered
rightly, or refused in one line that names what to type."""

import re
from typing import Any

import pytest

from tests.support.inputs.fresh_session import Case, Session, read_session
from tests.support.wrong import wrong

CASES = read_session()
DEAR = ("heavy-hitters", "--tier hosts", "runs=1000")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("fresh"))


@wrong(
    "local_dp.api.files:Source.frame",
    "['', *self.form.missing]",
    "['']",
    "NA counts as an answer that is not yes, although it was declared to be missing",
    at=(
        "local-dp run survey --records penguins.csv --csv missing=NA --question \"sex == 'male'\" "
        "--missing exclude --seed 1"
    ),
)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=pytest.mark.long)
        if any(each in case.line for each in DEAR)
        else case
        for case in CASES
    ],
    ids=str,
)
def test_a_line_is_answered_rightly_or_refused(case: Case, session: Session) -> None:
    """By pandas: the program's truth is right, its estimate lies within 4.9 of its standard errors,
    missed once in a million, and these are plausible."""
    assert not session.faults(case, session.ask(case))


@pytest.mark.parametrize(
    ("right", "change"),
    [
        ("share(heart.age > 51)", {}),
        ("share(heart.age > 50)", {"estimate": 0.99}),
        ("share(heart.age > 50)", {"standard_error": 0.001}),
        ("share(heart.age > 50)", {"standard_error": 5.0}),
    ],
    ids=["another question", "far away", "too sure", "too unsure"],
)
def test_a_wrong_answer_is_found(right: str, change: dict[str, Any], session: Session) -> None:
    case = Case("ldp.survey(heart, 'age > 50', epsilon=4, seed=1)", right)
    answer = session.ask(case)
    assert answer.data is not None
    answer.data["result"].update(change)
    assert session.faults(case, answer)


def test_a_refusal_of_another_kind_is_found(session: Session) -> None:
    for case in (
        Case("ldp.survey(heart, 'age > 50', seed=1)", refusal="no"),
        Case("ldp.survey(heart, 'old', seed=1)", refusal="missing values"),
    ):
        assert session.faults(case, session.ask(case))


# with the rows themselves, a constant guess is as good; `many` people and more epsilon make the
# answer better
SILENT = {
    (
        "ldp.survey(airlines, 'carrier < \"C\"', epsilon=0.2, {how})"
    ): "This interval is no better than a guess",
    (
        "ldp.survey(flights, 'dep_delay > 15', by='carrier', labels_from_data=True, "
        "missing='exclude', {how})"
    ): "intervals are no better than a guess",
    (
        "ldp.frequency(airlines, 'carrier', labels_from_data=True, {how})"
    ): "intervals are no better than a guess",
    (
        "ldp.crosstab(airlines, ['carrier < \"C\"', 'name > \"M\"'], {how})"
    ): "4 of 4 intervals are no better than a guess",
    (
        "ldp.mean(heart, 'age', bounds=(0, 1000), epsilon=0.2, {how})"
    ): "This interval is no better than a guess",
    (
        "ldp.mean(heart, ['age', 'survival'], bounds=(0, 2000), epsilon=0.2, {how})"
    ): "2 of 2 intervals are no better than a guess",
    (
        "ldp.quantiles(penguins, 'year', bounds=(2000, 2020), epsilon=0.05, {how})"
    ): "This interval is no better than a guess",
    (
        "ldp.heavy_hitters(flights, 'origin', text_bytes=3, share=0.3, epsilon=0.5, {how})"
    ): "No string stands out",
    (
        "ldp.run('logistic', anes96, question='vote == 1', on=['age >= 45', 'educ >= 5'], "
        "epsilon=0.5, {how})"
    ): "intervals are no better than a guess",
    (
        "ldp.learn(heart, 'censors == 1', features=['age'], bounds={{'age': (0, 80)}}, {how})"
    ): "better than the more frequent label",
    (
        "ldp.mix('frequency', airlines, column='carrier', labels_from_data=True, {how})"
    ): "16 of 16 intervals are no better than a guess",
}


@wrong(
    "local_dp.simulation.outcome:described",
    "errors >= noise",
    "errors >= 9 * noise",
    "an answer with more noise than a guess is shown without a warning",
    at="ldp.crosstab(airlines, ['carrier < \"C\"', 'name > \"M\"'], {how})",
)
@pytest.mark.parametrize(
    "call",
    [pytest.param(call, marks=pytest.mark.long) if "heavy" in call else call for call in SILENT],
)
def test_an_answer_that_is_no_better_than_a_guess_says_so(call: str, session: Session) -> None:
    """In one line under the answer, and in its data; with a hundred thousand people and epsilon 4
    no such line is there."""
    few = session.value(call.format(how="seed=1"))
    assert SILENT[call] in " ".join(few.text(200).split())
    if "guess" in SILENT[call]:
        assert few.to_dict()["result"]["uninformative"]
    if "mix" not in call and "learn" not in call and "heavy" not in call:
        many = session.value(
            re.sub(r"epsilon=[\d.]+, ", "", call).format(
                how="resample=True, clients=100_000, epsilon=4, seed=1"
            )
        )
        assert "guess" not in many.text(200)
