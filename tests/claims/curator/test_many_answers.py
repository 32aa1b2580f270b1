"""`many-answers` is shown as it stands; wrong noise, wrong moves and wrong claims in its place are not."""

import pytest

from local_dp.curator.intervals.level import Level
from local_dp.curator.query_release import counting, pmw
from local_dp.curator.query_release.mwem import ConcentratedRounds
from local_dp.curator.query_release.pmw import Answered, FirstFar, Stream, Terms, moved
from local_dp.curator.query_release.small_databases import SmallDatabase
from local_dp.curator.query_release.weights import Weights
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.experiments.claims.curator.many_answers import runs as many_answers_runs
from local_dp.experiments.claims.curator.many_answers.claim import EXPERIMENT
from local_dp.experiments.claims.curator.many_answers.runs import BUDGET, CONCENTRATED, FOURIER, NEAREST, PRODUCT, RECORDS
from local_dp.experiments.lab.claim import Finding
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)


def found(**wrong: str | int) -> Finding:
    """The finding of a quick run in which the points of such a kind, of such a size, are measured again."""
    return QUICK.found(lambda point: bool(wrong) and wrong.items() <= point.items())


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    place = next(place for place, point in enumerate(QUICK.points) if point.get("k") == 100)
    assert QUICK.measure(place) == QUICK.right(place)


@pytest.mark.parametrize(
    ("kind", "attribute", "wrong"),
    [
        (FirstFar, "_nano", 2 * 10**9),
        (Level, "noise", property(lambda level: 3 * level.loss.nano)),
        (SmallDatabase, "choice", property(lambda small: ExponentialChoice(small.epsilon))),
    ],
    ids=["tests", "marginals", "small"],
)
def test_too_little_noise_is_not_shown(monkeypatch: pytest.MonkeyPatch, kind: type, attribute: str, wrong: object) -> None:
    """Caught by enumeration."""
    monkeypatch.setattr(kind, attribute, wrong)
    assert "whole transcripts" in lost(found(kind="privacy"))


def test_changes_the_wrong_way_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hypothesis that moves away uses its changes up."""
    monkeypatch.setattr(pmw, "moved", lambda weights, counted, share, step: moved(weights, counted, 1.0 - (share > weights[counted].sum()), step))
    assert "within 3/2 alpha" in lost(found(k=1000))


def test_a_halted_run_that_claims_all_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever says that all was answered."""
    monkeypatch.setattr(Answered, "answered", 1.0)
    assert "halts, says so" in lost(found(k=1000))


def test_noise_of_one_answer_on_all_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain noise that does not pay for k answers does not grow."""
    monkeypatch.setattr(counting, "moved", lambda queries: 1)
    assert "grow as sqrt(k)" in lost(found(k=2000))


def test_weights_that_stay_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """MWEM that learns nothing loses to all."""
    monkeypatch.setattr(Weights, "move", lambda weights, columns, shares: None)
    fallen = lost(found(kind="marginals", n=5000))
    for name in ("histogram", "Gaussian", "product"):
        assert f"in rho beats {name}" in fallen


def test_a_hundredth_of_the_budget_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """MWEM in rho that spends no more than pure MWEM does not beat it."""
    right_within = ConcentratedRounds.within
    monkeypatch.setattr(ConcentratedRounds, "within", lambda rho, rounds: right_within(type(rho)(rho.atto_rho // 100), rounds))
    assert "in rho beats MWEM, pure" in lost(found(kind="marginals", n=5000))


def test_terms_that_are_too_bold_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that promises alpha and takes a hundredth of the changes that may be needed."""
    monkeypatch.setattr(many_answers_runs, "_terms", lambda k, share: Terms.for_stream(Stream(RECORDS, 256, k), BUDGET, share=share / 100))
    assert "within 3/2 alpha" in lost(found(k=1000))


@pytest.mark.parametrize("twin", [FOURIER, CONCENTRATED, PRODUCT])
def test_a_table_that_is_not_the_nearest_is_not_shown(twin: str) -> None:
    """The characters as they are, what MWEM makes, independent columns: none of them in its place."""
    measured = [(point, QUICK.right(place)) for place, point in enumerate(QUICK.points)]
    swapped = [
        (point, {**told, "means": {**told["means"], NEAREST: told["means"][twin]}} if point["kind"] == "marginals" else told) for point, told in measured
    ]
    assert "the table nearest" in lost(EXPERIMENT.conclude(swapped, "quick"))
