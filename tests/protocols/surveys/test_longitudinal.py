"""Surveys repeated within a budget for life: whole lives enumerated, unbiased estimates of every
wave, closed-form variances and the choice by them."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.bounds.longitudinal import (
    Tree,
    best_tree,
    events_variance,
    lasting_answer,
    longitudinal_clients,
    ways,
)
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import exp_epsilon
from local_dp.populations.finite import Finite, Rows
from local_dp.protocols.surveys.longitudinal import Course, Longitudinal
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.tables import ChangeInterval
from local_dp.randomizers.repeated.change_tracking import ChangeTracking
from local_dp.records import Records
from tests.support.inputs.builders import population_oracle
from tests.support.runs.protocols import by_client
from tests.support.wrong import wrong

WAYS = (
    Longitudinal(times=4, method="split"), Longitudinal(times=4, method="fresh"),
    Longitudinal(times=4, changes=0),
    Longitudinal(times=4, changes=0, first=0.5), Longitudinal(times=6, changes=2, method="tracked"),
)  # fmt: skip


def lives(waves: int) -> Records:
    """Every sequence of no and yes."""
    answers = np.array(list(itertools.product((0, 1), repeat=waves)), dtype=np.uint8)
    return Records({f"wave{wave + 1}": answers[:, wave] for wave in range(waves)})


def chances(randomizer: ChangeTracking, value: int) -> dict[tuple[int, ...], Fraction]:
    ones = [
        Fraction(randomizer.ones[place == value], randomizer.total)
        for place in range(randomizer.intervals)
    ]
    bits = itertools.product((0, 1), repeat=randomizer.intervals)
    return {
        report: math.prod(
            (p if bit else 1 - p for bit, p in zip(report, ones, strict=True)), start=Fraction(1)
        )
        for report in bits
    }


@pytest.mark.parametrize(
    ("waves", "changes", "epsilon"), [(2, 1, 1.0), (4, 4, 0.5), (6, 2, 1.0), (9, 1, 3.0)]
)
def test_whole_lives_lose_epsilon(waves: int, changes: int, epsilon: float) -> None:
    """Over all sequences of values, however often they change, and all whole reports, the worst
    ratio of what is tracked is e^epsilon and no more."""
    algorithm = Longitudinal(times=waves, changes=changes, method="tracked").algorithm(
        epsilon, 5000
    )
    everybody, worst = lives(waves), Fraction(1)
    for query in algorithm.queries:
        assert isinstance(query.randomizer, ChangeTracking)
        laws = [
            chances(query.randomizer, value)
            for value in sorted({*query.query.values(everybody).tolist()})
        ]
        for report in laws[0]:
            worst = max(worst, max(law[report] for law in laws) / min(law[report] for law in laws))
    assert worst <= exp_epsilon(int(epsilon * 1e9))
    assert math.log(worst) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_nobody_needs_to_know_the_future(width: int) -> None:
    """Two lives that agree until an interval ends have the same bits of that interval and of all
    before it."""
    waves, everybody = 6, lives(6)
    answers = np.column_stack([everybody[f"wave{wave + 1}"] for wave in range(waves)])
    for change in (1, 2, 3):
        query = ChangeInterval(tuple(everybody.columns), ("0", "1"), change, width)
        bits = np.eye(query.intervals + 1, query.intervals)[query.values(everybody)]
        for interval in range(query.intervals):
            end = min(waves, (interval + 1) * width)
            past = answers[:, :end] @ (1 << np.arange(end))
            for kind in np.unique(past):
                assert len(np.unique(bits[past == kind, : interval + 1], axis=0)) == 1


@pytest.mark.parametrize(
    ("waves", "branches"), [(2, 2), (7, 2), (8, 2), (9, 3), (10, 3), (64, 4), (125, 5)]
)
def test_a_tree_covers_what_was(waves: int, branches: int) -> None:
    """At every wave the intervals of all levels are disjoint and together all waves until then; no
    level is of more than one interval that holds all."""
    tree = Tree(waves, branches)
    assert tree.widths[-1] < waves <= branches * tree.widths[-1]
    for wave in range(waves + 1):
        places: list[int] = []
        for width, part in zip(tree.widths, tree.parts(wave), strict=True):
            places += range(part.start * width, part.stop * width)
        assert sorted(places) == list(range(wave))


def proportional(protocol: Longitudinal, epsilon: float, seed: int = 3) -> tuple[Course, Any]:
    """What a run makes of tallies that are what is expected, to whole reports of 2^44, and the
    population."""
    algorithm, n = protocol.algorithm(epsilon, 10_000), 1 << 44
    population = protocol.synthetic(10_000, seed)
    tallies = []
    for query in algorithm.queries:
        law = population.law(query.query)
        randomizer = query.randomizer
        empty = randomizer.empty()
        if isinstance(randomizer, ChangeTracking):
            weights = np.where(randomizer.code == 1, randomizer.ones[1], randomizer.ones[0])
            ones = law @ weights / randomizer.total
            tallies.append(type(empty)(np.rint(ones * n).astype(np.int64), n))
        else:
            rows = np.asarray(randomizer.channel(), dtype=np.float64)  # type: ignore[attr-defined]
            counts = np.rint(law @ rows / rows.sum(axis=1)[0] * n).astype(np.int64)
            tallies.append(type(empty)(counts[None, :]))
    return algorithm.decode(tuple(tallies)), population


@wrong(
    "local_dp.randomizers.frequencies.unary:OwnPlace.joint",
    (
        "joint_of_places(tally.answered, weights, *self._moments(tally), (each.min(axis=1), "
        "each.max(axis=1)))"
    ),
    "joint_of_places(tally.answered, weights, *self._moments(tally))",
    "waves in which nobody changes have intervals without width",
    at="12.0-50",
)
@pytest.mark.parametrize(("epsilon", "n"), [(12.0, 50), (6.0, 200)])
def test_rare_changes_are_covered(epsilon: float, n: int) -> None:
    """Three in a hundred change in the third wave: all four waves in 100 runs; of the reports' own
    spread none or half of the intervals would hold."""
    protocol = Longitudinal(times=4, changes=1, method="tracked")
    hits = np.zeros(4)
    kinds = Records(
        {f"wave{wave}": np.array(["0", "1" if wave >= 3 else "0"]) for wave in range(1, 5)}
    )
    for seed in range(100):
        population = Finite(kinds, [0.97, 0.03], n, seed)
        course = by_client(protocol, population, epsilon, seed)
        low, high = np.array([estimate.interval() for estimate in course.estimates]).T
        hits += (low <= protocol.truth(population)) & (protocol.truth(population) <= high)
    assert hits.min() >= 94 - 450 * (0.94 * 0.06 / 100) ** 0.5


@pytest.mark.parametrize(
    "protocol",
    [
        *WAYS,
        Longitudinal(times=30, changes=3, method="tracked"),
        Longitudinal(times=3, labels=("a", "b", "c")),
    ],
    ids=repr,
)
def test_every_way_is_unbiased(protocol: Longitudinal) -> None:
    """From tallies in proportion to the law of the reports, every wave's shares are the
    population's."""
    course, population = proportional(protocol, 1.0)
    shares = np.concatenate([np.atleast_1d(each.value) for each in course.estimates])
    np.testing.assert_allclose(shares, protocol.truth(population), atol=1e-6)
    assert np.ptp(shares) > 0.01 or protocol.changes == 0


def test_the_best_way_by_closed_form() -> None:
    """One wave for each client is best, unless values never change, changes are rare, or epsilon
    lets all clients answer in all waves."""
    best = {
        (1.0, 8, None): "split", (1.0, 8, 1): "split", (1.0, 64, 1): "tracked",
        (1.0, 64, 4): "split", (1.0, 8, 20): "split",
        (4.0, 8, 1): "tracked", (1.0, 8, 0): "memoised", (20.0, 4, None): "fresh",
    }  # fmt: skip
    for (epsilon, waves, changes), name in best.items():
        every = ways(epsilon, waves, 2, changes)
        assert every[0].name == name, (epsilon, waves, changes)
        assert [way.variance for way in every] == sorted(way.variance for way in every)
        assert Longitudinal(times=waves, changes=changes).choice(epsilon).name == name
        assert all(way.worst >= way.variance for way in every)
    assert {way.name for way in ways(1.0, 8, 3, 2)} == {"split", "fresh"}
    z = stats.norm.isf(0.025 / 24)
    assert longitudinal_clients(5.0, 8, 3, 0.1, 0.05) == math.ceil(5 * (z / 0.1) ** 2)
    for epsilon in (0.0, -1.0, math.nan):
        with pytest.raises(InputError, match="epsilon is"):
            best_tree(epsilon, 8)


def test_levels_have_the_clients_of_least_variance() -> None:
    """By Cauchy's inequality the mean is the square of a sum of roots."""
    tree, way = best_tree(1.0, 64), ways(1.0, 64, 2, 1)[0]
    roots = np.sqrt(tree.spreads(1.0).mean(axis=1))
    assert way.variance == pytest.approx(roots.sum() ** 2)
    assert way.worst == max(tree.variances(1.0, 1))


@pytest.mark.parametrize(
    ("method", "waves", "changes", "epsilon"),
    [
        ("split", 4, None, 1.0),
        ("fresh", 4, None, 4.0),
        ("memoised", 4, 0, 1.0),
        ("tracked", 20, 2, 2.0),
    ],
)
def test_the_closed_form_is_what_runs_have(
    method: str, waves: int, changes: int | None, epsilon: float
) -> None:
    """n times the mean standard error squared of a run is the variance by which the way was chosen,
    within 3 %; of what is tracked, at most that."""
    protocol = Longitudinal(times=waves, changes=changes, method=method)
    n = 200_000
    course = run(
        protocol.algorithm(epsilon, n), population_oracle(protocol.synthetic(n, 3), epsilon)
    )
    variance = n * float(np.mean([each.standard_error**2 for each in course.estimates]))
    assert course.way.name == method
    assert variance == pytest.approx(course.way.variance, rel=0.03) or (
        method == "tracked" and 0.8 * course.way.variance < variance < course.way.variance
    )
    z = stats.norm.isf(0.025 / waves)
    assert protocol.clients(epsilon) == math.ceil(course.way.worst * (z / 0.05) ** 2)


@wrong(
    "local_dp.protocols.surveys.longitudinal:fresh",
    "split_epsilon(epsilon, len(asking.waves))",
    "epsilon",
    "every wave has the whole budget",
    at=(
        "Longitudinal(columns=(), labels=(), missing='refuse', other='refuse', times=4, "
        "changes=None, method='fresh', first=1.0, randomizer='best', tolerance=0.05)"
    ),
)
@pytest.mark.parametrize("protocol", WAYS, ids=repr)
def test_epsilon_is_charged_once_for_life(protocol: Longitudinal) -> None:
    """However many waves, all asks of a client are charged before the first answer, epsilon
    together, in one round; a second survey is refused."""
    population = protocol.synthetic(600, 3)
    oracle = population_oracle(population)
    algorithm = protocol.algorithm(1.0, 600)
    assert isinstance(algorithm, Nonadaptive)
    run(algorithm, oracle)
    assert oracle.ledger.max_spent == pytest.approx(1.0, abs=1e-8)
    assert [summary.epsilon for summary in oracle.rounds] == [pytest.approx(1.0, abs=1e-8)]
    assert oracle.interaction == "non-interactive"
    with pytest.raises(RefusedError, match="budget"):
        run(Longitudinal(times=3).algorithm(1.0, 600), oracle)


def table(**columns: Any) -> Launch:
    return Launch(Records({name: np.array(values) for name, values in columns.items()}), False)


def test_tables_are_checked_wave_by_wave() -> None:
    """Columns with labels or yes/no questions; what is missing or unlisted in any wave is refused,
    or a label of its own."""
    launch = table(a=["x", "y", "x"], b=["y", "y", "z"], c=["y", "", "x"])
    with pytest.raises(InputError, match="not among the 2 labels"):
        Longitudinal(("a", "b"), ("x", "y")).for_table(launch)
    with pytest.raises(InputError, match="no value"):
        Longitudinal(("a", "c"), ("x", "y")).for_table(launch)
    protocol = Longitudinal(
        ("a", "b", "c"), ("x", "y"), missing="category", other="category"
    ).for_table(launch)
    assert protocol.asking.k == 4
    assert protocol.describe(by_client(protocol, Rows(launch.records), 20.0, 1))["labels"][:5] == [
        "a: x",
        "a: y",
        "a: (other)",
        "a: (missing)",
        "b: x",
    ]
    numbers = table(u=[1.0, 2.0], v=[0.0, 5.0])
    yes = Longitudinal(("u > 1", "v > 1")).for_table(numbers)
    assert yes.describe(by_client(yes, Rows(numbers.records), 20.0, 1))["labels"] == [
        "u > 1",
        "v > 1",
    ]


def test_one_interval_has_the_variance_of_a_bit() -> None:
    """The bit of a change is 1 with probability q + S (p - q); a lasting answer is kept with
    another one's p and q."""
    for (p, q), share in itertools.product(((0.7, 0.3), (0.5, 0.2)), (0.0, 0.3, 1.0)):
        chance = q + share * (p - q)
        exact = chance * (1 - chance) / (p - q) ** 2
        assert events_variance((p, q), 1, share) == pytest.approx(exact)
    for k in (2, 64):
        made = lasting_answer(4.0, k, 0.5)[1]
        (p, q), (p2, q2) = made.odds
        chance = q2 + (q + (p - q) / k) * (p2 - q2)
        exact = chance * (1 - chance) / ((p - q) * (p2 - q2)) ** 2
        variances = {way.name: way.variance for way in ways(4.0, 8, k, 0, 0.5)}
        assert variances["memoised"] == pytest.approx(exact)
