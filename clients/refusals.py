"""Why a client does not answer: a code, and a line that is made of the request alone, so that no refusal can tell of a record."""

from collections.abc import Iterable

from local_dp.wire import Ask, Request

FAILED = "failed"
NAMED = 3  # names in a line
TEXTS = {
    "budget": "round {round} costs more than this client's budget has left for it",
    "store": "this client cannot tell what it has spent, or keep what it would spend now",
    "ceiling": "round {round} is one too many for this client's life, or asks for less epsilon or longer reports than it answers for",
    "equivocation": "round {round} of run {run}, or a label in it, was asked before with something else; give it a name of its own",
    "unknown-query": "this client lacks a query of {queries}; install its package there",
    "unknown-randomizer": "this client lacks a randomizer of {randomizers}; install its package there",
    "not-allowed": "a randomizer of {randomizers} is not on this client's list; ask by another, or --allow it there",
    "bad-parameters": "a parameter of {queries} or {randomizers} is none that this client accepts",
    "bad-query": "{queries} does not fit the columns of this client's table, or the values that {randomizers} takes; correct the question, or its schema",
    "evidence": "how the loss of {randomizers} is known is not what this client accepts",
    "unverifiable": "what {randomizers} does there is not what it says; `local-dp audit` tells more on the client's machine",
    FAILED: "round {round} cannot be answered",
}


def known(code: str) -> str:
    """The code, if it is one that a client gives."""
    return code if code in TEXTS else FAILED


def line(code: str, request: Request) -> str:
    """The line under a code."""
    return TEXTS[code].format(run=request.run, round=request.round, queries=_names(request.asks, "query"), randomizers=_names(request.asks, "randomizer"))


def _names(asks: Iterable[Ask], what: str) -> str:
    names = list(dict.fromkeys(getattr(ask, what) for ask in asks))
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
