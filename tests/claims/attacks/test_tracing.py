"""`tracing` is shown as it stands; wrong choices in its place are not."""

from typing import Any

import numpy as np

from local_dp.arrays import Bools
from local_dp.attacks import STRATEGIES, Signer, Traced, traced, traitor_tracing
from local_dp.bounds.attacks import traced_length
from local_dp.experiments.claims.attacks.tracing import claim, signed
from local_dp.experiments.claims.attacks.tracing.claim import (
    EXPERIMENT,
    MODELS,
    Codes,
    Means,
    Traitors,
)
from local_dp.experiments.claims.attacks.tracing.signed import Signed
from local_dp.loss import Pure
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)


def half_scored(shares: Any, means: Any, suspects: Any) -> Traced:
    """Scored against 1/2 in place of the strangers' shares."""
    weights = (2 * means - 1) / np.sqrt(shares * (1 - shares))
    spread = np.sum(weights**2 * shares * (1 - shares))
    scores = (suspects - shares) @ weights / np.sqrt(spread)
    return Traced(scores, np.ones(len(scores)))


def a_third_unused(shares: Any, means: Any, suspects: Any) -> Traced:
    """Scored by two thirds of the bits."""
    count = 2 * len(shares) // 3
    return traced(shares[:count], means[:count], suspects[:, :count])


def all_accused(traces: Traced, failure: float) -> Bools:
    """By the one p-value, for any number of suspects."""
    accusations: Bools = traces.p_values < 0.1
    return accusations


def shuffled(code: Any, keys: Any, tolerance: float) -> Any:
    """A tracer that takes the users in another order than it sent them rows."""
    right, other = traitor_tracing(code, keys, tolerance), code.rows[::-1]
    return type(right)(
        right.queries,
        lambda answers: traced(code.shares, (np.array(answers) >= 0).astype(np.float64), other),
    )


UNMARKED = {"marked": lambda rows, wish: STRATEGIES["coin flips"](rows, np.random.default_rng(1))}
ONE_TAG = {"_tags": lambda signer, messages: 0 * messages}
ROWS, KEYS = "Of rows made from", "The holder of the keys"
CODE, SCORES = "Of 6 c^2", "who interleave"
TWINS = [
    Twin(
        "a score against one half",
        None,
        {"local_dp.attacks.traced": half_scored},
        (Means,),
        "From exact means",
    ),
    Twin(
        "a third of the means unused",
        None,
        {"local_dp.attacks.traced": a_third_unused},
        (Means,),
        "From exact means",
    ),
    Twin("a third of the code unused", claim, {"traced": a_third_unused}, (Codes,), SCORES),
    Twin(
        "a code two thirds as long",
        claim,
        {"traced_length": lambda *code: 2 * traced_length(*code) // 3},
        (Codes,),
        SCORES,
    ),
    Twin(
        "a curator without noise",
        MODELS,
        {"a curator": MODELS["exact means"]},
        (Means,),
        "From means that err",
    ),
    Twin(
        "accusations that are not shared out",
        Traced,
        {"accused": all_accused},
        (Codes,),
        "Innocents are accused",
    ),
    Twin("pirates who are not marked", claim, UNMARKED, (Codes,), CODE),
    Twin(
        "a code a sixth as long",
        claim,
        {"traced_length": lambda c, users, failure: 79},
        (Codes,),
        CODE,
    ),
    Twin("one tag under every message", Signer, ONE_TAG, (Signed,), ROWS),
    Twin(
        "synthetic rows that are the table's",
        signed,
        {"_synthesize": lambda table, *_: table.histogram.astype(np.float64)},
        (Signed,),
        ROWS,
    ),
    Twin(
        "a histogram of every row",
        signed,
        {"_frequent": lambda table, _: table.histogram.astype(np.float64)},
        (Signed,),
        ROWS,
    ),
    Twin(
        "a curator that spends all on each",
        claim,
        {"optimal_part": lambda budget, parts: Pure(20 * budget.nano)},
        (Traitors,),
        KEYS,
    ),
    Twin("keys of other users", claim, {"traitor_tracing": shuffled}, (Traitors,), KEYS),
]
DEAR = tuple(
    str(twin)
    for twin in TWINS
    if Means in twin.points and str(twin) != "a third of the means unused"
)
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS, slow=DEAR)
