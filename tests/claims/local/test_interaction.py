"""The experiment `interaction`: its verdict follows the measurements, and wrong methods lose it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from local_dp.experiments.claims.local.interaction import bits
from local_dp.experiments.claims.local.interaction import lists as interaction_lists
from local_dp.experiments.claims.local.interaction.claim import (
    EXPERIMENT,
    Descended,
    Descent,
    Prefixes,
    SquareErrors,
    ThresholdUsers,
    predicted_gain,
)
from local_dp.experiments.claims.local.interaction.lists import (
    BEST,
    GUESSES,
    OTHERS,
    PLACED,
    ROUNDS,
    Grid,
    Learned,
    Least,
    Placed,
    Rates,
    Users,
)
from local_dp.experiments.lab.parts import Check, ClientCount, CrossCheck, Refusal, Scale
from local_dp.experiments.lab.store import plain
from local_dp.hardness.transcripts import OneRound, as_randomized_response
from local_dp.interaction import Adaptive
from local_dp.learners.moments import LowDegree
from local_dp.theorems.from_sq import local_from_sq
from tests.support.long import short

Measured = list[tuple[Any, Any]]
SCALES: tuple[Scale, ...] = ("quick", "full")


def promised(point: Any) -> Any:
    """The measurement of a point at which everything goes as the claim says."""
    if isinstance(point, Prefixes):
        gain = predicted_gain(point.k)
        return SquareErrors([1.0, 1.01, 0.99] * 3, [gain, 1.01 * gain, 0.99 * gain] * 3)
    if isinstance(point, bits.OneBit):
        return bits.Replayed(point.count, point.count, "8")
    if isinstance(point, Placed):
        hits = sum(PLACED[point.learner, point.d][1:])
        return Learned(round(point.runs * hits / 2))
    if isinstance(point, (Users, ThresholdUsers)):
        return CrossCheck(1000, (80, 100), (320, 400))
    if isinstance(point, Least):
        n = GUESSES[point.learner][point.d]
        return ClientCount(n, round(0.9 * n), round(1.1 * n), 500)
    errors = [
        [0.3 if isinstance(point, Grid) and point.learner in OTHERS else 0.0] * point.trials
        for _ in point.grid
    ]
    return Rates(errors) if isinstance(point, Grid) else Descended(errors, 1.0)


def as_promised(scale: Scale = "quick") -> Measured:
    """Measurements of the experiment in which everything goes as the claim says."""
    return [(point, promised(point)) for point in EXPERIMENT.points(scale)]


def spoil(
    kind: type, change: Callable[[Any], Any], learner: str | None = None, scale: Scale = "quick"
) -> Measured:
    """The measurements as promised, changed at the points of one class, or of one learner of it."""

    def concerns(point: Any) -> bool:
        return isinstance(point, kind) and learner in (None, getattr(point, "learner", None))

    return [
        (point, change(each) if concerns(point) else each) for point, each in as_promised(scale)
    ]


def lost(results: Measured, scale: Scale = "quick") -> list[Check]:
    """The checks that are not shown, after a journey through JSON."""
    rows = [
        (point, EXPERIMENT.read(point, json.loads(json.dumps(plain(each)))))
        for point, each in results
    ]
    return [check for check in EXPERIMENT.conclude(rows, scale).checks if not check.shown]


def test_what_the_claim_says_is_shown() -> None:
    """Measurements as the claim has them give the verdict "shown", at either scale."""
    for scale in SCALES:
        assert not lost(as_promised(scale), scale)


@pytest.mark.parametrize(("kind", "learner", "wrong", "statement"), [
    (Least, ROUNDS, ClientCount(9 * 10**8, 8 * 10**8, 10**9, 500), "fewer clients in rounds"),
    (Least, BEST, ClientCount(10_000, 9000, 11_000, 500), "fewer clients in rounds"),
    (Grid, "degree 1", Rates([[0.0] * 80] * 7), "No other one-round method"),
    (Grid, "averaging", Rates([[0.015, 0.014] * 40] * 7), "Averaging"),
    (Placed, ROUNDS, Learned(0), "advantage of rounds"),
    (Placed, BEST, Learned(190), "advantage of rounds"),
    (Descent, None, Descended([[0.5] * 15] * 3, 1.0), "gradient descent"),
    (Descent, None, Descended([[0.0] * 15] * 3, 2.0), "gradient descent"),
    (Users, ROUNDS, Refusal("budget"), "client by client"),
    (Users, BEST, CrossCheck(1000, (30, 100), (320, 400)), "client by client"),
])  # fmt: skip
def test_wrong_methods_lose_the_verdict(
    kind: type, learner: str | None, wrong: Any, statement: str
) -> None:
    """Rounds that need more clients, one-round methods that need fewer, and laws that are not the
    clients' are not shown."""
    # the check that only the full scale has
    scale: Scale = "full" if "fewer clients in rounds" in statement else "quick"
    results = spoil(kind, lambda each: wrong, learner, scale)
    assert any(statement in check.statement for check in lost(results, scale))


def test_descent_spends_what_it_says() -> None:
    """A small run of private gradient descent reports that a client spent epsilon = 1, measured by
    its ledger."""
    assert Descent(2, [3000], 1).measure(1).spent == 1.0


def test_a_weak_mechanism_loses_the_verdict() -> None:
    """Prefix sums at four fifths of the predicted gain fail both checks about them."""

    def weaken(each: SquareErrors) -> SquareErrors:
        return SquareErrors([1.25 * error for error in each.together], each.apart)

    assert len(lost(spoil(Prefixes, weaken))) == 2


def test_a_wrong_round_has_another_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that takes the reports for the bits themselves, or clients who answer at twice the
    E, are not shown."""
    twins: list[Callable[[OneRound], OneRound]] = [
        lambda right: OneRound(right.growth, right.laws()),
        lambda right: OneRound(2 * right.growth, right.server),
    ]
    for wrong in (lambda right: right, *twins):
        monkeypatch.setattr(
            bits,
            "as_randomized_response",
            lambda *protocol, wrong=wrong: wrong(as_randomized_response(*protocol)),
        )
        replay = bits.OneBit(2, 4, bits.COUNT).measure(1)
        results = [
            (point, replay if isinstance(point, bits.OneBit) else each)
            for point, each in as_promised()
        ]
        assert ("no interaction helps" in str(lost(results))) == (wrong in twins)


@pytest.mark.long
@pytest.mark.parametrize(
    ("twin", "why"),
    short(
        [
            ("decodes to nothing", "does not reach"),
            ("twice the clients", "exceeds"),
            ("beyond", "asked"),
        ],
        lambda pair: "decodes" in pair[0],
        several=True,
    ),
)
def test_wrong_programs_lose_the_cross_check(
    monkeypatch: pytest.MonkeyPatch, twin: str, why: str
) -> None:
    """A learner that ignores its answers reaches nothing; one that asks a client twice is refused;
    one that asks nobody's client is seen."""
    right = interaction_lists._algorithm

    def wrong(learner: str, d: int, n: int) -> Any:
        if twin == "decodes to nothing":
            averaging = LowDegree(d=d, degree=1)
            return local_from_sq(averaging.algorithm(), 1.0, lambda query: n // averaging.queries)
        algorithm: Any = right(learner, d, n if twin == "twice the clients" else n + 200)
        if twin == "beyond":
            return algorithm

        def play() -> Any:
            for _ in range(2):
                answers = yield algorithm.queries
            return algorithm.decode(answers)

        return Adaptive(play)

    monkeypatch.setattr(interaction_lists, "_algorithm", wrong)
    point = Least(BEST, 4, 100) if twin == "decodes to nothing" else Users(BEST, 4)
    measurement = point.measure(1)
    results = spoil(type(point), lambda each: measurement, BEST)
    assert any(why in check.evidence for check in lost(results))
