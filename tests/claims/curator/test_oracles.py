"""`oracles` is shown as it stands; wrong noise, a solver that does not lie, a test left out and
wrong baselines in its place are not."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from local_dp.curator.oracle_efficient import perturbed
from local_dp.curator.oracle_efficient.online import LossSequence
from local_dp.curator.oracle_efficient.perturbed import Beside
from local_dp.curator.oracle_efficient.robust import RobustRelease
from local_dp.curator.oracle_efficient.separated import (
    Claimed,
    Conjunctions,
    Thresholds,
    Verified,
    Weighted,
)
from local_dp.experiments.claims.curator.oracles import claim as oracles
from local_dp.experiments.claims.curator.oracles import online, privacy
from local_dp.experiments.claims.curator.oracles.claim import (
    EXPERIMENT,
    HISTOGRAM,
    RSPM,
    Errors,
    Learning,
    Tables,
)
from local_dp.experiments.claims.curator.oracles.online import Regret, Spread
from local_dp.experiments.claims.curator.oracles.privacy import Alone, Loss, Price, Robust
from tests.support.runs.quick import Quick, Twin, lost

QUICK = Quick(EXPERIMENT)
NOBODY = {
    "Beside": lambda scale, data: Beside(
        scale, Weighted(data.points, np.full_like(data.weights, -1))
    )
}
GUMBEL_REGRET = LossSequence.gumbel_regret
EAGER = {"gumbel_regret": lambda losses, epsilon: GUMBEL_REGRET(losses, 24.0)}
STILL = {"separator_noise": lambda queries, epsilon, count, draws: np.zeros((count, queries.size))}
UNTESTED = {
    "local_dp.curator.oracle_efficient.robust.Terms.pass_chance": lambda terms, survivors: Fraction(
        survivors > 0
    ),
    "local_dp.curator.oracle_efficient.robust.RobustRelease._delta": lambda release: 0.1,
}
LIES = "a solver that lies reveals a label"
TWINS = [
    Twin(
        "half the noise",
        Conjunctions,
        {"shift": property(lambda queries: queries.d)},
        (Loss,),
        "loses epsilon, exactly",
    ),
    Twin(
        "a true claim",
        privacy.Liar,
        {"minimise": lambda liar, data: Claimed(liar.exact.minimise(data).choice)},
        (Alone,),
        LIES,
    ),
    Twin(
        "a solver that never fails",
        Verified,
        {"minimise": lambda oracle, data: oracle.exact.minimise(data)},
        (Alone,),
        LIES,
    ),
    Twin("any survivor released", None, UNTESTED, (Robust,), "with PRSMA the same solver"),
    Twin(
        "survivors for nothing",
        None,
        {f"{RobustRelease.__module__}.nano_of_ratio": lambda ratio: 0},
        (Price,),
        "one surviving piece more",
    ),
    Twin("leaders without noise", online, STILL, (Regret,), "so is that of"),
    Twin("exponential weights of one leader", LossSequence, EAGER, (Regret,), "regret of Gumbel"),
    Twin(
        "thresholds with the noise of any class",
        Thresholds,
        {"shift": property(lambda queries: 2 * queries.points)},
        (Spread,),
        "widen their",
    ),
    Twin(
        "a queries' player that hardly sees the data",
        perturbed,
        NOBODY,
        (Tables,),
        "the game's table",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(
    TWINS, Tables, slow=("a queries' player that hardly sees the data",)
)


@pytest.mark.long
def test_the_headline_has_the_runs_own_figure() -> None:
    errors = next(
        QUICK.right(place).errors
        for place, point in enumerate(QUICK.points)
        if isinstance(point, Learning) and point.examples == 1000
    )
    assert f"RSPM errs {np.mean(errors[RSPM]):.1%} more" in QUICK.found().headline


def test_an_error_is_that_of_the_population() -> None:
    """Over all points of the cube: how often a conjunction and the true one differ, weighted, times
    the labels that are right beyond those that are not."""
    points = np.arange(1 << oracles.D)
    ones = np.array([int(point).bit_count() for point in points])
    weights = oracles.ONE**ones * (1 - oracles.ONE) ** (oracles.D - ones)
    for mask in (0, 1, 0b110, (1 << oracles.RELEVANT) - 1, 0b1111, (1 << oracles.D) - 1):
        differ = ((points & mask) == mask) != ((points & 7) == 7)
        assert oracles.excess(mask) == pytest.approx(0.8 * float(weights[differ].sum()), abs=1e-12)


def swap(one: str, other: str) -> Callable[[dict[str, list[float]]], dict[str, list[float]]]:
    return lambda errors: errors | {one: errors[other], other: errors[one]}


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "change", "falls"),
    [
        (
            Learning,
            swap(RSPM, oracles.EXPONENTIAL),
            ("RSPM finds the best conjunction", "the exponential mechanism finds it"),
        ),
        (Learning, swap(RSPM, oracles.COUNTED), ("a noisy count of each bit",)),
        (
            Tables,
            lambda errors: errors | {HISTOGRAM: [2 * error for error in errors[HISTOGRAM]]},
            ("a noisy histogram errs",),
        ),
    ],
)
def test_methods_in_the_place_of_others_are_not_shown(
    kind: type,
    change: Callable[[dict[str, list[float]]], dict[str, list[float]]],
    falls: tuple[str, ...],
) -> None:
    """RSPM that needs as few examples as another method, others that need as many as RSPM, a
    histogram with twice the error."""
    right = [(point, QUICK.right(place)) for place, point in enumerate(QUICK.points)]
    rows = [
        (point, Errors(change(m.errors)) if isinstance(point, kind) else m) for point, m in right
    ]
    failures = lost(
        EXPERIMENT.conclude(
            rows,
            "quick",
        )
    )
    assert all(part in failures for part in falls)
