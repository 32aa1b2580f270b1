"""Randomizers that are plugged into protocols: every built-in one belongs to one, its estimates are
within their intervals, and all tiers agree; and sets."""

import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.bounds.frequencies import NARROW, ONE_ROUND, WIDE
from local_dp.bounds.tails import normal_quantile
from local_dp.errors import InputError
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol, guess_of_shares
from local_dp.protocols.search.heavy_hitters import HeavyHitters, HeavyHittersAsked
from local_dp.protocols.search.quantiles import Located
from local_dp.protocols.surveys.compare import Compare
from local_dp.protocols.surveys.identity import Identity
from local_dp.protocols.vectors.mean_found import MeanFound, range_clients
from local_dp.protocols.vectors.std import Std
from local_dp.queries.members import Members
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.prefix_signs import excess
from local_dp.records import Records
from local_dp.server.quorum import Terms
from local_dp.simulation.settings import Tier
from local_dp.tallies import Estimate
from tests.support.inputs.builders import SEED, small
from tests.support.runs.protocols import by_client
from tests.support.runs.tiers import run_tier, told
from tests.support.wrong import wrong

PLUGGED = ("survey", "frequency", "crosstab", "histogram", "longitudinal", "sets", "marginals",
           "mean-vector", "heavy-hitters", "heavy-hitters-asked", "quantiles")  # fmt: skip
FEW = [("histogram", "square-wave"), ("sets", "pckv-ue"), ("crosstab", "genprot"),
       ("longitudinal", "loloha"), ("quantiles", "grr"), ("quantiles", "binary-rr"),
       ("mean-vector", "projunit")]  # fmt: skip
# under 40,000 numbers are compared; all are right except with probability 1e-6
Z = normal_quantile(1e-6 / 80_000)
RANK = Z / normal_quantile(0.025)  # what a rank error of 95 % is multiplied by


def plugged(protocol: str, randomizer: str) -> LocalProtocol[Any]:
    settings: dict[str, Any] = {"randomizer": randomizer}
    return replace(small(protocol), **settings)


def fitting(protocol: str) -> list[str]:
    need, names = small(protocol).need, []
    assert need is not None
    for name in RANDOMIZERS.built_in:
        with suppress(InputError):
            need.randomizer(name, 1.0, protocol)
            names.append(name)
    return names


def parts_of(result: Any) -> tuple[Estimate, ...]:
    one = result if isinstance(result, Estimate) else getattr(result, "estimate", None)
    return tuple(result.estimates) if one is None else (one,)


def check_estimates(protocol: LocalProtocol[Any], epsilon: float) -> None:
    clients = min(max(2_000, protocol.clients(epsilon)), 100_000)
    options: dict[str, Any] = {"raw": True, "unverified": True}
    result = run_tier(protocol, clients, "population", epsilon, **options).result
    population = protocol.synthetic(clients, SEED)
    if isinstance(result, Located):
        assert protocol.true_error(result, population) <= RANK * result.errors[result.way]
        return
    low, high = np.hstack(
        [np.atleast_2d(np.array(part.interval(Z)).T).T for part in parts_of(result)]
    )
    truth = protocol.truth_of(result, population)
    assert (low <= truth).all()
    assert (truth <= high).all()


def test_every_built_in_randomizer_belongs_to_a_protocol() -> None:
    """A protocol takes it as a parameter, or asks it itself."""
    assert {name for name in PROTOCOLS.built_in if PROTOCOLS[name]().need} >= {*PLUGGED}
    asked = {name for protocol in PROTOCOLS.built_in for name in PROTOCOLS[protocol].asks}
    needs = [PROTOCOLS[name]().need for name in ("frequency", "survey", "sets", "mean-vector")]
    for name in RANDOMIZERS.built_in:
        fits = any(need and need.variance(name) is not None for need in needs)
        assert fits or name in asked, name


@wrong(
    "local_dp.protocols.needs:Deconvolution.stands",
    "np.linalg.pinv(self.laws)",
    "self.laws.T",
    "shares are read off the reports as they are",
    at="1.0-histogram-square-wave",
)
@pytest.mark.parametrize(("protocol", "randomizer"), FEW)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_an_estimate_is_within_its_interval(protocol: str, randomizer: str, epsilon: float) -> None:
    check_estimates(plugged(protocol, randomizer), epsilon)


@pytest.mark.long
@pytest.mark.parametrize("protocol", PLUGGED)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_every_estimate_is_within_its_interval(protocol: str, epsilon: float) -> None:
    """Every built-in randomizer in every protocol that takes it."""
    for name in fitting(protocol):
        check_estimates(plugged(protocol, name), epsilon)


@wrong(
    "local_dp.protocols.needs:Need.times",
    "self.spread(own) / self.spread(usual)",
    "1.0",
    "the clients are as many as the best randomizer takes",
    at="she",
)
@pytest.mark.parametrize("name", [*PLUGGED[:8], "mean", "prefix-sums", "workload", "she"])
def test_the_default_clients_leave_the_tolerance(name: str) -> None:
    """The union of normal tails over all standard errors of a run reaches it, from 1.5 % below to
    4 % above, where seeds move it by .35 % (one standard deviation, `sets`) around 2.4 % at most;
    also with `she`, which takes 2.8 times as many as the best."""
    protocol: Any = plugged("frequency", name) if name == "she" else small(name)
    result = by_client(protocol, protocol.synthetic(protocol.clients(0.5), SEED), 0.5, SEED)
    errors = np.concatenate([np.ravel(part.standard_error) for part in parts_of(result)])
    reach = normal_quantile(0.025 / errors.size) * errors.max()
    assert 0.985 < reach / protocol.tolerance < 1.04


def test_the_default_clients_in_closed_form() -> None:
    """Within .15 % at epsilon .3, where one parity is best, by the variances of the reports. A
    search by several parities has the least variance, a guess of shares that of a uniform law."""
    z, chi2, gain, growth = stats.norm.isf, stats.chi2.isf, math.tanh(0.15) ** -2, math.exp(0.3)
    one, wide = (sum(each.needs(32, 0.3, 0.05)) / 0.09 for each in (ONE_ROUND, WIDE))
    narrow, she = sum(NARROW.needs(32, 0.1, 0.05)) / 0.01, math.sinh(0.075) ** -2 / 2 + 0.09
    rare, alike = 2 * (gain - 1) * (124 / 125) ** 2, 2 * growth / (growth - 1) ** 2
    root = 2**0.5 * z(0.05) + (2 * z(0.05) ** 2 - 15 + 2 * chi2(0.05, 15)) ** 0.5
    for protocol, clients in (
        (Std(), 307 / 16 * (z(0.025) / 0.01) ** 2),
        (MeanFound(), rare * (z(1e-3 / 125) / 0.15) ** 2 / 0.3),
        (MeanFound(tolerance=0.01), alike * (z(0.0125) / 0.01) ** 2 / 0.7 / 0.85),
        (Compare(), (growth + 1) * (growth + 7) * (z(0.0125) / 0.05 / (growth - 1)) ** 2),
        (Identity(), 1024 * gain * (chi2(0.05, 16) / chi2(0.95, 16) - 1)),
        (Identity(coins="private"), 32 * gain * (root**2 - 15)),
        (HeavyHitters(share=0.3), (gain - 0.09) * one),
        (HeavyHittersAsked(share=0.3), (gain - 0.09) * wide),
        (HeavyHittersAsked(randomizer="she", share=0.1), she * narrow),
    ):
        assert protocol.clients(0.3) == pytest.approx(clients, rel=1.5e-3), protocol
    clear = 3 * excess(244) * gain * (z(0.025) / 0.045) ** 2
    assert range_clients(0.3) == pytest.approx(clear, rel=1e-4)
    growth = math.exp(2)
    square = min((growth + g - 1) ** 2 / (g - 1) for g in (2, 4, 8, 16)) / (growth - 1) ** 2
    assert ONE_ROUND.variance(2.0, 32, 0.0) == pytest.approx(square)
    guess = 0.2, stats.dirichlet(np.ones(5)).var()[0] ** 0.5
    assert guess_of_shares(5) == pytest.approx(guess)


def check_tiers(protocol: LocalProtocol[Any], clients: int) -> None:
    expected = told(protocol, run_tier(protocol, clients, "population"))
    tiers: tuple[Tier, ...] = ("processes", "hosts")
    for tier in tiers:
        outcome = run_tier(protocol, clients, tier, terms=Terms(quorum=1.0))
        assert told(protocol, outcome) == expected


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(("protocol", "randomizer"), FEW[:2])
def test_a_randomizer_gives_one_digest_in_all_tiers(protocol: str, randomizer: str) -> None:
    check_tiers(plugged(protocol, randomizer), 4)


@pytest.mark.slow
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("protocol", PLUGGED)
def test_every_randomizer_gives_one_digest_in_all_tiers(protocol: str) -> None:
    """But those whose loss clients do not accept: of a density, or with a delta."""
    for name in fitting(protocol):
        if name not in ("privunit", "projunit", "discrete-gaussian"):
            check_tiers(plugged(protocol, name), 20)


MISFITS = {
    "frequency": ("binary-rr", r"takes the symbols 0 to 1 and .*; frequency needs averages of"),
    "histogram": ("one-bit-mean", "2 shares at most; histogram needs"),
    "survey": ("prefix-signs", "estimates prefix sums; survey needs averages"),
    "marginals": ("count-mean-sketch", "without covariances; marginals needs"),
    "mean-vector": ("grr", "mean-vector needs averages of the cube"),
    "sets": ("oue", "sets needs"),
    "heavy-hitters": ("grr", "from 2 to 4096; heavy-hitters needs"),
}


@wrong(
    "local_dp.protocols.needs:Need._fault",
    "rank == self.domain.size",
    "rank",
    "shares that the reports do not show are estimated",
    at="histogram",
)
@pytest.mark.parametrize("protocol", MISFITS)
def test_a_misfit_is_one_line(protocol: str) -> None:
    """It names the randomizer, its values and estimate, and what the protocol needs."""
    name, words = MISFITS[protocol]
    with pytest.raises(InputError, match=f"^{name} .*{words}") as refusal:
        plugged(protocol, name).algorithm(1.0, 4_000)
    assert "\n" not in str(refusal.value)


TEXTS = ["a=0.3;b=-1", "a", "", "b=2;ab=0.5", "ab;a=-.125;zz", "xa;ax", "a=1e-1", "b;b"]
DIGITS = [[66, 1, 0], [101, 0, 0], [0, 0, 0], [0, 101, 76], [44.75, 0, 101], [0, 0, 0],
          [101, 0, 0], [0, 101, 0]]  # fmt: skip


@wrong(
    "local_dp.queries.members:_starts",
    "f';{label}'",
    "f' {label}'[1:]",
    "a label is found inside another one",
)
def test_sets_are_read_from_texts() -> None:
    """A label counts as a whole; without a number it has the highest step, and numbers are clipped.
    The digits are one number, or a row."""
    records = Records({"x": np.array(TEXTS)})
    rows = Members("x", ("a", "b", "ab"), -1.0, 1.0, 100, 1)
    assert rows(records).tolist() == DIGITS
    assert rows.listed(records).tolist() == [2, 1, 0, 2, 3, 2, 1, 2]
    assert Members("x", ("a", "b", "ab"))(records).tolist() == [3, 1, 0, 6, 5, 0, 1, 2]
    number = replace(rows, steps=2, rows=0)
    assert number.discretize(number(records), np.zeros(len(records)))[:1] == [2 + 4 * 1]


def test_sets_have_more_than_twelve_labels() -> None:
    """Above twelve no table of all sets fits, and rows are reported."""
    assert PROTOCOLS["sets"]().choice(1.0)[1].name == "padding-sampling"  # type: ignore[attr-defined]
    protocol = PROTOCOLS["sets"].from_settings({"k": "200", "limit": "3"})
    check_estimates(protocol, 4.0)
