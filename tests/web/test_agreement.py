"""The client in JavaScript and the library agree on what nobody wrote down as a vector: broken
messages, odd questions, words at the edges."""

import random
from typing import Any

import msgpack
import numpy as np
import pytest

from local_dp.clients.role import Work
from local_dp.errors import InputError, RefusedError, WireError
from local_dp.randomizers.evidence import PROVEN
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.wire import CLIENT, SERVER, Reply, checksum, decode, encode
from tests.support.golden import MESSAGES
from tests.support.vectors.files import plain, records_of, unplain
from tests.support.web import needs_node, node

pytestmark = [needs_node, pytest.mark.long]
SEED = 20_261
SIDES = {"client": CLIENT, "server": SERVER}
Case = dict[str, Any]


def _differences(cases: list[Case], expected: list[Any]) -> list[Any]:
    answers = node("agree.mjs", data=cases)
    assert len(answers) == len(expected) == len(cases)
    return [each for each in zip(cases, expected, answers, strict=True) if each[1] != each[2]][:5]


ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1 << 48,
    1 << 64,
    0.0,
    1.0,
    float("inf"),
    "",
    "a",
    "é" * 70,
    b"",
    b"\0" * 16,
    [],
    {},
    [[1, 2]],
    {"a": 1},
    ["a"],
    [1.0],
    [1],
]


def _alter(value: Any, rng: random.Random) -> Any:
    """The value with something else in one place."""
    if not isinstance(value, dict | list | tuple) or not value or rng.random() < 0.2:
        return rng.choice([each for each in ODD if not (isinstance(each, int) and each >= 1 << 64)])
    if isinstance(value, dict):
        name = rng.choice(list(value))
        if rng.random() < 0.15:
            return {key: part for key, part in value.items() if key != name}
        return (
            {**value, name: _alter(value[name], rng)}
            if rng.random() < 0.9
            else {**value, "more": 1}
        )
    at = rng.randrange(len(value))
    return [*value[:at], _alter(value[at], rng), *value[at + 1 :]]


def _messages(count: int) -> list[Case]:
    """Good messages, with a byte changed, cut off or more, or with another value somewhere."""
    rng, cases = random.Random(SEED), []
    for _ in range(count):
        good = encode(rng.choice(MESSAGES))
        at = rng.randrange(len(good))
        if rng.random() < 0.5:
            payload = bytes(msgpack.packb(_alter(msgpack.unpackb(good), rng)))
        else:
            payload = rng.choice(
                [
                    good[:at] + bytes([rng.randrange(256)]) + good[at + 1 :],
                    good[:at],
                    good[:at] + bytes([rng.randrange(256)]) + good[at:],
                    good,
                ]
            )
        cases.append({"do": "message", "side": rng.choice(list(SIDES)), "bytes": payload.hex()})
    return cases


def _read(case: Case) -> Any:
    try:
        message = decode(bytes.fromhex(case["bytes"]), SIDES[case["side"]])
    except WireError:
        return "a fault"
    return [encode(message).hex(), str(checksum(message)) if isinstance(message, Reply) else ""]


def test_broken_messages_are_dropped_by_both() -> None:
    """Of 20,000 messages, most of them broken, both read the same ones, as the same bytes; they may
    name a fault differently."""
    cases = _messages(20_000)
    expected = [_read(case) for case in cases]
    answers = node("agree.mjs", data=cases)
    wrong = [
        each
        for each in zip(cases, expected, answers, strict=True)
        if each[1] != ("a fault" if isinstance(each[2], str) else each[2])
    ]
    assert wrong[:5] == []
    assert 2_000 < expected.count("a fault") < 19_000


ROW = {
    "a": ["whole", "3"], "b": ["number", "2.5"], "c": ["number", None], "ok": ["truth", True],
    "t": ["text", "Zoë"], "e": ["text", None],
    "big": ["whole", "9007199254740993"], "x y": ["number", "-0.0"],
    "d": ["date", "2020-02-29 12:30"], "n": ["date", None],
}  # fmt: skip
PARTS = (
    *(
        "a",
        "b",
        "c",
        "ok",
        "t",
        "e",
        "big",
        "`x y`",
        "<",
        "<=",
        ">",
        ">=",
        "==",
        "!=",
        "and",
        "or",
        "not",
        "(",
        ")",
        "3",
        "2.5",
        "-0",
        "1e3",
        ".5",
        "'Zoë'",
    ),
    *(
        '"Z"',
        "''",
        "9007199254740992",
        "9007199254740993",
        "9007199254740993.0",
        " ",
        "\n",
        "é",
        "٣",
        "²",
        "_",
        "`",
        "'",
        "1.",
        "1e",
        "\u200b",
        "\x1c",
        "AND",
    ),
    *(
        "d",
        "n",
        "year",
        "lower",
        "month(d)",
        "lower(t)",
        "+",
        "-",
        "*",
        "/",
        "[",
        "]",
        ",",
        "in",
        "is",
        "null",
        "true",
        "'2020-02-29'",
        "'2/9/2020'",
        "a / 0",
    ),
)
NUMBERS = (
    "a",
    "b",
    "c",
    "ok",
    "big",
    "`x y`",
    "3",
    "2.5",
    "year(d)",
    "month(n)",
    "a + b",
    "2 * a - big",
    "b / (a - 3)",
    "true",
    "-1e308 * 99",
)
SIDES_OF = (*PARTS[:8], *PARTS[19:30], "d", "n", "lower(t)", "'2020-03-01'", "'1/2/2020'", *NUMBERS)


def _questions(count: int) -> list[Case]:
    """Half of them made by the grammar, half of parts in any order."""
    rng, cases = random.Random(SEED), []

    def comparison() -> str:
        one, other, third = rng.choices(rng.choice([SIDES_OF, NUMBERS]), k=3)
        forms = (
            f"{one} {rng.choice(PARTS[8:14])} {other}",
            f"{one} in [{third}, {other}]",
            f"{one} not in [{other}]",
            f"{one} is null",
            one,
        )
        return rng.choices(forms, (9, 2, 1, 1, 1))[0]

    def question(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return comparison()
        one, other = question(depth - 1), question(depth - 1)
        return rng.choice([f"not {one}", f"({one})", f"{one} and {other}", f"{one} or {other}"])

    for at in range(count):
        text = (
            question(rng.randrange(4))
            if at % 2
            else rng.choice(["", " "]).join(rng.choice(PARTS) for _ in range(rng.randrange(8)))
        )
        spare = rng.choice([(), ("missing",)])
        cases.append(
            {
                "do": "query",
                "name": "question",
                "params": plain({"text": text, "spare": spare}),
                "record": ROW,
            }
        )
    return cases


def _numbers(count: int) -> list[Case]:
    """Bounds and labels of numbers of every size."""
    rng, cases = random.Random(SEED), []
    for _ in range(count):
        any_double, at_the_edge = (
            float(np.frombuffer(rng.randbytes(8))[0]),
            rng.randrange(99) + 2.0**51 / 2 ** rng.randrange(60),
        )
        value = rng.choice([rng.uniform(-9, 9), rng.randrange(-9, 9) / 8, any_double, at_the_edge])
        if not np.isfinite(value):
            continue
        row = {"x": ["number", repr(value)]}
        low = rng.choice([-1, 0.0, -5.5])
        cases.append(
            {
                "do": "query",
                "name": "bounded",
                "params": plain({"column": "x", "low": low, "high": rng.choice([7, 1.5])}),
                "record": row,
            }
        )
        end = rng.choice([value, float(np.nextafter(value, 1e9)), low])
        cases.append(
            {
                "do": "query",
                "name": "below",
                "params": plain({"column": "x", "end": end, "missing": rng.randrange(65_538)}),
                "record": row,
            }
        )
        above = float(np.nextafter(value, 1e9))
        labels = (
            "0",
            repr(above),
            *rng.sample((repr(value), f"{value:.17g}"), 2),
            f"{above:.17g}",
            str(int(value)) if abs(value) < 1e300 else "1",
        )
        query = {"column": "x", "labels": (*dict.fromkeys(labels), "z"), "spare": ("other",)}
        cases.append({"do": "query", "name": "category", "params": plain(query), "record": row})
    return cases


def _examples(count: int) -> list[Case]:
    """Both queries of masked parity, on any example of any size."""
    rng, cases = random.Random(SEED), []
    for _ in range(count):
        d = rng.choice([1, 2, 8, 62])
        values = {
            "x": rng.getrandbits(d),
            "i": rng.randrange(d),
            "b": rng.getrandbits(1),
            "y": rng.choice([-1, 1]),
        }
        row = {name: ["whole", str(value)] for name, value in values.items()}
        vectors = {
            "r": rng.getrandbits(d),
            "free": rng.getrandbits(d) & 0x117,
            "asked": rng.getrandbits(d),
        }
        for name, params in (("masked-index", {"d": d}), ("masked-list", {"d": d, **vectors})):
            cases.append({"do": "query", "name": name, "params": plain(params), "record": row})
    return cases


def _value(case: Case) -> Any:
    records = records_of([case["record"]]).at_length()
    try:
        query = Work(PROVEN, records.schema()).query(case["name"], unplain(case["params"]))
        return query.values(records)[0].item()
    except RefusedError as error:
        return error.code
    except InputError:
        return "bad-query"


def test_odd_questions_and_numbers_have_the_same_value() -> None:
    """Of 6,000 questions, 6,000 numbers and 2,000 examples, each is read alike: the same value, or
    the same code."""
    cases = _questions(6_000) + _numbers(2_000) + _examples(1_000)
    expected = [_value(case) for case in cases]
    assert _differences(cases, expected) == []
    assert {
        value: expected.count(value)
        for value in (0, 1, 2, "bad-parameters", "bad-query")
        if expected.count(value) < 100
    } == {}


WIDTHS: tuple[dict[str, int], ...] = (
    {},
    {"word_bits": 8},
    {"word_bits": 12},
    {"word_bits": 32},
    {"word_bits": 64},
)
SIZES: dict[str, list[dict[str, int]]] = {
    "binary-rr": [{}],
    "grr": [{"k": k} for k in (2, 3, 5, 17, 300, 4096)],
    "one-bit-mean": [{"steps": steps} for steps in (1, 2, 100, 1 << 16)],
    "signed-blocks": [
        {"k": k, "size": size}
        for k, size in ((1, 1), (2, 1), (8, 1), (11, 1), (8, 4), (5, 8), (8, 3), (8, 16), (2048, 1))
    ],
    "subset-selection": [
        {"k": k} for k in (2, 3, 4, 5, 6, 8, 9, 10, 12, 15, 16, 20, 31, 33, 64, 100, 1000)
    ],
}
EPSILONS = (1e-9, 1e-3, 0.01, 0.1, 0.5, 0.7, 1.0, 1.5, 2.0, 3.3, 4.0, 6.5, 8.0, 12.0, 24.0)


def _draw(name: str, params: dict[str, Any], rng: random.Random) -> tuple[Case, Any]:
    case = {"do": "draws", "name": name, "params": plain(params), "draws": []}
    try:
        randomizer = RANDOMIZERS.build(name, params)
    except RefusedError as error:
        return case, error.code
    assert isinstance(randomizer, FiniteChannel)
    expected = []
    for _ in range(6):
        value, cell = (
            rng.randint(randomizer.domain.low, randomizer.domain.high),
            rng.randrange(randomizer.cells),
        )
        word = rng.choice(
            [0, (1 << randomizer.width) - 1, *(rng.getrandbits(randomizer.width) for _ in range(6))]
        )
        values, cells = np.array([value]), np.array([cell], dtype=np.uint16)
        words = np.array([word], dtype=f"<u{randomizer.width // 8}")
        reports = randomizer.respond(
            values, words >> words.dtype.type(randomizer.width - randomizer.word_bits), cells
        )
        case["draws"].append([value, str(word), cell])
        expected.append([int(reports[0]), str(int(randomizer.weight(reports, values, cells)[0]))])
    return case, expected


def test_every_randomizer_draws_alike() -> None:
    """For fifteen epsilons, five widths of words and many sizes: the same report and the same
    weight, or the same refusal."""
    rng = random.Random(SEED)
    pairs = [
        _draw(name, {"epsilon": epsilon, **width, **size}, rng)
        for name, sizes in SIZES.items()
        for size in sizes
        for width in WIDTHS
        for epsilon in EPSILONS
    ]
    assert _differences([case for case, _ in pairs], [expected for _, expected in pairs]) == []
    assert sum(expected == "bad-parameters" for _, expected in pairs) > 100
