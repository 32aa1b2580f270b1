"""The reason of a refusal: a code, and a line made from the request alone, so that no refusal reveals a record."""

from collections.abc import Iterable

from local_dp.wire import Ask, Request

FAILED = "failed"
NAMED = 3  # names in a line
TEXTS = {
    "budget": "round {round} costs more than this client's budget has left for it",
    "store": "this client cannot read or write its store of spent budget; see its own messages",
    "ceiling": "round {round} exceeds this client's ceiling of rounds or bytes, or asks for less epsilon than its least",
    "equivocation": "round {round} of run {run}, or a label in it, was asked before with something else; give it a name of its own",
    "unknown-query": "this client lacks a query of {queries}; install its package there",
    "unknown-randomizer": "this client lacks a randomizer of {randomizers}; install its package there",
    "not-allowed": "a randomizer of {randomizers} is not on this client's list; ask by another, or --allow it there",
    "bad-parameters": "this client accepts no such parameter of {queries} or {randomizers}; correct it",
    "bad-query": "{queries} does not fit the columns of this client's table, or the values that {randomizers} takes; correct the question, or its schema",
    "evidence": "this client does not accept the evidence for the loss of {randomizers}; use a verified randomizer",
    "too-much": "to build and verify {randomizers} is more work than this client does for one request, or in its life",
    "unverifiable": "{randomizers} failed the verification; `local-dp audit` on the client's machine shows why",
    FAILED: "round {round} cannot be answered",
}


def known(code: str) -> str:
    """The code, if it is one that a client gives."""
    return code if code in TEXTS else FAILED


def line(code: str, request: Request) -> str:
    return TEXTS[code].format(run=request.run, round=request.round, queries=_names(request.asks, "query"), randomizers=_names(request.asks, "randomizer"))


def _names(asks: Iterable[Ask], what: str) -> str:
    names = list(dict.fromkeys(getattr(ask, what) for ask in asks))
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
