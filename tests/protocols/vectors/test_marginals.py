"""Marginals: unbiased and agreeing on the expected tallies of any law, errors as stated, the choice of sets by variances that bound the exact ones."""

from itertools import combinations

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.finite import Finite
from local_dp.populations.population import Population
from local_dp.postprocessing.steps import agree, overlaps
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.vectors.marginals import Dealt, Marginals, Task, best_design, covering_sets, designs
from local_dp.randomizers.finite import FiniteChannel, report_law
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
    for _ in range(30):
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


def test_a_table_with_questions_and_missing_values() -> None:
    """Labels, yes/no questions and a label for what is missing: the truth is that of plain counting; without a policy it is refused."""
    table = Records({"city": np.array(["Oslo", "Rome", "", "Rome"] * 5), "age": np.array([10, 40, 50, 60] * 5)})
    protocol = Marginals(columns=("city", "age > 30"), labels=("Oslo|Rome",), missing="category", ways=1).for_table(Launch(table, False))
    assert protocol.cells == ["city = Oslo", "city = Rome", "city = (missing)", "age > 30 = no", "age > 30 = yes", "age > 30 = (missing)"]
    kinds = Finite(table, [1.0] * 20, 100, 1)
    assert protocol.truth(kinds) == pytest.approx([0.25, 0.5, 0.25, 0.25, 0.75, 0])
    with pytest.raises(InputError, match="missing=category"):
        Marginals(columns=("city", "age > 30"), labels=("Oslo|Rome",)).for_table(Launch(table, False))
