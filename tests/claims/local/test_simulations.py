"""The experiments on randomized response and on both simulations: shown at quick scale, not shown for a wrong protocol, the same again for one seed."""

import json
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.experiments.claims.local import randomized_response, sq_to_local
from local_dp.experiments.claims.local.local_to_sq import claim as local_to_sq
from local_dp.experiments.claims.local.local_to_sq.claim import Draw, LocalToSq, Trees
from local_dp.experiments.claims.local.local_to_sq.laws import OneReply, TwoReplies, divergence
from local_dp.experiments.claims.local.randomized_response import WAYS, RandomizedResponse, Setting, Users
from local_dp.experiments.claims.local.sq_to_local import Accuracy, SqToLocal
from local_dp.experiments.lab.claim import Experiment, Figure, Finding
from local_dp.oracles.local.asked import Cohort
from local_dp.randomizers import one_bit
from local_dp.randomizers.one_bit import flip_weight
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.theorems.likelihood import Observed, acceptance, density, likelihood_query
from local_dp.theorems.local_from_sq import tight_clients
from tests.support.runs.shared import Once

pytestmark = pytest.mark.long
Measured: TypeAlias = list[tuple[Any, Any]]
Quick: TypeAlias = Callable[[str], Measured]
simulation = import_module("local_dp.theorems.sq_from_local")  # the module, of which the function has the name
EXPERIMENTS: dict[str, Experiment[Any, Any]] = {module.EXPERIMENT.name: module.EXPERIMENT for module in (randomized_response, sq_to_local, local_to_sq)}


@pytest.fixture(scope="module")
def quick(once: Once) -> Quick:
    """The quick run of the right protocol with seed 1."""

    def measured(name: str) -> Measured:
        experiment = EXPERIMENTS[name]
        return once.measured(name, experiment, experiment.points("quick"), lambda point: experiment.measure(point, 1))

    return measured


def _with_twin(measured: Measured, twin: Experiment[Any, Any], concerns: Callable[[Any], bool]) -> Finding:
    """The finding when the points that `concerns` picks are measured with a wrong protocol."""
    mixed = [(point, twin.measure(point, 1) if concerns(point) else found) for point, found in measured]
    return twin.conclude(mixed, "quick")


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_shown(name: str, quick: Quick) -> None:
    """Every check of the quick run is shown, with finite figures in every table and every curve as long as its axis."""
    finding = EXPERIMENTS[name].conclude(quick(name), "quick")
    assert [check.statement for check in finding.checks if not check.shown] == []
    assert finding.verdict == "shown"
    for table in finding.tables:
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
        assert all(np.isfinite(cell) for row in table.rows for cell in row if isinstance(cell, float))
    curves = [curve for figure in finding.figures if isinstance(figure, Figure) for curve in figure.curves]
    assert curves
    assert all(len(curve.x) == len(curve.y) > 0 for curve in curves)
    assert json.dumps([table.rows for table in finding.tables])


def test_a_curator_that_adds_too_much_noise_is_not_shown(quick: Quick) -> None:
    """A curator whose noise falls as 1/sqrt(n) only: neither its slope nor its level is shown."""

    def wrong(records: Records, epsilon: float, generator: np.random.Generator) -> float:
        return float(records["yes"].mean() + generator.laplace(scale=1 / (epsilon * len(records) ** 0.5)))

    finding = _with_twin(quick("randomized-response"), RandomizedResponse({**WAYS, "curator": wrong}), lambda point: getattr(point, "way", "") == "curator")
    assert finding.verdict == "not shown"
    assert sum(not check.shown for check in finding.checks) >= 2


def test_a_response_that_is_not_debiased_is_not_shown(quick: Quick) -> None:
    """Randomized response read without undoing its bias: the error does not fall."""

    def wrong(records: Records, epsilon: float, generator: np.random.Generator) -> float:
        keep = 1 / (1 + np.exp(-epsilon))
        ones = int(records["yes"].sum())
        return float((generator.binomial(ones, keep) + generator.binomial(len(records) - ones, 1 - keep)) / len(records))

    twin = RandomizedResponse({**WAYS, "randomized response": wrong})
    finding = _with_twin(quick("randomized-response"), twin, lambda point: getattr(point, "way", "") == "randomized response")
    assert finding.verdict == "not shown"


@pytest.mark.parametrize(("factor", "failing"), [(0.5, "exact count"), (3.0, "tight")])
def test_a_wrong_client_count_is_not_shown(factor: float, failing: str, quick: Quick) -> None:
    """Half the clients are too few, three times as many are not tight: each is found by its own check."""
    twin = SqToLocal(lambda epsilon, beta: lambda query: round(factor * tight_clients(epsilon, beta)(query)))
    finding = _with_twin(quick("sq-to-local"), twin, lambda point: isinstance(point, Accuracy) and (point.epsilon, point.t) == (1.0, 1))
    assert finding.verdict == "not shown"
    assert any(failing in check.statement and not check.shown for check in finding.checks)


def test_a_wrong_acceptance_constant_is_not_shown(quick: Quick) -> None:
    """A simulation that accepts twice as readily is outside the bound, and wrong even for exact answers."""
    twin = LocalToSq(accept=lambda ratio, ceiling: acceptance(2 * ratio, ceiling))
    finding = _with_twin(quick("local-to-sq"), twin, lambda point: (type(point), getattr(point, "epsilon", 0)) in ((Draw, 1.0), (Trees, 0.5)))
    assert finding.verdict == "not shown"
    assert [check.shown for check in finding.checks[:3]] == [False, False, False]


def test_independent_second_replies_are_not_shown(quick: Quick) -> None:
    """A simulation that draws a second answer without regard to the first has the wrong transcripts."""
    finding = _with_twin(quick("local-to-sq"), LocalToSq(same=False), lambda point: isinstance(point, TwoReplies) and point.epsilon == 2.0)
    assert finding.verdict == "not shown"
    assert not finding.checks[4].shown


def _three_quarters(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulation, "acceptance", lambda ratio, ceiling: acceptance(ratio, 0.75 * ceiling))


def _unclipped(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulation, "mean_ratio", lambda answer, growth: (growth + 1 / growth + answer * (growth - 1 / growth)) / 2)
    patch.setattr(simulation, "acceptance", lambda ratio, ceiling: ratio / ceiling)


def _weights(reply: Observed) -> Floats:
    return density(reply.randomizer, np.array([reply.report]), reply.randomizer.domain.values(), reply.cell)


def _no_null_weight(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Observed, "ratios", lambda reply: _weights(reply) / reply.randomizer.total)


def _wrong_reference(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Observed, "ratios", lambda reply: _weights(reply) / _weights(reply)[-1])


@pytest.mark.parametrize("spoil", [_three_quarters, _unclipped, _no_null_weight, _wrong_reference])
def test_a_wrong_shipped_simulation_is_not_shown(spoil: Callable[[pytest.MonkeyPatch], None], quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each makes the draws of the shipped program leave their law, for one answer and for two. The twins: a ceiling of three quarters,
    estimates outside their range, likelihoods over no reference or a wrong one."""
    right = quick("local-to-sq")
    spoil(monkeypatch)
    likelihood_query.cache_clear()

    def concerns(point: Any) -> bool:
        return (isinstance(point, OneReply) and point.setting in (0, 6)) or (isinstance(point, TwoReplies) and point.people == "far")

    finding = _with_twin(right, LocalToSq(), concerns)
    likelihood_query.cache_clear()
    assert finding.verdict == "not shown"
    assert [check.shown for check in finding.checks[:5]] == [True, True, True, False, False]


def test_chance_is_allowed_for_exactly() -> None:
    """The Chernoff bound behind the law check holds: a fair coin of 100 tosses exceeds ln(2 / p) / 100 in relative entropy with probability at most p."""
    for p in (0.1, 0.01, 1e-4):
        beyond = sum(math.comb(100, heads) for heads in range(101) if divergence(heads / 100, 0.5) > math.log(2 / p) / 100)
        assert p / 20 < beyond / 2**100 <= p


def _twice_epsilon(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(one_bit, "flip_weight", lambda nano, bits: flip_weight(2 * nano, bits))


def _no_gain(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BinaryRR, "gain", 1.0)


def _one_short(patch: pytest.MonkeyPatch) -> None:
    for module in ("local_dp.oracles.local.asked", "local_dp.theorems.local_from_sq"):
        patch.setattr(import_module(module), "Cohort", lambda start, stop: Cohort(start, stop - 1))


def _one_asked_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(import_module("local_dp.theorems.local_from_sq"), "Cohort", lambda start, stop: Cohort(max(0, start - 1), stop))


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("randomized-response", _twice_epsilon),
        ("randomized-response", _no_gain),
        ("randomized-response", _one_short),
        ("sq-to-local", _twice_epsilon),
        ("sq-to-local", _no_gain),
        ("sq-to-local", _one_short),
        ("sq-to-local", _one_asked_twice),
    ],
)
def test_a_wrong_shipped_protocol_is_not_shown(name: str, spoil: Callable[[pytest.MonkeyPatch], None], quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports at twice the epsilon, estimates that are not scaled back, and cohorts one short or overlapping each make the run by clients "not shown"."""
    right = quick(name)
    spoil(monkeypatch)
    finding = _with_twin(right, EXPERIMENTS[name], lambda point: isinstance(point, (Users, sq_to_local.Users)))
    assert finding.verdict == "not shown"
    assert ["client by client" in check.statement for check in finding.checks if not check.shown] == [True]


def test_a_wrong_law_is_not_shown_either(quick: Quick, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the gain the draws from the law leave their level too: the checks do not lean on the run by clients alone."""
    right = quick("randomized-response")
    _no_gain(monkeypatch)
    finding = _with_twin(
        right, EXPERIMENTS["randomized-response"], lambda point: isinstance(point, Setting) and (point.way, point.n) == ("randomized response", 1000)
    )
    assert any("predict" in check.statement and not check.shown for check in finding.checks)
