"""Stated 95 % intervals hold the truth as often as they say; wrong ones are found out. The full table: `local-dp coverage`."""

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds.response import levelled_clients, rr_clients
from local_dp.errors import InputError
from local_dp.experiments.claims.local import occam, randomized_response
from local_dp.experiments.claims.local.interaction import claim as interaction
from local_dp.experiments.claims.local.randomized_response import WAYS, RandomizedResponse
from local_dp.experiments.cli.inspect.experiment import Coverage
from local_dp.experiments.lab import intervals
from local_dp.experiments.lab.coverage.cases import CASES, RATES, least_count_cases, measurable, of_itself, success_rates
from local_dp.experiments.lab.coverage.repetition import BAND, COUNTED, Case, binomial_coverage, exact_range, holds_from, measure, resolves
from local_dp.experiments.lab.coverage.runs import Drawn, Simulated
from local_dp.experiments.lab.coverage.stated import Stated, measure_stated
from local_dp.experiments.lab.statistics import Positive, ratio
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.protocols.parity.ladder import LadderInTurn
from local_dp.protocols.search.heavy_hitters import HeavyHitters
from local_dp.protocols.surveys.longitudinal import Longitudinal
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_found import MeanFound
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Z95, Estimate, Tally, score_interval

RUNS, DRAWN = 3000, 1000
QUICK = ("compare", "logistic")  # of which the normal suite measures the coverage
DEAR = ("heavy-hitters", "heavy-hitters-asked", "present")
FAR = 5.0  # standard errors: failure probability 6e-7 for each coordinate


def case(name: str, epsilon: float, start: str, n: int | None = None) -> Case:
    """The case of that name whose setting starts so, in the aggregate tier, with the default count unless n is given."""
    return next(c for c in CASES[name](epsilon) if c.what.startswith(start) and c.tier == "aggregate" and (c.default if n is None else c.n == n))


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        pytest.param(name, epsilon, marks=() if name in QUICK else pytest.mark.slow if name in DEAR else pytest.mark.long)
        for name, epsilon in [*((name, 1.0) for name in CASES if name != "table"), ("frequency", 0.25)]
    ],
)
def test_every_protocol_covers_as_its_law_says(name: str, epsilon: float) -> None:
    """Measured coverage is within 5 standard errors of the exact one, or of the band; at the default counts it is in the band (at .25: one-bit Hadamard)."""
    for found in CASES[name](epsilon):
        if "k = 64" in found.what or "k = 256" in found.what or "rounds several" in found.what:
            continue  # the full command measures them
        simulated = found.tier == "population"
        runs = DRAWN // 7 if simulated else DRAWN if found.binomial else max(10, DRAWN // (2 * found.dear))
        seen = measure(found, runs, np.random.default_rng([found.n, 5]))
        assert seen.agrees, seen.describe()
        if found.default and seen.exact is not None:
            assert seen.inside, seen.describe()


def test_a_new_protocol_is_measured_unless_it_opts_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its type alone; its intervals meet the band, those of z = 1 do not. A reason leaves it out, as a hypothesis does. A result may decide the truth."""

    class Fresh(Survey):
        name = "fresh"

    class Excused(Fresh):
        uncovered = "a reason"

    assert [measurable(kind) for kind in (Fresh, MeanFound, Longitudinal, Excused, LadderInTurn)] == [True, True, True, False, False]

    class Lost(Fresh):
        def truth(self, population: Population) -> None:  # type: ignore[override]
            return None

    class Decided(Lost):
        def truth_of(self, result: Estimate, population: Population) -> Floats:
            return Survey.truth(self, population)

    for kind in (Fresh, Decided):
        (found,) = of_itself(kind, 1.0)
        assert [measure(found, 200, np.random.default_rng(3), z=z).agrees for z in (Z95, 1.0)] == [True, False]
    with pytest.raises(InputError, match="fresh states no truth"):
        next(of_itself(Lost, 1.0))
    assert not [name for name in PROTOCOLS if PROTOCOLS[name].uncovered]
    monkeypatch.setattr(HeavyHitters, "uncovered", "another reason")
    monkeypatch.delitem(CASES, "heavy-hitters")
    with pytest.raises(InputError, match="another reason"):
        Coverage(("heavy-hitters",))()


def rate_of(found: Case, decode: Callable[[tuple[Tally, ...]], Any], **changed: Any) -> float:
    """The measured coverage with another decoder."""
    assert isinstance(found.draw, Drawn)
    return measure(replace(found, draw=replace(found.draw, decode=decode), binomial=False), RUNS, np.random.default_rng(2), **changed).worst / RUNS


def test_wrong_intervals_fall_out_of_the_band() -> None:
    """Below the band by 5 standard errors: z = 1.64, an error without its sampling part and the gain of epsilon + .2."""
    below = float(score_interval(BAND[0], (0.0, 1.0), RUNS, FAR)[0])
    middle, edge = case("survey", 3.0, "share 0.5"), case("survey", 1.0, "share 0.01")
    right, exact = Survey().algorithm(3.0, middle.n).decode, BinaryRR(3.0)

    def without_sampling(tallies: tuple[Tally, ...]) -> Estimate:
        estimate = exact.estimate(tallies[0])
        return replace(estimate, standard_error=np.sqrt((exact.gain**2 - 1) / (4 * estimate.n)), ends=None)

    assert rate_of(middle, right) > below
    assert rate_of(middle, right, z=1.64) < below
    assert rate_of(middle, without_sampling) < below
    assert rate_of(edge, lambda tallies: BinaryRR(1.2).estimate(tallies[0])) < below


def test_the_exact_coverage_is_the_binomial_sum() -> None:
    """For 1, 7 and 60 trials it equals the sum of scipy's binomial law over the counts whose interval holds p; z = 1.64 has another sum."""
    chances = np.array([0.003, 0.2, 0.5, 0.93])
    for n, z, same in ((1, Z95, True), (7, Z95, True), (60, Z95, True), (60, 1.64, False)):
        counts = np.arange(n + 1)
        low, high = score_interval(counts / n, (0.0, 1.0), n, z)
        summed = [float(stats.binom.pmf(counts, n, p)[(low <= p) & (p <= high)].sum()) for p in chances]
        assert np.allclose(binomial_coverage(n, chances), summed, atol=1e-12) == same
        low, high = score_interval(counts / n, (0.0, 1.0), n, z, whole=True)
        summed = [float(stats.binom.pmf(counts, n, p)[(low <= p) & (p <= high)].sum()) for p in chances]
        assert np.allclose(binomial_coverage(n, chances, whole=True), summed, atol=1e-12) == same


@pytest.mark.parametrize(("epsilon", "from_clients"), [(1.0, 165), (2.0, 265), (3.0, 581)])
def test_from_how_many_clients_a_survey_keeps_to_the_band(epsilon: float, from_clients: int) -> None:
    """The documented least counts: exact coverage over every share leaves the band just below them and not at twice or four times as many."""
    flip = BinaryRR(epsilon).flip / BinaryRR(epsilon).total
    seen = (flip, 1 - flip)
    assert holds_from(seen) == from_clients
    for n in (from_clients, 2 * from_clients, 4 * from_clients):
        low, high = exact_range(n, seen)
        assert COUNTED[0] <= low <= high <= COUNTED[1]
    assert exact_range(min(from_clients - 1, int(from_clients / 1.04)), seen)[1] > COUNTED[1]


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 2.5, 3.0])
def test_the_default_count_keeps_to_the_band(epsilon: float) -> None:
    """From the least default on, the exact coverage is in the band for every share, up to epsilon 3; with half of it it is not. No tolerance asks for fewer."""
    flip = BinaryRR(epsilon).flip / BinaryRR(epsilon).total
    seen, least = (flip, 1 - flip), levelled_clients(epsilon)
    low, high = exact_range(least, seen)
    assert COUNTED[0] <= low <= high <= COUNTED[1]
    assert exact_range(least // 2, seen)[1] > COUNTED[1]
    assert Survey(tolerance=0.5).clients(epsilon) == Mean(tolerance=0.5).clients(epsilon) == max(least, rr_clients(epsilon, 1.0, 0.05))


def test_beyond_epsilon_3_the_default_count_does_not_explode() -> None:
    """At epsilon 4, 10 and 24 a survey asks for as many clients as at 3, where the interval needs more than the tolerance; at 1 the tolerance decides."""
    assert {Survey().clients(epsilon) for epsilon in (3.0, 4.0, 10.0, 24.0)} == {797}
    assert levelled_clients(1.0) < Survey().clients(1.0) == rr_clients(1.0, 0.1, 0.05)


def test_a_table_is_covered_more_often() -> None:
    """For the share of a table itself at share 1/2, coverage is 2 Phi(1.96 sqrt(l (1 - l) / q (1 - q))) - 1, l = 1/2: 97.3 % at epsilon 1."""
    found = next(c for c in CASES["table"](1.0) if c.what == "share 0.5")
    flip = BinaryRR(1.0).flip / BinaryRR(1.0).total
    expected = 2 * NormalDist().cdf(Z95 * float(np.sqrt(0.25 / (flip * (1 - flip))))) - 1
    seen = measure(found, RUNS, np.random.default_rng(3))
    low, high = score_interval(seen.worst / RUNS, (0.0, 1.0), RUNS, FAR)
    assert low <= expected <= high
    assert not low <= 0.95


def test_success_rates_are_covered_on_average() -> None:
    """Wilson's interval covers in the band on average over rates from .8 to .99, for every number of trials but 3, which no experiment states."""
    rates = success_rates()
    assert len(rates) > 10
    assert all(row["inside"] for row in rates)
    means = {n: float(binomial_coverage(n, RATES).mean()) for n in range(3, 400)}
    assert [n for n, mean in means.items() if not BAND[0] <= mean <= BAND[1]] == [3]


def test_both_ends_are_counted() -> None:
    def at(value: float) -> Callable[[np.random.Generator, int], list[tuple[Sequence[Estimate], int]]]:
        return lambda generator, runs: [((Estimate(np.array([value, 1.0]), np.array([0.1, 0.0]), 100),), runs)]

    base = Case("toy", "", 1.0, 100, np.array([0.5, 1.0]), at(0.5), binomial=False)
    counted = [measure(replace(base, draw=at(value)), 7, np.random.default_rng(0)) for value in (0.5, 0.0, 1.0)]
    assert [(found.held.tolist(), found.below.tolist(), found.above.tolist()) for found in counted] == [([7], [0], [0]), ([0], [7], [0]), ([0], [0], [7])]


def test_drawn_and_simulated_runs_have_one_law() -> None:
    """The share's estimates of 400 drawn and 400 simulated runs pass a two-sample test at 1e-6; runs of a population with another share do not."""
    pair = [c for c in CASES["survey"](1.0) if c.what == "share 0.5" and c.n == 200]
    other = next(c for c in CASES["survey"](1.0) if c.what == "share 0.99" and c.n == 200 and c.tier == "population")
    assert isinstance(pair[0].draw, Drawn)
    assert isinstance(pair[1].draw, Simulated)

    def values(found: Case) -> list[float]:
        return [float(estimates[0].value) for estimates, times in found.draw(np.random.default_rng(4), 400) for _ in range(times)]

    assert stats.ks_2samp(values(pair[0]), values(pair[1])).pvalue > 1e-6
    assert stats.ks_2samp(values(pair[0]), values(other)).pvalue < 1e-6


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints a row a case and the exact counts, as a table and as JSON; one seed gives one table; a protocol without intervals is refused."""
    monkeypatch.setenv("COLUMNS", "160")
    asked: dict[str, Any] = {"names": ("survey",), "epsilon": (2.0,), "runs": 40, "seed": 3}
    printed = []
    for _ in range(2):
        assert Coverage(**asked, as_json=True)() == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    data = json.loads(printed[0])
    assert len(data["measured"]) == 13
    assert {row["tier"] for row in data["measured"]} == {"aggregate", "population"}
    assert data["exact"][2]["n"] == Survey().clients(2.0)
    assert data["holds"]
    Coverage(("table",), (1.0,), 100)()
    assert "table, share 0.99" in capsys.readouterr().out
    with pytest.raises(InputError, match="state no interval"):
        Coverage(("parity",))()
    with pytest.raises(InputError, match="runs is 5"):
        Coverage(("survey",), runs=5)()


def pool(k: int, trials: int, seed: int) -> tuple[list[float], list[float]]:
    generator = np.random.default_rng(seed)
    return generator.gamma(4.0, size=2000).tolist(), generator.gamma(40.0, size=2000).tolist()


def narrowed(top: Sequence[float], bottom: Sequence[float]) -> Positive:
    whole = ratio(top, bottom)
    return replace(whole, error=0.8 * whole.error)


TWINS: list[tuple[str, Any, str, Callable[..., Any]]] = [
    ("interaction", interaction, "ratio", narrowed),
    ("occam", occam, "quantile", lambda values, share: (0.0, *np.quantile(values, [share - 0.027, share + 0.027]))),
    ("randomized-response", randomized_response, "about_log", lambda value, error: intervals.about_log(value, error, 0.8 * Z95)),
    ("randomized-response", randomized_response, "about", lambda value, error: intervals.about(value, error, 0.8 * Z95)),
    ("survey", Estimate, "interval", lambda estimate, z: score_interval(estimate.value, estimate.ends, estimate.n, 0.8 * z)),
    ("prefix-sums", Estimate, "interval", lambda estimate, z: score_interval(estimate.value, estimate.ends, estimate.n, 0.8 * z)),
]


@pytest.mark.parametrize(
    ("name", "home", "attribute", "twin"),
    [pytest.param(*twin, marks=pytest.mark.slow if twin[0] == "survey" else pytest.mark.long) for twin in TWINS],
    ids=[f"{name}-{attribute}" for name, _, attribute, _ in TWINS],
)
def test_the_command_finds_intervals_that_are_too_narrow(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, home: Any, attribute: str, twin: Callable[..., Any]
) -> None:
    """Right intervals are all held by the command, at quick scale; four fifths of their width are not, and the exit code is 1."""
    monkeypatch.setattr(interaction, "_square_errors", pool)
    monkeypatch.setattr(occam, "POOLED", 300)
    monkeypatch.setattr(randomized_response, "POOLED", 2000)
    monkeypatch.setattr(randomized_response, "EXPERIMENT", RandomizedResponse({"randomized response": WAYS["randomized response"]}))
    small = case("prefix-sums", 1.0, "k = 16, bell")
    monkeypatch.setitem(CASES, "prefix-sums", lambda epsilon: [small])
    command = Coverage((name,), (1.0,), runs=2000, quick=True, as_json=True)
    assert command() == 0
    assert json.loads(capsys.readouterr().out)["holds"]
    monkeypatch.setattr(home, attribute, twin)
    assert command() == 1
    assert not json.loads(capsys.readouterr().out)["holds"]


@pytest.mark.long
def test_what_is_measured_of_a_search() -> None:
    """Of 400 searches with 300 trials on a steep curve the coverage agrees with the band; that of nine tenths of the truth does not."""
    found = next(found for found in least_count_cases("quick") if (found.what, found.trials) == ("slope 10", 300))
    assert measure_stated(found, 400, np.random.default_rng(1))["inside"]
    assert not measure_stated(replace(found, truth=0.9 * found.truth), 400, np.random.default_rng(1))["inside"]


def test_a_measured_coverage_is_held_to_the_band_where_its_repetitions_tell() -> None:
    """An interval that holds the truth in 93.8 % of runs passes 2,000 repetitions, up to noise, and fails 10,000; refused ones are counted, not held.

    A true 95 % fails one coordinate of 10,000 repetitions once in 200,000, and needs more repetitions for 256 coordinates.
    """

    def stated(refused: int) -> Stated:
        runs = itertools.count()

        def make(generator: np.random.Generator) -> tuple[float, float]:
            run = next(runs)
            if run % 10 < refused:
                raise InputError("no interval")
            return (0.0, 1.0) if run % 1000 < 938 else (2.0, 3.0)

        return Stated("toy", "", 1, 0.5, make)

    assert measure_stated(stated(0), 2000, np.random.default_rng(0))["inside"]
    assert (resolves(7_000), resolves(8_000), resolves(10_000, 20), resolves(10_000, 256)) == (False, True, True, False)
    row = measure_stated(stated(0), 10_000, np.random.default_rng(0))
    assert (row["coverage"], row["missed_above"], row["inside"]) == (0.938, 0.062, False)
    assert measure_stated(stated(5), 10_000, np.random.default_rng(0))["refused"] == 5000
    assert not measure_stated(stated(10), 10_000, np.random.default_rng(0))["inside"]


def test_equal_tallies_are_decoded_once() -> None:
    for name, start in (("survey", "share"), ("frequency", "k = 8, shares"), ("frequency", "k = 64, shares")):
        found = case(name, 1.0, start, 50)
        assert sum(times for _, times in found.draw(np.random.default_rng(1), 500)) == 500
    assert len(list(case("survey", 1.0, "share 0.5", 50).draw(np.random.default_rng(1), 500))) < 51


def test_one_bit_and_grr_say_the_same_of_a_bit() -> None:
    """GRR with two symbols is binary randomized response: same share of ones, same interval."""
    for ones in (0, 13, 80):
        tally = Tally(np.array([[80 - ones, ones]]))
        assert np.allclose(GRR(1.0, k=2).estimate(tally).at(1).interval(), BinaryRR(1.0).estimate(tally).interval(), atol=1e-6)
