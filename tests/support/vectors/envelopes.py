"""Signed envelopes: their bytes, and forged ones."""

from hashlib import blake2b

from local_dp.errors import ForgedError
from local_dp.sealing import SIGNATURE, Party, public
from local_dp.wire import End, Hello, Reply, encode, topic
from tests.support.vectors.files import Case, File

ORDER = (1 << 252) + 27742317777372353535851937790883648493  # of the base point of Ed25519
RUN = "class-1"
KEYS = {
    name: blake2b(name.encode(), digest_size=32).digest()
    for name in ("server", "member", "stranger")
}
TO_ALL = topic(RUN, "req", "all")
FROM_ONE = topic(RUN, "rep", "g0", "client-7")
MESSAGES = {
    "the end, by the server": ("server", TO_ALL, encode(End(run=RUN))),
    "a hello": (
        "member",
        topic(RUN, "hello", "g0", "client-7"),
        encode(Hello(run=RUN, member="client-7", start=7, stop=8, private=True)),
    ),
    "a reply": (
        "member",
        FROM_ONE,
        encode(Reply(run=RUN, round=1, member="client-7", ask=0, start=7, width=1, reports=b"\1")),
    ),
    "one byte": ("member", FROM_ONE, b"\0"),
    "a topic in another script": ("member", "ldp/1/class-1/rep/g0/é", b"\0"),
}


def cases() -> dict[str, Case]:
    return {
        **{f"sealed: {name}": _sealing(*what) for name, what in MESSAGES.items()},
        **{f"opened: {name}": given for name, given in _opened()},
    }


def _sealing(signer: str, topic: str, message: bytes) -> Case:
    return {
        "seal": {
            "run": RUN,
            "server": public(KEYS["server"]).hex(),
            "private": KEYS[signer].hex(),
            "topic": topic,
            "message": message.hex(),
        }
    }


def _opened() -> list[tuple[str, Case]]:
    server = public(KEYS["server"])
    message = MESSAGES["the end, by the server"][2]
    good = Party(RUN, server, KEYS["server"], lambda topic: server).seal(TO_ALL, message)
    changed = [
        good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]
        for at in (0, 31, 32, 63, 64, len(good) - 1)
    ]
    unreduced = (
        good[:32] + (int.from_bytes(good[32:64], "little") + ORDER).to_bytes(32, "little") + message
    )
    stranger = Party(RUN, server, KEYS["stranger"], lambda topic: server).seal(TO_ALL, message)
    other_run = Party("class-2", server, KEYS["server"], lambda topic: server).seal(TO_ALL, message)
    other_server = Party(RUN, public(KEYS["stranger"]), KEYS["server"], lambda topic: server).seal(
        TO_ALL, message
    )
    given = [
        ("as sent", good, TO_ALL),
        *(
            (f"with another bit at byte {at}", bytes_, TO_ALL)
            for at, bytes_ in zip((0, 31, 32, 63, 64, "the end"), changed, strict=True)
        ),
    ]
    given += [
        ("under another topic", good, topic(RUN, "req", "g0")),
        ("by a stranger", stranger, TO_ALL),
        ("of another run", other_run, TO_ALL),
        ("of another server's run", other_server, TO_ALL),
        ("with s beyond the order", unreduced, TO_ALL),
        ("without a message", good[:SIGNATURE], TO_ALL),
        ("with half of a signature", good[:32], TO_ALL),
        ("unsigned", message, TO_ALL),
        ("empty", b"", TO_ALL),
        ("with a byte more", good + b"\0", TO_ALL),
    ]
    return [
        (
            name,
            {
                "open": {
                    "run": RUN,
                    "server": server.hex(),
                    "speaker": server.hex(),
                    "topic": where,
                    "envelope": envelope.hex(),
                }
            },
        )
        for name, envelope, where in given
    ]


def expected(given: Case) -> Case:
    if "seal" in given:
        what = given["seal"]
        private = bytes.fromhex(what["private"])
        party = Party(what["run"], bytes.fromhex(what["server"]), private, lambda topic: None)
        return {
            "public": public(private).hex(),
            "envelope": party.seal(what["topic"], bytes.fromhex(what["message"])).hex(),
        }
    what = given["open"]
    speaker = bytes.fromhex(what["speaker"])
    party = Party(
        what["run"], bytes.fromhex(what["server"]), KEYS["stranger"], lambda topic: speaker
    )
    try:
        return {"message": party.open(what["topic"], bytes.fromhex(what["envelope"])).hex()}
    except ForgedError:
        return {"forged": True}


ENVELOPES = File(
    "envelopes",
    (
        "A message signed by a private key in the run of a server, and envelopes that are opened "
        "or dropped."
    ),
    cases,
    expected,
)
