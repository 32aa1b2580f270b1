"""`reconstruction` is shown as it stands; wrong choices in its place are not."""

from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.attacks import least_squares
from local_dp.bounds.attacks import wrong_bits
from local_dp.experiments.claims.attacks import reconstruction
from local_dp.experiments.claims.attacks.reconstruction import EXPERIMENT, Models, Noise
from local_dp.loss import Pure
from local_dp.theorems.from_sq import from_own_bits
from tests.support.runs.quick import Quick, Twin

QUICK = Quick(EXPERIMENT)
SMALLEST = tuple(point for point in QUICK.points if isinstance(point, Noise) and point.n == 64)


def decoders(decoder: Any) -> dict[str, Any]:
    return {"DECODERS": dict.fromkeys(reconstruction.DECODERS, decoder)}


def rounded_up(matrix: Floats, sums: Floats) -> Floats:
    """Least squares of sums that are higher by a fifth of n."""
    errors = matrix.T @ (sums + 0.2 * matrix.shape[1])
    solution: Floats = np.linalg.solve(matrix.T @ matrix, errors)
    return solution


LEAKING = {
    "from_own_bits": lambda attack, public, secret, epsilon: from_own_bits(
        attack, public, secret, epsilon / 4
    )
}
UP, NO_PROGRAM = decoders(rounded_up), decoders(least_squares)
WIDTH = {"wrong_bits": lambda n, k, sd: wrong_bits(n, k, 2 * sd)}
TWINS = [
    Twin(
        "a closed form of the whole width",
        reconstruction,
        WIDTH,
        (),
        "Noise within",
        "Least squares errs",
    ),
    Twin(
        "a curator that spends all on each",
        reconstruction,
        {"optimal_part": lambda budget, parts: Pure(budget.nano)},
        (Models,),
        "A curator hides",
    ),
    Twin(
        "clients that report with less noise", reconstruction, LEAKING, (Models,), "Clients reveal"
    ),
    Twin("every sum too high", reconstruction, UP, SMALLEST, "Least squares errs"),
    Twin("no program", reconstruction, NO_PROGRAM, SMALLEST, "Where errors"),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)
