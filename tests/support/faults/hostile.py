"""Messages that no honest role sends: requests of a hostile server, another question under a name
that was asked, fields and bytes changed on the way."""

from collections.abc import Callable
from functools import lru_cache

from local_dp.server.round import Round
from local_dp.wire import AnyMessage, Ask, Hello, Refusal, Reply, Request, encode
from tests.support.faults.client import RUN
from tests.support.faults.server import CLIENTS, ROUNDS, SESSION

EPSILONS: tuple[object, ...] = (
    0,
    -5,
    5e-324,
    1e-17,
    1e-10,
    1e-9,
    0.25,
    1.0,
    1,
    24.0,
    25,
    1e300,
    -0.0,
    (1 << 63) - 1,
    "1",
    (1.0,),
    ("1",),
)


def _ask(**changes: object) -> Ask:
    return Round(RUN, 1, ROUNDS[0], 1).request().asks[0].model_copy(update=changes)


def _step(**changes: object) -> Ask:
    return Round(RUN, 1, ROUNDS[-2], 1).request().asks[0].model_copy(update=changes)


@lru_cache(4096)
def hostile(which: int, name: int) -> Request:
    """A request that a hostile server may send, under a round and a run of its choice."""
    run, number = (RUN, f"run-{name % 7}")[name % 2], 1 + name // 2 % 6
    return Request(run=run, round=number, asks=_ASKS[which % len(_ASKS)])


_ASKS: tuple[tuple[Ask, ...], ...] = (
    *((_ask(randomizer_params={"epsilon": epsilon}),) for epsilon in EPSILONS),
    *((_ask(randomizer_params={"epsilon": 1.0, "stated": claim}),) for claim in (1e-9, 0.1)),
    *(
        (each,)
        for each in (_ask(randomizer_params={}), _ask(randomizer="no-such"), _ask(query="no-such"))
    ),
    *((_ask(query_params={"text": text}),) for text in ("income == 1", "yes ==")),
    (_ask(once="weekly", randomizer_params={"epsilon": 0.5}),),
    (_ask(once="monthly"), _ask(once="monthly")),
    tuple(_ask(randomizer_params={"epsilon": 0.3}) for _ in range(4)),
    (_step(),),
    (_step(), _step(query_params={"path": "0", "first": 0})),
    (_step(randomizer_params={"epsilon": 0.2}),),
    (_ask(once=SESSION, randomizer_params={"epsilon": 0.4}),),
    (_step(once=""),),
    *((_ask(start=start, stop=stop),) for start, stop in ((1, 1 << 40), (3, 3), (2, 1))),
    (_ask(coins=b"\xff" * 16),),
)


def equivocated(request: Request, how: int) -> Request:
    ask = request.asks[how // 8 % len(request.asks)]
    others = (
        {"query_params": {"text": "yes == 0"}}, {"randomizer_params": {"epsilon": 0.2}},
        {"coins": bytes(16)}, {"once": "other"},
        {"stop": ask.stop + 1}, {"start": 0, "stop": CLIENTS},
        {"randomizer": "grr", "randomizer_params": {"epsilon": 0.3, "k": 2}},
    )  # fmt: skip
    variant = ask.model_copy(update=others[how % len(others)])
    asks = tuple(variant if each is ask else each for each in request.asks)
    return request.model_copy(update={"asks": asks if how % 3 else (*asks, ask)})


def corrupted(message: AnyMessage, how: int) -> bytes:
    """A message with one field or one byte changed."""
    change = _CHANGES.get(type(message))
    if how % 3 == 0 or change is None:
        data = bytearray(encode(message))
        data[how // 3 % len(data)] ^= 1 << how % 8
        return bytes(data)
    return encode(message.model_copy(update=change(message, how // 3)))


def _of_reply(reply: Reply, how: int) -> dict[str, object]:
    changes: tuple[dict[str, object], ...] = (
        {"start": reply.start + 1}, {"round": reply.round + 1}, {"member": f"c{how % CLIENTS}"},
        {"member": f"c{how % CLIENTS}", "start": how % CLIENTS},
        {"reports": bytes(byte ^ 1 for byte in reply.reports)}, {"reports": reply.reports * 3},
        {"reports": b""},
        {"ask": reply.ask + 1}, {"width": 2}, {"run": "run-2"},
    )  # fmt: skip
    return changes[how % len(changes)]


def _of_request(request: Request, how: int) -> dict[str, object]:
    changes: tuple[dict[str, object], ...] = (
        {"round": request.round + 1},
        {"run": "run-2"},
        {"missing": ((how % CLIENTS, CLIENTS),)},
        {"missing": ((9, 9),)},
    )
    return changes[how % len(changes)]


def _of_span(message: Refusal | Hello, how: int) -> dict[str, object]:
    spans: tuple[dict[str, object], ...] = (
        {"start": 0, "stop": CLIENTS},
        {"start": message.stop},
        {"stop": 1 << 40},
    )
    changes: tuple[dict[str, object], ...] = (
        *spans,
        {"member": f"c{how % CLIENTS}"},
        {"member": "stranger"},
    )
    return changes[how % len(changes)]


_CHANGES: dict[type, Callable[..., dict[str, object]]] = {
    Reply: _of_reply,
    Request: _of_request,
    Refusal: _of_span,
    Hello: _of_span,
}
