"""Messages: the canonical bytes of fields, and bytes that are no message."""

from typing import Any

import msgpack

from local_dp.errors import WireError
from local_dp.queries.tables import Bounded, Category
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.wire import (
    CLIENT,
    EITHER,
    MAX_BYTES,
    SERVER,
    Absent,
    Account,
    AnyMessage,
    Ask,
    End,
    Gone,
    Hello,
    Receipt,
    Refusal,
    Reply,
    Request,
    Roll,
    decode,
    encode,
)
from tests.support.vectors.files import Case, File, joined, plain, unplain

RUN = "class-1"
COINS = bytes(range(16))


def ask(**changes: Any) -> Ask:
    """A yes/no question to a hundred clients, with changes."""
    one = {
        "query": "question",
        "query_params": {"text": "cheated == 1", "spare": ()},
        "randomizer": "binary-rr",
        "randomizer_params": BinaryRR(1.0).params(),
        "start": 0,
        "stop": 100,
        "coins": COINS,
    }
    return Ask(**{**one, **changes})


def survey() -> Request:
    """Three questions of three kinds in one round."""
    category = Category("grade", ("good", "so so", "schlecht", "très mal"))
    return Request(
        run=RUN,
        round=1,
        asks=(
            ask(),
            ask(
                query="category",
                query_params=category.params(),
                randomizer="grr",
                randomizer_params=GRR(2.0, k=4).params(),
            ),
            ask(
                query="bounded",
                query_params=Bounded("hours", 0, 40.5).params(),
                randomizer="one-bit-mean",
                randomizer_params=OneBitMean(0.5).params(),
            ),
        ),
    )


def valid() -> dict[str, AnyMessage]:
    """Messages of all ten kinds, and numbers, texts and lists on both sides of each change of
    form."""
    sizes = (1, 127, 128, 255, 256, 65535, 65536, (1 << 32) - 1, 1 << 32, (1 << 48) - 1)
    checksums = (0, 1, 127, 128, (1 << 32), (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)
    numbers = {
        f"n{at}": number
        for at, number in enumerate(
            (
                0,
                -1,
                -32,
                -33,
                -128,
                -129,
                -32768,
                -32769,
                -(1 << 31),
                -(1 << 31) - 1,
                -(1 << 63),
                (1 << 63),
                (1 << 64) - 1,
            )
        )
    }
    doubles = {
        f"x{at}": number
        for at, number in enumerate(
            (0.0, -0.0, 1.0, -1.5, 0.1, 5e-324, 1.7976931348623157e308, 9007199254740992.0)
        )
    }
    return {
        "request": survey(),
        "request again": survey().model_copy(update={"missing": ((0, 3), (7, 8))}),
        "request of later round": Request(run=RUN, round=3, asks=(ask(once="wave.1_a-b"),)),
        "request with whole numbers": Request(run=RUN, round=1, asks=(ask(query_params=numbers),)),
        "request with doubles": Request(
            run=RUN,
            round=1,
            asks=(
                ask(query_params={**doubles, "numbers": (1.0, 2.5), "texts": ("1.0", "", "é😀")}),
            ),
        ),
        "request with a map of 16": Request(
            run=RUN, round=1, asks=(ask(query_params={f"p{at}": at for at in range(16)}),)
        ),
        "request with 16 asks": Request(
            run=RUN,
            round=1,
            asks=tuple(
                ask(query_params={}, randomizer_params={}, start=at, stop=at + 1)
                for at in range(16)
            ),
        ),
        **{
            f"reply from {size}": Reply(
                run=RUN,
                round=min(size, (1 << 32) - 1),
                member="client-7",
                ask=min(size, 4095),
                start=size,
                width=1,
                reports=b"\1",
            )
            for size in sizes
        },
        "reply of 255 bytes": Reply(
            run=RUN, round=1, member="host-0", ask=0, start=0, width=1, reports=bytes(255)
        ),
        "reply of 256 bytes": Reply(
            run=RUN, round=1, member="host-0", ask=0, start=0, width=2, reports=b"\1\2" * 128
        ),
        "refusal": Refusal(
            run=RUN, round=2, member="client-7", start=7, stop=8, code="budget", text="spent"
        ),
        "refusal without text": Refusal(
            run=RUN, round=2, member="client-7", start=7, stop=8, code="store", text=""
        ),
        **{
            f"refusal of {size} letters": Refusal(
                run="r" * 64,
                round=2,
                member="c",
                start=7,
                stop=8,
                code="budget",
                text="ü" + "x" * (size - 2),
            )
            for size in (31, 32, 255, 256)
        },
        "absent": Absent(
            run=RUN,
            round=2,
            member="shuffler",
            ask=0,
            start=3,
            stop=5,
            why="refused",
            code="budget",
        ),
        "absent crowd": Absent(
            run=RUN, round=2, member="shuffler", ask=0, start=3, stop=5, why="crowd"
        ),
        "receipt": Receipt(run=RUN, round=2, accepted=((7, 8, (1 << 64) - 1), (8, 9, 5))),
        "account": Account(
            run=RUN,
            member="client-7",
            rounds=tuple((at + 1, 1, value) for at, value in enumerate(checksums)),
        ),
        "account of nothing": Account(run=RUN, member="client-7", rounds=()),
        "account of 16 rounds": Account(
            run=RUN, member="client-7", rounds=tuple((at + 1, 1, 7) for at in range(16))
        ),
        "hello": Hello(run=RUN, member="client-7", start=7, stop=8, private=True),
        "hello of a simulation": Hello(run=RUN, member="client-7", start=7, stop=8, private=False),
        "gone": Gone(run=RUN, member="client-7"),
        "roll": Roll(run=RUN),
        "roll of the missing": Roll(run=RUN, missing=((0, 7), (300, 70_000))),
        "end": End(run=RUN),
    }


def _packed(message: AnyMessage, **changes: Any) -> bytes:
    """The bytes of a message whose fields are changed, without a check; a field that is None is
    left out."""
    data = {
        name: value
        for name, value in {**message.model_dump(), **changes}.items()
        if value is not None
    }
    packed: bytes = msgpack.packb(data, use_bin_type=True)
    return packed


def _asked(**changes: Any) -> bytes:
    """A request whose ask is changed."""
    one = {
        name: value
        for name, value in {**ask().model_dump(), **changes}.items()
        if value is not None
    }
    return _packed(Request(run=RUN, round=1, asks=(ask(),)), asks=[one])


def _hello(**changes: Any) -> bytes:
    return _packed(Hello(run=RUN, member="client-7", start=7, stop=8, private=True), **changes)


def malformed() -> dict[str, tuple[str, str | list[list[Any]]]]:
    """The receiving side, and bytes that it must drop."""
    request, receipt = (
        encode(Request(run=RUN, round=1, asks=(ask(),))),
        encode(Receipt(run=RUN, round=2, accepted=((7, 8, 5),))),
    )
    roll, hello = encode(Roll(run=RUN)), _hello()
    client: dict[str, str | list[list[Any]] | bytes] = {
        "nothing": b"",
        "a number": b"\x01",
        "no map": b"\x90",
        "a map that ends early": roll[:-1],
        "a byte too many": roll + b"\xc0",
        "a message that clients send": hello,
        "a kind that there is not": _packed(Roll(run=RUN), kind="poll"),
        "no kind": _packed(Roll(run=RUN), kind=None),
        "no run": _packed(Roll(run=RUN), run=None),
        "a field more": _packed(Roll(run=RUN), more=1),
        "fields in another order": msgpack.packb({"kind": "roll", "run": RUN}),
        "a run twice": b"\x83" + roll[1:] + msgpack.packb("run") + msgpack.packb(RUN),
        "a run with a slash": _packed(Roll(run=RUN), run="a/b"),
        "a run with a line's end": _packed(Roll(run=RUN), run="a\n"),
        "a run without letters": _packed(Roll(run=RUN), run=""),
        "a run of 65 letters": _packed(Roll(run=RUN), run="r" * 65),
        "a run in bytes": _packed(Roll(run=RUN), run=b"class-1"),
        "a run that is not UTF-8": roll.replace(b"class-1", b"class\xff1"),
        "a text in a longer form": roll.replace(b"\xa7class-1", b"\xd9\x07class-1"),
        "a map in a longer form": b"\xde\x00\x02" + roll[1:],
        "an extension": b"\xd4\x01\x00",
        "a timestamp": b"\xd6\xff\x00\x00\x00\x00",
        "a map of 2^32 - 1": b"\xdf\xff\xff\xff\xff",
        "a number in a longer form": request.replace(b"\xa5round\x01", b"\xa5round\xcc\x01"),
        "a round 0": request.replace(b"\xa5round\x01", b"\xa5round\x00"),
        "a round that is a fraction": _packed(survey(), round=1.0, asks=[ask().model_dump()]),
        "a round that is a truth value": _packed(survey(), round=True, asks=[ask().model_dump()]),
        "no ask": _packed(survey(), asks=[]),
        "no missing": request.replace(b"\x85", b"\x84", 1).removesuffix(b"\xa7missing\x90"),
        "missing is nil": _packed(survey(), asks=[ask().model_dump()]).removesuffix(b"\x90")
        + b"\xc0",
        "a span of three": _packed(survey(), asks=[ask().model_dump()], missing=[(1, 2, 3)]),
        "coins of 15 bytes": _asked(coins=bytes(15)),
        "coins that are text": _asked(coins="0" * 16),
        "a client beyond 2^48": _asked(stop=1 << 48),
        "a client below 0": _asked(start=-1),
        "no once": _asked(once=None),
        "a label with a blank": _asked(once="a b"),
        "a parameter with a blank": _asked(query_params={"a b": 1}),
        "a parameter that is a truth value": _asked(query_params={"text": True}),
        "a parameter that is a map": _asked(query_params={"text": {"a": 1}}),
        "a parameter in bytes": _asked(query_params={"text": b"yes == 1"}),
        "a list of text and numbers": _asked(query_params={"text": ("a", 1.0)}),
        "a list of whole numbers": _asked(query_params={"text": (1, 2)}),
        "a parameter that is infinite": _asked(randomizer_params={"epsilon": float("inf")}),
        "a parameter that is not a number": _asked(randomizer_params={"epsilon": float("nan")}),
        "a double in four bytes": _asked(randomizer_params={"epsilon": 1.0}).replace(
            msgpack.packb(1.0), msgpack.packb(1.0, use_single_float=True)
        ),
        "a roll of nobody": _packed(Roll(run=RUN), missing=[]),
        "a receipt of nothing": _packed(Roll(run=RUN), kind="receipt", round=2, accepted=[]),
        "a checksum of 65 bits": receipt.removesuffix(b"\x05") + b"\xcf" + b"\xff" * 8 + b"\x00",
        "a checksum below 0": receipt.removesuffix(b"\x05") + b"\xff",
        "a map too long": [[b"\xde\x00\x41".hex(), 1], ["a16101", 65]],
        "an array too long": [["81a161dd00010001", 1], ["01", 65537]],
        "a nesting too deep": [["91", 2000], ["01", 1]],
        "too many bytes": [["00", MAX_BYTES + 1]],
    }
    server: dict[str, bytes] = {
        "a message that servers send": roll,
        "a client below 0": _hello(start=-1),
        "private as a number": _hello(private=1),
        "no member": _hello(member=None),
        "a member that is a wildcard": _hello(member="+"),
        "no width": _packed(
            Reply(run=RUN, round=1, member="c", ask=0, start=7, width=1, reports=b"\1"), width=0
        ),
        "an ask 4096": _packed(
            Reply(run=RUN, round=1, member="c", ask=0, start=7, width=1, reports=b"\1"), ask=4096
        ),
        "reports that are text": _packed(
            Reply(run=RUN, round=1, member="c", ask=0, start=7, width=1, reports=b"\1"),
            reports="\1",
        ),
        "a refusal of 1001 letters": _packed(
            Refusal(run=RUN, round=1, member="c", start=7, stop=8, code="budget", text=""),
            text="x" * 1001,
        ),
        "a reason that there is not": _packed(
            Absent(run=RUN, round=2, member="s", ask=0, start=3, stop=5, why="crowd"), why="tired"
        ),
    }
    pieces = {
        **{f"client: {name}": ("client", given) for name, given in client.items()},
        **{f"server: {name}": ("server", given) for name, given in server.items()},
    }
    return {
        name: (side, given.hex() if isinstance(given, bytes) else given)
        for name, (side, given) in pieces.items()
    }


SIDES = {"client": CLIENT, "server": SERVER}
KINDS = EITHER.kinds


def cases() -> dict[str, Case]:
    encoded = {name: {"encode": plain(message.model_dump())} for name, message in valid().items()}
    return {
        **encoded,
        **{
            name: {"decode": {"side": side, "bytes": given}}
            for name, (side, given) in malformed().items()
        },
    }


def expected(given: Case) -> Case:
    if "encode" in given:
        fields = unplain(given["encode"])
        message = KINDS[fields["kind"]].model_validate(fields)
        payload = encode(message)
        assert decode(payload, CLIENT if fields["kind"] in CLIENT.kinds else SERVER) == message
        return {"bytes": payload.hex()}
    what = given["decode"]
    try:
        decode(joined(what["bytes"]), SIDES[what["side"]])
    except WireError as error:
        return {"fault": error.kind}
    return {"fault": None}


MESSAGES = File(
    "messages",
    (
        "The canonical bytes of messages, and bytes that a side must drop, with the fault that a "
        "server counts."
    ),
    cases,
    expected,
)
