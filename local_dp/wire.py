"""The messages and their MessagePack form: strict, canonical, bounded; names and parameters only,
never code."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from math import isfinite
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import msgpack
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from local_dp.errors import InputError, WireError
from local_dp.oracles.local.asked import CHUNK, LocalQuery
from local_dp.oracles.local.memory import LABEL

MAX_BYTES = 1 << 20
MAX_TEXT = 1 << 16  # characters of one parameter: a hypothesis may have thousands of coefficients
VERSION = "ldp/1"
_BEHIND = ".behind"
EVERYBODY = "all"  # the group every member is in
_NAME = r"\A[A-Za-z0-9_.-]{1,64}\Z"
Name: TypeAlias = Annotated[str, Field(pattern=_NAME)]
Index: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 48)]
Round: TypeAlias = Annotated[int, Field(ge=1, lt=1 << 32)]
# one error says enough: a list of all of them took gigabytes
_Texts: TypeAlias = Annotated[tuple[str, ...], Field(fail_fast=True)]
_Numbers: TypeAlias = Annotated[tuple[float, ...], Field(fail_fast=True)]
Parameters: TypeAlias = dict[
    Name, int | float | Annotated[str, Field(max_length=MAX_TEXT)] | _Texts | _Numbers
]
MAX_ASKS = 4096
Place: TypeAlias = Annotated[int, Field(ge=0, lt=MAX_ASKS)]
MAX_WIDTH = 4096  # bytes of one report
MAX_RECEIPTS = 4096
MAX_MISSING = 4096  # spans in one message
MAX_LINES = 1 << 14  # rounds in one account
Span: TypeAlias = tuple[Index, Index]
Spans: TypeAlias = Annotated[tuple[Span, ...], Field(max_length=MAX_MISSING, fail_fast=True)]
Checksum: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 64)]
# a round, its reports, their checksum
Line: TypeAlias = tuple[Round, Index, Checksum]


# patterns by Python's own engine: pydantic's makes a state for each place of a name when it first
# meets it, in each process anew
_STRICT = ConfigDict(
    strict=True, extra="forbid", frozen=True, allow_inf_nan=False, regex_engine="python-re"
)


class _Message(BaseModel):
    model_config = _STRICT

    run: Name


class _Later(BaseModel):
    model_config = _STRICT

    later: ClassVar[str]  # the field that older members do not read

    @model_serializer(mode="wrap")
    def _without_nothing(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The fields, without an empty later one."""
        return {name: value for name, value in plain(self).items() if name != self.later or value}


class Ask(_Later):
    """One local query as data: the question and the randomizer for the clients start..stop; the key
    of its public coins; the label of a memoised one; a digest of the plug-ins that it needs."""

    later = "source"

    query: Name
    query_params: Parameters
    randomizer: Name
    randomizer_params: Parameters
    start: Index
    stop: Index
    coins: Annotated[bytes, Field(min_length=16, max_length=16)]
    once: Annotated[str, Field(pattern=LABEL)] = ""
    source: Annotated[bytes, Field(max_length=16)] = b""

    @classmethod
    def of(cls, query: LocalQuery, coins: bytes, source: bytes = b"") -> "Ask":
        question, randomizer = query.query, query.randomizer
        return cls(
            query=question.name,
            query_params=question.params(),
            randomizer=randomizer.name,
            randomizer_params=randomizer.params(),
            start=query.cohort.start,
            stop=query.cohort.stop,
            coins=coins,
            once=query.label,
            source=source,
        )


class Request(_Message):
    """Server to a group: the asks of one round, fixed together. `missing` lists the clients asked
    once more; empty, everybody is asked."""

    kind: Literal["request"] = "request"
    round: Round
    asks: Annotated[tuple[Ask, ...], Field(min_length=1, max_length=MAX_ASKS, fail_fast=True)]
    missing: Spans = ()


class Reply(_Message):
    """A member's reports to one ask of the round, for consecutive clients from `start`, `width`
    bytes each."""

    kind: Literal["reply"] = "reply"
    round: Round
    member: Name
    ask: Place
    start: Index
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)]
    reports: bytes


class Refusal(_Message):
    """A member will not answer for the clients start..stop: a code for machines and a line for
    people."""

    kind: Literal["refusal"] = "refusal"
    round: Round
    member: Name
    start: Index
    stop: Index
    code: Name
    text: Annotated[str, Field(max_length=1000)]


class Absent(_Message):
    """A shuffler has no reports for the places start..stop of an ask: as many clients were missing,
    refused, or were no crowd. Never which."""

    kind: Literal["absent"] = "absent"
    round: Round
    member: Name
    ask: Place
    start: Index
    stop: Index
    why: Literal["missing", "refused", "crowd"]
    # under which the first refused
    code: Annotated[str, Field(pattern=r"\A[A-Za-z0-9_.-]{0,64}\Z")] = ""


class Receipt(_Message):
    """Server to a group: the reports of a round that are stored, as spans of clients with a
    checksum of each."""

    kind: Literal["receipt"] = "receipt"
    round: Round
    accepted: Annotated[
        tuple[tuple[Index, Index, Checksum], ...],
        Field(min_length=1, max_length=MAX_RECEIPTS, fail_fast=True),
    ]


class Account(_Message):
    """A member's account when the run is over: for each answered round, the number of charged
    reports and their checksum."""

    kind: Literal["account"] = "account"
    member: Name
    rounds: Annotated[tuple[Line, ...], Field(max_length=MAX_LINES, fail_fast=True)]


class Hello(_Message):
    """A member is here, with the clients start..stop, and says whether it answers in private."""

    kind: Literal["hello"] = "hello"
    member: Name
    start: Index
    stop: Index
    private: bool


class Gone(_Message):
    """A member's will: the broker sends it when the member's connection breaks."""

    kind: Literal["gone"] = "gone"
    member: Name


class Roll(_Later, _Message):
    """Server to everybody: say hello. `missing` lists the clients whose members are called; without
    it, everybody is."""

    later = "missing"

    kind: Literal["roll"] = "roll"
    missing: Spans = ()

    def calls(self, start: int, stop: int) -> bool:
        """True if the member with the clients start..stop is called."""
        return not self.missing or any(low < stop and start < high for low, high in self.missing)


class End(_Message):
    """Server to everybody: the run is over."""

    kind: Literal["end"] = "end"


AnyMessage: TypeAlias = (
    Request | Reply | Refusal | Absent | Receipt | Account | Hello | Gone | Roll | End
)


@dataclass(frozen=True)
class Side:
    """A receiving side: the kinds of its messages, and their largest shapes, which are checked
    first."""

    kinds: Mapping[str, type[AnyMessage]]
    containers: int  # maps and arrays in one message
    map_length: int
    array_length: int
    text: int  # bytes of one text


SERVER = Side(
    {
        "reply": Reply,
        "refusal": Refusal,
        "absent": Absent,
        "account": Account,
        "hello": Hello,
        "gone": Gone,
    },
    2 + MAX_LINES,
    16,
    MAX_LINES,
    4000,
)
CLIENT = Side(
    {"request": Request, "receipt": Receipt, "roll": Roll, "end": End},
    8 * MAX_ASKS,
    64,
    1 << 16,
    4 * MAX_TEXT,
)
EITHER = replace(CLIENT, kinds={**SERVER.kinds, **CLIENT.kinds})  # for a reader of both sides


def check_name(name: str, what: str = "the run's name") -> None:
    """Raises InputError unless `name` can be part of a topic."""
    if not re.fullmatch(_NAME, name):
        raise InputError(f"{what} is {name!r}; give 1 to 64 letters, digits, '.', '_' or '-'")


def encode(message: BaseModel) -> bytes:
    """The canonical bytes of a message."""
    payload: bytes = msgpack.packb(message.model_dump(), use_bin_type=True)
    return payload


def decode(payload: bytes, side: Side = EITHER) -> AnyMessage:
    """The message in `payload`, of a kind that `side` may be sent. Raises WireError unless it is
    one, in canonical form.

    Size and shape come first, then the kind, then that kind's schema alone, up to its first error:
    junk costs what reading it costs, at most some megabytes.
    """
    if len(payload) > MAX_BYTES:
        raise WireError(f"a message of {len(payload)} bytes; {MAX_BYTES} is the most", "oversized")
    try:
        data = _unpack(payload, side)
        kind = side.kinds.get(data["kind"])
        if kind is None:
            raise WireError("a message of no kind that comes here", "unknown-kind")
        message = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise WireError(
            f"not a valid message: {path}: {first['msg']}", _mistake(first["type"], first["input"])
        ) from None
    except (
        ValueError,
        TypeError,
        KeyError,
        RecursionError,
        msgpack.exceptions.UnpackException,
    ) as error:
        raise WireError(f"not MessagePack as we write it: {error}", _misread(error)) from None
    if encode(message) != payload:
        raise WireError(
            "a message that is not in canonical form",
            "repeated-key" if _repeats(payload) else "not-canonical",
        )
    return message


def _unpack(payload: bytes, side: Side) -> Any:
    left = side.containers

    def one_less(container: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {side.containers} maps and arrays")
        return container

    # each takes a byte at least
    hooks: dict[str, Any] = (
        {} if len(payload) <= left else {"object_hook": one_less, "list_hook": one_less}
    )
    limits = {
        "max_str_len": side.text,
        "max_array_len": side.array_length,
        "max_map_len": side.map_length,
        "max_ext_len": 0,
    }
    return msgpack.unpackb(
        payload, use_list=False, raw=False, ext_hook=_no_extension, **hooks, **limits
    )


def _repeats(payload: bytes) -> bool:
    """True if a map of the message has a name twice."""
    repeats = 0

    def collect(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        values = dict(pairs)
        repeats += len(pairs) - len(values)
        return values

    msgpack.unpackb(payload, use_list=False, raw=False, object_pairs_hook=collect)
    return repeats > 0


def _mistake(kind: str, value: object) -> str:
    """The counter of a message that its kind's schema does not allow."""
    if isinstance(value, float) and not isfinite(value):
        return "not-finite"
    return {"extra_forbidden": "unknown-field", "missing": "missing-field"}.get(
        kind, "wrong-type" if kind.endswith("_type") else "wrong-value"
    )


def _misread(error: Exception) -> str:
    """The counter of bytes that are no message, by msgpack's error."""
    if isinstance(error, msgpack.exceptions.ExtraData):
        return "trailing-bytes"
    if isinstance(error, msgpack.exceptions.StackError | RecursionError):
        return "too-deep"
    if isinstance(error, KeyError):
        return "unknown-kind"
    text = str(error)
    if "ext_len" in text or "extension" in text:
        return "extension"
    long = "exceeds max" in text or text.startswith("more than")
    return "too-long" if long else "malformed"


def checksum(reply: Reply) -> int:
    """A checksum of a reply: its reports, clients and request; several are joined by exclusive
    or."""
    what = f"{reply.round} {reply.ask} {reply.start} {reply.width} ".encode()
    return int.from_bytes(blake2b(what + reply.reports, digest_size=8).digest())


def per_message(width: int) -> int:
    """How many reports of `width` bytes travel in one message."""
    return min(CHUNK, MAX_BYTES // 2 // width)


def behind(run: str) -> str:
    """The name of a run as its server knows it, where a shuffler stands between it and the clients.
    Raises InputError for a name that leaves no room."""
    check_name(run + _BEHIND)
    return run + _BEHIND


def _no_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"extension type {code}")


def topic(run: str, leaf: str, group: str, member: str = "") -> str:
    """Where messages of a run go: requests to `req/GROUP`, replies, hellos and wills to
    `rep|hello|gone/GROUP/MEMBER`."""
    return f"{VERSION}/{run}/{leaf}/{group}" + (f"/{member}" if member else "")


FAILED = "failed"
NAMED = 3  # names in a line
TEXTS = {
    "budget": "round {round} costs more than this client's budget has left for it",
    "store": "this client cannot read or write its store of spent budget; see its own messages",
    "ceiling": (
        "round {round} exceeds this client's ceiling of rounds or bytes, or asks for less epsilon "
        "than its least"
    ),
    "equivocation": (
        "round {round} of run {run}, or a label in it, was asked before with something else; give "
        "it a name of its own"
    ),
    "unknown-query": "this client lacks a query of {queries}; install its package there",
    "unknown-randomizer": (
        "this client lacks a randomizer of {randomizers}; install its package there"
    ),
    "not-allowed": (
        "a randomizer of {randomizers} is not on this client's list; ask by another, or --allow "
        "it there"
    ),
    "bad-parameters": (
        "this client accepts no such parameter of {queries} or {randomizers}; correct it"
    ),
    "bad-query": (
        "{queries} does not fit the columns of this client's table, or the values that "
        "{randomizers} takes; correct the question, or its schema"
    ),
    "other-code": (
        "this client has other code of {queries} or {randomizers} than the server; give both the "
        "same file or package"
    ),
    "evidence": (
        "this client does not accept the evidence for the loss of {randomizers}; use a verified "
        "randomizer"
    ),
    "too-much": (
        "to build and verify {randomizers} is more work than this client does for one request, or "
        "in its life"
    ),
    "unverifiable": (
        "{randomizers} failed the verification; `local-dp audit` on the client's machine shows why"
    ),
    FAILED: "round {round} cannot be answered",
}


def known(code: str) -> str:
    """The code, if it is one that a client gives."""
    return code if code in TEXTS else FAILED


def reason(code: str, request: Request) -> str:
    queries = _names(request.asks, "query")
    randomizers = _names(request.asks, "randomizer")
    return TEXTS[code].format(
        run=request.run, round=request.round, queries=queries, randomizers=randomizers
    )


def _names(asks: Iterable[Ask], what: str) -> str:
    names = list(dict.fromkeys(getattr(ask, what) for ask in asks))
    more = f" and {len(names) - NAMED} more"
    return ", ".join(names[:NAMED]) + (more if len(names) > NAMED else "")
