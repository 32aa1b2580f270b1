"""Shares among those present or within a group: the interval covers them at every epsilon, share
and number of clients, also where all reports agree."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Counts, Floats
from local_dp.populations.finite import Finite
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.surveys.compare import Combined, Compare, pairs
from local_dp.protocols.surveys.frequency import (
    Conditional,
    among,
    frequency_randomizer,
    one_report,
)
from local_dp.protocols.surveys.survey import Survey
from local_dp.randomizers.finite import report_law
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.records import Records
from local_dp.tallies import Z95, Ratio, Tally
from tests.support.long import short
from tests.support.runs.protocols import LEAST, by_law, least_coverage
from tests.support.wrong import wrong

EPSILONS = (0.1, 1.0, 3.0, 6.0, 12.0)
LONG, SLOW = pytest.mark.long, pytest.mark.slow
SHARES = (0.0, 0.001, 0.01, 0.3, 0.99, 1.0)
DRAWS = 4000


def intervals(
    oracle: FiniteOracle, conditional: Conditional, counts: Counts, n: int
) -> tuple[Floats, Floats]:
    """The intervals of many tallies, shape (tallies, quotients)."""
    part, whole = (tuple(rows[0].tolist()) for rows in (conditional.parts, conditional.wholes))
    shares = oracle.values(counts)
    parts = shares @ conditional.parts.T
    wholes = shares @ conditional.wholes.T
    spread = [np.zeros(())] * 3  # of the reports: not needed where one report's law is known
    return Ratio.of(
        (parts, wholes, *spread), n, 0.0, 1.0, one_report(oracle, part, whole)
    ).interval()


def exact_coverage(epsilon: float, share: float, present: float, n: int) -> float:
    """Of the share of yes among those who say something, by the trinomial law of all tallies."""
    oracle = GRR(epsilon, k=3)
    counts = np.array([(no, yes, n - no - yes) for no in range(n + 1) for yes in range(n + 1 - no)])
    shares = [present * (1 - share), present * share, 1 - present]
    law = sum(part * report_law(oracle, value) for value, part in enumerate(shares))
    chances = stats.multinomial.pmf(counts, n, law / np.sum(law))
    likely = chances > 1e-10
    low, high = intervals(oracle, among(3, 2), counts[likely][:, None, :], n)
    holds = (low[:, 1] <= share) & (share <= high[:, 1])
    return float(chances[likely][holds].sum())


@wrong(
    "local_dp.protocols.surveys.frequency:one_report",
    "np.zeros((3, 2, 2))",
    "np.zeros((3, 2, 2))\n    return OneReport(squares, 0.0)",
    "an interval from the spread of reports that agree has no width",
    at="20-6.0",
)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("n", short([20, 50, 200], lambda n: n == 20))
def test_a_share_of_those_present_is_covered(epsilon: float, n: int) -> None:
    """Exactly, over the law of the tally, where all, seven of ten and one in ten are present."""
    for share, present in product(SHARES, (1.0, 0.7, 0.1)):
        assert exact_coverage(epsilon, share, present, n) >= LEAST, (share, present)


@pytest.mark.parametrize("n", [200, 2_000_000])
def test_a_share_is_in_its_interval_unless_its_law_excludes_it(n: int) -> None:
    """Of a fine grid, by the law of one report for each: from the first to the last that is within
    1.96 deviations and half a report."""
    oracle, counts = GRR(1.0, k=3), np.array([0.3, 0.4, 0.3]) * n
    low, high = intervals(oracle, among(3, 2), counts[None, None], n)
    each = oracle.values(np.eye(3, dtype=np.int64)[:, None])
    t, present = np.linspace(0, 1, 100_001)[:, None], 1 - counts @ each[:, 2] / n
    laws = np.array([report_law(oracle, value) for value in range(3)])
    law = np.hstack([present * (1 - t), present * t, 0 * t + 1 - present]) @ laws
    adds = each[:, 1] - t * (1 - each[:, 2])
    away = abs(adds @ counts) - np.ptp(each) / 2
    near = t[away < Z95 * np.sqrt(n * (law * adds**2).sum(axis=1))]
    assert (low[0, 1], high[0, 1]) == pytest.approx((near[0, 0], near[-1, 0]), abs=2e-5)


# the shares of yes in three groups; the last symbol has none
GROUPS = pairs(3, 7)
GRID = set(product(EPSILONS, (20, 50, 500, 20_000))) - {(6.0, 50)}


@pytest.mark.parametrize(
    ("epsilon", "n"),
    [
        (6.0, 50),
        *(pytest.param(*case, marks=LONG if case[1] == 20 else SLOW) for case in sorted(GRID)),
    ],
)
def test_shares_within_groups_and_of_labels_are_covered(epsilon: float, n: int) -> None:
    """Drawn 4,000 times each: three groups of unequal size, and 20 labels among those present, by
    the oracle that a run takes."""
    generator = np.random.default_rng(n)
    for share in SHARES:
        groups = [0.6 * (1 - share), 0.6 * share, 0.2 * share, 0.2 * (1 - share), 0.05, 0.05, 0.1]
        labels = [0.7 * share, *[0.7 * (1 - share) / 19] * 19, 0.3]
        for conditional, parts in ((GROUPS, groups), (among(21, 20), labels)):
            oracle = frequency_randomizer(epsilon, len(parts), joint=True)
            law = sum(part * report_law(oracle, value) for value, part in enumerate(parts) if part)
            counts = generator.multinomial(n, law / np.sum(law), size=DRAWS)
            tallies = counts.reshape(DRAWS, oracle.cells, oracle.alphabet)
            low, high = intervals(oracle, conditional, tallies, n)
            truth = conditional.of(np.array(parts))
            coverage = ((low <= truth) & (truth <= high)).mean(axis=0)
            assert coverage.min() >= least_coverage(DRAWS), (share, oracle, coverage)


# and the sizes of both groups, and the share of yes in the second
COMBINED: dict[str, tuple[LocalProtocol[Any], tuple[float, float], float]] = {
    "a difference": (Compare(), (0.7, 0.3), 0.3),
    "a weighted share": (
        Survey(by="group", labels=("A", "B"), weights=("1", "3")),
        (0.7, 0.3),
        0.3,
    ),
    "weights against a rare group": (
        Survey(by="group", labels=("A", "B"), weights=("1", "3")),
        (0.95, 0.05),
        0.3,
    ),
    "a rare group of no": (Compare(), (0.98, 0.02), 0.0),
    "weights against a rare group of no": (
        Survey(by="group", labels=("A", "B"), weights=("1", "1")),
        (0.98, 0.02),
        0.0,
    ),
}
KINDS = Records(
    {"group": np.repeat(["A", "B"], 2), "yes": np.tile(np.arange(2, dtype=np.uint8), 2)}
)


@pytest.mark.parametrize(
    ("name", "epsilon", "n"),
    short(
        product(COMBINED, EPSILONS, (20, 500)),
        lambda case: case[1:] == (6.0, 20) and case[0] in list(COMBINED)[1::2],
        several=True,
    ),
)
def test_sums_of_groups_are_covered(name: str, epsilon: float, n: int) -> None:
    """In 100 runs each, for shares from 0 to 1 in the first group against one share in the
    second."""
    generator, runs = np.random.default_rng(7), 100
    (protocol, sizes, second) = COMBINED[name]
    for share in SHARES:
        one, other = sizes
        cells = [one * (1 - share), one * share, other * (1 - second), other * second]
        population = Finite(KINDS, cells, n, 0)
        truth = float(np.asarray(protocol.truth(population))[2])
        hits = 0
        for _ in range(runs):
            low, high = by_law(protocol, population, epsilon, generator).interval()
            hits += bool(low[2] <= truth <= high[2])
        assert hits / runs >= least_coverage(runs), (share, hits)


@wrong(
    "local_dp.protocols.surveys.compare:Combined.interval",
    "(ends == first) | (ends == first + width) | ~((low <= value) & (value <= high))",
    "~((low <= value) & (value <= high))",
    "an interval that is cut at 0 or 1 counts as that many standard errors",
)
def test_half_widths_add_up_as_standard_errors_do() -> None:
    """2 y - x of means x = 2.9 and y = 3.8 between 2 and 5, of correlation .3; where the upper end
    of y is cut, 2 * 5 in its place."""
    for error in (0.02, 0.25):
        moments = np.array([[0.3, 0.6], [1, 1], [0.01, error**2], [0, 0], [0, 0]])
        parts = Ratio.of(tuple(moments), 9, 0.0, 1.0).on_scale(2.0, 5.0)
        correlation = np.array([[1.0, 0.3], [0.3, 1.0]])
        low, high = Combined.of(parts, np.array([-1.0, 2.0]), correlation).interval()
        x, y = 0.3 * Z95, 6 * Z95 * error
        reach = (x**2 + y**2 - 0.6 * x * y) ** 0.5
        most = 7.1 + x if error > 0.1 else 4.7 + reach
        assert (low[2], high[2]) == pytest.approx((4.7 - reach, most))


def test_weights_undo_a_sample_that_is_no_fair_one() -> None:
    """Nine in ten answers come from the first group, and half of the population is in it: the plain
    share is .22, the weighted one .5, as drawn."""
    population = Finite(KINDS, [0.765, 0.135, 0.015, 0.085], 20_000, 0)
    protocol = Survey(by="group", labels=("A", "B"), weights=("2000", "2000"))
    assert protocol.truth(population)[2] == pytest.approx((0.15 + 0.85) / 2)
    result = by_law(protocol, population, 2.0, 3)
    assert np.allclose(result.value[2], result.value[:2].mean())


def test_the_standard_error_of_a_difference() -> None:
    """By exact derivatives in the counts: common reports are 8 % of the variance, and without or
    with the wrong sign it would be 4 or 8 % away."""
    oracle, n = frequency_randomizer(1.0, 4), 1 << 40
    decode = Compare().algorithm(1.0, n).decode
    reports = np.eye(4, dtype=np.int64)
    counts = {value: int(part * n) for value, part in enumerate([0.1, 0.4, 0.4, 0.1])}
    tally = oracle.draw_tally(counts, np.random.default_rng(1))
    law = tally.counts[0] / tally.n
    step = n // 1000
    near = [decode((Tally(tally.counts + step * report),)).value[2] for report in reports]
    slopes = 1000 * (np.array(near) - decode((tally,)).value[2])
    exact = float(np.sqrt((law @ slopes**2 - (law @ slopes) ** 2) / tally.n))
    assert decode((tally,)).standard_error[2] == pytest.approx(exact, rel=0.01)
