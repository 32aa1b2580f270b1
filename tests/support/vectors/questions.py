"""Queries on one record: the value, or the code of the refusal."""

from local_dp.clients.role import Work
from local_dp.errors import InputError, RefusedError
from local_dp.queries.query import Query
from local_dp.randomizers.evidence import PROVEN
from tests.support.vectors.files import Case, Cell, File, plain, records_of, unplain

ROW: dict[str, Cell] = {
    "age": ["whole", "30"], "big": ["whole", "9007199254740993"],
    "least": ["whole", "-9223372036854775808"], "most": ["whole", "9223372036854775807"],
    "height": ["number", "1.75"], "small": ["number", "5e-324"],
    "large": ["number", "1.7976931348623157e308"], "zero": ["number", "-0.0"],
    "endless": ["number", "inf"], "third": ["number", "0.3333333333333333"],
    "tenth": ["number", "0.1"], "even": ["number", "9007199254740992.0"],
    "gap": ["number", None], "day": ["date", "2020-06-01"],
    "instant": ["date", "2020-02-29 23:59:59.5"], "never": ["date", None],
    "us": ["text", "6/1/2020"],
    "yes": ["truth", True], "no": ["truth", False],
    "name": ["text", "Zoë"], "split": ["text", "Zoe\u0308"], "empty": ["text", None],
    "high": ["text", "\U00010000"], "end": ["text", "\uffff"],
    "quote": ["text", "it's"], "long": ["text", "x" * 300], "blank": ["text", " "],
    "nul": ["text", "a\0"],
    "two words": ["text", "a\nb"], "naïve": ["whole", "1"], "変数": ["whole", "2"],
    "x²": ["whole", "3"], "_": ["whole", "4"],
}  # fmt: skip
QUESTIONS_ASKED = (
    # numbers
    "age > 29", "age >= 30", "age < 30", "age <= 30", "age == 30", "age != 30", "age == 30.0",
    "age > 29.5", "age == 3e1", "age == 030", "age==-30",
    "height > 1.7", "height == 1.75", "height > .5", "height > 1.", "third == 0.3333333333333333",
    "third == 0.333333333333333314829616256247",
    "big == 9007199254740993", "big == 9007199254740992", "big == 9007199254740992.0",
    "even == 9007199254740993", "big == even", "big > even",
    "most == 9223372036854775806", "most == 9223372036854775000", "most == 9223372036854774784",
    "least == -9223372036854775808", "least < -9223372036854775807", "big < 9223372036854775807",
    "big < 9223372036854775808", "big < 1e400", "big > -1e400",
    "small > 0", "small == 4.94065645841246544e-324", "small > 1e-400", "zero == 0", "zero < 0",
    "zero == -0.0", "large < 1e309",
    "large == 1.7976931348623157e308",
    "endless > 1.7976931348623157e308", "endless == 1e400", "age == height", "age > height",
    "height < age",
    # truth values
    "yes == 1", "yes == 0", "no == 0", "no < yes", "yes == age", "yes == 1.0", "yes > 0.5",
    # text
    'name == "Zoë"', "name == 'Zoë'", "name == split", 'name < "Zoz"', 'name > "Zoe"', 'high > end',
    'high > "\U0000ffff"', 'name == ""', 'blank == " "',
    'blank == ""', 'quote == "it\'s"', 'nul == "a"', 'nul == "a\0"', "name == \"Zoë\0\"",
    f'long == "{"x" * 256}"', f'long == "{"x" * 257}"',
    '`two words` == "a\nb"', 'name == "and"',
    # names
    "naïve == 1", "変数 == 2", "x² == 3", "_ == 4", "`age` == 30", "` age` == 30", "`no` == 0",
    "age\u00a0==\u200a30", "age\x1c==\x8530",
    "age == \u0663\u0660", "age\ufeff== 30",
    # logic
    "age > 29 and height > 2", "age > 29 or height > 2", "not age > 29", "not not age > 29",
    "not age > 29 or age > 29", "age > 99 and age > 99 or age > 29",
    "age > 29 or age > 29 and age > 99", "(age > 29 or age > 29) and age > 99",
    "not (age > 29 and age > 99)", "((age > 29))",
    # missing values
    "gap > 0", "not gap > 0", "gap != gap", "gap == gap", "gap > 0 or age > 29",
    "gap > 0 and age > 29", "gap > 0 and age > 99", "not (gap > 0 and age > 99)",
    "gap > 0 or age > 99", 'empty == ""', 'empty != "a"', 'not empty == "a"', "empty == name",
    "gap == age",
    # truth values as questions, lists, missing values
    "yes", "no", "not yes", "yes and not no", "(yes) or `no`", "yes == true", "no != true",
    "true == no", "yes in [false, true]", "`true` == 1",
    "age in [29, 30]", "age in [29.5, 3e1]", "age not in [30]", "not age in [30]",
    "big in [9007199254740992]", "big in [9007199254740992.0, 1]",
    "name in ['Zoe', 'Zoë']", "gap in [1]", "gap not in [1]", "empty in ['']",
    'nul in ["a\0", "a"]', "gap is null", "gap is not null", "age is null",
    "empty is null or gap > 1",
    "not empty is null", "never is null", "day is not null", "gap + 1 is null", "age / 0 is null",
    "age / 7 is not null", "in in [1]", "yes is null",
    # dates
    "day == '2020-06-01'", "day == '2020-06-01T00:00:00.000000'",
    "day > '2020-05-31 23:59:59.999999'", "day < '2020-06-01T00:00:00.000001'", "instant < day",
    "instant == '2020-02-29T23:59:59.500000'", "instant > '2020-02-29T23:59:59.499999'",
    "'2020-02-29T23:59' < instant", "instant < '2020-03-01'",
    "never > day", "not never > day", "day in ['2020-06-02', '2020-06-01 00:00']",
    "never not in ['2020-06-02']", "day > '0001-01-01' and day < '9999-12-31'",
    "year(day) == 2020", "month(instant) == 2", "year(never) > 1", "year(day) - year(instant) == 0",
    "month(day) * 2 in [12]", "year ( `day` ) >= 2020",
    "day > '6/1/2020'", "day == '2020-6-1'", "day == '2019-02-29'", "day == '1900-02-29'",
    "day == '2000-02-29'", "day == '2020-04-31'", "day == '0000-01-01'",
    "day == '2020-06-01T24:00'", "day == '2020-06-01T10'", "day == '2020-06-01T10:00.5'",
    "day == '2020-06-01Z'", "day == '2020-06-01 '",
    "day == '2020-13-01'", "day == '2020-06-00'",
    "day == '2020-06-01 10:60'", "day == '2020-06-01 10:00:60'", "day == '2020-06-01\0'",
    "day == '٢٠٢٠-06-01'", "day > 2020", "day == name", "day == us",
    "us == '6/1/2020'", "us > '6/1/2020'", "us < '2020-06-01'", "us >= '1.6.2020, 9:00'",
    "us > '1.6.20'", "us < '2020-06'", "us in ['6/1/2020']",
    "year(us) == 2020", "year(age) == 2020", "lower(day) == 'x'", "day + 1 > 2", "day", "never",
    # arithmetic
    "age + 1 == 31", "age - 1 == 29", "age-1==29", "age -1 == 29", "age - -1 == 31",
    "age * -1 == -30", "- 30 == age * - 1", "age / 4 == 7.5",
    "2 * age + 1 > 60",
    "1 + 2 * age == 61", "(1 + 2) * age == 90", "age - 10 - 5 == 15", "age - (10 - 5) == 25",
    "age / 2 / 3 == 5", "age > 60 / 2", "age >= 60 / 2", "31 > age",
    "tenth + 0.2 == 0.3", "tenth * 3 == 0.30000000000000004", "third * 3 == 1",
    "big + 0 == 9007199254740992", "big - 1 == 9007199254740992", "big * 1 == big",
    "most + 1 > 9223372036854775807", "large * 10 > 1", "large * 10 / 10 > 1", "large + 1 == large",
    "small / 2 == 0", "age / zero > 1", "age / 0 < 1",
    "0 / 0 == 0", "age > 0 / 0", "not age / 0 > 1", "age / 0 > 1 or age > 1", "endless + 1 > 1",
    "1 / endless == 0", "endless - endless == 0",
    "1 / (1 / zero) == 0",
    "gap + age > 1", "yes + yes == 2", "yes + age == 31", "age + height > 31.7", "zero * -1 == 0",
    "- 0 == zero", "age == +30",
    # functions of text
    "lower(name) == 'zoë'", "lower(name) < 'zoz'", "lower(empty) == ''", "lower(high) == high",
    "lower(age) == '30'", "lower(name) in ['a', 'zoë']",
    "lower == 3", "year > 3", "month in [1]",
    # what does not fit the columns
    "weight > 3", "name > 3", 'age == "30"', "name == age", "empty == 0", "Age > 3",
    # what is no question
    "", " ", "age", "age >", "> 3", "age > 3 and", "age > 3 age", "age = 3", "age => 3", "age <> 3",
    "age == 3 && yes == 1", "AGE == 3 AND yes == 1",
    "age > 3)",
    "(age > 3", "not", "and > 3", "`` == 3", "`age == 3", 'name == "Zoë', "3 < age", "age > +3",
    "age > - 3", "age > 3e", "age > 0x10",
    "age > 1_000", "age > 3; yes == 1",
    "<script>alert(1)</script>", "age > 3 or or yes == 1", "age == 3 == 3", "age - 3 > 0",
    "zoe\u0308 == 1",
    "true", "true == true", "true > 3", "True == yes", "yes == True", "yes == FALSE", "not 3",
    "1 + 1", "age + 1", "1 < 2", "3 in [3]", "3 is null",
    "age in []", "age in [", "age in [1", "age in [1,]", "age in [age]", "age in [1 + 1]",
    "age in (1, 2)", "age in 1", "age is", "age is 3", "age is true",
    "age not 3", "age not is null", "age is in [1]", "age is null == 1", "name + 'x' == 'y'",
    "'x' == 'x'", "(age > 3) + 1 > 2", "(age > 3) == true",
    "age > (age > 3)", "(age > 3", "((age)) > 3", "(age + 1) > 3", "age + (1 > 3", "age +",
    "age + > 3", "+ age > 3", "-age > 3", "age ** 2 > 3",
    "age // 2 > 3",
    "age % 2 == 0", "year() > 3", "year(3) > 3", "year(day, day) > 3", "year(year(day)) > 3",
    "year(day > 3", "day(day) > 3", "Year(day) > 3",
    "`year`(day) > 3",
    "lower(name + name) == 'x'", "age in [-30, - 30, 30]", "age in ['a', 3]", "age in [true]",
    "age ≥ 3", "name == “a”",
    f"{'(' * 49}age + 1{')' * 49} > 29", f"{'(' * 50}age + 1{')' * 50} > 29",
    f"age > {'(' * 49}1{')' * 49}", f"age > {'(' * 50}1{')' * 50}",
    f"{'not ' * 48}(yes)", f"{'not ' * 49}(yes)", "+".join(["age"] * 60) + "> 1799",
    "age in [" + ",".join(["1"] * 100) + "]", " or ".join(["no"] * 60),
    f"{'not ' * 49}age > 29", f"{'not ' * 50}age > 29", f"{'(' * 49}age > 29{')' * 49}",
    f"{'(' * 50}age > 29{')' * 50}", f"age > 29{' ' * 1992}",
    f"age > 29{' ' * 1993}",
)  # fmt: skip
DAYS = ("2020-06-01", "2020-02-29T23:59:59.500000", "2020-06-01T00:00:00", "", "NaT", "nan")
LABELS = (
    "Zoë",
    "a",
    "30",
    "1.75",
    "1",
    "True",
    "9007199254740993",
    "-0",
    "0",
    "0.1",
    "0.10000000000000001",
    "inf",
    " ",
)
FRACTIONS = (
    "height",
    "tenth",
    "third",
    "small",
    "large",
    "zero",
    "endless",
    "gap",
    "even",
    "age",
    "yes",
    "naïve",
)
SHORT = (
    "True",
    "False",
    "0",
    "1",
    "1.0",
    "30.0",
    "0.1",
    "1.75",
    "0.3333333333333333",
    "5e-324",
    "1.7976931348623157e+308",
    "9007199254740992.0",
    "inf",
    "0.0",
)
LARGE = (
    "most == 9223372036854775807", "most < 9223372036854775808", "most == 9223372036854775808",
    "least == -9223372036854775809", "yes < 18446744073709551615",
    "height < 18446744073709551615", "most < 18446744073709551616",
    "most in [9223372036854775807, 18446744073709551615]",
)  # fmt: skip
RANGES: dict[str, list[tuple[float, float]]] = {
    "age": [(0, 100), (0.0, 29.0), (31.0, 32.0), (0, 65536 * 30)],
    "height": [(1.0, 2.0), (1.5, 1.75), (0, 65536 * 1.75 * 2)],
    "small": [(0.0, 1.0)], "large": [(-1e150, 1e150)], "endless": [(0.0, 1.0)], "gap": [(0.0, 1.0)],
    "yes": [(0, 1)], "zero": [(-1.0, 1.0)],
    "third": [(0.0, 1.0), (-1.0, 1.0)], "big": [(0.0, 1e16)], "name": [(0.0, 1.0)],
    "day": [(0.0, 1.0)], "weight": [(0.0, 1.0)],
}  # fmt: skip
ENDS: dict[str, list[float]] = {
    "age": [30, 31, 30.0, 30.000000000000004, -1e150], "height": [1.75, 1.7500000000000002],
    "small": [0, 0.0, 5e-324], "zero": [0, -0.0, 5e-324],
    "third": [0.3333333333333333, 0.33333333333333337], "endless": [1e150], "large": [1e150],
    "yes": [1, 2], "no": [1, 0.5],
    "big": [9007199254740992, 9007199254740993, 9007199254740994],
    "most": [9223372036854775807, 1e19], "gap": [0.0], "name": [0.0], "weight": [0.0],
    "day": [0.0],
}  # fmt: skip
WRONG: list[tuple[str, dict[str, object]]] = [
    ("question", {}), ("question", {"text": 3}),
    ("question", {"text": "age > 29", "spare": ("other",)}),
    ("question", {"text": "age > 29", "more": 1}),
    ("category", {"column": "name", "labels": ("a",)}),
    ("category", {"column": "name", "labels": ("a", "a")}), ("category", {"column": "name",
    "labels": ()}),
    ("category", {"column": "name", "labels": ("a", "x" * 1001)}),
    ("category", {"column": "name", "labels": ("a", "b"), "spare": ("missing", "other")}),
    ("bounded", {"column": "age", "low": 1.0, "high": 1.0}),
    ("bounded", {"column": "age", "low": 2.0, "high": 1.0}),
    ("bounded", {"column": "age", "low": 0.0, "high": 1e151}),
    ("bounded", {"column": "age", "low": "0", "high": 1.0}), ("bounded", {"column": "age",
    "low": 0.0}),
    ("horoscope", {"text": "age > 29"}), ("below", {"column": "age", "end": 1e151, "missing": 0}),
    ("below", {"column": "age", "end": "0", "missing": 0}),
    ("below", {"column": "age", "end": 0.0, "missing": 65537}),
    ("below", {"column": "age", "end": 0.0, "missing": -1}),
    ("below", {"column": "age", "end": 0.0, "missing": 0.5}),
    ("below", {"column": "age", "end": 0.0}),
    ("masked-index", {}), ("masked-index", {"d": 0}), ("masked-index", {"d": 65}),
    ("masked-index", {"d": 8.0}), ("masked-index", {"d": 8}),
    ("masked-list", {"d": 8}), ("masked-list", {"d": 8, "r": 256}),
    ("masked-list", {"d": 8, "r": -1}), ("masked-list", {"d": 8, "r": 0, "free": 256}),
    ("masked-list", {"d": 8, "r": 0, "asked": 0.5}),
    ("masked-list", {"d": 8, "r": 0, "free": 3, "asked": 3}),
]  # fmt: skip


def cases() -> dict[str, Case]:
    asked: list[tuple[str, dict[str, object]]] = [
        ("question", {"text": text}) for text in QUESTIONS_ASKED
    ]
    asked.append(("question", {"text": "age > 29", "spare": ()}))
    asked += [
        ("question", {"text": text, "spare": ("missing",)})
        for text in ("age > 29", "age > 99", "gap > 0", "gap > 0 or age > 29", 'empty == "a"')
    ]
    for column in (
        "name",
        "age",
        "height",
        "tenth",
        "yes",
        "no",
        "zero",
        "big",
        "endless",
        "gap",
        "empty",
        "split",
        "blank",
        "long",
        "weight",
    ):
        labels = (*LABELS, "x" * 256) if column == "long" else LABELS
        asked += [
            ("category", {"column": column, "labels": labels, "spare": spare})
            for spare in ((), ("other", "missing"))
        ]
    asked += [
        ("category", {"column": column, "labels": ("0", "1", "2"), "spare": spare})
        for column in ("yes", "no", "naïve", "age", "zero")
        for spare in ((), ("other",))
    ]
    asked += [
        ("category", {"column": column, "labels": DAYS, "spare": ("other", "missing")})
        for column in ("day", "instant", "never", "us")
    ]
    asked += [
        ("bounded", {"column": column, "low": low, "high": high})
        for column, ranges in RANGES.items()
        for low, high in ranges
    ]
    below = [
        ("below", {"column": column, "end": end, "missing": 32768})
        for column, ends in ENDS.items()
        for end in ends
    ]
    large = [("question", {"text": text}) for text in LARGE]
    short = [
        ("category", {"column": column, "labels": SHORT, "spare": ("other", "missing")})
        for column in FRACTIONS
    ]
    return {
        f"{at}": {"query": query, "params": plain(params)}
        for at, (query, params) in enumerate([*asked, *WRONG, *below, *large, *short])
    }


RECORDS = records_of([ROW]).at_length()
WORK = Work(PROVEN, RECORDS.schema())


def expected(given: Case) -> Case:
    """The value is that of the one record of all cases."""
    try:
        query: Query = WORK.query(given["query"], unplain(given["params"]))
    except RefusedError as error:
        return {"code": error.code}
    except InputError:
        return {"code": "bad-query"}
    return {
        "value": int(query.values(RECORDS)[0]),
        "domain": [query.domain.kind, query.domain.low, query.domain.high],
    }


QUESTIONS = File(
    "questions",
    "The value of a query on the common record, or the code of the refusal.",
    cases,
    expected,
    {"record": ROW},
)
