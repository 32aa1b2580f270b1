"""Prefix sums, workloads and marginals: unbiased on expected tallies of any law, variances against
proven bounds."""

from itertools import combinations

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import prefix_gamma
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.finite import Finite, Population
from local_dp.postprocessing.steps import agree, overlaps
from local_dp.protocols.vectors.marginals import (
    Deal,
    Marginals,
    Task,
    best_design,
    covering_sets,
    designs,
)
from local_dp.protocols.vectors.workload import Symbols, Workload, design_signs, workload_of
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.signs.prefix_signs import (
    PATTERNS,
    PrefixSigns,
    SignRows,
    correlation,
    excess,
    filter_weights,
    from_spectrum,
    patterns,
    spectrum,
)
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.long import short
from tests.support.runs.protocols import by_law
from tests.support.wrong import wrong

SIZES = short((2, 4, 16, 64, 256, 1024, 2048), lambda k: k <= 256)


def expected_tally(randomizer: PrefixSigns | SignRows, law: Floats, n: float) -> Tally:
    """The tally of n clients if every cell and report came exactly as often as it is likely."""
    flip = randomizer.flip / randomizer.total
    bits = randomizer.encode(np.arange(randomizer.k)[None, :], np.arange(randomizer.cells)[:, None])
    ones = (flip + (1 - 2 * flip) * bits) @ law
    # shares in place of counts
    return Tally(np.stack([1 - ones, ones], axis=1) * n / randomizer.cells, round(n))  # type: ignore[arg-type]


@pytest.mark.parametrize("k", [2, 3, 13, 64, 256])
def test_the_estimate_is_unbiased_whatever_the_law(k: int) -> None:
    """The estimate is linear in the tally, and on the expected tally of any law it is the exact
    prefix sums."""
    law = np.random.default_rng(k).dirichlet(np.full(k, 0.3))
    randomizer = PrefixSigns(1.0, k=k)
    assert randomizer.estimate(expected_tally(randomizer, law, 1e9)).value == pytest.approx(
        np.cumsum(law), abs=1e-9
    )


@pytest.mark.parametrize("k", [4, 16, 64])
def test_the_variance_formula_is_that_of_least_squares(k: int) -> None:
    """`correlation` equals W G^-1 W^T computed with plain matrices, the same for all pairs of
    prefix sums equally far apart; `excess` is its diagonal."""
    randomizer = PrefixSigns(1.0, k=k)
    signs = 1.0 - 2.0 * randomizer.encode(
        np.arange(k)[None, :], np.arange(randomizer.cells)[:, None]
    )
    workload = np.tril(np.ones((k, k))) - 0.5
    covariances = workload @ np.linalg.inv(signs.T @ signs / len(signs)) @ workload.T
    assert np.diag(covariances) == pytest.approx(np.full(k, excess(k)), rel=1e-9)
    apart = np.abs(np.arange(k)[:, None] - np.arange(k)[None, :])
    assert covariances == pytest.approx(correlation(k)[apart], abs=1e-9)


@pytest.mark.parametrize("k", SIZES)
def test_the_variance_is_near_the_factorization_bound(k: int) -> None:
    """gamma_2^2 <= v <= 1.13 gamma_2^2 at every size, with gamma_2 the mean singular value of the
    workload."""
    singular = np.linalg.svd(np.tril(np.ones((k, k))) - 0.5, compute_uv=False)
    assert prefix_gamma(k) == pytest.approx(singular.mean(), rel=1e-9)
    assert 1 - 1e-9 <= excess(k) / prefix_gamma(k) ** 2 <= 1.13


@pytest.mark.parametrize("k", SIZES)
def test_every_machine_has_the_same_patterns(k: int) -> None:
    """No fixed-point weight is near a rounding boundary and no filtered sum near 0, so floating
    point cannot change a sign."""
    exact = from_spectrum(np.abs(spectrum(np.full(k, 0.5))) ** 0.6) * (1 << 20)
    assert np.abs(np.abs(exact - filter_weights(k)) - 0.5).min() > 1e-6
    assert patterns(k).shape == (PATTERNS, k)
    assert set(np.unique(patterns(k)).tolist()) <= {-1, 1}


def rows_of(protocol: Workload, epsilon: float = 1.0) -> SignRows:
    """The randomizer that a protocol asks with."""
    randomizer = protocol.algorithm(epsilon, 10).queries[0].randomizer
    assert isinstance(randomizer, SignRows)
    return randomizer


@pytest.mark.parametrize("queries", ["prefixes", "ranges", "1 0 0 0 2 0 0;0 0 -1 1 0 0 3"])
def test_answers_are_unbiased_with_the_stated_variance(queries: str) -> None:
    """On the expected tally of any law the answers are exact; and the stated error is that of one
    report's contribution, enumerated."""
    protocol = Workload(k=7, queries=tuple(queries.split(";")))
    oracle = rows_of(protocol, 0.5)
    law = np.random.default_rng(1).dirichlet(np.ones(7))
    decode, n = protocol.algorithm(0.5, 10).decode, 1e9
    estimate = decode((expected_tally(oracle, law, n),)).estimate
    assert estimate.value == pytest.approx(protocol.matrix @ law, abs=1e-9)
    alone = np.zeros((2 * oracle.cells, len(protocol.matrix)))
    for place in range(2 * oracle.cells):
        counts = np.zeros(2 * oracle.cells, dtype=np.int64)
        counts[place] = 1
        alone[place] = decode((Tally(counts.reshape(oracle.cells, 2)),)).estimate.value
    chances = expected_tally(oracle, law, 1.0).counts.ravel()
    variances = chances @ alone**2 - (chances @ alone) ** 2
    assert n * estimate.standard_error**2 == pytest.approx(variances, rel=1e-6)
    assert variances.max() <= protocol.variances(0.5).sign_rows * (1 + 1e-6)


@wrong(
    "local_dp.protocols.vectors.workload:_weights",
    "np.maximum(gains, 0.0)",
    "1.0",
    "all rows are asked equally often",
    at="prefixes-1.15",
)
@pytest.mark.parametrize(
    ("queries", "above"),
    [
        ("prefixes", 1.15),
        ("ranges", 1.2),
        ("identity", 1.04),
        ("marginals-2", 1.1),
        ("parities", 1.04),
    ],
)
def test_designs_are_near_the_proven_bound(queries: str, above: float) -> None:
    """v is between the proven gamma^2 and so many times that; the rows are signs, a power of two of
    them."""
    symbols = Symbols(("v",), (tuple(map(str, range(32))),))
    if queries in ("marginals-2", "parities"):
        symbols = Symbols(tuple("abcde"), (("0", "1"),) * 5)
    workload = workload_of((queries,), symbols)[1]
    design = design_signs(workload)
    assert 1 <= design.excess / design.certificate.norm(workload) ** 2 <= above
    assert set(np.unique(design.rows)) == {-1, 1}
    assert len(design.rows).bit_count() == 1


MIXED = Marginals(columns=("a", "b", "c"), labels=("x|y", "1|2|3", "p|q|r|s"))
BINARY = Marginals(columns=("a", "b", "c", "d"))


def lawless(protocol: Marginals, clients: int) -> Finite:
    """Kinds of record of any combination, some much more frequent than others."""
    generator = np.random.default_rng(5)
    sides = protocol.parts.categories
    # no question
    kinds = {
        part.column: np.array(part.labels)[generator.integers(0, part.domain.size, 40)]  # type: ignore[union-attr]
        for part in sides
    }
    return Finite(Records(kinds), generator.dirichlet(np.full(40, 0.2)).tolist(), clients, 1)


def expected_shares(query: LocalQuery, population: Population) -> Tally:
    """The shares that every cell and report has on average, in place of counts."""
    channel = query.randomizer
    law = population.law(query.query)
    assert isinstance(channel, FiniteChannel)
    shares = sum(
        share * report_law(channel, value) for value, share in enumerate((law / law.sum()).tolist())
    )
    scale = 1e12
    # shares in place of counts
    return Tally(np.asarray(shares).reshape(channel.cells, channel.alphabet) * scale, round(scale))  # type: ignore[arg-type]


@pytest.mark.parametrize(("protocol", "epsilon", "way"), [
    (MIXED, 1.0, "sets of 2"), (MIXED, 5.0, "sets of 3"), (BINARY, 0.5, "characters"),
    (BINARY, 2.0, "sets of 2"), (BINARY, 4.0, "sets of 4"),
    (Marginals(columns=tuple("abcdefgh"), ways=3), 1.0, "sets of 4"),
    (Marginals(columns=("a", "b", "c"), ways=1), 1.0, "characters"),
])  # fmt: skip
def test_estimates_are_exact_on_expected_tallies(
    protocol: Marginals, epsilon: float, way: str
) -> None:
    """Whatever the law, the cells of expected tallies are the true shares: without bias, by every
    way; the stated variance is at most 1.1 times the bound."""
    population = lawless(protocol, 10_000)
    for design in designs(protocol.task, epsilon):
        assert design.variance > 0
    algorithm = protocol.algorithm(epsilon, 10_000)
    result = algorithm.decode(
        tuple(expected_shares(query, population) for query in algorithm.queries)
    )
    assert result.design.name == way
    assert result.estimate.value == pytest.approx(protocol.truth(population), abs=1e-6)
    sizes = [len(query.cohort) for query in algorithm.queries]
    assert sum(sizes) == 10_000
    deal = Deal(protocol.task, result.design, tuple(sizes))
    tallies = []
    for query in algorithm.queries:
        counts = expected_shares(query, population).counts * len(query.cohort) / 1e12 * 1e6
        tallies.append(Tally(np.rint(counts).astype(np.int64)))
    estimate = deal.estimate([query.randomizer for query in algorithm.queries], tallies)
    assert 1e10 * float(estimate.standard_error.max()) ** 2 <= result.design.variance * 1.1


def test_every_marginal_is_covered_and_the_best_way_is_taken() -> None:
    """Every set of t columns lies in some set, none has too many cells; the way taken is within 1 %
    of the least, characters and larger sets each somewhere."""
    names = set()
    for shape, ways in (((2,) * 9, 2), ((2,) * 7, 3), ((4, 6, 5, 3, 8), 2), ((30, 30, 30, 2), 2)):
        task = Task(shape, ways)
        for size in range(ways, len(shape) + 1):
            covering = covering_sets(task, size)
            inside = {part for columns in covering for part in combinations(columns, ways)}
            assert inside == set(combinations(range(len(shape)), ways))
            assert max(map(task.cells, covering)) <= 4096
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            design, variances = best_design(task, epsilon)
            assert design.variance <= 1.01 * min(variance for _, variance in variances)
            names.add(design.name)
            assert sum(design.shares) == pytest.approx(1)
    assert {"characters", "sets of 2", "sets of 3", "sets of 4"} <= names


def test_marginals_agree_and_the_step_makes_laws_of_them() -> None:
    """The estimates say the same of every column wherever it occurs; laws nearly do, are 0 or more,
    and add up to 1."""
    protocol = Marginals(columns=tuple("abcde"), k=3)
    kinds = {
        name: np.where(np.arange(4) == place % 4, "1", "0")
        for place, name in enumerate(protocol.columns)
    }
    population = Finite(Records(kinds), [1.0] * 4, 20_000, 1)
    task = protocol.task

    def gap(values: Floats) -> float:
        parts = np.split(values, len(task.sets))
        tables = [part.reshape(3, 3).copy() for part in parts]
        return agree(list(zip(task.sets, tables, strict=True)), overlaps(task.sets))

    estimate = by_law(protocol, population, 2.0, 4).estimate
    laws = protocol.agreeing_laws(estimate)
    assert gap(estimate.value) < 1e-12
    assert gap(laws) < 1e-6
    assert laws.min() >= 0
    assert laws.reshape(-1, 9).sum(axis=1) == pytest.approx(np.ones(len(task.sets)))
