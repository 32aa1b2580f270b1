"""Approximate channels and protocols made pure: exactly, in rationals, for random tables; history
by history; and wrong twins."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import TypeAlias

import numpy as np
import pytest
from scipy.optimize import linprog

from local_dp.arrays import Floats
from local_dp.bounds.channels import report_capacity
from local_dp.bounds.common import approximate_capacity
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.loss import Pure
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery
from local_dp.populations.finite import Rows
from local_dp.randomizers.compressed.purified import (
    Purified,
    clipped,
    exact_delta,
    exact_rows,
    moved,
    purify,
)
from local_dp.randomizers.evidence import check_loss, delta_above, exact_ratio
from local_dp.randomizers.numbers.noise import DiscreteGaussian
from local_dp.records import Records
from local_dp.theorems.pure_from_approximate import pure_from_approximate
from tests.support.golden import Held
from tests.support.inputs.builders import population_oracle
from tests.support.wrong import wrong

GROWTH = Fraction(2)
Exact: TypeAlias = list[list[Fraction]]


def random_rows(generator: np.random.Generator) -> Exact:
    """A random table with a small delta at `GROWTH`, of whole parts: rows near one law, some of
    which have a report of their own."""
    values = generator.integers(2, 8)
    reports = generator.integers(2, 8)
    table = generator.integers(1000, 2200, reports) * np.exp(
        generator.uniform(-0.45, 0.45, (values, reports))
    )
    own = np.diag(generator.exponential(generator.choice([1, 30, 300]), values))
    table = np.hstack([table, own]).astype(np.int64)
    return [[Fraction(int(part), int(row.sum())) for part in row] for row in table]


@pytest.mark.parametrize(("n", "eta"), [(6, 0.0), (6, 0.5), (99, 0.75)])
def test_no_multiple_of_epsilon_below_two_escapes_the_root(n: int, eta: float) -> None:
    """The square of limits 12.6 at E = 2: the best pure channel of (1 + eta) eps, symmetric by
    convexity, is as far as proven. Cells: row, column, others; its own diagonal, others'."""
    sizes, rows = np.array([n - 1, n - 1, (n - 1) * (n - 2), 1, n - 1]), np.array([2, 0.5, 1, 1, 1])
    total, one, zero = sizes @ rows, np.eye(5), np.zeros(5)
    pairs = [*permutations(range(3), 2), (3, 4), (4, 3)]
    ratios = [np.r_[one[a] - 2 ** (1 + eta) * one[b], zero] for a, b in pairs]
    limits = np.vstack([np.hstack([one, -one]), np.hstack([-one, -one]), *ratios])
    right, equal = np.r_[rows, -rows, np.zeros(len(pairs))], [np.r_[sizes, zero]]
    distance = linprog(np.r_[zero, sizes / 2], limits, right, equal, [total]).fun / total
    least = (n - 1) * (2**-eta - 0.5) / 2 / total
    assert least <= distance <= 1.6 * least
    if eta == 0:
        assert distance * total == pytest.approx(5 / 3)  # in units of delta, (E - 1) / Z


def ratio(rows: Sequence[Sequence[Fraction]]) -> Fraction | float:
    """The largest ratio of two probabilities of one report."""
    return max(
        max(column) / min(column) if min(column) else math.inf
        for column in zip(*rows, strict=True)
        if any(column)
    )


@wrong(
    "local_dp.randomizers.compressed.purified:clipped",
    "m * growth",
    "m * growth * 2",
    "a report may be more than e^eps times as likely as on average, so two values lose more "
    "than 2 eps",
)
def test_clipped_rows_are_pure_and_near() -> None:
    """Of 150 random tables: laws, with ratios of at most g^2, and no row further than delta from
    the old one; another is by nine tenths of that. Room is left in proportion, by hand."""
    generator = np.random.default_rng(12)
    for _ in range(150):
        rows = random_rows(generator)
        pure = clipped(rows, GROWTH)
        assert all(sum(row) == 1 for row in pure)
        assert ratio(pure) <= GROWTH**2
        assert moved(rows, pure) <= exact_delta(rows, GROWTH)
    rows = [[Fraction(part, 5) for part in row] for row in ((5, 0, 0), (0, 4, 1))]
    assert clipped(rows, GROWTH)[1] == [Fraction(part, 20) for part in (5, 12, 3)]
    table = [
        [Fraction(1, 1000) * (place == value) for place in range(30)] + [Fraction(999, 1000)]
        for value in range(30)
    ]
    # so no less than delta would do
    assert 0.9 < moved(table, clipped(table, GROWTH)) / exact_delta(table, GROWTH) <= 1


def test_history_by_history_a_protocol_becomes_pure() -> None:
    """Two clients in turn, the second asked by the first one's report: for every input of both,
    total variation of transcripts at most 2 delta, and g^2 between inputs of one client."""
    generator = np.random.default_rng(5)
    for _ in range(12):
        tables = [
            [[*row[:3], 1 - sum(row[:3], Fraction(0))] for row in random_rows(generator)[:2]]
            for _ in range(5)
        ]
        old, pure = (
            [
                [p * q for p, rows in zip(first[a], later, strict=True) for q in rows[b]]
                for a, b in product(range(2), repeat=2)
            ]
            for first, *later in (tables, [clipped(rows, GROWTH) for rows in tables])
        )
        assert moved(old, pure) <= 2 * max(exact_delta(rows, GROWTH) for rows in tables)
        for one, other in ((0, 1), (0, 2), (1, 3), (2, 3)):
            assert ratio([pure[one], pure[other]]) <= GROWTH**2


def test_the_randomizer_is_pure_where_the_inner_one_is_not() -> None:
    """Of discrete Gaussian noise: refused by a client, accepted purified; laws within delta, the
    rounding of words included; the variance about the same."""
    inner = DiscreteGaussian(1.0, steps=5, delta=1e-3)
    with pytest.raises(RefusedError):
        check_loss(inner)
    pure = purify(inner)
    check_loss(pure)
    assert pure.loss == Pure(2_000_000_000)
    assert exact_ratio(pure) <= Fraction(math.exp(2)) < exact_ratio(pure) * Fraction(1001, 1000)
    delta = exact_delta(exact_rows(inner), Fraction(math.e))
    assert delta <= delta_above(inner) <= delta * (1 + 1e-9) + 1e-14
    assert pure.moved <= delta <= 1e-3
    variances = pure.variance(pure.domain.values(), np.eye(pure.domain.size))
    assert variances.max() < 1.05 * inner.spread / 25
    # a pure one stays as it is
    assert moved(exact_rows(Purified(1.0)), exact_rows(Purified(1.0)._channel)) < 1e-9
    with pytest.raises(InputError, match="too large"):
        purify(DiscreteGaussian(1.0, delta=1e-6))


def test_an_algorithm_becomes_pure_and_keeps_its_type() -> None:
    """Both of one round and of two: every client is asked as before, what it reports is pure, and
    the answer is about the same."""
    records = Rows(Records({"value": np.arange(4000) % 6}))
    inner = DiscreteGaussian(1.0, steps=5, delta=1e-3)
    query = Held(inner.domain)
    halves = [LocalQuery(query, inner, Cohort(first, first + 2000)) for first in (0, 2000)]
    once: Local[list[float]] = Nonadaptive(
        tuple(halves), lambda tallies: [float(inner.estimate(tally).value) for tally in tallies]
    )

    def play() -> LocalPlay[list[float]]:
        means = []
        for half in halves:
            (tally,) = yield (half,)
            means.append(float(inner.estimate(tally).value))
        return means

    for algorithm in (pure_from_approximate(once), pure_from_approximate(Adaptive(play))):
        answers = run(algorithm, population_oracle(records, 2.0))
        assert answers == pytest.approx([0.5, 0.5], abs=0.2)
    assert all(
        isinstance(each.randomizer.loss, Pure) for each in pure_from_approximate(once).queries
    )


def information(rows: Floats, prior: Floats) -> float:
    mean = prior @ rows
    ratios = np.where(rows > 0, rows, 1.0) / np.where(mean > 0, mean, 1.0)
    return float(prior @ (rows * np.log(ratios)).sum(axis=1))


def test_a_report_with_delta_reveals_hardly_more() -> None:
    """Of 200 random tables, under random priors: at most the bound; which is that of pure reports
    at delta 0, and at epsilon 1 and delta 1e-9 .1 % above it for 1,024 bits, 1.3 % for 2^20."""
    generator = np.random.default_rng(4)
    for _ in range(200):
        rows = random_rows(generator)
        table = np.array(rows, dtype=float)
        delta = float(exact_delta(rows, GROWTH))
        prior = generator.dirichlet(np.ones(len(table)))
        assert (
            information(table, prior)
            <= approximate_capacity(math.log(2), delta, math.log2(len(table))) + 1e-12
        )
    assert approximate_capacity(1.0, 0.0, 64) == report_capacity(1.0)
    for bits, most in ((1_024, 1.0012), (1 << 20, 1.013)):
        assert 1 < approximate_capacity(1.0, 1e-9, bits) / report_capacity(1.0) < most
