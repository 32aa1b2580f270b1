"""The question language: what it reads, what it answers, and how it refuses; nothing in it is ever evaluated as code."""

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.errors import InputError
from local_dp.queries.questions import MAX_DEPTH, MAX_LENGTH, Comparison, Name, answers_of, columns_of, evaluate, parse
from local_dp.records import Records
from tests.support.inputs.refusals import refuse

RECORDS = Records(
    {
        "a": np.array([0, 1, 2, 3]),
        "b": np.array([1.5, 0.5, np.nan, 3.0]),
        "city": np.array(["Rome", "Oslo", "Bonn", "Rome"]),
        "two words": np.array([0, 1, 0, 1], dtype=np.uint8),
        "größe": np.array([1, 2, 3, 4], dtype=np.int16),
        "ok": np.array([True, False, True, False]),
    }
)


@pytest.mark.parametrize(("question", "answers"), [
    ("a > 0 and a >= 2", [0, 0, 1, 1]), ("a<1 or a==3", [1, 0, 0, 1]), ("not a > 1", [1, 1, 0, 0]), ("not not a != 1", [1, 0, 1, 1]),
    ("a > 2 or a < 2 and a > 0", [0, 1, 0, 1]), ("(a > 2 or a < 2) and a > 0", [0, 1, 0, 1]), ("not a == 0 and a < 3", [0, 1, 1, 0]),
    ("not (a == 0 and a < 3)", [0, 1, 1, 1]), ("a == 3 or a == 0 and a == 1", [0, 0, 0, 1]), ("(a == 3 or a == 0) and a == 0", [1, 0, 0, 0]),
    ('city == "Rome"', [1, 0, 0, 1]), ("city != 'Rome' and city < 'P'", [0, 1, 1, 0]), ("`two words` == 1", [0, 1, 0, 1]),
    ("größe >= 3", [0, 0, 1, 1]), ("ok == 1", [1, 0, 1, 0]), ("a == b", [0, 0, 0, 1]), ("a < b", [1, 0, 0, 0]),
    ("a >= -1.5e0 and a < .5e1", [1, 1, 1, 1]), ("a > 1e400", [0, 0, 0, 0]), ("  a\t>\n0  ", [0, 1, 1, 1]),
])  # fmt: skip
def test_questions_read_as_they_are_written(question: str, answers: list[int]) -> None:
    """Comparisons, not before and before or, parentheses, quotes and backquotes mean what a reader expects."""
    assert evaluate(parse(question), RECORDS).astype(int).tolist() == answers


@pytest.mark.parametrize(
    ("comparator", "answers"), [("<", [0, 1, 0]), ("<=", [0, 1, 0]), (">", [1, 0, 0]), (">=", [1, 0, 0]), ("==", [0] * 3), ("!=", [1, 1, 0])]
)
def test_a_missing_number_answers_no_comparison(comparator: str, answers: list[int]) -> None:
    """Every comparison with a missing number is false, also `!=`, and also against another column."""
    records = Records({"b": np.array([1.5, 0.5, np.nan]), "c": np.array([1.0, 1.0, 1.0])})
    for question in (f"b {comparator} 1", f"b {comparator} c"):
        assert evaluate(parse(question), records).astype(int).tolist() == answers
        assert answers_of(parse(f"not {question}"), records).yes.tolist() == [*np.logical_not(answers[:2]).tolist(), False]  # nor does its negation
    for question, unknown in (("b > 1 and c > 2", False), ("b > 1 or c > 2", True), ("b > 1 or c > 0", False), ("b > 1 and c > 0", True)):
        assert bool(answers_of(parse(question), records).unknown[2]) is unknown, question  # Kleene: what the missing number cannot change is known


@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u1", "f4", "f8", "?"])
@pytest.mark.parametrize("number", ["-9223372036854775807", "9223372036854775807", "18446744073709551615", "300", "-1", "9" * 400, "1e308", "-1e308"])
def test_any_number_compares_with_any_column(dtype: str, number: str) -> None:
    """A number outside a column's type is larger or smaller than all of it, and equal to nothing in it."""
    records = Records({"v": np.array([0, 1, 1], dtype=dtype)})
    below = number.startswith("-")
    assert evaluate(parse(f"v > {number}"), records).tolist() == [below] * 3
    assert evaluate(parse(f"v == {number}"), records).tolist() == [False] * 3


@pytest.mark.parametrize(("question", "says"), [
    ("", "expected a column, found the end"), ("   ", "expected a column, found the end"), ("a", "expected one of < <= > >= == !="),
    ("a >", "expected a number, a text in quotes or a column, found the end"), ("a > and", "found 'and'"), ("a = 1", "found '='"),
    ("1 < a", "expected a column, found '1'"), ("a > 1 a", "expected 'and', 'or' or the end, found 'a'"),
    ("a > 1 and", "expected a column, found the end"), ("(a > 1", "expected ')', found the end"), ("a > 1)", "found ')'"),
    ("not", "expected a column, found the end"), ("a > 'x", 'found "\'"'), ("``> 1", "found '`'"), ("a.b > 1", "found '.'"),
    ("a[0] > 1", "found '['"), ("f(a) > 1", "found '('"), ("a > 1; b", "found ';'"), ("a > 1 && b > 2", "found '&'"), ("a > 1_000", "found '_000'"),
    ("a > 0x10", "found 'x10'"), ("a == 1 == 1", "found '=='"), ("a == 'x' 'y'", "found"), ("lambda: 1", "found ':'"),
    ("a > 1 AND b > 1", "found 'AND'"), ("a > 1\n\nb", "found 'b'"), ("a > \x00", "found '\\x00'"), ("a > \u2028", "found the end"),
    ("a > \ud800", "found '\\ud800'"),
])  # fmt: skip
def test_every_parse_error_is_one_line_that_shows_where(question: str, says: str) -> None:
    """A question that cannot be read is an InputError of one printable line with what was expected and what was found."""
    with pytest.raises(InputError) as error:
        parse(question)
    message = str(error.value)
    assert says in message
    assert len(message.splitlines()) == 1
    assert message.isprintable()


@pytest.mark.parametrize(("question", "says"), [
    ("zzz > 1", "no column 'zzz'; there are a, b, city"), ("city > 1", "'city' is text and 1 is a number"),
    ("a == 'x'", "'a' is a number and 'x' is text"), ("a == city", "'a' is a number and 'city' is text"),
])  # fmt: skip
def test_every_evaluation_error_is_one_line(question: str, says: str) -> None:
    with pytest.raises(InputError) as error:
        evaluate(parse(question), RECORDS)
    assert says in str(error.value)
    assert len(str(error.value).splitlines()) == 1


NUMBERS = {"a": [0, 1, 2, 3], "b": [2, 2, -1, 0], "c": [1, 0, 3, 3]}
COMPARISONS = st.tuples(
    st.sampled_from("abc"), st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.one_of(st.integers(-2, 4).map(str), st.sampled_from("abc"))
).map(" ".join)
QUESTIONS = st.recursive(
    COMPARISONS,
    lambda parts: st.one_of(
        st.tuples(parts, st.sampled_from([" and ", " or "]), parts).map("".join),
        parts.map("({})".format),
        parts.map("not ({})".format),
        COMPARISONS.map("not {}".format),
        st.tuples(st.sampled_from(["not ", ""]), parts, st.sampled_from([" and not ", " or not "]), COMPARISONS).map("".join),
    ),
    max_leaves=12,
)  # fmt: skip


def agrees(question: str, read: Callable[[str], Any]) -> bool:
    """Whether `read` and Python answer a question alike on every row."""
    records = Records({name: np.array(values) for name, values in NUMBERS.items()})
    rows = [{name: values[row] for name, values in NUMBERS.items()} for row in range(4)]
    code = compile(question, "question", "eval")
    return bool(evaluate(read(question), records).tolist() == [bool(eval(code, {"__builtins__": {}}, row)) for row in rows])  # noqa: S307  # a test's own text


@settings(max_examples=150, deadline=None)
@given(QUESTIONS.filter(lambda text: len(text) <= MAX_LENGTH))
def test_questions_agree_with_python(question: str) -> None:
    """Every random question means what the same expression means in Python: same precedence, same answers."""
    assert agrees(question, parse)


HOSTILE = [
    "a" * 10**6, "(" * 10**6, "a > 0 and " * 10**5, "not " * 400 + "a > 0", "(" * 400 + "a > 0" + ")" * 400, "(" * 1999,
    "not " * 499, "__import__('os').system('true') == 0", "a.__class__ == 1", "open('x') == 1", "exec('1') > 0",
    "a > 0 or [x for x in (1,)]", "a > (lambda: 1)()", "{a}", "f'{a}' == 1", "a > 0 # comment", "a > 0; import os", "a := 1",
    "a > 1 if a else b", "\u202ea > 0", "a\u200b > 0", "a > \u0663\ufe0f", "\x00\x01\x02", "'" * 1001, '"' * 1001,
    "`" * 1001, "a > 9" + "9" * 1990 + "e",
]  # fmt: skip


@pytest.mark.parametrize("question", HOSTILE, ids=[f"{place}" for place in range(len(HOSTILE))])
def test_hostile_questions_fail_cleanly_and_execute_nothing(question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million characters, deep nesting, odd Unicode and Python code are refused in one short line, and nothing is imported, opened or run."""

    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("the question was executed")

    for name in ("eval", "exec", "compile", "open"):
        monkeypatch.setattr(builtins, name, forbidden)
    try:
        parse(question)
    except InputError as error:
        message = str(error)
    monkeypatch.undo()
    assert len(message) < 7 * MAX_LENGTH
    assert len(message.splitlines()) == 1


def test_nesting_is_allowed_up_to_the_limit() -> None:
    """MAX_DEPTH - 1 parentheses are read, one more is refused; a long flat question evaluates."""
    inner = MAX_DEPTH - 1
    assert parse("(" * inner + "a > 0" + ")" * inner) == Comparison(Name("a"), ">", 0.0)
    refuse(("nests deeper", lambda: parse("(" * MAX_DEPTH + "a > 0" + ")" * MAX_DEPTH)))
    flat = " or ".join(["a>2"] * 285)
    assert len(flat) <= MAX_LENGTH
    assert evaluate(parse(flat), RECORDS).tolist() == [False, False, False, True]


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text("ab 01.()<>=!'\"`andotr\n", max_size=60)))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No text makes the parser raise anything but InputError, and what it reads it can answer or refuse."""
    try:
        tree = parse(text)
    except InputError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017  # most texts are refused, some are read
        return
    records = Records({name: np.array([1.0, 2.0]) for name in columns_of(tree)})
    try:
        assert evaluate(tree, records).shape == (2,)
    except InputError as error:
        assert "compare like with like" in str(error)  # noqa: PT017


FOREIGN = {
    "age = 30": "age == 30", "a > 1 && b < 2": "a > 1 and b < 2", "a>1||b<>2": "a>1 or b != 2", "!(a > 1)": "not (a > 1)",
    "a > 1 AND NOT b == 'x && y'": "a > 1 and not b == 'x && y'", "`a = b` = 'c | d'": "`a = b` == 'c | d'",
}  # fmt: skip


@pytest.mark.parametrize("question", FOREIGN)
def test_the_spelling_of_another_language_is_answered_with_ours(question: str) -> None:
    """The error gives the question as it is written here, which is one; what is quoted stays as it is."""
    with pytest.raises(InputError) as caught:
        parse(question)
    assert str(caught.value).endswith(f"write it as {FOREIGN[question]!r}")
    parse(FOREIGN[question])


@pytest.mark.parametrize("question", ["a >", "a > 1 b", "a > 1 and", "(a > 1", "a >> 1"])
def test_what_has_no_other_spelling_gets_an_example(question: str) -> None:
    refuse(("write for example", lambda: parse(question)))
