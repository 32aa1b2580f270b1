"""Plans: what a protocol's question costs by each way of answering it."""

import math
from importlib.metadata import EntryPoint
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.bounds.best import Aim, Reports, best_for
from local_dp.bounds.response import levelled_clients, response_gain, rr_clients
from local_dp.bounds.tails import normal_quantile
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.planning import ways as planning
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.protocols.surveys.frequency import Crosstab, Frequency, Histogram
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.protocols.vectors.workload import PrefixSums, shares_first_variance
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.registry import Registry
from local_dp.shuffle.accountant import amplified
from local_dp.shuffle.histogram import Target, multi_message
from tests.support.inputs.randomizers import ORACLES
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.plugin_package.leaky_rr import LeakyRR
from tests.support.wrong import wrong

SEARCH = "a search over several rounds"
MEANS: list[LocalProtocol[Any]] = [
    Survey(),
    Frequency(of="population"),
    Frequency(k=2, of="population"),
    Mean(of="population"),
    Histogram(),
    Crosstab(k=2),
]


def _by_name(protocol: LocalProtocol[Any], epsilon: float) -> dict[str, planning.Way]:
    return {way.name: way for way in planning.ways(protocol, epsilon)}


FEW = ("survey", "mean", "prefix-sums")  # of which the normal suite computes the plans


@pytest.mark.parametrize(
    "protocol", short(MEANS, lambda each: each.name in FEW), ids=lambda each: each.name
)
@pytest.mark.parametrize("epsilon", short([0.1, 1.0, 4.0], lambda epsilon: epsilon == 1.0))
def test_a_plan_is_what_a_run_asks_for(protocol: LocalProtocol[Any], epsilon: float) -> None:
    """For any population the chosen way is the run's own randomizer and number of clients; of a
    known one, no more are needed."""
    plan = planning.plan_of(protocol, epsilon)
    algorithm = protocol.algorithm(epsilon, 10)
    assert plan.name == algorithm.queries[0].randomizer.name  # type: ignore[union-attr]
    tolerance = planning.tolerance_of(protocol)
    assert tolerance is not None
    # for the level of its interval, whatever the accuracy
    least = levelled_clients(epsilon) if isinstance(protocol, Survey | Mean) else 1
    assert max(plan.clients(tolerance), least) == pytest.approx(
        protocol.clients(epsilon), rel=1e-4, abs=1
    )
    made_up = planning.plan_of(protocol, epsilon, protocol.synthetic(5, 1))
    assert made_up.clients(tolerance) <= plan.clients(tolerance)


@pytest.mark.parametrize(
    "protocol",
    short([*MEANS, PrefixSums(k=16)], lambda each: each.name in FEW),
    ids=lambda each: each.name,
)
def test_clients_and_accuracy_are_inverse(protocol: LocalProtocol[Any]) -> None:
    """The clients for an accuracy keep it, a twentieth fewer do not; ways stand in order: no
    privacy, the curator, then the local ones."""
    ways = planning.ways(protocol, 1.0)
    for way in ways:
        n = way.clients(0.03)
        assert way.accuracy(n) <= 0.03 * (1 + 1e-6) < way.accuracy(math.floor(0.95 * n))
    if len(ways) > 1:
        *local, curator, nobody = [way.clients(0.03) for way in ways]
        assert nobody <= curator <= min(local)
        # up to the rounding of words
        assert all(first <= second * (1 + 1e-4) for first, second in pairwise(local))
        assert [way.model for way in ways[-2:]] == ["curator", "open"]


# not the discrete Gaussian, which has a delta
OF_NUMBERS = {
    "discrete-laplace",
    "bounded-laplace",
    "staircase",
    "piecewise",
    "hybrid",
    "square-wave",
}


def test_every_randomizer_that_applies_is_planned_for() -> None:
    """All that estimate a survey, frequencies, a mean: hashes of two symbols are randomized
    response, Hadamard has 4 times that, subsets ask the fewest."""
    survey = _by_name(Survey(), 1.0)
    frequency = _by_name(Frequency(), 1.0)
    assert {"binary-rr", *ORACLES, planning.CURATOR, planning.OPEN} <= set(survey)
    assert all(
        survey[name].clients(0.05) == rr_clients(1.0, 0.1, 0.05)
        for name in ("binary-rr", "grr", "olh", "blh", "pi-rappor", "pgr", "subset-selection")
    )
    for name in ("hadamard", "hadamard-response", "recursive-hadamard"):
        assert survey[name].clients(0.05) == pytest.approx(4 * rr_clients(1.0, 0.1, 0.05), rel=1e-3)
    assert set(frequency) == {*ORACLES, planning.CURATOR, planning.OPEN}
    assert frequency["subset-selection"].clients(0.05) == min(
        frequency[name].clients(0.05) for name in ORACLES
    )
    assert {"one-bit-mean", *OF_NUMBERS, planning.CURATOR, planning.OPEN} <= set(
        _by_name(Mean(), 1.0)
    )
    assert not OF_NUMBERS & {*survey, *frequency}
    refuse(("nothing to compare", lambda: planning.estimators(PrefixSums(), 1.0)))


@wrong(
    "local_dp.protocols.planning.ways:_by_curator",
    "change / epsilon",
    "change / (2 * epsilon)",
    "the curator is planned with half of the noise",
    at="0.1",
)
@pytest.mark.parametrize("epsilon", short([0.1, 1.0, 4.0], lambda epsilon: epsilon > 0.1))
def test_the_curator_keeps_what_is_planned(epsilon: float) -> None:
    """With discrete Laplace noise 93.5 to 96.5 % of releases of a share are within, by the exact
    law."""
    way = _by_name(Survey(), epsilon)[planning.CURATOR]
    n = way.clients(0.05)
    assert _within(n, epsilon) == pytest.approx(0.95, abs=0.015)


def _within(n: int, epsilon: float) -> float:
    """Pr[the released share of n records of a fair coin is within 0.05], averaged over numbers
    around n: counts are whole."""
    noise = np.arange(-math.ceil(40 / epsilon), math.ceil(40 / epsilon) + 1)
    ratio = math.exp(-epsilon)
    noise_law = (1 - ratio) / (1 + ratio) * ratio ** np.abs(noise)
    shares = []
    for size in range(math.floor(0.97 * n), math.ceil(1.03 * n)):
        count = np.arange(size + 1)
        within = np.abs((count[:, None] + noise) / size - 0.5) <= 0.05
        shares.append(float(stats.binom.pmf(count, size, 0.5) @ within @ noise_law))
    return float(np.mean(shares))


def test_quantiles_are_planned_for_both_ways() -> None:
    """The way taken is the cheaper one and the run's; nobody's clients are below the sample's own
    1.96 sqrt(q (1 - q) / n), to which the curator adds."""
    for at, way in (
        (("0.5",), SEARCH),
        (tuple(str(place / 20) for place in range(1, 20)), "one round of prefix signs"),
    ):
        protocol = Quantiles(at=at, bins=200)
        one, two, curator, nobody = planning.ways(protocol, 1.0)
        assert one.chosen
        assert one.name == way
        assert one.clients(0.02) == protocol.clients(1.0) <= two.clients(0.02)
        assert nobody.clients(0.02) < curator.clients(0.02) < one.clients(0.02)
    assert planning.ways(Quantiles(), 1.0)[-1].clients(0.02) == 2401
    assert planning.ways(Quantiles(), 0.5)[-2].noise == 4  # type: ignore[attr-defined]
    assert len(planning.ways(Quantiles(bins=4000), 1.0)) == 3  # too fine for one round


def test_a_randomizer_of_elsewhere_is_planned_for_if_it_keeps_its_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that spends more than it claims would seem the cheapest way: it is left out. One that
    does not load, too."""
    registry = Registry(RANDOMIZERS.noun, "nobody", RANDOMIZERS.base, RANDOMIZERS.built_in)
    leaky = LeakyRR.name
    homes = {leaky: f"{LeakyRR.__module__}:LeakyRR", "broken": f"{__name__}:Nothing"}
    vars(registry)["_points"] = RANDOMIZERS._points | {
        name: EntryPoint(name, home, "nobody") for name, home in homes.items()
    }
    monkeypatch.setattr(planning, "RANDOMIZERS", registry)
    assert {leaky, "broken"} <= set(registry)
    assert set(_by_name(Survey(), 1.0)) == {"binary-rr", *ORACLES, planning.CURATOR, planning.OPEN}
    monkeypatch.setattr(planning, "_keeps_epsilon", lambda name, randomizer: True)
    assert leaky in _by_name(Survey(), 1.0)


@pytest.mark.parametrize("protocol", [Survey(), MEANS[1], Mean()], ids=lambda each: each.name)
def test_the_curators_noise_covers_a_replaced_record(protocol: LocalProtocol[Any]) -> None:
    """The scale of the noise times epsilon is the most that one record replaced moves the sums,
    over all pairs of values."""
    (curator,) = (way for way in planning.ways(protocol, 0.5) if isinstance(way, planning.Curated))
    aim = protocol.aim()
    assert aim is not None
    some = aim.target[:: max(1, (len(aim.target) - 1) // 8)]
    change = max(float(np.abs(one - other).sum()) for one in some for other in some)
    assert curator.noise * 0.5 == pytest.approx(change)
    of_people = planning.ways(protocol, 0.5, protocol.synthetic(1, 0))[-2]
    assert of_people.clients(0.03) <= curator.clients(0.03)


TOGETHER = planning.Together(1.0, 1e-6)


def one_report(protocol: LocalProtocol[Any], of: bool = False) -> planning.OneReport:
    """The plan for one report each, of the made-up population or of any."""
    way = planning.shuffled_ways(protocol, TOGETHER, protocol.synthetic(1, 0) if of else None)[0]
    assert isinstance(way, planning.OneReport)
    return way


@pytest.mark.long
@pytest.mark.parametrize("protocol", [Survey(), Frequency(k=8)])
def test_one_report_keeps_the_target_and_no_more(protocol: LocalProtocol[Any]) -> None:
    """The reports of the planned clients are private enough together, and a hundredth fewer clients
    are too few for both."""
    way = one_report(protocol)
    clients = way.clients(0.05)
    local = way.local(clients)
    assert 0.99 < amplified(way.make(local), clients, TOGETHER.delta).upper <= 1.0 + 1e-9
    assert way.accuracy(clients) <= 0.05 * (1 + 1e-3)
    assert way.accuracy(round(0.99 * clients)) > 0.05


def test_a_constant_in_a_workload_costs_nothing() -> None:
    """The shares add up to 1, so it adds itself to each answer: what counts is the deviation from
    a row's mean, times that of a bit."""
    prefixes = np.tril(np.ones((30, 30)))[:-1]
    bound = 30 * prefixes.var(axis=1).max() * response_gain(0.5) ** 2
    for workload in (prefixes, prefixes + 7):
        assert shares_first_variance(0.5, workload) == pytest.approx(bound)


def test_errors_of_reports_are_around_0() -> None:
    """Of 2,000 runs, within 5 standard errors; the truth alone is .7."""
    reports = Reports.of(BinaryRR(1.0), Aim.mean(1))
    assert reports is not None
    errors = reports.noise(np.array([0.3, 0.7]), 1000, 2000, np.random.default_rng(1))
    assert abs(errors.mean()) < 5 * errors.std() / math.sqrt(2000)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_the_best_for_a_vector_has_the_variance_of_the_one_built(epsilon: float) -> None:
    best = best_for("mean-vector", epsilon, 8)
    randomizer = RANDOMIZERS.build(best.randomizer, best.parameters)
    nobody = randomizer.variance(np.zeros((1, 8), dtype=np.int64), np.ones(1))
    assert best.variance == pytest.approx(nobody.sum(), rel=1e-6)


def test_blankets_err_by_their_noise_at_least() -> None:
    """Of 1,000 clients at epsilon .05 the noise is nearly all of the error."""
    together = planning.Together(0.05, 1e-6)
    way = planning.shuffled_ways(Frequency(k=8), together, None)[1]
    target = Target(1000, together.epsilon, together.delta)
    noise = multi_message(8, target).variance(1000)
    assert 1 < way.accuracy(1000) ** 2 / (normal_quantile(0.025) ** 2 * noise) < 2.5
