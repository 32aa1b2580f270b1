"""What is expected of what the cases of each file of vectors give."""

from decimal import Decimal, localcontext
from itertools import product
from typing import Any

import numpy as np

from local_dp.clients.role import ClientRole, Work
from local_dp.errors import ForgedError, InputError, RefusedError, WireError
from local_dp.loss import NANO, nano_epsilon
from local_dp.noise import public_coins
from local_dp.randomizers.evidence import PROVEN, check_loss
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.signed import SignedBlocks
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.sealing import Party, public
from local_dp.wire import CLIENT, EITHER, SERVER, Receipt, decode, encode
from tests.support.vectors.clients import answers, client
from tests.support.vectors.files import Case, File, joined, records_of, unplain

SIDES = {"client": CLIENT, "server": SERVER}


def message(case: Case) -> Case:
    if "encode" in case:
        fields = unplain(case["encode"])
        message = EITHER.kinds[fields["kind"]].model_validate(fields)
        payload = encode(message)
        assert decode(payload, CLIENT if fields["kind"] in CLIENT.kinds else SERVER) == message
        return {"bytes": payload.hex()}
    what = case["decode"]
    try:
        decode(joined(what["bytes"]), SIDES[what["side"]])
    except WireError as error:
        return {"fault": error.kind}
    return {"fault": None}


def envelope(case: Case) -> Case:
    if "seal" in case:
        what = case["seal"]
        private = bytes.fromhex(what["private"])
        party = Party(what["run"], bytes.fromhex(what["server"]), private, lambda topic: None)
        return {
            "public": public(private).hex(),
            "envelope": party.seal(what["topic"], bytes.fromhex(what["message"])).hex(),
        }
    what = case["open"]
    speaker = bytes.fromhex(what["speaker"])
    party = Party(what["run"], bytes.fromhex(what["server"]), bytes(32), lambda topic: speaker)
    try:
        return {"message": party.open(what["topic"], bytes.fromhex(what["envelope"])).hex()}
    except ForgedError:
        return {"forged": True}


def threshold(case: Case) -> Case:
    if "weights" in case:
        return verification(case)
    randomizer = RANDOMIZERS.build(case["randomizer"], unplain(case["params"]))
    assert isinstance(randomizer, FiniteChannel)
    draws = list(product(case["values"], map(int, case["coins"]), map(int, case["words"])))
    values, coins, words = zip(*draws, strict=True)
    cells = randomizer.cells_of(np.array(coins, dtype="u8"))
    reports = randomizer.respond(
        np.array(values), np.array(words, dtype=f"<u{randomizer.width // 8}"), cells
    )
    return {
        "nano": randomizer.nano,
        "exp": _exp(nano_epsilon(randomizer.epsilon)),
        "width": randomizer.report_dtype.itemsize,
        "total": str(randomizer.total),
        "weights": {name: str(weight) for name, weight in _weights(randomizer).items()},
        "reports": [int(report) for report in reports],
    }


def verification(case: Case) -> Case:
    """Of GRR whose channel is replaced by these rows, one for each value."""
    rows = np.array([[*map(int, row)] for row in case["weights"]], dtype=np.uint64)
    members = {"weight": lambda self, reports, values, cells: rows[values, reports]}
    kind = type("Given", (GRR,), members)
    try:
        check_loss(kind(case["nano"] / NANO, k=len(rows), word_bits=case["word_bits"]))
    except RefusedError as error:
        return {"code": error.code}
    return {"code": None}


def _exp(nano: int) -> str:
    """e^epsilon to 60 digits."""
    with localcontext(prec=60):
        return str((Decimal(nano) / NANO).exp())


def _weights(randomizer: FiniteChannel) -> dict[str, int]:
    match randomizer:
        case BinaryRR():
            return {"flip": randomizer.flip}
        case OneBitMean():
            return {"base": randomizer.base, "slope": randomizer.slope}
        case GRR():
            return {"other": randomizer.other, "truth": randomizer.truth}
        case SignedBlocks():
            codes = GRR(randomizer.epsilon, k=randomizer.alphabet, word_bits=randomizer.word_bits)
            return {"blocks": randomizer.blocks, **_weights(codes)}
        case SubsetSelection():
            inner = randomizer.inner
            return {
                "order": inner.k,
                "w": inner.w,
                "multipliers": randomizer.cells,
                "held": inner.held,
                "other": inner.other,
            }
    raise AssertionError(randomizer)


def coin(case: Case) -> Case:
    return {
        "coin": str(
            int(public_coins(bytes.fromhex(case["key"]), case["client"], case["client"] + 1)[0])
        )
    }


def question(case: Case) -> Case:
    """The value is that of the one record of all cases."""
    records = records_of([QUESTIONS.read()["common"]["record"]]).at_length()
    try:
        query = Work(PROVEN, records.schema()).query(case["query"], unplain(case["params"]))
    except RefusedError as error:
        return {"code": error.code}
    except InputError:
        return {"code": "bad-query"}
    place = float(query.values(records)[0])
    return {
        "value": int(place) if place.is_integer() else place,
        "domain": [query.domain.kind, query.domain.low, query.domain.high],
    }


def reply(case: Case) -> Case:
    role, noise = client(case)
    return answers(role, noise, joined(case["request"]), case["words"])


def ledger(case: Case) -> Case:
    role, noise = client(case)
    steps = [_step(role, noise, step) for step in case["steps"]]
    return {"steps": steps, "accounts": [encode(role.account(run)).hex() for run in case["runs"]]}


def _step(role: ClientRole, noise: Any, step: Case) -> Case:
    if "request" in step:
        return answers(role, noise, bytes.fromhex(step["request"]), step["words"])
    receipt = decode(bytes.fromhex(step["receipt"]), CLIENT)
    assert isinstance(receipt, Receipt)
    role.confirm(receipt)
    return {"confirmed": sorted(map(list, role.confirmations))}


QUESTIONS = File("questions", question)
FILES = (
    File("messages", message),
    File("envelopes", envelope),
    File("thresholds", threshold),
    File("coins", coin),
    QUESTIONS,
    File("replies", reply),
    File("refusals", reply),
    File("ledgers", ledger),
)
