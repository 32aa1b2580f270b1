"""The messages and their MessagePack form: strict, canonical, bounded; names and parameters only, never code."""

import re
from typing import Annotated, Any, Literal, TypeAlias

import msgpack
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

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
Parameters: TypeAlias = dict[Name, int | float | Annotated[str, Field(max_length=MAX_TEXT)] | tuple[str, ...] | tuple[float, ...]]
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
    asks: Annotated[tuple[Ask, ...], Field(min_length=1, max_length=MAX_ASKS)]
    missing: Annotated[tuple[Span, ...], Field(max_length=4096)] = ()


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
    """A member is here, with the clients start..stop, and says whether it answers in private."""

    kind: Literal["hello"] = "hello"
    member: Name
    start: Index
    stop: Index
    private: bool


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
_ADAPTER: TypeAdapter[AnyMessage] = TypeAdapter(Annotated[AnyMessage, Field(discriminator="kind")])


def check_name(run: str) -> None:
    """Raises InputError unless `run` can be part of a topic."""
    if not re.fullmatch(_NAME, run):
        raise InputError(f"the run's name is {run!r}; give 1 to 64 letters, digits, '.', '_' or '-'")


def encode(message: BaseModel) -> bytes:
    """The canonical bytes of a message."""
    packed: bytes = msgpack.packb(message.model_dump(), use_bin_type=True)
    return packed


def decode(payload: bytes) -> AnyMessage:
    """The message in `payload`. Raises WireError unless it is one of ours, in canonical form."""
    if len(payload) > MAX_BYTES:
        raise WireError(f"a message of {len(payload)} bytes; {MAX_BYTES} is the most")
    try:
        data: Any = msgpack.unpackb(payload, use_list=False, raw=False, ext_hook=_no_extension)
        message = _ADAPTER.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise WireError(f"not a valid message: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    except (ValueError, TypeError, RecursionError, msgpack.exceptions.UnpackException) as error:
        raise WireError(f"not MessagePack as we write it: {error}") from None
    if encode(message) != payload:
        raise WireError("a message that is not in canonical form")
    return message


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
