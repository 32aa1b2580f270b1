"""A small question language for tables: `affairs > 0 and age >= 30`, parsed to data and never evaluated as code.

    question   = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation   = "not" negation | "(" question ")" | comparison
    comparison = column ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) ( number | "text" | column )

A comparison with a missing value has no answer, and three-valued logic (Kleene) carries that on: `not` keeps it, `and` with a no is no, `or` with a yes is
yes. Column names with spaces are written in backquotes. There is one spelling of each word, so that a question means the same to every client; for those of
other languages, = && || ! AND, the error gives the question as it is written here.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools
from local_dp.errors import InputError
from local_dp.queries.labels import signs_of
from local_dp.records import Records, absent, may_lack

MAX_LENGTH = 2000
MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""\s*(?: (?P<number>-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?) | (?P<text>"[^"]*"|'[^']*')
         | `(?P<quoted>[^`]+)` | (?P<word>[^\W\d]\w*) | (?P<symbol><=|>=|==|!=|<|>|\(|\)) )""",
    re.VERBOSE,
)
_FOREIGN = re.compile(
    r"""("[^"]*"|'[^']*'|`[^`]*`|<=|>=|==|!=)|\s*((?<![<>=!])=(?!=)|<>|&&?|\|\|?|!(?!=)|\b(?:AND|OR|NOT)\b)\s*"""
)  # what is quoted is no spelling
_SPELLINGS = {"=": "==", "<>": "!=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not"}
_COMPARE: dict[str, Callable[..., Bools]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


@dataclass(frozen=True)
class Name:
    """A column."""

    column: str


@dataclass(frozen=True)
class Comparison:
    """One column against a number, a text or another column."""

    left: Name
    comparator: str
    right: Name | float | str


@dataclass(frozen=True)
class Not:
    part: "Expression"


@dataclass(frozen=True)
class Both:
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True)
class Either:
    left: "Expression"
    right: "Expression"


Expression: TypeAlias = Comparison | Not | Both | Either


@lru_cache(maxsize=256)
def parse(question: str) -> Expression:
    """The question as data. Raises InputError that shows where it stops making sense."""
    parser = _Parser(question)
    expression = parser.either()
    if parser.kind:
        raise parser.fail("'and', 'or' or the end")
    return expression


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns the question reads."""
    match expression:
        case Comparison(left, _, right):
            return {left.column} | ({right.column} if isinstance(right, Name) else set())
        case Not(part):
            return columns_of(part)
        case Both(left, right) | Either(left, right):
            return columns_of(left) | columns_of(right)


@dataclass(frozen=True)
class Answers:
    """Who answers yes and who answers no, shape (n,) each; who does neither lacks a value that the question turns on."""

    yes: Bools
    no: Bools

    @property
    def unknown(self) -> Bools:
        return np.asarray(~(self.yes | self.no))


def evaluate(expression: Expression, records: Records) -> Bools:
    """Who answers yes, shape (n,)."""
    return answers_of(expression, records).yes


def answers_of(expression: Expression, records: Records) -> Answers:
    """The answer of each record, by Kleene's three-valued logic."""
    match expression:
        case Comparison(left, comparator, right):
            return _compare(records, left.column, comparator, right)
        case Not(part):
            answers = answers_of(part, records)
            return Answers(answers.no, answers.yes)
        case Both(first, second):
            one, other = answers_of(first, records), answers_of(second, records)
            return Answers(one.yes & other.yes, one.no | other.no)
        case Either(first, second):
            one, other = answers_of(first, records), answers_of(second, records)
            return Answers(one.yes | other.yes, one.no & other.no)


def _compare(records: Records, column: str, comparator: str, right: Name | float | str) -> Answers:
    values = records[column]
    other = records[right.column] if isinstance(right, Name) else right
    text = other if isinstance(other, str) or (isinstance(other, np.ndarray) and other.dtype.kind == "U") else None
    if (text is not None) != (values.dtype.kind == "U"):
        kinds = ("text", "a number") if values.dtype.kind == "U" else ("a number", "text")
        shown = right.column if isinstance(right, Name) else right
        raise InputError(f"column {column!r} is {kinds[0]} and {shown!r} is {kinds[1]}; compare like with like")
    left, other_side = (values, other) if text is None else (signs_of(values, text), 0)
    with np.errstate(over="ignore"):  # a number too large for a float32 column is infinite to it, which compares right
        answers = np.asarray(_COMPARE[comparator](left, other_side), dtype=np.bool_)
    gaps = [absent(each) for each in (values, other) if isinstance(each, np.ndarray) and may_lack(each)]
    if not gaps:
        return Answers(answers, ~answers)
    present = ~reduce(operator.or_, gaps)
    return Answers(answers & present, ~answers & present)


def _number(token: str) -> float:
    """A whole number stays whole where a column could hold it: as a float, 2^53 + 1 would equal 2^53."""
    value = float(token)
    return int(token) if token.lstrip("-").isdigit() and abs(value) < 2**63 else value


def respelled(question: str) -> str:
    """The question with the words of other languages, = <> && || ! AND OR NOT, spelled as in this one."""

    def spelled(match: re.Match[str]) -> str:
        word = match[2]
        return match[0] if word is None else f"\0{_SPELLINGS.get(word, word.lower())}\0"

    return re.sub("\0+", " ", _FOREIGN.sub(spelled, question)).strip()


class _Parser:
    """Recursive descent over the tokens, as deep as MAX_DEPTH."""

    def __init__(self, question: str) -> None:
        if len(question) > MAX_LENGTH:
            raise InputError(f"the question has {len(question)} characters; {MAX_LENGTH} is the most")
        self.question = question
        self.position = 0
        self.depth = 0
        self.kind, self.token = "", ""
        self.advance()

    def fail(self, wanted: str) -> InputError:
        found = f"{self.token!r}" if self.kind else "the end"
        corrected = respelled(self.question)
        example = "for example 'affairs > 0 and age >= 30'" if corrected == self.question.strip() else f"it as {corrected!r}"
        return InputError(f"cannot read the question {self.question!r}: expected {wanted}, found {found}; write {example}")

    def advance(self) -> None:
        if not self.question[self.position :].strip():
            self.kind, self.token = "", ""
            return
        match = _TOKEN.match(self.question, self.position)
        if match is None or match.lastgroup is None:
            self.kind, self.token = "character", self.question[self.position :].strip()[0]
            raise self.fail("a column, a number, a text or a comparison")
        self.position, self.kind, self.token = match.end(), match.lastgroup, match[match.lastgroup]

    def accept(self, token: str) -> bool:
        if self.kind in ("word", "symbol") and self.token == token:
            self.advance()
            return True
        return False

    def either(self) -> Expression:
        """Parts joined by "or"; "and" binds more closely."""
        expression: Expression | None = None
        while True:
            part = self.negation()
            while self.accept("and"):
                part = Both(part, self.negation())
            expression = part if expression is None else Either(expression, part)
            if not self.accept("or"):
                return expression

    def negation(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InputError(f"the question nests deeper than {MAX_DEPTH}; simplify it")
        try:
            if self.accept("not"):
                return Not(self.negation())
            if self.accept("("):
                expression = self.either()
                if not self.accept(")"):
                    raise self.fail("')'")
                return expression
            return self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Expression:
        left = self.column()
        if left is None:
            raise self.fail("a column")
        if self.kind != "symbol" or self.token not in _COMPARE:
            raise self.fail(f"one of {' '.join(_COMPARE)}")
        comparator = self.token
        self.advance()
        return Comparison(left, comparator, self.operand())

    def column(self) -> Name | None:
        if self.kind not in ("word", "quoted") or (self.kind == "word" and self.token in ("and", "or", "not")):
            return None
        name = Name(self.token)
        self.advance()
        return name

    def operand(self) -> Name | float | str:
        name = self.column()
        if name is not None:
            return name
        if self.kind not in ("number", "text"):
            raise self.fail("a number, a text in quotes or a column")
        operand: float | str = _number(self.token) if self.kind == "number" else self.token[1:-1]
        self.advance()
        return operand
