"""The map: its verdict follows from its runs, and whatever breaks a run, a game or a proof takes
the class off the map."""

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import wraps
from typing import Any

import pytest

from local_dp.arrays import Counts
from local_dp.experiments.claims.local.map import series
from local_dp.experiments.claims.local.map.claim import EXPERIMENT
from local_dp.experiments.claims.local.map.games import ParityGame
from local_dp.experiments.claims.local.map.runs import (
    ONE_ROUND,
    PROTOCOLS,
    HiddenConcept,
    OneRound,
    Parity,
    Users,
)
from local_dp.experiments.lab.parts import ClientCount, Finding, Regions
from local_dp.hardness.adversary import ParityExpectations
from local_dp.interaction import Nonadaptive
from local_dp.learners.rules import AllOf, Conjunctions
from local_dp.masked.population import Concept
from local_dp.masked.protocols import MaskedParityOneRound
from local_dp.oracles.statistical.oracles import StatisticalQuery
from tests.support.runs.shared import Once

pytestmark = pytest.mark.long
Measured = list[tuple[Any, Any]]
KINDS = {Parity: "parity", ParityGame: "parity-game", Users: "users"}
RULES = ["Point functions", "Decision stumps", "Conjunctions of two literals"]


@pytest.fixture(scope="module")
def rows(once: Once) -> Measured:
    """The quick run with seed 1."""
    return once.measured(
        "map", EXPERIMENT, EXPERIMENT.points("quick"), lambda point: EXPERIMENT.measure(point, 1)
    )


def _names_of(finding: Finding) -> list[list[str]]:
    diagram = finding.figures[0]
    assert isinstance(diagram, Regions)
    return [[name for name, _ in region.placed] for region in diagram.regions]


def _kind(point: Any) -> str:
    return "shuffled" if getattr(point, "shuffled", False) else KINDS.get(type(point)) or point.name


def _with(rows: Measured, kind: str, change: Callable[[Any], Any]) -> Finding:
    """The finding when every measurement of one kind was changed."""
    changes = [(point, change(each) if _kind(point) == kind else each) for point, each in rows]
    return EXPERIMENT.conclude(changes, "quick")


def _with_values(rows: Measured, kind: str, **values: Any) -> Finding:
    """The finding when every measurement of one kind had these values, or its count had."""

    def change(each: Any) -> Any:
        if "n" in values:
            return replace(each, count=replace(each.count, **values))
        return replace(each, **values)

    return _with(rows, kind, change)


@pytest.mark.slow
def test_quick_run_places_every_class(rows: Measured) -> None:
    """The quick run shows the claim: simple rules in LNI, masked parity in LI, parity in CI."""
    finding = EXPERIMENT.conclude(rows, "quick")
    assert finding.verdict == "shown", [check for check in finding.checks if not check.shown]
    assert _names_of(finding) == [RULES, ["Masked parity"], ["Parity"]]


def test_the_map_tells_bounds_from_measurements(rows: Measured) -> None:
    """Beside a class stands what was measured and, apart from it, what is proven: every measured
    number is one of a run, and no proven one is."""
    diagram = EXPERIMENT.conclude(rows, "quick").figures[0]
    assert isinstance(diagram, Regions)
    evidence = [
        line
        for region in diagram.regions
        for _, evidence_text in region.placed
        for line in evidence_text.splitlines()
    ]
    runs = {
        f"{each.count.n:,}"
        for _, each in rows
        if isinstance(getattr(each, "count", None), ClientCount)
    }
    for line in evidence:
        first = re.search(r"[\d,]*\d(?= at| people)", line)
        assert first is not None, line
        assert (first[0] in runs) == line.startswith(
            ("measured", "computed exactly, runs agree")
        ), line
    assert [
        sum(line.startswith(kind) for line in evidence)
        for kind in ("measured:", "computed", "proven", "measured ")
    ] == [4, 1, 5, 5]
    assert (
        evidence[-2]
        == "proven without a curator, however asked: at least 3,676 at d = 8, 955,003 at d = 16"
    )


def test_the_easiest_region_does_not_look_the_dearest(rows: Measured) -> None:
    """Counted alike at one dimension, every simple rule needs fewer people than masked parity does,
    and parity without a curator the most but one."""
    at_eight = {
        _kind(point): each.count for point, each in rows if point.d == 8 and hasattr(each, "count")
    }
    assert all(at_eight[name].high < at_eight["masked-parity"].low for name in ONE_ROUND)
    assert at_eight["masked-parity"].high < at_eight["masked-parity-one-round"].low
    table = EXPERIMENT.conclude(rows, "quick").tables[0]
    assert {row[6] for row in table.rows} == {"measured minimum", "exact minimum, runs agree"}
    assert all(
        low <= n <= high < enough
        for _, _, _, n, low, high, _, enough, _ in table.rows
        if enough is not None
    )


def test_the_shuffled_model_stands_between(rows: Measured) -> None:
    """A line beside each rule and a table; a shuffler that took more people, or gained nothing at
    all, is not shown."""
    table = EXPERIMENT.conclude(rows, "quick").tables[1]
    assert [row[0] for row in table.rows] == RULES
    assert all(mixed < alone and report > 1 for _, _, alone, mixed, _, _, report in table.rows)
    for values in ({"low": 3900, "n": 4000, "high": 4100}, {"report": 0.5}):
        assert _with_values(rows, "shuffled", **values).verdict == "not shown"


@pytest.mark.parametrize(("name", "values", "left"), [
    ("stumps", {"right": (1010, 1260)},
    [["Point functions", "Conjunctions of two literals"], ["Masked parity"], ["Parity"]]),
    ("stumps", {"rounds": 2}, [["Point functions", "Conjunctions of two literals"],
    ["Masked parity"], ["Parity"]]),
    ("masked-parity", {"rounds": 1}, [RULES, [], ["Parity"]]),
    ("masked-parity", {"n": 10**6, "low": 10**6, "high": 10**6}, [RULES, [], ["Parity"]]),
    ("masked-parity-one-round", {"n": 2000, "low": 1900, "high": 2100}, [RULES, [], ["Parity"]]),
    ("parity-halving", {"n": 2000, "low": 1900, "high": 2100}, [RULES, ["Masked parity"], []]),
    ("parity", {"wins": 500}, [RULES, ["Masked parity"], []]),
    ("users", {"users": (0, 200)}, [RULES, ["Masked parity"], ["Parity"]]),
])  # fmt: skip
def test_failed_run_takes_a_class_off_the_map(
    rows: Measured, name: str, values: dict[str, Any], left: list[list[str]]
) -> None:
    """The verdict becomes "not shown" if a learner fails, needs a second round or needs too many
    people. So it does if a protocol is below the bound that rules it out, or clients do not follow
    their law."""
    finding = _with_values(rows, name, **values)
    assert finding.verdict == "not shown"
    assert _names_of(finding) == left


@pytest.mark.parametrize("bound", ["masked_parity_one_round_bound", "parity_interactive_bound"])
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_a_wrong_bound_is_not_shown(
    rows: Measured, bound: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of the protocol that a lower bound rules out refutes a bound twice too high. It does
    not meet one twice too low."""
    right = getattr(series, bound)
    monkeypatch.setattr(
        series, bound, lambda d, epsilon, success: factor * right(d, epsilon, success)
    )
    assert EXPERIMENT.conclude(rows, "quick").verdict == "not shown"


@pytest.mark.parametrize(
    "answers", [lambda whole: whole.base + whole.half, lambda whole: whole.base + 0 * whole.half]
)
def test_a_wrong_silent_oracle_is_not_shown(
    rows: Measured, answers: Callable[[ParityExpectations], Counts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an honest oracle, bent queries win at the tolerance where they must not. With one that
    is illegally silent, they lose below it."""
    monkeypatch.setattr(ParityExpectations, "answers", answers)
    finding = _with(rows, "parity-game", lambda _: ParityGame(6).measure(1))
    assert finding.verdict == "not shown"
    assert _names_of(finding)[2] == []


def test_decoders_that_always_say_the_same_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner or protocol whose decoder ignores the answers has no number of people at all."""

    class Deaf(Conjunctions):
        def algorithm(self) -> Nonadaptive[StatisticalQuery, float, AllOf]:
            return Nonadaptive(super().algorithm().queries, lambda answers: AllOf(()))

    monkeypatch.setitem(
        ONE_ROUND,
        "points",
        replace(ONE_ROUND["points"], learner=lambda d: Deaf(d=d, slack=0.49 * 20 * d)),
    )
    assert OneRound("points", 4, 100, shuffled=False).measure(1).count.failed
    right = MaskedParityOneRound.algorithm

    @wraps(right)
    def deaf(protocol: MaskedParityOneRound, epsilon: float, clients: int) -> Any:
        return Nonadaptive(
            right(protocol, epsilon, clients).queries, lambda tallies: Concept(protocol.d, 0, 0)
        )

    monkeypatch.setattr(MaskedParityOneRound, "algorithm", deaf)
    assert PROTOCOLS["masked-parity-one-round"].protocol == MaskedParityOneRound.name
    assert HiddenConcept("masked-parity-one-round", 4, 100).measure(1).count.failed


def test_the_game_is_played_to_its_end() -> None:
    """At d = 6 every share is exact: q + 1 of 64 parities by asking about q, all of them by 2^(6-k)
    + k bent queries just below 2^(-k/2), one at it."""
    play = ParityGame(6).measure(3)
    shares = {q: Fraction(min(q + 1, 64), 64) for q in (1, 8, 62, 63, 64)}
    assert {queries: Fraction(success) for queries, success in play.single} == shares
    below = [(row.k, row.wins, row.queries) for row in play.cosets if row.below]
    assert below == [(k, 64, 2 ** (6 - k) + k) for k in (2, 4, 6)]
    assert [row.wins for row in play.cosets if not row.below] == [1, 1, 1]
