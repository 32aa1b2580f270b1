"""Sequences of requests against a budget: what is answered, spent and confirmed after each, and the
account at the end."""

from typing import Any

from local_dp.clients.role import ClientRole
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.wire import CLIENT, Ask, Receipt, decode, encode
from tests.support.vectors.clients import answers, client, member
from tests.support.vectors.files import Case, File
from tests.support.vectors.messages import RUN, ask
from tests.support.vectors.refusals import GRADE
from tests.support.vectors.replies import asked, of

FLIPS, KEEPS = [["0"]], [["4294967295"]]


def _say(request: bytes, words: list[list[str]] | None = None) -> Case:
    return {"request": request.hex(), "words": words or []}


def cases() -> dict[str, Case]:
    def rr(epsilon: float, **changes: Any) -> Ask:
        return ask(randomizer_params={"epsilon": epsilon, "word_bits": 32}, **changes)

    first, again = of(ask()), of(ask(), missing=((7, 8),))
    label = {"once": "wave"}
    sequences: dict[str, list[Case]] = {
        "the same request again, with other words at hand": [
            _say(first, FLIPS),
            _say(first, KEEPS),
            _say(again, KEEPS),
            _say(of(ask(), missing=((0, 7),)), KEEPS),
        ],
        "first asked as one of the missing": [_say(again, FLIPS), _say(first, KEEPS)],
        "not asked, then asked": [
            _say(of(ask(start=50))),
            _say(first, FLIPS),
            _say(of(ask(start=50))),
        ],
        "another request under the round": [
            _say(first, FLIPS),
            _say(of(rr(0.5)), KEEPS),
            _say(first, KEEPS),
        ],
        "other coins under the round": [_say(first, FLIPS), _say(of(ask(coins=bytes(16))), KEEPS)],
        "another stop under the round": [_say(first, FLIPS), _say(of(ask(stop=101)), KEEPS)],
        "epsilon as a whole number under the round": [
            _say(first, FLIPS),
            _say(of(ask(randomizer_params={"epsilon": 1, "word_bits": 32})), KEEPS),
        ],
        "an equal split to the last": [_say(of(rr(0.2), round=at), FLIPS) for at in range(1, 12)],
        "a tenth too often": [
            _say(of(rr(0.7), round=1), FLIPS),
            _say(of(rr(0.7), round=2), FLIPS),
            _say(of(rr(0.6), round=3), FLIPS),
            _say(of(rr(1e-6), round=4)),
        ],
        "just within": [_say(of(rr(1.999999999), round=1), FLIPS), _say(of(rr(1e-6), round=2))],
        "a refusal leaves the round open": [_say(of(rr(2.5))), _say(of(rr(1.0)), FLIPS)],
        "several runs and a life": [_say(of(rr(2.0), run=f"run-{at}"), FLIPS) for at in range(3)]
        + [_say(of(rr(1.0), run="run-3"), FLIPS), _say(of(rr(1e-6), run="run-4"))],
        "rounds out of order": [_say(of(rr(0.5), round=at), FLIPS) for at in (3, 1, 2)],
        "all asks or none": [
            _say(of(rr(1.5)), FLIPS),
            _say(of(rr(0.25), rr(0.5), round=2)),
            _say(of(rr(0.25), rr(0.25), round=2), [["0"], ["0"]]),
        ],
        "a round not counted as two": [
            _say(first, FLIPS),
            _say(first, FLIPS),
            _say(of(ask(), round=2), FLIPS),
            _say(of(rr(1e-6), round=3)),
        ],
        "labels: paid once": [
            _say(of(rr(1.0, **label), round=at), words)
            for at, words in ((1, FLIPS), (2, KEEPS), (3, KEEPS))
        ],
        "labels: another question": [
            _say(of(rr(1.0, **label)), FLIPS),
            _say(of(rr(1.0, query_params={"text": "cheated == 0", "spare": ()}, **label), round=2)),
        ],
        "labels: another randomizer": [
            _say(of(rr(0.5, **label)), FLIPS),
            _say(of(rr(0.75, **label), round=2)),
            _say(of(rr(0.75, once="other"), round=2), FLIPS),
        ],
        "labels: in two asks": [_say(of(rr(1.0, **label), rr(1.0, **label)), [*FLIPS, *KEEPS])],
        "labels: other coins": [
            _say(of(rr(1.0, **label)), FLIPS),
            _say(of(rr(1.0, coins=bytes(16), **label), round=2)),
        ],
    }
    made = {name: member(steps=steps, runs=_runs(name)) for name, steps in sequences.items()}
    three = [{"cheated": ["whole", digit]} for digit in "010"]
    receipts = [
        {"receipt": encode(Receipt(run=run, round=number, accepted=spans)).hex()}
        for run, number, spans in (
            (RUN, 1, ((7, 8, 5),)),
            (RUN, 2, ((7, 8, _checksum(first)),)),
            ("class-2", 1, ((7, 8, _checksum(first)),)),
            (RUN, 1, ((7, 9, _checksum(first)),)),
            (RUN, 1, ((1, 2, 3), (7, 8, _checksum(first)))),
        )
    ]
    return {
        **made,
        "receipts": member(steps=[_say(first, FLIPS), *receipts], runs=[RUN]),
        "the list of randomizers does not matter again": member(
            steps=[_say(of(asked(GRADE, GRR(0.5, k=3))), [["5"]])] * 2,
            runs=[RUN],
            policy={"allowed": ["grr"]},
        ),
        "two rounds in a life": member(
            steps=[_say(of(rr(0.1), round=at), FLIPS) for at in (1, 2, 3, 1)],
            runs=[RUN],
            policy={"rounds": 2},
        ),
        "three bytes in a life": member(
            steps=[
                _say(of(rr(0.1), rr(0.1)), [["0"]] * 2),
                _say(of(rr(0.1), rr(0.1), round=2)),
                _say(of(rr(0.1), round=2), FLIPS),
            ],
            runs=[RUN],
            policy={"kept": 3},
        ),
        "host: a part of its clients": member(
            records=three,
            runs=[RUN],
            steps=[_say(of(ask(stop=9), round=at), [["0", "0"]]) for at in (1, 2)]
            + [_say(of(rr(1.0, start=9), round=3), [["0"] * 3])]
            + [_say(of(rr(1e-6), round=4)), _say(of(rr(1.0, start=9), round=4), [["0"] * 3])],
        ),
        "host: what is missing": member(
            records=three,
            runs=[RUN],
            steps=[_say(first, [["0"] * 3]), _say(of(ask(), missing=((9, 10),)), [["0"] * 3])],
        ),
    }


def _runs(name: str) -> list[str]:
    return [f"run-{at}" for at in range(5)] if name == "several runs and a life" else [RUN]


def _checksum(request: bytes) -> int:
    """That of the replies of the client of all cases to a request, when it flips."""
    role, noise = client(member())
    answers(role, noise, request, FLIPS)
    return role.account(RUN).rounds[0][2]


def expected(given: Case) -> Case:
    role, noise = client(given)
    steps = [_step(role, noise, step) for step in given["steps"]]
    return {"steps": steps, "accounts": [encode(role.account(run)).hex() for run in given["runs"]]}


def _step(role: ClientRole, noise: Any, step: Case) -> Case:
    if "request" in step:
        return answers(role, noise, bytes.fromhex(step["request"]), step["words"])
    receipt = decode(bytes.fromhex(step["receipt"]), CLIENT)
    assert isinstance(receipt, Receipt)
    role.confirm(receipt)
    return {"confirmed": sorted(map(list, role.confirmed))}


LEDGERS = File(
    "ledgers",
    "What a client answers, spends and keeps, step by step, and its accounts at the end.",
    cases,
    expected,
)
