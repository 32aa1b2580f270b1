"""The experiment `masked-parity`: its verdict follows the measurements, and wrong programs lose it
at the quick scale."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local_dp.bounds.masked_parity import masked_parity_curator_clients
from local_dp.bounds.posterior import posterior_budget
from local_dp.curator.selection.exponential import MaskedParityClass
from local_dp.experiments.claims.local.masked_parity import claim
from local_dp.experiments.claims.local.masked_parity.claim import (
    CLAMPED,
    CLIENTS,
    CURATOR,
    EXPERIMENT,
    HASHED,
    LABELS,
    LISTED,
    ONE_ROUND,
    REACH,
    Bound,
    Count,
    Proven,
    Users,
)
from local_dp.experiments.claims.local.masked_parity.epsilon import (
    BEST,
    GOALS,
    RUNS,
    TRIALS,
    Goal,
    Reports,
)
from local_dp.experiments.claims.local.masked_parity.named import named_recovery
from local_dp.experiments.lab.parts import (
    Check,
    ClientCount,
    CrossCheck,
    Finding,
    Refusal,
    Rows,
    cross_check_shown,
    exact_recovery,
    wilson,
)
from local_dp.interaction import Adaptive, Play
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.protocols import MaskedParityLearner, MaskedParityList
from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.local_protocol import find_protocol
from local_dp.randomizers import finite
from local_dp.tallies import Tally
from tests.support.long import short
from tests.support.wrong import wrong

SURE = 3.9  # standard errors
README = Path(__file__).parents[3] / "README.md"
# clients by epsilon at d = 8
SEEN = {
    0.25: 51_300,
    0.5: 13_750,
    1.0: 3_480,
    1.5: 1_500,
    2.0: 760,
    3.0: 266,
    4.0: 103,
    6.0: 40,
    8.0: 24,
}
SEEN_BY_ONE_BIT = SEEN | {1.5: 1900, 2.0: 1257, 3.0: 821, 4.0: 716, 6.0: 650, 8.0: 640}
RATIOS = {CLAMPED: 0.68, LISTED: 1.04, CURATOR: 0.96}  # to the formula


def counted(n: float) -> ClientCount:
    return ClientCount(round(n), 0.97 * n, 1.03 * n, 1)


def invent(point: Any) -> Any:
    """A measurement that agrees with the formulas, as if found by an excellent run."""
    if isinstance(point, Bound):
        return Proven({}, posterior_budget(REACH, 0.0, 0.9), 1.446, 0)
    if isinstance(point, Goal):
        return CrossCheck(point.goal, (1990, 2000), (1990, 2000))
    if isinstance(point, Users):
        right = 0.96 if point.protocol == CLAMPED else 0.9
        return CrossCheck(1000, (round(400 * right), 400), (round(1600 * right), 1600))
    if isinstance(point, Reports):
        return counted((SEEN if point.reports == BEST else SEEN_BY_ONE_BIT)[point.epsilon])
    return counted(RATIOS.get(point.protocol, 1.0) * CLIENTS[point.protocol](point.d, 1.0, 0.1))


def never(point: Any) -> bool:
    return False


def concluded(
    concerns: Callable[[Any], bool] = never, wrong: Callable[[Any], Any] = invent
) -> Finding:
    """The finding of the full points; those that it `concerns` have wrong measurements."""
    rows = [(p, wrong(p) if concerns(p) else invent(p)) for p in EXPERIMENT.points("full")]
    return EXPERIMENT.conclude(rows, "full")


def of(kind: type[Any], protocol: str) -> Callable[[Any], bool]:
    """Whether a point is of this class and protocol."""
    return lambda point: isinstance(point, kind) and point.protocol == protocol


def scaled(name: str, factor: float) -> Finding:
    """The finding if one protocol needed `factor` times its clients."""
    return concluded(of(Count, name), lambda point: counted(factor * invent(point).n))


def lost(finding: Finding) -> list[Check]:
    return [check for check in finding.checks if not check.shown]


@pytest.mark.long
@pytest.mark.parametrize("name", list(LABELS))
def test_verdict_follows_the_measurements(name: str) -> None:
    """Counts as the formulas say are "shown", 1 % more too; any one protocol that needs 1.3 times
    as many, or 1.3 times fewer, is "not shown"."""
    assert concluded().verdict == "shown", lost(concluded())
    assert scaled(name, 1.01).verdict == "shown"
    for factor in (1.3, 1 / 1.3):
        assert "of the formula" in "; ".join(
            check.statement for check in lost(scaled(name, factor))
        )


def test_one_round_with_the_clients_of_two_is_not_shown() -> None:
    magic = concluded(of(Count, ONE_ROUND), lambda point: invent(Count(HASHED, point.d, 1)))
    assert all(
        part in "; ".join(check.statement for check in lost(magic))
        for part in ("lower bound", "One round takes", "grows by")
    )


def test_a_law_that_succeeds_less_often_is_not_shown() -> None:
    """Noise that is 1.3 times larger takes the success with the formula's clients below what is
    claimed, at d = 4."""
    rare = CrossCheck(1000, (308, 400), (1232, 1600))
    weak = concluded(lambda point: point == Users(HASHED, 4), lambda point: rare)
    assert ["With the formula's clients" in check.statement for check in lost(weak)] == [
        True,
        False,
    ]


def test_a_refused_run_is_not_shown() -> None:
    """A cross-check that was refused loses the verdict and says why."""
    refusal = concluded(of(Users, HASHED), lambda point: Refusal("budget"))
    assert [check.evidence for check in lost(refusal)] == ["refused: budget"]


@pytest.mark.long
def test_a_point_is_near_the_published_count() -> None:
    count = Count(ONE_ROUND, 4, 1200).measure(3)
    assert not count.failed
    assert count.low < 1_256 * 1.1
    assert count.high > 1_256 / 1.1


@pytest.mark.long
def test_the_counts_by_epsilon_follow_the_measurements() -> None:
    """A count above the goal at epsilon 4, best reports that need more clients than one-bit ones is
    "not shown"."""

    def first(epsilon: float, clients: int) -> str:
        best = Reports(BEST, epsilon, TRIALS["full"])
        return lost(concluded(lambda p: p == best, lambda _: counted(clients)))[0].statement

    assert "at most 120 clients" in first(4.0, 140)
    assert "never take many more clients than one bit" in first(0.5, 18_000)
    assert "5.5 times fewer" in first(6.0, 200)


@pytest.mark.long
def test_one_bit_reports_miss_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong twin: where every report is one hashed bit the goals are missed, client by client and
    in the search; as it is shipped they are reached."""

    def measure() -> tuple[ClientCount, Check]:
        count = Reports(BEST, 4.0, TRIALS["quick"]).measure(2)
        assert not count.failed
        return count, cross_check_shown("", Goal(GOALS[4.0], 4.0, RUNS["quick"]).measure(2), 0.9)

    count, check = measure()
    assert count.high <= GOALS[4.0]
    assert check.shown
    monkeypatch.setattr(MaskedParityList, "one_bit", True)
    count, check = measure()
    assert count.low > GOALS[4.0]
    assert not check.shown


Algorithm = Callable[[MaskedParityLearner, float, int], Adaptive[LocalQuery, Tally, Concept]]
RIGHT: Algorithm = MaskedParityLearner.algorithm


def always_zero(
    self: MaskedParityLearner, epsilon: float, clients: int
) -> Adaptive[LocalQuery, Tally, Concept]:
    """Twin: asks as it should and decodes to the concept (0, 0) whatever comes."""

    def play() -> Play[LocalQuery, Tally, Concept]:
        rounds = RIGHT(self, epsilon, clients).play()
        try:
            tallies = yield next(rounds)
            while True:
                tallies = yield rounds.send(tallies)
        except StopIteration:
            return Concept(self.d, 0, 0)

    return Adaptive(play)


def asks(times: float = 1, more: int = 0) -> Algorithm:
    """Twin: at so many times the epsilon, of so many more clients."""

    def twin(
        self: MaskedParityLearner, epsilon: float, clients: int
    ) -> Adaptive[LocalQuery, Tally, Concept]:
        return RIGHT(self, times * epsilon, clients + more)

    return twin


def quick(monkeypatch: pytest.MonkeyPatch, twin: Algorithm, *, with_search: bool = True) -> Finding:
    """The quick finding where one protocol is a twin: its own points measured, the search only if
    `with_search`, the others as published."""
    monkeypatch.setattr(MaskedParityLearner, "algorithm", twin)
    rows: Rows[Any, Any] = []
    for point in EXPERIMENT.points("quick"):
        own = point == Users(HASHED, 4) or (
            with_search and isinstance(point, Count) and (point.protocol, point.d) == (HASHED, 4)
        )
        rows.append((point, EXPERIMENT.measure(point, 1) if own else invent(point)))
    return EXPERIMENT.conclude(rows, "quick")


@pytest.mark.long
def test_the_quick_experiment_is_shown_with_the_right_protocol(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the shipped protocol every check is shown, the cross-check with a rate client by client
    and one from the law."""
    finding = quick(monkeypatch, RIGHT)
    assert finding.verdict == "shown", lost(finding)
    crossing = next(check for check in finding.checks if LABELS[HASHED] in check.statement)
    assert "runs client by client" in crossing.evidence
    assert "from the law" in crossing.evidence


@pytest.mark.long
@pytest.mark.parametrize(("twin", "why"), [
    (always_zero, "does not reach 0.9"),
    (asks(times=2), "exceeds the run budget"),
    (asks(more=-1), "of 1,211"),
    (asks(more=1), "of 1,211"),
], ids=["always zero", "twice the epsilon", "one short", "one beyond"])  # fmt: skip
def test_wrong_protocols_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, twin: Algorithm, why: str
) -> None:
    """A decoder that always returns 0, randomizers at twice the epsilon and cohorts one short or
    one beyond each lose the quick verdict, and it says why."""
    # the cross-check alone finds the others
    finding = quick(monkeypatch, twin, with_search=why == "does not reach 0.9")
    assert finding.verdict == "not shown"
    assert any(why in check.evidence for check in lost(finding))


@pytest.mark.long
def test_a_channel_of_twice_the_epsilon_it_charges_is_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A randomizer that answers at 2 epsilon while it charges epsilon is refused by its exact loss,
    though nobody's budget is exceeded."""

    right = finite.flip_weight
    monkeypatch.setattr(finite, "flip_weight", lambda nano, bits: right(2 * nano, bits))
    finding = quick(monkeypatch, RIGHT)
    assert any("largest exact loss 2.0" in check.evidence for check in lost(finding)), lost(finding)


def test_the_curators_errors_are_those_of_every_concept() -> None:
    """Scores by the transform equal a count of the misclassified examples for each of the 32
    concepts; the true concept errs nowhere."""
    concepts, truth = MaskedParityClass(4), Concept(4, 11, 1)
    records = MaskedParityPopulation(truth, 200, 5).batch(0, 200)
    errors = concepts.errors(*concepts.encoded(records))
    x, i, b, y = (records[name].astype(int).tolist() for name in ("x", "i", "b", "y"))
    for number in range(concepts.size):
        r, a = number >> 1, number & 1
        odd = [
            (r >> place & 1) if hint else ((r & word).bit_count() + a) % 2
            for word, place, hint in zip(x, i, b, strict=True)
        ]
        wrongs = sum((1 - 2 * wrong) != label for wrong, label in zip(odd, y, strict=True))
        assert errors[number] == wrongs
    assert errors[2 * truth.r + truth.a] == 0


@pytest.mark.long
@pytest.mark.parametrize("d", [4, 8])
def test_the_curators_bound_suffices(d: int) -> None:
    """With the proven count the mechanism is exact in 90 % of 2,000 runs up to 3.9 deviations; with
    two thirds of it, a wrong twin, it is not."""
    n = masked_parity_curator_clients(d, 1.0, 0.1)
    success = claim.curator_recovery(d, 1.0, 4)
    assert wilson(success(n, 2000), 2000, SURE)[1] > 0.9
    assert wilson(success(2 * n // 3, 2000), 2000, SURE)[1] < 0.9


def readme_counts() -> dict[str, int]:
    """The clients that README's sentence gives two rounds, one round and the curator at d = 16."""
    text = " ".join(README.read_text(encoding="utf-8").split())
    counts = re.search(
        (
            r"two rounds of questions, ([\d,]+) people .* takes ([\d,]+), .* a trusted curator "
            r"needs (\d+) records"
        ),
        text,
    )
    assert counts, "README's sentence on the separation has changed; change this test with it"
    return dict(
        zip(
            (LISTED, ONE_ROUND, CURATOR),
            (int(count.replace(",", "")) for count in counts.groups()),
            strict=True,
        )
    )


def recovery(name: str, d: int) -> Callable[[int, int], int]:
    return exact_recovery(find_protocol(name).from_settings({"d": str(d)}), 1.0, 1)


@wrong(
    "local_dp.experiments.claims.local.masked_parity.named:named_recovery",
    "place, truth, 1 / 2)",
    "place, 1 - truth, 1 / 2)",
    "named masks agree with the label of a client with b = 1",
)
def test_named_masks_are_drawn_from_the_law_of_their_tally() -> None:
    """The rates of both samplers have intervals (1e-6) that meet."""
    rates = [(named_recovery(4, 1.0, 1), 40_000), (recovery(ONE_ROUND, 4), 2_000)]
    (low, high), (least, most) = (wilson(run(900, n), n, 4.9) for run, n in rates)
    assert low < most
    assert least < high


def rate(name: str, n: int, trials: int) -> tuple[float, float]:
    """The 99.99 % interval of the success with n clients at d = 16."""
    own = {CURATOR: claim.curator_recovery, ONE_ROUND: named_recovery}
    success = own[name](16, 1.0, 1) if name in own else recovery(name, 16)
    return wilson(success(n, trials), trials, SURE)


@pytest.mark.parametrize(
    ("name", "trials"),
    short(
        [(LISTED, 400), (ONE_ROUND, 20_000), (CURATOR, 160)],
        lambda each: each[0] == ONE_ROUND,
        several=True,
    ),
)
def test_readme_counts_succeed_as_often_as_they_say(name: str, trials: int) -> None:
    """Each count of README's sentence succeeds in 90 % of the runs, within 99.99 %; the closed form
    once printed for the curator, 65, does not."""
    n = readme_counts()[name]
    low, high = rate(name, n, trials)
    assert low < 0.9 < high
    if name == CURATOR:
        assert rate(name, 65, 120)[1] < 0.9
