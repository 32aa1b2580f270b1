"""P4: nothing in time or memory shows what a record holds. Steps of Python and bytes are counted;
the slot is computed from the request."""

import asyncio
import math
from collections.abc import Sequence
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
from local_dp.domains import Parameter
from local_dp.noise import BoundNoise, Draw, KeyedNoise, StoreNoise, SystemNoise, philox_words
from local_dp.records import LONGEST, Records
from local_dp.wire import Ask, Refusal, Reply, Request, encode
from tests.support.effort import Effort, Peak
from tests.support.inputs.questions import ANY_COLUMNS
from tests.support.inputs.shapes import KINDS, an_ask
from tests.support.long import short
from tests.support.runs.virtual_time import VirtualLoop, run_virtually
from tests.support.wrong import wrong

NOISE = 1 << 14  # bytes: the interpreter's own; a megabyte is promised
TYPES = ("f8", "f4", "i8", "u8", "?", "text", "text", "text", "M8[us]")


class Dealt(StoreNoise):
    """A store's private noise, but the same for every record: what differs is of the record."""

    def bound(self, *inputs: bytes) -> "_Same":
        return _Same(bytes(32))


class _Same(BoundNoise):
    def words(self, which: Draw, start: int, stop: int, bits: int) -> np.ndarray:
        return philox_words(which.key(f"dealt-{bits}", 1), start, stop, bits)


DEALT = Dealt(bytes(32))


SPECIAL = (
    0.0,
    -0.0,
    5e-324,
    1.0,
    3.0,
    255.0,
    2.0**53,
    1e300,
    -1.7976931348623157e308,
    np.inf,
    np.nan,
)
TEXTS = ("", "a", "a\x00b", "\x00", "é€😀" * 40, "\udcff", "a" * 999, "label 1" + "a" * 50_000)
# sets without a member, with one and with all; lone bits
WHOLE = (
    0,
    1,
    2,
    127,
    128,
    255,
    (1 << 32) - 1,
)
DATES = ("NaT", "0001-01-01", "2020-06-01", "2020-06-01T12:30:00.5", "9999-12-31T23:59:59")


def _value(kind: str, generator: np.random.Generator) -> np.ndarray:
    """One value of a declared type, as a table holds it."""
    if kind == "?":
        return generator.random(1) < 0.5
    choices: dict[str, Sequence[Any]] = {
        "t": TEXTS,
        "f": (*SPECIAL, 10 ** generator.uniform(-300, 300)),
        "M": DATES,
    }
    some = choices.get(kind[0], WHOLE)
    with np.errstate(all="ignore"):
        return np.array([some[int(generator.integers(len(some)))]]).astype(
            "U" if kind == "text" else kind
        )


Seen = tuple[tuple[bytes, ...], float, int, int]


def _observe(record: dict[str, np.ndarray], request: Request, clients: int) -> Seen:
    """All but the reports of a private client's answers; its slot, the steps and the most bytes
    that it took. Each of its clients holds this record."""
    table = records_of(record, notice=unsaid).take(np.zeros(clients, dtype=np.int64))
    # what is imported and kept from now on
    ClientRole("client-0", 0, table, DEALT, MemoryStore(1.0)).handle(request)
    with Peak() as peak, Effort(finely=True) as effort:
        role = ClientRole("client-0", 0, table, DEALT, MemoryStore(1.0))
        answers = role.handle(request)
    lengths = [
        {"reports": bytes(len(each.reports))} if isinstance(each, Reply) else {} for each in answers
    ]
    replies = tuple(
        encode(each.model_copy(update=length))
        for each, length in zip(answers, lengths, strict=True)
    )
    return replies, role.work.seconds, effort.steps, peak.bytes


@wrong(
    "local_dp.queries.tables:Category.places",
    "self._labels_by_type[column.dtype].places(column)",
    (
        "np.array([self.labels.index(text) if text in self.labels else -1 for text in "
        "labels_of(records, self.column).tolist()], dtype=np.int64)"
    ),
    "a number is printed to find its label, and 1e300 prints in 301 digits",
    at="texts",
)
@wrong(
    "local_dp.clients.role:ClientRole.__init__",
    "records if isinstance(noise, KeyedNoise) else records.at_length()",
    "records",
    (
        "the longest text of a table sets the width of its column in a private client, and so "
        "time and memory"
    ),
    at="texts",
)
@wrong(
    "local_dp.queries.strings:_texts",
    "longer = (ends > size) | (np.bitwise_or.reduce(letters(values)[:, size:], axis=1) != 0)",
    (
        "longer = (ends > size) | (np.bitwise_or.reduce(letters(values)[:, size:], axis=1) != "
        "0)\n    if not longer.any():\n        return octets"
    ),
    "a text that is cut takes longer than a short one",
    at="sets",
)
@wrong(
    "local_dp.randomizers.table:TableChannel.respond",
    "values[some].astype(np.int64)",
    (
        "np.array([sum((1 << at for at in range(int(each).bit_length()) if int(each) >> at & 1)) "
        "for each in values[some].tolist()])"
    ),
    "a client with more members in its set takes longer",
    at="sets",
)
@wrong(
    "local_dp.domains:Vectors.clip",
    "norms = np.sqrt(np.einsum('ij,ij->i', rows, rows, dtype=np.float64))",
    (
        "norms = np.sqrt(np.einsum('ij,ij->i', rows, rows, dtype=np.float64))\n    if bool((norms "
        "<= self.high).all()):\n        return rows"
    ),
    "a vector outside the ball takes longer than one inside",
    at="vectors",
)
@pytest.mark.parametrize("kind", short(KINDS, lambda kind: kind == "vectors"))
def test_no_pair_of_records_differs_in_work(kind: str) -> None:
    """Pairs of records of one declared type, by requests: the same bytes but the reports, the same
    slot, the same steps, and as good as the same memory."""
    answers = 0
    for seed in range(12):
        generator = np.random.default_rng([22, seed])
        clients = int(generator.choice([1, 1, 300]))
        request = Request(run="r", round=1, asks=(an_ask(kind, generator, clients),))
        of = str(generator.choice(TYPES))
        records = [{name: _value(of, generator) for name in ANY_COLUMNS} for _ in range(2)]
        _observe(records[0], request, clients)  # what a process makes once is made now
        one, other = (_observe(record, request, clients) for record in records)
        assert one[:3] == other[:3], f"pair {seed}"
        assert abs(one[3] - other[3]) < NOISE, f"pair {seed}"
        answers += b"refusal" not in one[0][0]
    assert answers >= 3


@wrong(
    "local_dp.records:Records.digest",
    "max(MOST, values.dtype.itemsize // 4)",
    "int(np.char.str_len(values.astype(np.str_)).max(initial=1))",
    "the digest of the records takes longer for a longer text",
)
def test_a_digest_of_records_takes_the_same_memory() -> None:
    """Of short and of long texts alike; the room for texts does not change it, one letter does."""
    peaks, digests = list[int](), list[bytes]()
    for text in ("a", "b" * LONGEST):
        records = Records({"t": np.array([text] * 300)})
        with Peak() as peak:
            digests.append(records.at_length().digest())
        peaks.append(peak.bytes)
        assert digests[-1] == records.digest()
    assert abs(peaks[0] - peaks[1]) < NOISE
    assert digests[0] != digests[1]


class Busy(ClientRole):
    """Takes so many seconds of virtual time for an answer."""

    took = 0.0

    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.work(self.took)
        return super().handle(request)


def _left(
    request: Request, took: float, noise: StoreNoise | KeyedNoise = DEALT
) -> tuple[float, float]:
    """How long after its request a reply leaves, and how long the request may take."""

    async def play() -> tuple[float, float]:
        role = Busy("client-0", 0, Records({"x": np.array(["a"])}), noise, MemoryStore(1.0))
        role.took = took
        await _answer(role, MemoryBroker().join([]), "t", request)
        return asyncio.get_running_loop().time(), role.work.seconds

    return run_virtually(play())


@wrong(
    "local_dp.clients.member:_answer",
    "max(1, ceil(role.work.seconds / SLOT), ceil(took / SLOT))",
    "max(1, ceil(took / SLOT))",
    "the slot of a reply is the time that the answer took",
    at="38",
)
@wrong(
    "local_dp.clients.member:_answer",
    "role.private",
    "not role.private",
    "a private reply leaves when the evaluation is done",
    at="1",
)
@pytest.mark.parametrize("asks", [1, 38])
def test_a_slot_follows_from_the_request(asks: int) -> None:
    """Whatever an answer takes within its slot, it leaves at one time; a slower machine answers in
    a later slot, a simulation at once."""
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
    assert _left(request, 0.01, KeyedNoise(1))[0] == 0.01


LONG = "x" * 50_000


@wrong(
    "local_dp.api.tables:_cut",
    "values.dtype.kind == 'U' and letters_in(values) > most",
    "False",
    "one long text sets the width of its column for all rows",
)
def test_a_long_text_is_cut_where_a_table_is_opened(tmp_path: Path) -> None:
    """One text of 50,000 letters: cut in a file, a frame and lists, with a notice of how many; the
    table takes as much memory as one of 256 letters a text."""
    lists = {"t": ["short"] * 2_000 + [LONG]}
    frame = polars.DataFrame(lists)
    frame.write_csv(tmp_path / "t.csv")
    for table in (tmp_path / "t.csv", frame, lists):
        notices = list[str]()
        with Peak() as peak:
            records = records_of(table, notice=notices.append)
        assert (records["t"].dtype, records["t"][-1]) == (np.dtype("U256"), LONG[:LONGEST])
        assert notices == [
            (
                "texts cut at their greatest length, 256 characters unless a schema declares "
                "another: 1 in 't'"
            )
        ]
        assert peak.bytes < 2_000 * 256 * 4 * 2 + (1 << 20)


def test_a_declared_length_is_the_width_of_a_private_client(tmp_path: Path) -> None:
    """Whatever its table holds: `text 5` is 5 letters wide, and `text` is 256, in a member's
    process too."""
    (tmp_path / "schema.json").write_text('{"t": "text 5", "u": "text"}')
    for text in ("a", "abcdefgh"):
        (tmp_path / "t.csv").write_text(f"t,u\n{text},b\n")
        table = read_records(
            tmp_path / "t.csv",
            read_schema(tmp_path / "schema.json"),
            total=True,
            notice=pytest.fail,
        )
        how: dict[str, Any] = {"columns": pack_columns([table]), "lengths": table.lengths}
        config = MemberConfig(
            run=RunConfig(run="r", broker="b", budget=1.0), member="m", group="g", start=0, **how
        )
        for role in (
            ClientRole("m", 0, table, SystemNoise(), MemoryStore(1.0)),
            MemberConfig.from_bytes(config.to_bytes()).role(),
        ):
            assert (role.records["t"].dtype, role.records["u"].dtype) == (
                np.dtype("U5"),
                np.dtype("U256"),
            )
        assert table["t"].tolist() == [text[:5]]
