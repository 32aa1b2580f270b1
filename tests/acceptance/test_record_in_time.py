"""Class 14: nothing in time or memory shows what a record holds. Steps of Python and bytes are
counted; the slot is computed from the request."""

import asyncio
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from local_dp.api.schemas import read_schema
from local_dp.api.tables import read_records, records_of, unsaid
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import SLOT, _answer
from local_dp.clients.process import MemberConfig, RunConfig, pack_columns
from local_dp.clients.role import ClientRole
from local_dp.domains import Domain, Parameter, Vectors
from local_dp.errors import InputError
from local_dp.noise import BoundNoise, Draw, StoreNoise, SystemNoise, philox_words
from local_dp.queries.query import QUERIES
from local_dp.records import LONGEST, Records
from local_dp.wire import Ask, Refusal, Reply, Request, encode
from tests.support.effort import Effort, Peak
from tests.support.figures import figure
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS, SHARP
from tests.support.inputs.shapes import ENDS, an_ask
from tests.support.runs.virtual_time import VirtualLoop, run_virtually

NOISE = 1 << 14  # bytes: the interpreter's own; a megabyte is promised
OF_ANY = [(name, params) for each in (ANY_PARAMETERS, SHARP) for name, params in each.items()]
PLAIN = ("f8", "f8", "f4", "i8", "u8", "?", "text", "text")
KINDS = (*PLAIN, "M8[us]")


def _of_text(labels: int) -> list[tuple[str, dict[str, Any]]]:
    """Questions to texts, and to numbers as labels."""
    return [
        ("category", {"column": "x", "labels": tuple(f"label {place}" for place in range(labels))}),
        ("category", {"column": "x", "labels": tuple(map(str, range(1, labels)))}),
        (
            "category",
            {
                "column": "x",
                "labels": ("a" * 999, "b", "1", "1e+300"),
                "spare": ("other", "missing"),
            },
        ),
        ("crossed", {"parts": ("x", "y"), "labels": ("a\x1fb\x1fc", "1\x1f2"), "spare": ("none",)}),
        (
            "grouped",
            {"column": "y", "low": 0.0, "high": 1.0, "by": "x", "labels": ("a", "b"), "steps": 64},
        ),
        ("prefix", {"column": "x", "bits": 48, "length": 4}),
        ("question", {"text": 'x == "' + "a" * 300 + '" or x < "label 2"', "spare": ("missing",)}),
        ("question", {"text": "x <= y or x == b"}),
        (
            "question",
            {"text": "x / y - b * 2 > y or x in [1, 2, 3] or x is null", "spare": ("missing",)},
        ),
        (
            "question",
            {"text": "lower(x) in ['a', 'label 1'] or lower(x) < lower(y)", "spare": ("missing",)},
        ),
        (
            "question",
            {"text": "x > '2020-06-01' or year(x) == 2020 and month(y) < 6", "spare": ("missing",)},
        ),
        (
            "category",
            {
                "column": "x",
                "labels": ("2020-06-01", "2020-06-01T12:30:00.500000"),
                "spare": ("other", "missing"),
            },
        ),
        ("category", {"column": "x", "labels": ENDS}),
    ]


class Dealt(StoreNoise):
    """A store's private noise, but the same for every record: what differs is of the record."""

    def bound(self, *inputs: bytes) -> "_Same":
        return _Same(bytes(32))


class _Same(BoundNoise):
    def words(self, which: Draw, start: int, stop: int, bits: int) -> np.ndarray:
        return philox_words(which.key(f"dealt-{bits}", 1), start, stop, bits)


DEALT = Dealt(bytes(32))


def _fitting(domain: Domain) -> tuple[str, dict[str, Parameter]]:
    """A randomizer of these values."""
    if isinstance(domain, Vectors):
        return "random-coordinate", {"d": domain.d, "steps": domain.high, "kind": domain.kind}
    if domain.kind == "symbols":
        return (
            ("grr", {"k": domain.size})
            if 2 < domain.size <= 64
            else ("olh", {"k": domain.size})
            if domain.size > 64
            else ("binary-rr", {})
        )
    return "one-bit-mean", {"steps": domain.high}


def _asked(
    of: list[tuple[str, dict[str, Any]]], clients: int, generator: np.random.Generator
) -> Request:
    """One request about these: of one query, or seldom of 38."""
    asks = []
    for _ in range(38 if generator.random() < 0.02 else 1):
        name, params = of[int(generator.integers(len(of)))]
        by, settings = _fitting(QUERIES.build(name, params).domain)
        own: dict[str, Parameter] = {"epsilon": 0.001, **settings}
        asks.append(
            Ask(
                query=name,
                query_params=params,
                randomizer=by,
                randomizer_params=own,
                start=0,
                stop=clients,
                coins=bytes(16),
            )
        )
    return Request(run="r", round=1, asks=tuple(asks))


def _text(generator: np.random.Generator) -> str:
    """A text of 1 to 10^6 letters, each length of as many digits alike: some begin as labels do,
    some are missing."""
    size, start = (
        int(10 ** generator.uniform(0, 6)),
        str(generator.choice(["", "a", "label 1", "1", "é€😀"])),
    )
    return (
        ""
        if generator.random() < 0.1
        else (start + str(generator.choice(["a", "0", "x", "😀", " "])) * size)[:size]
    )


def _number(generator: np.random.Generator) -> float:
    special = [
        0.0,
        -0.0,
        5e-324,
        1.0,
        3.0,
        2.0**53,
        2.0**53 + 2,
        1e300,
        -1.7976931348623157e308,
        np.inf,
        -np.inf,
        np.nan,
    ]
    return (
        float(generator.choice(special))
        if generator.random() < 0.5
        else float(generator.choice([-1, 1]) * 10 ** generator.uniform(-323, 308))
    )


def _value(kind: str, generator: np.random.Generator) -> np.ndarray:
    """One value of a declared type, as a table holds it."""
    if kind == "text":
        return np.array([_text(generator)])
    if kind[0] == "f":
        with np.errstate(all="ignore"):
            return np.array([_number(generator)]).astype(kind)
    if kind == "?":
        return generator.random(1) < 0.5
    if kind[0] == "M":
        return np.array(
            [
                generator.choice(
                    [
                        "NaT",
                        "0001-01-01",
                        "2020-06-01",
                        "2020-06-01T12:30:00.5",
                        "9999-12-31T23:59:59",
                    ]
                )
            ],
            dtype=kind,
        )
    ends = np.iinfo(kind)
    drawn = int(generator.integers(ends.min, ends.max, dtype=np.dtype(kind))) >> int(
        generator.integers(0, ends.bits)
    )
    return np.array([(ends.min, ends.max, 0, 1, drawn)[int(generator.integers(5))]], dtype=kind)


Seen = tuple[tuple[bytes, ...], float, int, int]


def _seen(record: dict[str, np.ndarray], request: Request, clients: int) -> Seen:
    """All but the reports of a private client's answers; its slot, the steps and the most bytes
    that it took. Each of its clients holds this record."""
    return _seen_of(
        records_of(record, notice=unsaid).take(np.zeros(clients, dtype=np.int64)), request
    )


def _seen_of(table: Records, request: Request) -> Seen:
    # what is imported and kept from now on
    ClientRole("client-0", 0, table, DEALT, MemoryStore(1.0)).handle(request)
    with Peak() as peak, Effort(finely=True) as effort:
        role = ClientRole("client-0", 0, table, DEALT, MemoryStore(1.0))
        answers = role.handle(request)
    shown = tuple(
        encode(
            each.model_copy(update={"reports": bytes(len(each.reports))})
            if isinstance(each, Reply)
            else each
        )
        for each in answers
    )
    return shown, role.work.seconds, effort.steps, peak.bytes


@pytest.mark.parametrize(
    ("pairs", "labels"), [(30, 40), pytest.param(10_000, 4_000, marks=pytest.mark.slow)]
)
def test_no_pair_of_records_differs_in_work(pairs: int, labels: int) -> None:
    """Pairs of records of one declared type, by requests: the same bytes but the reports, the same
    slot, the same steps, memory within 1 MiB."""
    kinds_of_reply, worst, few, many = dict[str, int](), 0, _of_text(40), _of_text(labels)
    for seed in range(pairs):
        generator = np.random.default_rng(seed)
        clients = int(generator.choice([1, 1, 300]))
        request = _asked(
            (many if seed % 25 == 1 else few) if seed % 2 else OF_ANY, clients, generator
        )
        kinds = [
            str(kind)
            for kind in generator.choice(
                {1: ["text"], 3: ["f8"]}.get(seed % 8, KINDS), len(ANY_COLUMNS)
            )
        ]
        if generator.random() < 0.7:
            kinds = kinds[:1] * len(kinds)
        records = [
            dict(zip(ANY_COLUMNS, (_value(kind, generator) for kind in kinds), strict=True))
            for _ in range(2)
        ]
        one, other = (_seen(record, request, clients) for record in records)
        assert one[:3] == other[:3], f"pair {seed}"
        worst = max(worst, abs(one[3] - other[3]))
        assert worst < NOISE, f"pair {seed}"
        kind = "refusal" if b"refusal" in one[0][0] else "reply"
        kinds_of_reply[kind] = kinds_of_reply.get(kind, 0) + 1
    answered = kinds_of_reply["reply"]
    figure(
        "class 14",
        (
            f"{pairs:,} pairs of records, {answered:,} of them answered: 0 differ in bytes, slot "
            f"or steps, memory by at most {worst:,} bytes"
        ),
    )
    assert min(kinds_of_reply.values()) > pairs / 5


# sets without a member, with one and with all; lone bits
SPECIAL = (
    0,
    1,
    -1,
    255,
    128,
    127,
    (1 << 32) - 1,
    -(1 << 63),
)


def _shaped(kind: str, generator: np.random.Generator) -> np.ndarray:
    """One value: often a set with no member or with all, or a text that begins like a label and
    ends otherwise."""
    if generator.random() < 0.5:
        return _value(kind, generator)
    if kind == "text":
        return np.array(
            [str(generator.choice(["", "a", "a\x00b", "\x00", "é€😀" * 40, "\udcff", "a" * 999]))]
        )
    with np.errstate(all="ignore"):
        return np.array([SPECIAL[int(generator.integers(len(SPECIAL)))]]).astype(kind)


@pytest.mark.parametrize("pairs", [24, pytest.param(500, marks=pytest.mark.slow)])
def test_no_vector_set_or_string_shows_in_work(pairs: int) -> None:
    """Pairs of records by questions about vectors, sets and strings, of every randomizer of them,
    with wrong parameters too: the same work for both."""
    kinds, worst, unsent = dict[str, int](), 0, 0
    for seed in range(pairs):
        generator, asked = (
            np.random.default_rng([22, seed]),
            ("vectors", "sets", "strings")[seed % 3],
        )
        clients = int(generator.choice([1, 1, 40]))
        ask = an_ask(asked, generator, clients)
        if ask is None:
            unsent += 1
            continue
        of = [str(generator.choice(PLAIN))] * len(ANY_COLUMNS)
        records = [
            dict(zip(ANY_COLUMNS, (_shaped(kind, generator) for kind in of), strict=True))
            for _ in range(2)
        ]
        one, other = (
            _seen(record, Request(run="r", round=1, asks=(ask,)), clients) for record in records
        )
        assert one[:3] == other[:3], f"pair {seed}: {ask}"
        worst = max(worst, abs(one[3] - other[3]))
        assert worst < NOISE, f"pair {seed}: {ask}"
        kind = f"{asked} {'refused' if b'refusal' in one[0][0] else 'answered'}"
        kinds[kind] = kinds.get(kind, 0) + 1
    assert all(
        kinds[f"{asked} answered"] > pairs / 10 for asked in ("vectors", "sets", "strings")
    ), kinds
    figure(
        "class 21",
        (
            f"{pairs - unsent:,} pairs of records: 0 differ in bytes, slot or steps, memory by at "
            f"most {worst:,} bytes"
        ),
    )


def test_a_digest_of_records_takes_the_same_memory() -> None:
    """Of short and of long texts alike; the room for texts does not change it, one letter does."""
    taken, digests = list[int](), list[bytes]()
    for text in ("a", "b" * LONGEST):
        records = Records({"t": np.array([text] * 300)})
        with Peak() as peak:
            digests.append(records.at_length().digest())
        taken.append(peak.bytes)
        assert digests[-1] == records.digest()
    assert abs(taken[0] - taken[1]) < NOISE
    assert digests[0] != digests[1]


class Busy(ClientRole):
    """Takes so many seconds of virtual time for an answer."""

    took = 0.0

    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.work(self.took)
        return super().handle(request)


def _left(request: Request, took: float) -> tuple[float, float]:
    """How long after its request a private reply leaves, and how long the request may take."""

    async def play() -> tuple[float, float]:
        role = Busy("client-0", 0, Records({"x": np.array(["a"])}), DEALT, MemoryStore(1.0))
        role.took = took
        await _answer(role, MemoryBroker().join([]), "t", request)
        return asyncio.get_running_loop().time(), role.work.seconds

    return run_virtually(play())


@pytest.mark.parametrize("asks", [1, 38])
def test_a_slot_follows_from_the_request(asks: int) -> None:
    """Whatever an answer takes within what its request may take, it leaves at one time; a machine
    that is slower than that answers in a later slot."""
    params: dict[str, Parameter] = {"column": "x", "labels": tuple(map(str, range(300)))}
    own: dict[str, Parameter] = {"epsilon": 0.001, "k": 300}
    ask = Ask(
        query="category",
        query_params=params,
        randomizer="grr",
        randomizer_params=own,
        start=0,
        stop=1,
        coins=bytes(16),
    )
    request = Request(run="r", round=1, asks=(ask,) * asks)
    _, most = _left(request, 0.0)
    slot = SLOT * math.ceil(most / SLOT)
    left = {round(_left(request, took)[0], 9) for took in np.linspace(0.0, most, 20).tolist()}
    assert left == {round(slot, 9)}
    assert slot > SLOT * asks / 38, "more asks take more slots"
    assert round(_left(request, slot + 0.01)[0], 9) == round(slot + SLOT, 9)
    figure("class 14", f"{asks} asks of 300 labels: every reply leaves after {slot:.1f} s")


@pytest.mark.slow
def test_a_request_takes_no_longer_than_its_slot_allows() -> None:
    """Requests of every query by clients that are new: the processor time of an answer is below
    what the request may take."""
    text, worst = _of_text(4_000), 0.0
    for seed in range(300):
        generator = np.random.default_rng(seed)
        clients = int(generator.choice([1, 10_000]))
        request, kind = (
            _asked(text if seed % 2 else OF_ANY, clients, generator),
            str(generator.choice(KINDS)),
        )
        table = records_of(
            {name: _value(kind, generator) for name in ANY_COLUMNS}, notice=unsaid
        ).take(np.zeros(clients, dtype=np.int64))
        roles = [
            ClientRole("client-0", 0, table, SystemNoise(), MemoryStore(1.0)) for _ in range(2)
        ]
        for role in roles:  # the first one imports
            began = time.process_time()
            role.handle(request)
            took = time.process_time() - began
        slot = SLOT * max(1, math.ceil(role.work.seconds / SLOT))
        assert took < slot, f"request {seed}"
        worst = max(worst, took / slot)
    figure("class 14", f"300 requests: an answer takes at most {worst:.2f} of its slot")


LONG = "x" * 50_000


def _forms(folder: Path, rows: int) -> Iterator[tuple[str, Any]]:
    """One table with one long text, in each form in which a table comes."""
    texts = ["short"] * (rows - 1) + [LONG]
    frame = polars.DataFrame({"t": texts, "n": list(range(rows))})
    frame.write_csv(folder / "t.csv")
    frame.write_parquet(folder / "t.parquet")
    yield from (
        ("csv", folder / "t.csv"),
        ("parquet", str(folder / "t.parquet")),
        ("frame", frame),
        ("lists", {"t": texts, "n": list(range(rows))}),
    )
    yield from (
        ("array", {"t": np.array(texts[-2:]), "n": np.arange(2)}),
        ("records", Records({"t": np.array(texts[-2:]), "n": np.arange(2)})),
    )


@pytest.mark.parametrize("rows", [2_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_a_long_text_is_cut_where_a_table_is_opened(rows: int, tmp_path: Path) -> None:
    """One text of 50,000 letters: cut in every form of a table, with a notice of how many; the
    table takes as much memory as one of 256 letters a text."""
    most = 0
    for form, table in _forms(tmp_path, rows):
        notices = list[str]()
        with Peak() as peak:
            opened = records_of(table, notice=notices.append)
        assert opened["t"].dtype == np.dtype("U256"), form
        assert opened["t"][-1] == LONG[:LONGEST], form
        assert notices == [
            (
                "texts cut at their greatest length, 256 characters unless a schema declares "
                "another: 1 in 't'"
            )
        ], form
        assert peak.bytes < rows * 256 * 4 * 2 + (1 << 20), form
        most = max(most, peak.bytes)
    figure(
        "class 14",
        (
            f"a table of {rows:,} rows with a text of 50,000 letters: opened with {most >> 20} "
            "MiB at most"
        ),
    )


@pytest.mark.parametrize("rows", [2_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_a_long_cell_shows_in_no_answer(rows: int) -> None:
    """Of a table with one cell of 50,000 letters, and of one without: a label of a list, and a
    string of heavy hitters, are answered by the same work."""
    tables = [
        records_of({"x": ["short"] * (rows - 1) + [last]}, notice=unsaid)
        for last in ("short", LONG)
    ]
    questions: dict[str, dict[str, Any]] = {
        "category": {"column": "x", "labels": (*ENDS, "short")},
        "hashed-prefix": {"column": "x", "bits": 256, "length": 200, "width": 8, "seed": 1},
    }
    for name, params in questions.items():
        domain = QUERIES.build(name, params).domain
        ask = Ask(
            query=name,
            query_params=params,
            randomizer="grr",
            randomizer_params={"epsilon": 0.5, "k": domain.size},
            start=0,
            stop=rows,
            coins=bytes(16),
        )
        # the first one warms up the interpreter
        _, one, other = (
            _seen_of(table, Request(run="r", round=1, asks=(ask,)))
            for table in (tables[0], *tables)
        )
        assert one[:3] == other[:3]
        assert abs(one[3] - other[3]) < NOISE
        assert b"refusal" not in one[0][0]
    figure(
        "class 21",
        f"a table of {rows:,} rows with a cell of 50,000 letters, and one without: the same work",
    )


def test_a_declared_length_is_the_width_of_a_private_client(tmp_path: Path) -> None:
    """Whatever its table holds: `text 5` is 5 letters wide, and `text` is 256, in a member's
    process too."""
    (tmp_path / "schema.json").write_text('{"t": "text 5", "u": "text"}')
    schema, cut = read_schema(tmp_path / "schema.json"), list[str]()
    for row in ("a,b", "abcdefgh,b"):
        (tmp_path / "t.csv").write_text(f"t,u\n{row}\n")
        table = read_records(tmp_path / "t.csv", schema, total=True, notice=cut.append)
        config = MemberConfig(
            run=RunConfig(run="r", broker="b", budget=1.0),
            member="m",
            group="g",
            start=0,
            columns=pack_columns([table]),
            lengths=table.lengths,
        )
        for role in (
            ClientRole("m", 0, table, SystemNoise(), MemoryStore(1.0)),
            MemberConfig.from_bytes(config.to_bytes()).role(),
        ):
            assert role.records["t"].dtype == np.dtype("U5")
            assert role.records["u"].dtype == np.dtype("U256")
        assert table["t"].tolist() == [row.split(",")[0][:5]]
    assert not cut, "nobody counts the texts of a private table"


@pytest.mark.parametrize("kind", ["text 0", "text 1001", "text x", "text  5", "words", 3])
def test_a_schema_of_no_length_is_refused(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps({"t": kind}))
    with pytest.raises(InputError, match="text with its greatest length from 1 to 1000"):
        read_schema(tmp_path / "schema.json")
