"""Surveys repeated within a budget for life: whole lives enumerated, unbiased estimates of every wave, closed-form variances and the choice by them."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from local_dp.bounds.longitudinal import Tree, best_tree, event_odds, events_variance, lasting_answer, longitudinal_clients, ways
from local_dp.bus.memory import MemoryBroker
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.table import Rows
from local_dp.protocols.surveys.longitudinal import Course, Longitudinal
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.registry import QUERIES
from local_dp.queries.tables import ChangeInterval
from local_dp.randomizers.repeated.change_tracking import ChangeTracking
from local_dp.records import Records
from tests.support.inputs.builders import in_population, play_in_memory, population_oracle

WAYS = (
    Longitudinal(times=4, method="split"),
    Longitudinal(times=4, method="fresh"),
    Longitudinal(times=4, changes=0),
    Longitudinal(times=4, changes=0, first=0.5),
    Longitudinal(times=6, changes=2, method="tracked"),
)


def lives(waves: int) -> Records:
    """Every sequence of no and yes."""
    told = np.array(list(itertools.product((0, 1), repeat=waves)), dtype=np.uint8)
    return Records({f"wave{wave + 1}": told[:, wave] for wave in range(waves)})


def chances(randomizer: ChangeTracking, value: int) -> dict[tuple[int, ...], Fraction]:
    """The law of a whole report."""
    ones = [Fraction(randomizer.ones[place == value], randomizer.total) for place in range(randomizer.intervals)]
    bits = itertools.product((0, 1), repeat=randomizer.intervals)
    return {report: math.prod((p if bit else 1 - p for bit, p in zip(report, ones, strict=True)), start=Fraction(1)) for report in bits}


@pytest.mark.parametrize(("waves", "changes", "epsilon"), [(2, 1, 1.0), (4, 4, 0.5), (6, 2, 1.0), (9, 1, 3.0)])
def test_whole_lives_lose_epsilon(waves: int, changes: int, epsilon: float) -> None:
    """Over all sequences of values, however often they change, and all whole reports, the worst ratio of what is tracked is e^epsilon and no more."""
    algorithm = Longitudinal(times=waves, changes=changes, method="tracked").algorithm(epsilon, 5000)
    everybody, worst = lives(waves), Fraction(1)
    for query in algorithm.queries:
        assert isinstance(query.randomizer, ChangeTracking)
        laws = [chances(query.randomizer, value) for value in sorted({*query.query.values(everybody).tolist()})]
        for report in laws[0]:
            worst = max(worst, max(law[report] for law in laws) / min(law[report] for law in laws))
    assert worst <= exp_epsilon(int(epsilon * 1e9))
    assert math.log(worst) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("width", [1, 2, 3])
def test_nobody_needs_to_know_the_future(width: int) -> None:
    """Two lives that agree until an interval ends have the same bits of that interval and of all before it."""
    waves, everybody = 6, lives(6)
    told = np.column_stack([everybody[f"wave{wave + 1}"] for wave in range(waves)])
    for change in (1, 2, 3):
        query = ChangeInterval(tuple(everybody.columns), ("0", "1"), change, width)
        bits = np.eye(query.intervals + 1, query.intervals)[query.values(everybody)]
        for interval in range(query.intervals):
            end = min(waves, (interval + 1) * width)
            past = told[:, :end] @ (1 << np.arange(end))
            for kind in np.unique(past):
                assert len(np.unique(bits[past == kind, : interval + 1], axis=0)) == 1


def test_changes_are_counted_from_no_on() -> None:
    """The c-th change is where it is by hand: a first yes is a change, and a life that changes less often has none."""
    records = Records({f"w{wave}": np.array(values, dtype=np.uint8) for wave, values in enumerate(([1, 0, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0]))})
    found = {change: ChangeInterval(("w0", "w1", "w2", "w3"), ("0", "1"), change, 1).values(records).tolist() for change in (1, 2, 3, 4)}
    assert found == {1: [0, 3, 1, 4], 2: [2, 4, 3, 4], 3: [3, 4, 4, 4], 4: [4, 4, 4, 4]}
    assert ChangeInterval(("w0 == 1", "w1 == 1", "w2 == 1", "w3 == 1"), (), 2, 3).values(records).tolist() == [0, 2, 1, 2]


@pytest.mark.parametrize(("waves", "branches"), [(2, 2), (7, 2), (8, 2), (9, 3), (10, 3), (64, 4), (100, 16)])
def test_a_tree_covers_what_was(waves: int, branches: int) -> None:
    """At every wave the intervals of all levels are disjoint and together all waves until then; no level is of more than one interval that holds all."""
    tree = Tree(waves, branches)
    assert tree.widths[-1] < waves <= branches * tree.widths[-1]
    for wave in range(waves + 1):
        spans = [(each * width, each * width + width) for width, part in zip(tree.widths, tree.parts(wave), strict=True) for each in part]
        covered = [place for start, stop in spans for place in range(start, stop)]
        assert sorted(covered) == list(range(wave))


def proportional(protocol: Longitudinal, epsilon: float, seed: int = 3) -> tuple[Course, Any]:
    """What a run makes of tallies that are what is expected, to whole reports of 2^44, and the population."""
    algorithm, n = protocol.algorithm(epsilon, 10_000), 1 << 44
    population = protocol.synthetic(10_000, seed)
    tallies = []
    for query in algorithm.queries:
        law, randomizer = population.law(query.query), query.randomizer
        empty = randomizer.empty()
        if isinstance(randomizer, ChangeTracking):
            ones = law @ np.where(randomizer.code == 1, randomizer.ones[1], randomizer.ones[0]) / randomizer.total
            tallies.append(type(empty)(np.rint(ones * n).astype(np.int64), n))
        else:
            rows = np.asarray(randomizer.channel(), dtype=np.float64)  # type: ignore[attr-defined]
            tallies.append(type(empty)(np.rint(law @ rows / rows.sum(axis=1)[0] * n).astype(np.int64)[None, :]))
    return algorithm.decode(tuple(tallies)), population


@pytest.mark.parametrize("protocol", [*WAYS, Longitudinal(times=30, changes=3, method="tracked"), Longitudinal(times=3, labels=("a", "b", "c"))], ids=repr)
def test_every_way_is_unbiased(protocol: Longitudinal) -> None:
    """From tallies in proportion to the law of the reports, every wave's shares are the population's."""
    course, population = proportional(protocol, 1.0)
    found = np.concatenate([np.atleast_1d(each.value) for each in course.estimates])
    np.testing.assert_allclose(found, protocol.truth(population), atol=1e-6)
    assert np.ptp(found) > 0.01 or protocol.changes == 0


def test_more_changes_than_said_are_not_told() -> None:
    """Of lives that say yes and then no again, one tracked change leaves the yes standing: a bias that the method states, and no loss."""
    told = Records({f"wave{wave}": np.full(4, wave in (3, 4), dtype=np.uint8) for wave in range(1, 9)})
    once, twice = (
        asked(Longitudinal(tuple(told.columns), ("0", "1"), changes=changes, method="tracked"), Rows(told.take(np.arange(40_000) % 4))) for changes in (1, 2)
    )
    assert [round(float(each.value), 1) for each in twice.estimates] == [0, 0, 1, 1, 0, 0, 0, 0]
    assert [round(float(each.value), 1) for each in once.estimates] == [0, 0, 1, 1, 1, 1, 1, 1]


def asked(protocol: Longitudinal, population: Rows) -> Course:
    """A run at epsilon 20, where hardly any report is changed."""
    return run(protocol.algorithm(20.0, population.size), PopulationOracle(population, KeyedNoise(1), 1, 20.0))


@pytest.mark.parametrize(("intervals", "part"), [(1, 1), (2, 1), (5, 2), (5, 5)])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_variance_of_events_is_the_closed_form(intervals: int, part: int, epsilon: float) -> None:
    """Over all lives and reports, enumerated, the variance of one report's share of m intervals is `events_variance`, and n standard_error^2 as well."""
    randomizer = ChangeTracking(epsilon, intervals=intervals)
    law = np.arange(1.0, intervals + 2) / (intervals + 1) / (intervals + 2) * 2
    p, q = randomizer.ones[1] / randomizer.total, randomizer.ones[0] / randomizer.total
    assert (p, q) == pytest.approx(event_odds(epsilon, intervals), abs=1e-6)
    mean = square = 0.0
    for value, share in enumerate(law):
        for report, chance in chances(randomizer, value).items():
            stands = sum((bit - q) / (p - q) for bit in report[:part])
            mean, square = mean + share * float(chance) * stands, square + share * float(chance) * stands**2
    told = float(law[:part].sum())
    assert mean == pytest.approx(told, abs=1e-9)
    assert square - mean**2 == pytest.approx(events_variance((p, q), part, told), rel=1e-9)
    n = 1 << 44
    tally = type(randomizer.empty())(np.rint((q + law[:intervals] * (p - q)) * n).astype(np.int64), n)
    joint = randomizer.joint(tally, (np.arange(intervals + 1) < part)[None, :].astype(np.float64))
    assert joint.covariance[0, 0] * n == pytest.approx(events_variance((p, q), part, told), rel=1e-6)


@pytest.mark.parametrize("protocol", WAYS, ids=repr)
def test_errors_are_of_the_size_that_is_said(protocol: Longitudinal) -> None:
    """Over 120 runs the mean square of error in standard errors, on average over waves, is 1 within 5 deviations, and 4 or 1/4 would not be."""
    runs, clients, ratios = 120, 3000, []
    same = protocol.method == "fresh" or protocol.changes == 0
    for seed in range(runs):
        population = protocol.synthetic(clients, 1 if same else 1 + seed)
        course = run(protocol.algorithm(2.0, clients), PopulationOracle(population, KeyedNoise(seed), seed, 2.0))
        value, variance = (np.array([getattr(each, part) for each in course.estimates]) for part in ("value", "standard_error"))
        truth, variance = protocol.truth(population), variance**2
        if same:  # everybody is asked, of the same records in all runs: what they are is not chance
            truth = np.array([population.batch(0, clients)[f"wave{wave + 1}"].mean() for wave in range(len(value))])
            variance -= truth * (1 - truth) / clients
        ratios.append(float(np.mean((value - truth) ** 2 / variance)))
    slack = 5 * float(np.std(ratios)) / math.sqrt(runs)
    assert slack < 0.7
    assert abs(np.mean(ratios) - 1) < slack


def test_the_best_way_by_closed_form() -> None:
    """One wave for each client, unless values never change, a change is rare among many waves, or epsilon is so large that all can be asked all."""
    best = {
        (1.0, 8, None): "split",
        (1.0, 8, 1): "split",
        (1.0, 64, 1): "tracked",
        (1.0, 64, 4): "split",
        (4.0, 8, 1): "tracked",
        (1.0, 8, 0): "memoised",
        (20.0, 4, None): "fresh",
    }
    for (epsilon, waves, changes), name in best.items():
        known = ways(epsilon, waves, 2, changes)
        assert known[0].name == name, (epsilon, waves, changes)
        assert [way.variance for way in known] == sorted(way.variance for way in known)
        assert Longitudinal(times=waves, changes=changes).taken(epsilon).name == name
        assert all(way.worst >= way.variance for way in known)
    assert {way.name for way in ways(1.0, 8, 3, 2)} == {"split", "fresh"}


@pytest.mark.parametrize(
    ("method", "waves", "changes", "epsilon"), [("split", 4, None, 1.0), ("fresh", 4, None, 4.0), ("memoised", 4, 0, 1.0), ("tracked", 20, 2, 2.0)]
)
def test_the_closed_form_is_what_runs_have(method: str, waves: int, changes: int | None, epsilon: float) -> None:
    """n times the mean standard error squared of a run is the variance by which the way was chosen, within 3 %; of what is tracked, at most that."""
    protocol, n = Longitudinal(times=waves, changes=changes, method=method), 200_000
    course = run(protocol.algorithm(epsilon, n), population_oracle(protocol.synthetic(n, 3), epsilon))
    seen = n * float(np.mean([each.standard_error**2 for each in course.estimates]))
    assert course.taken.name == method
    assert seen == pytest.approx(course.taken.variance, rel=0.03) or (method == "tracked" and 0.8 * course.taken.variance < seen < course.taken.variance)
    assert protocol.clients(epsilon) == longitudinal_clients(course.taken.worst, waves, 2, 0.05, 0.05)


def test_a_memoised_answer_with_fresh_reports_is_the_best_of_two_steps() -> None:
    """Direct responses for few symbols, unary bits for many; both lose epsilon in a life of any length."""
    assert [lasting_answer(1.0, k, 0.5)[1].name for k in (2, 3, 64)] == ["memoised-grr", "memoised-grr", "memoised-rappor"]
    for k in (2, 64):
        assert lasting_answer(1.0, k, 0.5)[1].loss_after(1000) <= 1.0


@pytest.mark.parametrize("protocol", WAYS, ids=repr)
def test_epsilon_is_charged_once_for_life(protocol: Longitudinal) -> None:
    """However many waves, all asks of a client are charged before the first answer, epsilon together, in one round; a second survey is refused."""
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


def test_fresh_reports_of_a_lasting_answer_differ() -> None:
    """With `first` below 1 every wave has other reports of the same lasting answers: estimates differ from wave to wave, by less than of new answers."""
    protocol, n = Longitudinal(times=8, changes=0, first=0.6), 4000
    course = run(protocol.algorithm(1.0, n), population_oracle(protocol.synthetic(n, 2)))
    values = [float(each.value) for each in course.estimates]
    assert len(set(values)) == 8
    again = run(Longitudinal(times=8, changes=0).algorithm(1.0, n), population_oracle(protocol.synthetic(n, 2)))
    assert len({float(each.value) for each in again.estimates}) == 1


@pytest.mark.parametrize("protocol", WAYS, ids=repr)
def test_hosts_give_the_same_bits(protocol: Longitudinal) -> None:
    """Over a bus in memory, by three members, reports and estimates are those of the population tier, whichever way is taken."""
    clients = 60
    algorithm, population = protocol.algorithm(1.0, clients), protocol.synthetic(clients, 3)
    expected, digests = in_population(algorithm, population)
    result, coordinator = play_in_memory(algorithm, population, 3, MemoryBroker())
    assert protocol.describe(result) == protocol.describe(expected)
    assert [summary.digest for summary in coordinator.rounds] == digests


def table(**columns: Any) -> Launch:
    return Launch(Records({name: np.array(values) for name, values in columns.items()}), False)


def test_tables_are_checked_wave_by_wave() -> None:
    """Columns with labels or yes/no questions; what is missing or unlisted in any wave is refused, or a label of its own."""
    launch = table(a=["x", "y", "x"], b=["y", "y", "z"], c=["y", "", "x"])
    with pytest.raises(InputError, match="not among the 2 labels"):
        Longitudinal(("a", "b"), ("x", "y")).for_table(launch)
    with pytest.raises(InputError, match="no value"):
        Longitudinal(("a", "c"), ("x", "y")).for_table(launch)
    kept = Longitudinal(("a", "b", "c"), ("x", "y"), missing="category", other="category").for_table(launch)
    assert kept.asking.k == 4
    assert kept.describe(asked(kept, Rows(launch.records)))["labels"][:5] == ["a: x", "a: y", "a: (other)", "a: (missing)", "b: x"]
    numbers = table(u=[1.0, 2.0], v=[0.0, 5.0])
    yes = Longitudinal(("u > 1", "v > 1")).for_table(numbers)
    assert yes.describe(asked(yes, Rows(numbers.records)))["labels"] == ["u > 1", "v > 1"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": ("a",)},
        {"columns": ("a", "a"), "labels": ("x", "y")},
        {"columns": ("a", "b > 1"), "labels": ()},
        {"times": 1},
        {"changes": -1},
        {"first": 0.0},
        {"first": 1.5},
        {"method": "guess"},
        {"method": "memoised"},
        {"method": "tracked"},
        {"method": "tracked", "changes": 0},
        {"method": "tracked", "changes": 1, "labels": ("a", "b", "c")},
        {"tolerance": 0.0},
    ],
)
def test_wrong_surveys_are_refused(wrong: dict[str, Any]) -> None:
    """In one line, when the protocol is made or at the latest when its algorithm is."""
    with pytest.raises(InputError) as refused:
        Longitudinal(**wrong).algorithm(1.0, 1000)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"waves": ("a",)},
        {"waves": 3},
        {"labels": ("x",)},
        {"labels": ("x", "y", "z")},
        {"change": 0},
        {"change": 9},
        {"width": 0},
        {"width": 1.0},
        {"change": "1"},
    ],
)
def test_hostile_queries_are_refused(wrong: dict[str, Any]) -> None:
    """A client refuses a request for changes that there cannot be, or of other types, with one code."""
    with pytest.raises(RefusedError, match="does not accept"):
        QUERIES.build("change-interval", {"waves": ("a", "b"), "labels": ("x", "y"), "change": 1, "width": 1, **wrong})


def test_too_few_clients_are_refused() -> None:
    """Every wave, and every level and change, needs somebody."""
    for protocol in (Longitudinal(times=8), Longitudinal(times=64, changes=3, method="tracked")):
        with pytest.raises(InputError, match="too few"):
            protocol.algorithm(1.0, 7)


def test_aggregate_runs_agree_in_law() -> None:
    """Where each client is asked once, tallies drawn from their law have the same estimates up to chance."""
    protocol = Longitudinal(times=40, changes=1)
    population = protocol.synthetic(10**8, 3)
    course = run(protocol.algorithm(1.0, 10**8), AggregateOracle(population, np.random.default_rng(1), 1.0))
    assert course.taken.name == "tracked"
    assert protocol.true_error(course, population) < 6 * math.sqrt(best_tree(1.0, 40).variances(1.0, 1).max() / 10**8)
