"""A small question language for tables: `affairs > 0 and age >= 30`, parsed to data and never
evaluated as code.

    question    = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation    = "not" negation | "(" question ")" | comparison | column
    comparison = sum ( "<" | "<=" | ">" | ">=" | "==" | "!=" ) sum | sum [ "not" ] "in" "[" value {
    "," value } "]" | sum "is" [ "not" ] "null" sum = product { ( "+" | "-" ) product } product =
    factor { ( "*" | "/" ) factor } factor = column | ( "year" | "month" | "lower" ) "(" column ")"
    | value | "(" sum ")" value = number | "text" | "true" | "false"

A column of truth values is a question by itself. A date compares with a text such as "2020-06-01",
which is its midnight. Arithmetic is in doubles; a result that is no finite number is missing. A
comparison with a missing value has no answer, and three-valued logic (Kleene) carries that on:
`not` keeps it, `and` with a no is no, `or` with a yes is yes. `is null` always has an answer.
Column names with spaces are written in backquotes. There is one spelling of each word, so that a
question means the same to every client; for those of other languages, = && || ! AND, the error
gives the question as it is written here.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeAlias

from local_dp.errors import InputError

MAX_LENGTH = 2000
MAX_DEPTH = 50
_TOKEN = re.compile(
    r"""\s*(?: (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?) | (?P<text>"[^"]*"|'[^']*')
         | `(?P<quoted>[^`]+)` | (?P<word>[^\W\d]\w*) | (?P<symbol><=|>=|==|!=|[][<>()+*/,-]) )""",
    re.VERBOSE,
)
# what is quoted is no spelling
_FOREIGN = re.compile(
    r"""("[^"]*"|'[^']*'|`[^`]*`|<=|>=|==|!=)|([\u201c-\u201f][^\u201c-\u201f]*[\u201c-\u201f]|[\u2018-\u201b][^\u2018-\u201b]*[\u2018-\u201b])"""
    r"""|\s*((?<![<>=!])=(?!=)|<>|&&?|\|\|?|!(?!=)|\b(?:AND|OR|NOT|IN|IS|NULL|None|TRUE|True|FALSE|False)\b|[\u2212\u2260\u2264\u2265])\s*"""
)
_SPELLINGS = {
    "=": "==", "<>": "!=", "&": "and", "&&": "and", "|": "or", "||": "or", "!": "not",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2212": "-", "None": "null",
}  # fmt: skip
COMPARATORS = ("<", "<=", ">", ">=", "==", "!=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
FUNCTIONS = ("year", "month", "lower")
_TRUTHS = {"true": 1, "false": 0}
# no names of columns, unless they are quoted
_RESERVED = (
    "and",
    "or",
    "not",
    "true",
    "false",
    "True",
    "False",
    "TRUE",
    "FALSE",
)


@dataclass(frozen=True)
class Name:
    """A column."""

    column: str


@dataclass(frozen=True)
class Call:
    """A function of a column."""

    function: str
    argument: Name


@dataclass(frozen=True)
class Arithmetic:
    """Operands of numbers in a row, computed from the left in doubles."""

    first: "Operand"
    rest: tuple[tuple[str, "Operand"], ...]


Operand: TypeAlias = Name | Call | Arithmetic | float | str


@dataclass(frozen=True)
class Comparison:
    """What has a column against a number, a text or a column."""

    left: Operand
    comparator: str
    right: Operand


@dataclass(frozen=True)
class In:
    """Whether a value is one of those listed."""

    left: Operand
    values: tuple[float | str, ...]


@dataclass(frozen=True)
class Null:
    """Whether a value is missing."""

    left: Operand


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


Leaf: TypeAlias = Name | Comparison | In | Null
Expression: TypeAlias = Leaf | Not | Both | Either
_QUESTIONS = (Comparison, In, Null, Not, Both, Either)  # and nothing else


@lru_cache(maxsize=256)
def parse(question: str) -> Expression:
    """The question as data. Raises InputError that shows where it stops making sense."""
    return _Parser(question).whole()


def leaves(expression: Expression) -> Iterator[Leaf]:
    match expression:
        case Not(part):
            yield from leaves(part)
        case Both(left, right) | Either(left, right):
            yield from leaves(left)
            yield from leaves(right)
        case _:
            yield expression


def operands_of(leaf: Leaf) -> tuple[Operand, ...]:
    match leaf:
        case Name():
            return (leaf,)
        case Comparison(left, _, right):
            return left, right
        case _:
            return (leaf.left,)


def names_of(operand: Operand) -> set[str]:
    match operand:
        case Name(column) | Call(_, Name(column)):
            return {column}
        case Arithmetic(first, rest):
            return set().union(names_of(first), *(names_of(part) for _, part in rest))
        case _:
            return set()


def columns_of(expression: Expression) -> set[str]:
    """The names of the columns the question reads."""
    return {
        name
        for leaf in leaves(expression)
        for operand in operands_of(leaf)
        for name in names_of(operand)
    }


def names_in(*values: object) -> frozenset[str]:
    """The names of columns that texts may mean, each as a question or as one name: texts, those in
    a sequence, and the keys of a mapping."""
    names = set[str]()
    for text in (
        text
        for value in values
        if isinstance(value, Iterable)
        for text in ([value] if isinstance(value, str) else value)
    ):
        names.add(str(text))
        with suppress(InputError):
            names |= columns_of(_Parser(str(text), strict=True).whole())
    return frozenset(names)


def only_names(expression: Expression) -> bool:
    """True if the question is made of columns alone, as the name of one column may be too: `flag`,
    `male or female`."""
    return all(isinstance(leaf, Name) for leaf in leaves(expression))


def respelled(question: str) -> str:
    """The question with the signs and words of other languages, = <> && || ! AND True and those of
    typesetting, spelled as in this one."""

    def spell(match: re.Match[str]) -> str:
        quote, word = match[2], match[3]
        if quote is not None:
            mark = "'" if '"' in quote else '"'
            return f"{mark}{quote[1:-1]}{mark}"
        return match[0] if word is None else f"\0{_SPELLINGS.get(word, word.lower())}\0"

    return re.sub("\0+", " ", _FOREIGN.sub(spell, question)).strip()


_ATOM = r"""([\w.]+|"[^"]*"|'[^']*'|`[^`]*`)"""
_REWRITTEN = (  # of languages that say a comparison in another order
    (r"(?i)\bin\s*\(([^()]*)\)", r"in [\1]"),
    (rf"(?i){_ATOM}\s+between\s+{_ATOM}\s+and\s+{_ATOM}", r"\1 >= \2 and \1 <= \3"),
    (rf"{_ATOM}\s*([<>]=?)\s*{_ATOM}\s*([<>]=?)\s*{_ATOM}", r"\1 \2 \3 and \3 \4 \5"),
    (r"(?i)\bis\s+(not\s+)?(?:nan|na|none|missing)\b", r"is \1null"),
    (
        (
            r"^((?!not )[^\W\d]\w*(?: +\(?(?!(?:is|in|not|and|or) )[^\W\d][^<>=!`'\"\s]*)+)"
            r"\s*([<>=!]|is |in |not )"
        ),
        r"`\1` \2",
    ),
    (
        (
            r"(?<!\S)([^\s`\"'<>=!()\[\],]*[^\w\s`\"'<>=!()\[\],+*/-][^\s`\"'<>=!()\[\],]*)"
            r"(?=\s*(?:[<>=!]|is |in |not ))"
        ),
        r"`\1`",
    ),
)


def rewritten(question: str) -> str:
    """The question with lists in brackets, a range in two comparisons, or a name of several words
    in backquotes; empty if none can be read."""
    for pattern, form in _REWRITTEN:
        candidate = re.sub(pattern, form, respelled(question))
        with suppress(InputError):
            _Parser(candidate, strict=True).whole()
            return candidate if candidate != question.strip() else ""
    return ""


class _Parser:
    """Recursive descent over the tokens, as deep as MAX_DEPTH."""

    def __init__(self, question: str, strict: bool = False) -> None:
        if len(question) > MAX_LENGTH:
            raise InputError(
                f"the question has {len(question)} characters; {MAX_LENGTH} is the most"
            )
        self.question, self.strict = question, strict
        self.position = 0
        self.depth = 0
        self.is_function = False  # whether the last name may be that of a function
        self.kind, self.token = "", ""
        self.advance()

    def whole(self) -> Expression:
        expression = self.asked(self.either())
        if self.kind:
            raise self.fail("'and', 'or' or the end")
        return expression

    def fail(self, expectation: str) -> InputError:
        """The error, with the question as it is written here; of a `strict` parser, which tries
        such a form, without."""
        if self.strict:
            return InputError("")
        token = f"{self.token!r}" if self.kind else "the end"
        correction = rewritten(self.question) or respelled(self.question)
        example = (
            "for example 'affairs > 0 and age >= 30'"
            if correction == self.question.strip()
            else f"it as {correction!r}"
        )
        functions = f"the functions are {', '.join(FUNCTIONS)}; " * (
            self.token == "(" and expectation.startswith("'and'")
        )
        return InputError(
            f"cannot read the question {self.question!r}: expected {expectation}, found {token}; "
            f"{functions}write {example}"
        )

    def advance(self) -> None:
        if not self.question[self.position :].strip():
            self.kind, self.token = "", ""
            return
        match = _TOKEN.match(self.question, self.position)
        if match is None or match.lastgroup is None:
            self.kind = "character"
            self.token = self.question[self.position :].strip()[0]
            raise self.fail("a column, a number, a text or a comparison")
        self.position = match.end()
        self.kind = match.lastgroup
        self.token = match[match.lastgroup]

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(repr(token))

    def accept(self, token: str) -> bool:
        if self.kind in ("word", "symbol") and self.token == token:
            self.advance()
            return True
        return False

    def asked(self, part: Expression | Operand) -> Expression:
        """The part, which must be a question."""
        if isinstance(part, Call | Arithmetic | int | float | str):
            raise self.fail(f"one of {' '.join(COMPARATORS)} in is")
        return part

    def either(self, word: str = "or") -> Expression | Operand:
        """Parts joined by "or"; "and" binds more closely. In parentheses it may be an operand."""
        kind = Either if word == "or" else Both
        part = partial(self.either, "and") if word == "or" else self.negation
        left = part()
        while self.kind == "word" and self.token == word:
            question = self.asked(left)
            self.advance()
            left = kind(question, self.asked(part()))
        return left

    def negation(self) -> Expression | Operand:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise InputError(f"the question nests deeper than {MAX_DEPTH}; simplify it")
        try:
            return Not(self.asked(self.negation())) if self.accept("not") else self.comparison()
        finally:
            self.depth -= 1

    def comparison(self) -> Expression | Operand:
        left = self.sum()
        if isinstance(left, _QUESTIONS):
            return left
        if self.kind == "symbol" and self.token in COMPARATORS:
            comparator = self.token
            self.advance()
            right = self.sum()
            if isinstance(right, _QUESTIONS) or not (names_of(left) or names_of(right)):
                raise self.fail("a column on one side")
            if names_of(left):
                return Comparison(left, comparator, right)
            return Comparison(right, _MIRRORED.get(comparator, comparator), left)
        if self.kind != "word" or self.token not in ("not", "in", "is"):
            return left
        if not names_of(left):
            raise self.fail("a comparison of a column")
        is_null, negative = self.accept("is"), self.accept("not")
        self.expect("null" if is_null else "in")
        leaf = Null(left) if is_null else In(left, self.values())
        return Not(leaf) if negative else leaf

    def sum(self, signs: str = "+-") -> Expression | Operand:
        """Parts joined by these signs; those of a product bind more closely."""
        part = partial(self.sum, "*/") if signs == "+-" else self.factor
        first = part()
        rest = list[tuple[str, Operand]]()
        while self.kind == "symbol" and self.token in signs:
            sign = self.token
            self.number(first)
            self.advance()
            rest.append((sign, self.number(part())))
        return Arithmetic(self.number(first), tuple(rest)) if rest else first

    def number(self, part: Expression | Operand) -> Operand:
        """The part, which must be something to compute with."""
        if isinstance(part, (str, *_QUESTIONS)):
            raise self.fail("a number or a column")
        return part

    def factor(self) -> Expression | Operand:
        if self.accept("("):
            inside = self.either()
            self.expect(")")
            return inside
        name = self.column()
        if name is None:
            return self.value()
        if not (self.is_function and self.accept("(")):
            return name
        argument = self.column()
        if argument is None:
            raise self.fail("a column")
        self.expect(")")
        return Call(name.column, argument)

    def column(self) -> Name | None:
        if self.kind not in ("word", "quoted") or (self.kind == "word" and self.token in _RESERVED):
            return None
        name = Name(self.token)
        self.is_function = self.kind == "word" and self.token in FUNCTIONS
        self.advance()
        return name

    def values(self) -> tuple[float | str, ...]:
        self.expect("[")
        values = [self.value()]
        while self.accept(","):
            values.append(self.value())
        self.expect("]")
        return tuple(values)

    def value(self) -> float | str:
        negative = self.accept("-")
        value: float | str
        if self.kind == "number":
            # as a float, 2^53 + 1 would equal 2^53 in a column of whole numbers
            whole = self.token.isdigit() and int(self.token) < 2**64
            value = int(self.token) if whole else float(self.token)
            value = -value if negative else value
        elif self.kind == "text" and not negative:
            value = self.token[1:-1]
        elif self.kind == "word" and self.token in _TRUTHS and not negative:
            value = _TRUTHS[self.token]
        else:
            raise self.fail("a column, a number or a text in quotes")
        self.advance()
        return value


def parts_of(text: str, signs: str = ",;") -> tuple[str, ...]:
    """The parts of a list that is typed as one text: between these signs, outside quotes and
    brackets."""
    part = rf"""(?:'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|\([^()]*\)|[^{signs}])+"""
    return tuple(each.strip() for each in re.findall(part, text) if each.strip())
