"""Marginals: unbiased and agreeing on the expected tallies of any law, errors as stated, the choice of sets by variances that bound the exact ones."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import contrast_factors
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.postprocessing.shapes import agree, overlaps
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.vectors.marginal_design import Dealt, Task, best_design, covering_sets, designs
from local_dp.protocols.vectors.marginals import Marginals
from local_dp.queries.cells import SEPARATOR, Odd
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.randomizers.frequencies.best import choices
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.long import short

MIXED = Marginals(columns=("a", "b", "c"), labels=("x|y", "1|2|3", "p|q|r|s"))
BINARY = Marginals(columns=("a", "b", "c", "d"))


def lawless(protocol: Marginals, clients: int) -> Finite:
    """Kinds of record of any combination, some much more frequent than others."""
    generator = np.random.default_rng(5)
    sides = protocol.parts.categories
    kinds = {part.column: np.array(part.labels)[generator.integers(0, part.domain.size, 40)] for part in sides}  # type: ignore[union-attr]  # no question
    return Finite(Records(kinds), generator.dirichlet(np.full(40, 0.2)).tolist(), clients, 1)


def expected_tally(query: LocalQuery, population: Population) -> Tally:
    """The shares that every cell and report has on average, in place of counts."""
    channel, law = query.randomizer, population.law(query.query)
    assert isinstance(channel, FiniteChannel)
    shares = sum(share * report_law(channel, value) for value, share in enumerate((law / law.sum()).tolist()))
    scale = 1e12
    return Tally(np.asarray(shares).reshape(channel.cells, channel.alphabet) * scale, round(scale))  # type: ignore[arg-type]  # shares in place of counts


@pytest.mark.parametrize(("protocol", "epsilon", "way"), [
    (MIXED, 1.0, "sets of 2"), (MIXED, 5.0, "sets of 3"), (BINARY, 0.5, "characters"), (BINARY, 2.0, "sets of 2"), (BINARY, 4.0, "sets of 4"),
    (Marginals(columns=tuple("abcdefgh"), ways=3), 1.0, "sets of 4"), (Marginals(columns=("a", "b", "c"), ways=1), 1.0, "characters"),
])  # fmt: skip
def test_estimates_are_exact_on_expected_tallies(protocol: Marginals, epsilon: float, way: str) -> None:
    """Whatever the law, the cells of expected tallies are the true shares: without bias, by every way; the stated variance is at most 1.1 times the bound."""
    population = lawless(protocol, 10_000)
    for design in designs(protocol.task, epsilon):
        assert design.variance > 0
    algorithm = protocol.algorithm(epsilon, 10_000)
    result = algorithm.decode(tuple(expected_tally(query, population) for query in algorithm.queries))
    assert result.design.name == way
    assert result.estimate.value == pytest.approx(protocol.truth(population), abs=1e-6)
    sizes = [len(query.cohort) for query in algorithm.queries]
    assert sum(sizes) == 10_000
    dealt = Dealt(protocol.task, result.design, tuple(sizes))
    tallies = [Tally(np.rint(expected_tally(query, population).counts * len(query.cohort) / 1e12 * 1e6).astype(np.int64)) for query in algorithm.queries]
    stated = dealt.estimate([query.randomizer for query in algorithm.queries], tallies)
    assert 1e10 * float(stated.standard_error.max()) ** 2 <= result.design.variance * 1.1


@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 4.0])
def test_the_variance_of_a_contrast_is_bounded(k: int, epsilon: float) -> None:
    """Of every oracle that may be the best: at the uniform law as stated, within 5 % where some points are no symbols; at any law single symbols keep the
    bound, and sets half as much more, as is said."""
    generator = np.random.default_rng(1)
    contrast = generator.normal(size=k)
    contrast -= contrast.mean()
    for choice in choices(epsilon, k):
        oracle = choice.built(epsilon, k)
        a, b = contrast_factors(epsilon, choice.order, choice.w)
        square, peak = float(contrast @ contrast), float((contrast**2).max())

        def variance(law: Floats, oracle: Any = oracle) -> float:
            chances = np.sum([share * report_law(oracle, value) for value, share in enumerate(law.tolist())], axis=0)
            one = np.eye(len(chances), dtype=np.int64).reshape(-1, oracle.cells, oracle.alphabet)
            told = oracle.values(one) @ contrast
            return float(chances @ told**2 - (chances @ told) ** 2)

        assert variance(np.full(k, 1 / k)) == pytest.approx(a * square + b / k * square, rel=1e-5 if choice.order == k else 0.05)
        laws = [*np.eye(k), *generator.dirichlet(np.full(k, 0.3), 20)]
        assert max(map(variance, laws)) <= (a * square + b * peak) * (1 + 1e-6 if choice.w == 1 else 1.5)


@pytest.mark.parametrize(("protocol", "epsilon"), short([(MIXED, 1.0), (MIXED, 5.0), (BINARY, 0.5), (BINARY, 2.0)], lambda each: each[1] == 1, several=True))
def test_the_errors_are_the_ones_seen(protocol: Marginals, epsilon: float) -> None:
    """Over 400 runs of each way the squares of errors in standard errors are 1 on average within 5 deviations; with those of one cohort alone they are not."""
    n, generator = 40_000, np.random.default_rng(2)
    population = lawless(protocol, n)
    truth = protocol.truth(population)
    results = [run(protocol.algorithm(epsilon, n), AggregateOracle(population, generator, epsilon)).estimate for _ in range(400)]
    known = (results[0].standard_error > 0) & (truth > 0)
    squares = np.mean([((each.value - truth) / each.standard_error)[known] ** 2 for each in results], axis=0)
    assert np.all(np.abs(squares - 1) < 5 * np.sqrt(2 / 400) * 1.1), protocol


def test_every_marginal_is_covered_and_the_best_way_is_taken() -> None:
    """Every set of t columns lies in some set, none has too many cells; the way taken is within 1 % of the least, characters and larger sets each somewhere."""
    taken = set()
    for shape, ways in (((2,) * 9, 2), ((2,) * 7, 3), ((4, 6, 5, 3, 8), 2), ((30, 30, 30, 2), 2)):
        task = Task(shape, ways)
        for size in range(ways, len(shape) + 1):
            covering = covering_sets(task, size)
            held = {part for chosen in covering for part in combinations(chosen, ways)}
            assert held == set(combinations(range(len(shape)), ways))
            assert max(map(task.cells, covering)) <= 4096
        for epsilon in (0.5, 1.0, 2.0, 4.0):
            design, variances = best_design(task, epsilon)
            assert design.variance <= 1.01 * min(variance for _, variance in variances)
            taken.add(design.name)
            assert sum(design.shares) == pytest.approx(1)
    assert {"characters", "sets of 2", "sets of 3", "sets of 4"} <= taken


def test_characters_have_the_variance_of_their_shares() -> None:
    """8 binary columns, pairs: (8 w + 28 v = 1) C^2 / 16 (2 / w + 1 / v) is least at (4 + sqrt(28))^2 / 16 C^2; equal shares cost 25 % more."""
    gain = (np.e + 1) / (np.e - 1)
    design = next(each for each in designs(Task((2,) * 8, 2), 1.0) if each.characters)
    assert design.variance == pytest.approx((4 + 28**0.5) ** 2 / 16 * gain**2)
    assert 36 * 3 / 16 * gain**2 > 1.25 * design.variance


def test_marginals_agree_and_laws_cost_bias() -> None:
    """The estimates say the same of every column wherever it occurs. The step makes laws of them, which nearly agree, and of empty cells positive ones."""
    protocol = Marginals(columns=tuple("abcde"), k=3)
    n, generator = 20_000, np.random.default_rng(4)
    kinds = {name: np.where(np.arange(4) == place % 4, "1", "0") for place, name in enumerate(protocol.columns)}
    population = Finite(Records(kinds), [1.0] * 4, n, 1)
    truth, task = protocol.truth(population), protocol.task
    shared = overlaps(task.sets)

    def gap(values: Floats) -> float:
        return agree([(chosen, part.reshape(3, 3).copy()) for chosen, part in zip(task.sets, np.split(values, len(task.sets)), strict=True)], shared)

    raw, laws = [], []
    for _ in range(60):
        estimate = run(protocol.algorithm(2.0, n), AggregateOracle(population, generator, 2.0)).estimate
        raw.append(estimate.value)
        laws.append(protocol.agreeing_laws(estimate))
        assert gap(estimate.value) < 1e-12
        assert gap(laws[-1]) < 1e-5
        assert laws[-1].min() >= 0
        assert laws[-1].reshape(-1, 9).sum(axis=1) == pytest.approx(np.ones(len(task.sets)))
    empty, error = truth == 0, float(estimate.standard_error.max())
    assert abs(np.mean(raw, axis=0)[empty].mean()) < 0.1 * error
    assert np.mean(laws, axis=0)[empty].mean() > 0.1 * error
    assert np.mean((np.array(laws) - truth) ** 2) < np.mean((np.array(raw) - truth) ** 2)


def test_overlaps_are_averaged() -> None:
    """Two pairs that differ on their common column meet at the mean, exactly; their other margins stay."""
    first, second = np.array([[0.1, 0.3], [0.2, 0.4]]), np.array([[0.5, 0.1], [0.2, 0.2]])
    margins = [((0, 1), first.copy()), ((1, 2), second.copy())]
    assert agree(margins, overlaps([(0, 1), (1, 2)])) == pytest.approx(0.15)
    assert margins[0][1].sum(axis=0) == pytest.approx([0.45, 0.55])
    assert margins[1][1].sum(axis=1) == pytest.approx([0.45, 0.55])
    assert margins[0][1].sum(axis=1) == pytest.approx(first.sum(axis=1))
    assert margins[1][1].sum(axis=0) == pytest.approx(second.sum(axis=0))


def test_a_parity_is_odd() -> None:
    """1 for an odd number of second symbols, of columns and questions; anything but two symbols each is refused."""
    table = Records({"a": np.array(["x", "y", "y", "x"]), "n": np.array([1, 5, 1, 5])})
    odd = Odd(("a", "n > 3"), (f"x{SEPARATOR}y", ""))
    assert odd.values(table).tolist() == [0, 0, 1, 1]
    assert QUERIES.build(odd.name, odd.params()) == odd
    for labels, spare in ((f"x{SEPARATOR}y{SEPARATOR}z", ()), (f"x{SEPARATOR}y", ("missing",)), (f"x{SEPARATOR}y", ("none",))):
        with pytest.raises(InputError, match="two each"):
            Odd(("a",), (labels,), spare)


def test_a_table_with_questions_and_missing_values() -> None:
    """Labels, yes/no questions and a label for what is missing: the truth is that of plain counting; without a policy it is refused."""
    table = Records({"city": np.array(["Oslo", "Rome", "", "Rome"] * 5), "age": np.array([10, 40, 50, 60] * 5)})
    protocol = Marginals(columns=("city", "age > 30"), labels=("Oslo|Rome",), missing="category", ways=1).for_table(Launch(table, False))
    assert protocol.cells == ["city = Oslo", "city = Rome", "city = (missing)", "age > 30 = no", "age > 30 = yes", "age > 30 = (missing)"]
    kinds = Finite(table, [1.0] * 20, 100, 1)
    assert protocol.truth(kinds) == pytest.approx([0.25, 0.5, 0.25, 0.25, 0.75, 0])
    with pytest.raises(InputError, match="missing=category"):
        Marginals(columns=("city", "age > 30"), labels=("Oslo|Rome",)).for_table(Launch(table, False))


def test_what_cannot_be_is_refused() -> None:
    """Ways, columns, labels and clients."""
    for wrong in ({"ways": 0}, {"ways": 7}, {"columns": ("a", "a")}, {"columns": ()}, {"k": 1}, {"k": 65}, {"missing": "exclude"}, {"labels": ("x|y",)}):
        with pytest.raises(InputError):
            Marginals(**wrong)
    with pytest.raises(InputError, match="9,880 marginals"):
        Marginals(columns=tuple(f"c{place}" for place in range(40)), ways=3)
    with pytest.raises(InputError, match="too few"):
        Marginals().algorithm(1.0, 5)
