"""Stated 95 % intervals contain the truth as often as they say, of every protocol and of
experiments; narrower ones fail. The figures: docs/measurements.md."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds.response import levelled_clients, rr_clients
from local_dp.conformance import COVERED, conform_intervals
from local_dp.experiments.claims.local.randomized_response import Line, line_slope
from local_dp.experiments.lab.intervals import about, relative_error
from local_dp.experiments.lab.statistics import ratio
from local_dp.populations.finite import Finite
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.protocols.search.heavy_hitters import HeavyHitters, HeavyHittersAsked
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.protocols.surveys.frequency import (
    Crosstab,
    Frequency,
    Histogram,
    frequency_randomizer,
)
from local_dp.protocols.surveys.longitudinal import Longitudinal
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.protocols.vectors.workload import PrefixSums
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate, Tally, score_interval

# of a 95 % interval; where counts are whole it is a little wider on purpose
BAND, COUNTED = (0.94, 0.96), (0.94, 0.965)
FAILURE = 1e-7  # of each call, where the coverage is 94 to 96.5 %
EPSILONS = (0.25, 1.0, 3.0)
# runs at most: a million clients without a law, wide tallies
DEAR = {"heavy-hitters": 20, "heavy-hitters-asked": 20, "prefix-sums": 400, "mean-found": 400}
# by design: intervals that assume no law, or hold all at once
WIDER = ("quantiles", "mean-found", "heavy-hitters", "heavy-hitters-asked")
FIGURES = [name for name in PROTOCOLS.usable() if not PROTOCOLS[name].figureless]


def covers(
    protocol: LocalProtocol[Any],
    epsilon: float,
    runs: int = 2000,
    clients: int = 0,
    law: tuple[Records, Any] | None = None,
) -> None:
    """Each interval contains its truth in 94 % of runs, with the default clients and where no
    interval is `WIDER` in 96.5 % at most, up to chance."""
    n, runs = clients or protocol.clients(epsilon), min(runs, DEAR.get(protocol.name, runs))
    people = None if law is None else partial(Finite, *law, n)
    counts = conform_intervals(protocol, epsilon, n, runs, FAILURE, people)
    certain = counts == runs  # a share that is known, or a wide interval of a rare value
    if not clients and protocol.name not in WIDER:
        most = stats.binom.isf(FAILURE / counts.size, runs, COUNTED[1])
        assert counts[~certain].max(initial=0) <= most, protocol


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("compare", "logistic") else pytest.mark.slow)
        for name in FIGURES
    ],
)
def test_every_protocol_covers(name: str, request: pytest.FixtureRequest) -> None:
    """On its synthetic population, with the clients it asks for: at epsilon 1, and in the slow
    suite at 1/4 and 3, 2,000 runs each, dear ones fewer."""
    slow = request.node.get_closest_marker("slow") is not None
    for epsilon in EPSILONS if slow and not name.startswith("heavy") else (1.0,):
        covers(PROTOCOLS[name](), epsilon, 2000 if slow else 300)


def bits(name: str, share: float, *values: float) -> tuple[Records, list[float]]:
    return Records({name: np.array([0.0, 1.0, *values])}), [1 - share, share]


def grouped(column: str) -> tuple[Records, list[float]]:
    """Shares of ones of .1, .5 and .9 in three groups."""
    groups = np.repeat(["a", "b", "c"], 2)
    kinds = Records({"group": groups, column: np.tile(np.array([0, 1], dtype=np.uint8), 3)})
    return kinds, [0.36, 0.04, 0.175, 0.175, 0.025, 0.225]


def present(share: float) -> tuple[Records, list[float]]:
    """Three of ten have no value."""
    return Records({"value": np.array([0.0, 1.0, np.nan])}), [0.7 * (1 - share), 0.7 * share, 0.3]


SHARES = (0.01, 0.5, 0.99)
BITS = list(product((0, 1), repeat=3))
QUERIES = Records(
    {f"q{at}": np.array([bits[at] for bits in BITS], dtype=np.uint8) for at in range(3)}
)
QUERIED = [
    math.prod(p if bit else 1 - p for p, bit in zip(SHARES, bits, strict=True)) for bits in BITS
]
BELL = np.exp(-(((np.arange(16) / 16 - 0.4) / 0.15) ** 2) / 2).tolist()
TENTHS = (
    Records({"value": np.append(np.arange(-1, 11) / 10 + 0.05, np.nan)}),
    [0.02, 0.05, 0.1, 0.2, 0.2, 0.15, 0.08, 0.05, 0.03, 0.02, 0.01, 0.01, 0.08],
)
PAIRS = (
    Records({"first": np.repeat(["a", "b"], 3), "second": np.tile(["x", "y", ""], 2)}),
    [0.3, 0.1, 0.1, 0.05, 0.35, 0.1],
)
LETTERS = Records({"letter": np.array(["a", "b", "c", "d", ""])}), [0.35, 0.2, 0.1, 0.05, 0.3]


def one_label(k: int) -> list[float]:
    return [0.99] + [0.01 / (k - 1)] * (k - 1)


HARD: list[tuple[LocalProtocol[Any], tuple[Records, Any]]] = [
    *((Survey(), bits("yes", share)) for share in SHARES),
    *((Mean(), bits("value", share)) for share in SHARES),
    *(
        (kind, present(share))
        for share in (0.1, 0.5)
        for kind in (Survey(question="value > 0", missing="exclude"), Mean(missing="exclude"))
    ),
    (Survey(by="group", labels=("a", "b", "c")), grouped("yes")),
    (Mean(by="group", labels=("a", "b", "c")), grouped("value")),
    (Mean(), (Records({"value": np.arange(1, 6) / 10}), [0.1, 0.2, 0.4, 0.2, 0.1])),
    *(
        (Frequency(k=k), (Records({"symbol": np.arange(k)}), law))
        for k in (8, 64)
        for law in (1 / np.arange(1, k + 1), one_label(k))
    ),
    (Frequency(column="letter", labels=("a", "b", "c", "d"), missing="exclude"), LETTERS),
    (StatisticalQueries(t=3), (QUERIES, QUERIED)),
    *(
        (PrefixSums(k=16), (Records({"value": np.arange(16)}), law))
        for law in (BELL, one_label(16))
    ),
    *((Histogram(missing=missing), TENTHS) for missing in ("category", "exclude")),
    *(
        (Crosstab(columns=("first", "second"), labels=("a|b", "x|y"), missing=missing), PAIRS)
        for missing in ("category", "exclude")
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(HARD)))
def test_hard_populations_are_covered(at: int) -> None:
    """Shares near 0, 1/2 and 1, groups, missing values: with 50 and 200 clients a query and with
    the default number."""
    protocol, law = HARD[at]
    settings = vars(protocol)
    subsets = settings.get("missing") == "exclude" or settings.get("by")
    few = () if subsets or protocol.clients(1.0) > 50_000 else (50, 200)
    for epsilon, clients in product(EPSILONS, (0, *few)):
        covers(protocol, epsilon, clients=clients * getattr(protocol, "t", 1), law=law)


@pytest.mark.slow
def test_other_parameters_are_covered() -> None:
    """Three quantiles in one round and in several, and eight waves by both methods."""
    at = ("0.25", "0.5", "0.75")
    for rounds in ("one", "several"):
        covers(Quantiles(low=0.0, high=1.0, bins=126, at=at, rounds=rounds), 1.0, 300)
    for epsilon, method in product(EPSILONS, ("split", "tracked")):
        covers(Longitudinal(times=8, changes=1, method=method), epsilon)


NAMES = "an ber co der el fi ga hol in ka lo mar ne os per ri son ta ul ver"
SYLLABLES = NAMES.split()
# codes, surnames
TEXTS = {
    3: ["".join(parts) for parts in product("LJS", "AFN", "ABDGKLMNRSTXYZ")],
    5: ["".join(parts) for parts in product(SYLLABLES, SYLLABLES[:10], SYLLABLES[10:])],
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HeavyHitters, HeavyHittersAsked])
def test_all_intervals_of_a_list_hold_at_once(kind: Callable[..., LocalProtocol[Any]]) -> None:
    """Airport codes and surnames, shares as 1/rank, 50,000 clients: those that are cut alike count
    together."""
    for size, each in TEXTS.items():
        texts = np.array(each)
        law = Records({"value": texts}), 1 / np.arange(1, len(texts) + 1)
        covers(kind(text=True, text_bytes=size), 1.0, clients=50_000, law=law)


def narrow(monkeypatch: pytest.MonkeyPatch, factor: float) -> None:
    right = Estimate.interval
    monkeypatch.setattr(Estimate, "interval", lambda estimate, z=Z95: right(estimate, factor * z))


def test_narrow_intervals_do_not_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of z = 1.5, 87 % of runs, 2,000 of which are told from 94 % with probability above 1 - 1e-9;
    right ones in the same runs conform."""
    covers(Survey(), 1.0)
    narrow(monkeypatch, 1.5 / Z95)
    with pytest.raises(AssertionError, match="of 2000 runs; by chance"):
        covers(Survey(), 1.0)


def test_wrong_errors_and_gains_do_not_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error without its sampling part, and the gain of epsilon + .2, with the same reports."""
    exact, right = BinaryRR(3.0), Survey.describe

    def without_sampling(self: Survey, result: Estimate) -> Any:
        error = np.sqrt((exact.gain**2 - 1) / (4 * result.n))
        return right(self, replace(result, standard_error=error, ends=None))

    with monkeypatch.context() as patch:
        patch.setattr(Survey, "describe", without_sampling)
        with pytest.raises(AssertionError, match="contains the truth"):
            covers(Survey(), 3.0)
    gain = BinaryRR(1.2).gain / BinaryRR(1.0).gain
    scale = (1 - gain) / 2, (1 + gain) / 2
    monkeypatch.setattr(
        Survey, "describe", lambda self, result: right(self, result.on_scale(*scale))
    )
    with pytest.raises(AssertionError, match="contains the truth"):
        covers(Survey(), 1.0, law=bits("yes", 0.01))


def binomial_coverage(n: int, chances: Floats, z: float = Z95, *, whole: bool = False) -> Floats:
    """Pr[the interval of a Binomial(n, p) holds p], exactly. With `whole` it is that of every
    estimate that is linear in how many sent some report."""
    low, high = score_interval(np.arange(n + 1) / n, (0.0, 1.0), n, z, whole=whole)
    # the counts whose interval holds p
    counts = np.searchsorted(high, chances), np.searchsorted(low, chances, side="right")
    below, upto = (stats.binom.cdf(count - 1, n, chances) for count in counts)
    coverage: Floats = upto - below
    return coverage


def exact_range(n: int, chances: tuple[float, float]) -> tuple[float, float]:
    """The least and the largest exact coverage over all truths, on both sides of each of its jumps;
    reports have chances between `chances`."""
    bounds = score_interval(np.arange(n + 1) / n, (0.0, 1.0), n, whole=True)
    ends = np.sort(np.concatenate(bounds))
    jumps = ends[(chances[0] < ends) & (ends < chances[1])][:: 1 + len(ends) // 10_000]
    truths = np.concatenate([jumps - 1e-9, jumps + 1e-9, chances])
    coverage = binomial_coverage(n, np.clip(truths, *chances), whole=True)
    return float(coverage.min()), float(coverage.max())


def holds_from(chances: tuple[float, float]) -> int:
    """The least n of a geometric grid from which on the exact coverage stays in the band for every
    truth: from where n p (1 - p) is 80, downwards."""
    n = limit = math.ceil(80 / min(p * (1 - p) for p in chances))
    while in_band(n, chances):
        limit, n = n, min(n - 1, math.floor(n / 1.04))
    return limit


def in_band(n: int, chances: tuple[float, float]) -> bool:
    low, high = exact_range(n, chances)
    return COUNTED[0] <= low <= high <= COUNTED[1]


def reported(channel: Any) -> tuple[float, float]:
    """The chances of the report that a symbol is estimated from, at a share of 0 and of 1."""
    counts = np.zeros((channel.cells, channel.alphabet), dtype=np.int64)
    counts[0, 0] = 1
    low, high = map(float, channel.estimate(Tally(counts)).ends)
    return -low / (high - low), (1 - low) / (high - low)


@pytest.mark.long
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_two_valued_reports_are_covered_exactly(epsilon: float) -> None:
    """Over every share: with 50 and 200 clients in 94 % of runs or more, with the default number in
    the band (surveys, means, frequencies of 8 and 64)."""
    kinds: list[tuple[Any, LocalProtocol[Any]]] = [(BinaryRR(epsilon), Survey())]
    kinds += [(frequency_randomizer(epsilon, k), Frequency(k=k)) for k in (8, 64)]
    for channel, protocol in kinds:
        chances = reported(channel)
        assert min(exact_range(n, chances)[0] for n in (50, 200)) >= COVERED
        assert in_band(protocol.clients(epsilon), chances)


@pytest.mark.parametrize(("epsilon", "from_clients"), [(1.0, 165), (2.0, 265), (3.0, 581)])
def test_from_how_many_clients_a_survey_keeps_to_the_band(
    epsilon: float, from_clients: int
) -> None:
    """The documented least counts: exact coverage over every share leaves the band just below them
    and not at twice or four times as many."""
    chances = reported(BinaryRR(epsilon))
    assert holds_from(chances) == from_clients
    assert in_band(2 * from_clients, chances)
    assert in_band(4 * from_clients, chances)
    assert exact_range(min(from_clients - 1, int(from_clients / 1.04)), chances)[1] > COUNTED[1]


@pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0, 2.0, 2.5, 3.0])
def test_the_default_count_keeps_to_the_band(epsilon: float) -> None:
    """From the least default on, the exact coverage is in the band for every share, up to epsilon
    3; with half of it it is not. No tolerance asks for fewer."""
    chances, least = reported(BinaryRR(epsilon)), levelled_clients(epsilon)
    assert in_band(least, chances)
    assert exact_range(least // 2, chances)[1] > COUNTED[1]
    few = max(least, rr_clients(epsilon, 1.0, 0.05))
    assert Survey(tolerance=0.5).clients(epsilon) == few
    assert Mean(tolerance=0.5).clients(epsilon) == few


def test_beyond_epsilon_3_the_default_count_does_not_explode() -> None:
    """At epsilon 4, 10 and 24 a survey asks for as many clients as at 3, where the interval needs
    more than the tolerance; at 1 the tolerance decides."""
    assert {Survey().clients(epsilon) for epsilon in (3.0, 4.0, 10.0, 24.0)} == {797}
    assert levelled_clients(1.0) < Survey().clients(1.0) == rr_clients(1.0, 0.1, 0.05)


def held(
    runs: int,
    make: Callable[[np.random.Generator], tuple[Any, Any]],
    truth: float,
    narrower: float = 1.0,
) -> int:
    """How many of the intervals hold the truth, or those of `narrower` times their width."""
    pairs = [make(np.random.default_rng([seed, 7])) for seed in range(runs)]
    low, high = np.array(pairs, dtype=np.float64).T
    margin = (1 - narrower) / 2 * (high - low)
    return int(np.sum((low + margin <= truth) & (truth <= high - margin)))


def laplace(
    n: int, share: float, epsilon: float, generator: np.random.Generator
) -> tuple[Any, Any]:
    randomizer, ones = DiscreteLaplace(epsilon), int(generator.binomial(n, share))
    tally = randomizer.draw_tally({0: n - ones, randomizer.domain.size - 1: ones}, generator)
    return randomizer.estimate(tally).interval()


def rms(generator: np.random.Generator) -> tuple[float, float]:
    return line(100, generator.chisquare(1, 300)).interval


def line(n: int, squares: Floats) -> Line:
    return Line(n, math.sqrt(np.mean(squares)), relative_error(squares) / 2)


def fitted(generator: np.random.Generator) -> tuple[float, float]:
    lines = [line(n, generator.chisquare(1, 300) / n) for n in (100, 400, 1600, 6400)]
    return about(*line_slope(lines))


def gain(generator: np.random.Generator) -> tuple[float, float]:
    return ratio(generator.gamma(4.0, size=40), generator.gamma(40.0, size=40)).stated[1:]


STATED: dict[str, tuple[Callable[[np.random.Generator], tuple[Any, Any]], float]] = {
    "root mean square error": (rms, 1.0), "slope": (fitted, -0.5), "ratio of means": (gain, 0.1),
    **{f"discrete Laplace, share {share:g}, epsilon {epsilon:g}": (partial(laplace, 1000, share,
    epsilon), share) for share in SHARES for epsilon in EPSILONS},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", STATED)
def test_other_intervals_cover(name: str) -> None:
    """2,000 repetitions from laws whose truth is known: between 94 and 96 %, up to 1e-7; four
    fifths of their width do not. Quantiles: test_checks, exactly."""
    make, truth = STATED[name]
    least = stats.binom.ppf(FAILURE, 2000, BAND[0])
    most = stats.binom.isf(FAILURE, 2000, BAND[1])
    assert least <= held(2000, make, truth) <= most
    assert held(2000, make, truth, 0.8) < least


def test_a_table_is_covered_more_often() -> None:
    """For the share of a table itself at share 1/2, coverage is 2 Phi(1.96 sqrt(l (1 - l) / q (1 -
    q))) - 1, l = 1/2: 97.3 % at epsilon 1."""
    channel, half = BinaryRR(1.0), np.arange(901)
    flip = channel.flip / channel.total
    width = Z95 * math.sqrt(0.25 / (flip * (1 - flip)))
    expected = 2 * NormalDist().cdf(width) - 1
    law = np.convolve(*(stats.binom.pmf(half, 900, share) for share in (flip, 1 - flip)))
    tallies = [Tally(np.array([[1800 - count, count]])) for count in range(1801)]
    low, high = np.array([channel.estimate(tally).interval() for tally in tallies]).T
    coverage = float(law[(low <= 0.5) & (high >= 0.5)].sum())
    assert abs(coverage - expected) < 0.005
    assert coverage > BAND[1]
