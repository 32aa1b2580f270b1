"""A client that answers with given words, and what it says and keeps: for replies, refusals and
ledgers."""

from collections.abc import Sequence
from typing import Any, Never

import numpy as np

from local_dp.arrays import Words
from local_dp.clients.journal import MemoryStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.errors import RefusedError
from local_dp.loss import NANO
from local_dp.noise import Draw
from local_dp.wire import CLIENT, Refusal, Request, decode, encode
from tests.support.vectors.files import Case, Json, records_of

LIMITS = {"run": 2 * NANO, "life": 3 * NANO}  # nano-nats


class Given:
    """Noise that is given: for each ask, a word for each client of the member."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.words_of: Sequence[Sequence[str]] = ()

    def words(self, which: Draw, start: int, stop: int, bits: int) -> Words:
        words = self.words_of[which.ask][start - self.start : stop - self.start]
        assert len(words) == stop - start, (
            f"ask {which.ask} needs {stop - start} words of {bits} bits"
        )
        return np.array([int(word) for word in words], dtype=np.uint64).astype(f"<u{bits // 8}")


def _unusable(*inputs: Any) -> Never:
    raise RefusedError("store", "")


def client(case: Case) -> tuple[ClientRole, Given]:
    """The member that a case describes: `records`, `member` and `start`, with `limits`, a `policy`
    and a `broken` step of the store where they are not the usual ones."""
    limits, policy = {**LIMITS, **case.get("limits", {})}, dict(case.get("policy", {}))
    allowed = policy.pop("allowed", None)
    if "evidence" in policy:
        policy["evidence"] = frozenset(policy["evidence"])
    noise = Given(case["start"])
    store = MemoryStore(limits["run"] / NANO, lifetime=limits["life"] / NANO)
    if "broken" in case:
        setattr(store, {"read": "get", "write": "commit"}[case["broken"]], _unusable)
    role = ClientRole(
        case["member"],
        case["start"],
        records_of(case["records"]),
        noise,
        store,
        Policy(None if allowed is None else frozenset(allowed), **policy),
    )
    return role, noise


def answers(role: ClientRole, noise: Given, request: bytes, words: Sequence[Sequence[str]]) -> Case:
    """The answers to the bytes of a request, and what each client has spent afterwards."""
    message = decode(request, CLIENT)
    assert isinstance(message, Request)
    noise.words_of = words
    replies = role.handle(message)
    entry = {"spent": spent(role, message.run)}
    if len(replies) == 1 and isinstance(replies[0], Refusal):
        refusal = replies[0]
        return {
            "code": refusal.code,
            "start": refusal.start,
            "stop": refusal.stop,
            "refusal": encode(refusal).hex(),
            **entry,
        }
    return {"replies": [encode(reply).hex() for reply in replies], **entry}


def spent(role: ClientRole, run: str) -> Json:
    """The most nano-nats of one client in a run and in its life; the member's rounds, and the bytes
    of reports that it keeps."""
    ledger = role.store.ledger
    in_run = ledger.runs.get(run, 0.0)
    return {
        "run": round(in_run * NANO),
        "life": round(ledger.max_spent * NANO),
        "rounds": role.store.rounds,
        "kept": role.store.size,
    }
