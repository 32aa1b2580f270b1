"""The messages and their MessagePack form: strict, canonical, bounded; names and parameters only, never code."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgpack
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from local_dp.errors import InputError, WireError
from local_dp.oracles.local.asked import CHUNK, ONCE

MAX_BYTES = 1 << 20
MAX_TEXT = 1 << 16  # characters of one parameter: a hypothesis may have thousands of coefficients
VERSION = "ldp/1"
_BEHIND = ".behind"
EVERYBODY = "all"  # the group every member is in
_NAME = r"^[A-Za-z0-9_.-]{1,64}$"
Name: TypeAlias = Annotated[str, Field(pattern=_NAME)]
Index: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 48)]
_Texts: TypeAlias = Annotated[tuple[str, ...], Field(fail_fast=True)]  # one error says enough: a list of all of them took gigabytes
_Numbers: TypeAlias = Annotated[tuple[float, ...], Field(fail_fast=True)]
Parameters: TypeAlias = dict[Name, int | float | Annotated[str, Field(max_length=MAX_TEXT)] | _Texts | _Numbers]
MAX_ASKS = 4096
MAX_WIDTH = 4096  # bytes of one report
Span: TypeAlias = tuple[Index, Index]


class _Message(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    run: Name


class Ask(BaseModel):
    """One local query as data: which question, which randomizer, for the clients start..stop; the key of its public coins; the label of a memoised one."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)

    query: Name
    query_params: Parameters
    randomizer: Name
    randomizer_params: Parameters
    start: Index
    stop: Index
    coins: Annotated[bytes, Field(min_length=16, max_length=16)]
    once: Annotated[str, Field(pattern=ONCE)] = ""


class Request(_Message):
    """Server to a group: the asks of one round, fixed together. `missing` lists the clients asked once more; empty, everybody is asked."""

    kind: Literal["request"] = "request"
    round: Annotated[int, Field(ge=1, lt=1 << 32)]
    asks: Annotated[tuple[Ask, ...], Field(min_length=1, max_length=MAX_ASKS, fail_fast=True)]
    missing: Annotated[tuple[Span, ...], Field(max_length=4096, fail_fast=True)] = ()


class Reply(_Message):
    """A member's reports to one ask of the round, for consecutive clients from `start`, `width` bytes each."""

    kind: Literal["reply"] = "reply"
    round: Annotated[int, Field(ge=1, lt=1 << 32)]
    member: Name
    ask: Annotated[int, Field(ge=0, lt=MAX_ASKS)]
    start: Index
    width: Annotated[int, Field(ge=1, le=MAX_WIDTH)]
    reports: bytes


class Refusal(_Message):
    """A member will not answer for the clients start..stop: a code for machines and a line for people."""

    kind: Literal["refusal"] = "refusal"
    round: Annotated[int, Field(ge=1, lt=1 << 32)]
    member: Name
    start: Index
    stop: Index
    code: Name
    text: Annotated[str, Field(max_length=1000)]


class Absent(_Message):
    """A shuffler has no reports for the places start..stop of an ask: so many clients have not answered, have refused, or were no crowd. Never which."""

    kind: Literal["absent"] = "absent"
    round: Annotated[int, Field(ge=1, lt=1 << 32)]
    member: Name
    ask: Annotated[int, Field(ge=0, lt=MAX_ASKS)]
    start: Index
    stop: Index
    why: Literal["missing", "refused", "crowd"]
    code: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{0,64}$")] = ""  # under which the first refused


class Hello(_Message):
    """A member is here, with the clients start..stop."""

    kind: Literal["hello"] = "hello"
    member: Name
    start: Index
    stop: Index


class Gone(_Message):
    """A member's will: the broker says it when the member's connection breaks."""

    kind: Literal["gone"] = "gone"
    member: Name


class Roll(_Message):
    """Server to everybody: say hello."""

    kind: Literal["roll"] = "roll"


class End(_Message):
    """Server to everybody: the run is over."""

    kind: Literal["end"] = "end"


AnyMessage: TypeAlias = Request | Reply | Refusal | Absent | Hello | Gone | Roll | End


@dataclass(frozen=True)
class Side:
    """Who hears: the messages that may come, by their kind, and the largest shapes in them, which are checked before anything of a message is."""

    kinds: Mapping[str, type[AnyMessage]]
    containers: int  # maps and arrays in one message
    map_length: int
    array_length: int
    text: int  # bytes of one text


SERVER = Side({"reply": Reply, "refusal": Refusal, "absent": Absent, "hello": Hello, "gone": Gone}, 1, 16, 0, 4000)
CLIENT = Side({"request": Request, "roll": Roll, "end": End}, 8 * MAX_ASKS, 64, 1 << 16, 4 * MAX_TEXT)
EITHER = Side({**SERVER.kinds, **CLIENT.kinds}, CLIENT.containers, 64, 1 << 16, 4 * MAX_TEXT)  # for whoever only watches


def check_name(run: str) -> None:
    """Raises InputError unless `run` can be part of a topic."""
    if not re.fullmatch(_NAME, run):
        raise InputError(f"the run's name is {run!r}; give 1 to 64 letters, digits, '.', '_' or '-'")


def encode(message: BaseModel) -> bytes:
    """The canonical bytes of a message."""
    packed: bytes = msgpack.packb(message.model_dump(), use_bin_type=True)
    return packed


def decode(payload: bytes, side: Side = EITHER) -> AnyMessage:
    """The message in `payload`, of a kind that `side` may be sent. Raises WireError unless it is one, in canonical form.

    Size and shape come first, then the kind, then that kind's schema alone, up to its first error: junk costs what reading it costs, at most some megabytes.
    """
    if len(payload) > MAX_BYTES:
        raise WireError(f"a message of {len(payload)} bytes; {MAX_BYTES} is the most")
    try:
        data = _unpacked(payload, side)
        kind = side.kinds.get(data["kind"])
        if kind is None:
            raise WireError("a message of no kind that comes here")
        message = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise WireError(f"not a valid message: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (ValueError, TypeError, KeyError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"not MessagePack as we write it: {error}") from None
    if encode(message) != payload:
        raise WireError("a message that is not in canonical form")
    return message


def _unpacked(payload: bytes, side: Side) -> Any:
    left = side.containers

    def one_less(container: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ValueError(f"more than {side.containers} maps and arrays")
        return container

    limits = {"max_str_len": side.text, "max_array_len": side.array_length, "max_map_len": side.map_length, "max_ext_len": 0}
    return msgpack.unpackb(payload, use_list=False, raw=False, ext_hook=_no_extension, object_hook=one_less, list_hook=one_less, **limits)


def per_message(width: int) -> int:
    """How many reports of `width` bytes travel in one message."""
    return min(CHUNK, MAX_BYTES // 2 // width)


def behind(run: str) -> str:
    """The name of a run as its server knows it, where a shuffler stands between it and the clients. Raises InputError for a name that leaves no room."""
    check_name(run + _BEHIND)
    return run + _BEHIND


def _no_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"extension type {code}")


def topic(run: str, leaf: str, group: str, member: str = "") -> str:
    """Where messages of a run go: requests to `req/GROUP`, replies, hellos and wills to `rep|hello|gone/GROUP/MEMBER`."""
    return f"{VERSION}/{run}/{leaf}/{group}" + (f"/{member}" if member else "")
