"""`margins` is shown as it stands; with a wrong program, checker, bound or vote in its place it is
not."""

from typing import Any

import numpy as np
import pytest

from local_dp.bounds.interaction import margin_clients
from local_dp.experiments.claims.frontier import margins as claim
from local_dp.experiments.claims.frontier.margins import (
    EXPERIMENT,
    Blocks,
    Certificate,
    Matrix,
    Vote,
    fibonacci,
)
from local_dp.hardness import certificates, margins
from local_dp.hardness.certificates import Verdict
from tests.support.runs.quick import Quick, Twin

QUICK, COSTS, ADVANTAGES = Quick(EXPERIMENT), margins._costs, claim.advantages


def uniform(concepts: Any) -> margins.Margin:
    best = margins.margin(concepts)
    return margins.Margin(concepts, np.ones_like(best.law), best.coefficients)


VOTES, FORGED = "The vote is right", "one altered weight"
EIGHTFOLD = {"margin_clients": lambda squared, *rest: margin_clients(8 * squared, *rest)}
SQUARED = {"_costs": lambda concepts: COSTS(concepts) ** 2}
TWINS = [
    Twin(
        "a checker that accepts everything",
        claim,
        {"verify_certificate": lambda data: Verdict(True, "")},
        (Certificate,),
        FORGED,
    ),
    Twin(
        "a checker that accepts nothing",
        claim,
        {"verify_certificate": lambda data: Verdict(False, "")},
        (Certificate,),
        FORGED,
    ),
    Twin(
        "sums without signs in the checker",
        certificates,
        {"_transform": lambda values: [sum(values)] * len(values)},
        (Certificate,),
        FORGED,
    ),
    Twin(
        "b^|S| for b^(|S|/2)",
        margins,
        SQUARED,
        (Matrix, Blocks),
        "sign matrices",
        "Parity of one variable",
    ),
    Twin(
        "a law that is not the best",
        claim,
        {"margin": uniform},
        (Blocks,),
        "agree to one part in a million",
    ),
    Twin(
        "words turned round",
        claim,
        {"advantages": lambda *rest: -ADVANTAGES(*rest)},
        (Vote,),
        VOTES,
    ),
    Twin(
        "too few clients for the proof",
        claim,
        {"vote_clients": lambda squared, *rest: int(squared)},
        (Vote,),
        VOTES,
    ),
    Twin(
        "0.85 of the bound",
        claim,
        {"margin_clients": lambda squared, *rest: margin_clients(0.85 * squared, *rest)},
        (Vote,),
        VOTES,
    ),
    Twin("a bound that votes beat", claim, EIGHTFOLD, (Vote,), VOTES),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)


@pytest.mark.long
def test_the_runs_own_figures() -> None:
    finding = QUICK.found()
    assert "25,058" in finding.headline
    assert len(finding.certificates) == 8
    assert any(
        "invisible" in note and ("parity by 2.00, " in note or "parity by 2.00 a block" in note)
        for note in finding.notes
    )
    assert any("33 rounds" in note for note in finding.notes)


def test_fibonacci() -> None:
    """The numbers begin 1, 1, 2, 3, 5."""
    assert [fibonacci(k) for k in range(1, 7)] == [1, 1, 2, 3, 5, 8]
