"""`parity-any-rounds` is shown as it stands; randomizers that do not round, other scores and larger
bounds are not."""

import math
from functools import cached_property
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds import channels
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier import parity_any_rounds as claim
from local_dp.experiments.claims.frontier.parity_any_rounds import (
    EXPERIMENT,
    AddedUp,
    Eliminated,
    Independent,
    Private,
)
from local_dp.hardness.transcripts import Turn, transcript_laws
from local_dp.protocols.parity import elimination
from local_dp.randomizers.signs.suspects import Suspects
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)


def not_rounded(suspects: Suspects) -> Any:
    """The parts where an example that rules out fewer than half leaves these the weight of the
    half."""
    kind, fixed, weight, _, last = RIGHT(suspects)
    half = np.uint64(suspects.held * suspects.w) // np.maximum(fixed, 1).astype(np.uint64)
    weight = np.where(kind == 1, half, weight)
    pairs = zip(fixed.tolist(), weight.tolist(), strict=True)
    left = [(suspects.total - f * w) // (suspects.alphabet - f) for f, w in pairs]
    return kind, fixed, weight, np.array(left, dtype=np.uint64), last


RIGHT: Any = vars(Suspects)["_parts"].func
WRONG = cached_property(not_rounded)
WRONG.__set_name__(Suspects, "_parts")
changes, independent = elimination.changes, claim.independent


def of_a_curator(protocol: Turn, inputs: Counts) -> Floats:
    """The laws of answers that see all inputs at once."""
    return transcript_laws(protocol, inputs * inputs.all(axis=1, keepdims=True))


def at_plus(epsilon: float) -> float:
    """c at +1/C."""
    most = 1 / response_gain(epsilon)
    return (most - math.log1p(most)) / most**2


LARGER = {"parity_interactive_bound": lambda *point: 1.5 * parity_interactive_bound(*point)}
TWINS = [
    Twin("no rounding to half", Suspects, {"_parts": WRONG}, (Private,), "private for every"),
    Twin(
        "a curator in the protocol",
        claim,
        {"transcript_laws": of_a_curator},
        (AddedUp,),
        "written out",
    ),
    Twin("c at +1/C", channels, {"divergence_curvature": at_plus}, (), "the bound's share"),
    Twin(
        "survivors without rounding to half",
        claim,
        {"independent": lambda d, rounding, generator: independent(d, False, generator)},
        (Independent,),
        "explain what elimination asks",
    ),
    Twin("a bound of half as much again", claim, LARGER, (), "no fewer clients"),
    Twin("a quarter of the fall", claim, {"FALL": 0.5}, (Eliminated,), "finds the parity"),
    Twin("twice the fall", claim, {"FALL": 4.2}, (Eliminated,), "no fewer clients"),
    Twin(
        "scores of the other sign",
        elimination,
        {"changes": lambda *round: -changes(*round)},
        (Eliminated,),
        "finds the parity",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(
    TWINS, slow=("twice the fall", "a quarter of the fall")
)
