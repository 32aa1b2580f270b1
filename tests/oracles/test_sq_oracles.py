"""Statistical-query oracles: legal answers, counted queries, and worst cases that are as bad as
legality allows."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import combinations

import numpy as np
import pytest

from local_dp.errors import InputError, RefusedError
from local_dp.hardness.adversary import VersionSpaceOracle
from local_dp.interaction import run
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.queries import MaskedBit, MaskedCoset, MaskedRandom
from local_dp.masked.statistical import (
    bent_learner,
    coset_learner,
    parity_learner,
    random_learner,
    spectrum,
    two_round_learner,
)
from local_dp.oracles.statistical import oracles
from local_dp.populations.concepts import (
    build_class,
    masked_parity,
    monotone_conjunctions,
    sign_matrix,
)
from local_dp.populations.finite import Finite, Population, bernoulli
from local_dp.queries.query import QUERIES, Query
from local_dp.queries.tables import Bounded, Question
from local_dp.records import Records
from tests.support.wrong import wrong

OracleFor = Callable[[Population], oracles.SQOracle]
HONEST: dict[str, OracleFor] = {
    "exact": oracles.ExactOracle, "rounded": oracles.RoundedOracle,
    **{name: partial(oracles.BiasedOracle, bias=bias) for name,
    bias in (("up", oracles.upward), ("down", oracles.downward), ("against", oracles.against))},
}  # fmt: skip
MASKED: list[Query] = [
    MaskedBit(4, 0),
    MaskedBit(4, 3),
    MaskedCoset(4, 4),
    MaskedCoset(4, 2, 3),
    MaskedCoset(4, 0, 11),
    MaskedRandom(4, 5),
]


@pytest.mark.parametrize("query", MASKED, ids=str)
def test_masked_means_are_the_definition(query: MaskedBit | MaskedCoset | MaskedRandom) -> None:
    """The closed form of each masked query's mean is the sum over all labelled examples, for every
    concept."""
    everything = masked_parity(4)
    for index in range(everything.size):
        mean = 2 * float(np.mean(query(everything.labelled(index)))) - 1
        assert query.mean(index >> 1, index & 1) == pytest.approx(mean, abs=1e-15)
    assert QUERIES.build(query.name, query.params()) == query


@pytest.mark.parametrize("name", HONEST)
def test_honest_oracles_are_legal(name: str) -> None:
    """Exact, rounded and biased oracles answer within the tolerance, for shares and tolerances on a
    grid."""
    for share in (0.01, 0.3, 0.5, 0.77):
        population = bernoulli("yes", share, 10, 1)
        for tolerance in (0.01, 0.1, 0.6):
            query = oracles.StatisticalQuery(Question("yes == 1"), tolerance)
            (answer,) = oracles.legal(HONEST[name](population), population).answer((query,))
            assert abs(answer - (2 * share - 1)) <= tolerance + 1e-12


def test_an_illegal_answer_is_caught() -> None:
    """An oracle that is wrong by one per cent more than the tolerance is refused, the same oracle
    within it is not."""
    population = bernoulli("yes", 0.7, 10, 1)
    query = oracles.StatisticalQuery(Question("yes == 1"), 0.1)
    wider = oracles.StatisticalQuery(Question("yes == 1"), 0.101)

    class Cheat(oracles.BiasedOracle):
        def answer_one(self, query: oracles.StatisticalQuery) -> float:
            return super().answer_one(wider)

    with pytest.raises(RefusedError, match="further than"):
        oracles.legal(Cheat(population, oracles.upward), population).answer((query,))


def _values(oracle: VersionSpaceOracle, query: oracles.StatisticalQuery) -> list[Fraction]:
    values, scale = oracle.expectations(query)
    return [Fraction(int(value), scale) for value in values]


def test_version_space_answers_are_legal_for_every_survivor() -> None:
    """Every answer is within its tolerance, in exact arithmetic from the definition, of the
    expectation under every surviving concept."""
    concepts = monotone_conjunctions(5)
    for potential in ("count", "pairs"):
        oracle = VersionSpaceOracle(concepts, 0.1, "count" if potential == "count" else "pairs")
        questions = [f"x{j} == 1 and y == 1" for j in range(5)] + [
            f"x{j} == 0 and y == 1" for j in range(5)
        ]
        oracle.answer(tuple(oracles.StatisticalQuery(Question(text), 0.17) for text in questions))
        for query, answer in oracle.log:
            for concept in oracle.alive:
                expectation = Fraction(
                    int(query.numerators(concepts.labelled(int(concept))).sum()),
                    len(concepts.points),
                )
                assert abs(answer - expectation) <= Fraction(query.tolerance)


def test_version_space_keeps_the_best_window() -> None:
    """For one query the window kept has the most survivors ("count") or the most pairs at distance
    2 alpha ("pairs") of all legal answers."""
    generator = np.random.default_rng(3)
    for _ in range(20):
        concepts = sign_matrix(generator.choice([-1, 1], (12, 9)), generator.integers(1, 5, 9))
        query = oracles.StatisticalQuery(Question("point < 6 and y == 1"), 0.15)
        count = VersionSpaceOracle(concepts, 0.2, "count")
        pairs = VersionSpaceOracle(concepts, 0.2, "pairs")
        values = _values(count, query)
        far = [
            (c, e)
            for c, e in combinations(range(12), 2)
            if concepts.weights[concepts.row(c) != concepts.row(e)].sum() >= 0.4 * concepts.total
        ]
        width = 2 * Fraction(query.tolerance)
        windows = [{c for c in range(12) if 0 <= values[c] - left <= width} for left in values]
        count.answer((query,))
        pairs.answer((query,))
        assert len(count.alive) == max(map(len, windows))
        survivors = set(pairs.alive.tolist())
        inside = [sum({c, e} <= window for c, e in far) for window in (survivors, *windows)]
        assert inside[0] == max(inside[1:])


@pytest.mark.parametrize(
    "query",
    [
        *MASKED,
        Question("i == 2 and y == 1"),
        Question("y == 1 and b == 0 or x < 5"),
        Bounded("y", -2, 5),
    ],
    ids=str,
)
def test_spectra_are_the_definition(query: Query) -> None:
    """One Walsh-Hadamard transform gives every concept's expectation of any query, exactly, and
    says for which r a can be hidden."""
    everything = masked_parity(4)
    question = oracles.StatisticalQuery(query, 0.06)
    whole = spectrum(question, 4)
    for r in range(16):
        means = []
        for a in (0, 1):
            numerator = int(question.numerators(everything.labelled(2 * r + a)).sum())
            means.append(Fraction(numerator, len(everything.points) * question.span))
            own = int(whole.centre[r] + (1 - 2 * a) * whole.half[r])
            assert Fraction(own, whole.scale) == means[a]
        near = abs(means[0] - means[1]) <= 2 * Fraction(question.tolerance)
        assert bool(whole.hidden[r]) == near
        for a in (0, 1):
            answer = Fraction(int(whole.answers(a)[r]), whole.scale)
            assert abs(answer - means[a]) <= Fraction(question.tolerance)
        if whole.hidden[r]:
            assert whole.answers(0)[r] == whole.answers(1)[r]


@pytest.mark.parametrize("name", HONEST)
def test_learners_win_inside_their_tolerances_under_every_known_distribution_oracle(
    name: str,
) -> None:
    """Bent, coset, parity, random-function and two-round learners are exact under exact, rounded
    and biased oracles for tolerances they can stand."""
    learners: list[oracles.StatisticalAlgorithm[Concept]] = [
        bent_learner(8, 2 ** (-16 / 3)), bent_learner(7, 2 ** (-14 / 3)), coset_learner(6, 0.08, 4),
        parity_learner(5, 0.09),
        random_learner(6, 0.03, 64, 3), two_round_learner(8),
    ]  # fmt: skip
    for d, learner in zip((8, 7, 6, 5, 6, 8), learners, strict=True):
        for r, a in ((0, 0), (2**d - 1, 1), (37 % 2**d, 0), (22 % 2**d, 1)):
            population = MaskedParityPopulation(Concept(d, r, a), 1, 0)
            oracle = oracles.legal(HONEST[name](population), population)
            assert run(learner, oracle) == population.concept


@wrong(
    "local_dp.oracles.statistical.oracles:NullOracle.answer_one",
    "min(expectation + query.tolerance, max(expectation - query.tolerance, target))",
    "expectation",
    "the proofs' own adversary gives everything away",
)
def test_the_null_oracle_says_nothing_it_need_not() -> None:
    """Leaning towards random labels, the oracle answers the null exactly wherever the target is
    within tau of it, and stays legal elsewhere."""
    everything = masked_parity(4)
    points, shares = everything.points.columns, np.tile(everything.shares, 2)
    labels = {"y": np.repeat([1, -1], len(everything.points))}
    twice = {name: np.tile(values, 2) for name, values in points.items()}
    null = Finite(Records(twice | labels), shares, 1, 0)
    for index in (0, 9, 30):
        population = everything.population(index, 1, 0)
        learner = bent_learner(4, 2 ** (-8 / 3))
        oracle = oracles.legal(oracles.NullOracle(population, null), population)
        assert oracle.answer(learner.queries) == pytest.approx((0.0,) * 5, abs=1e-15)
        wins = run(two_round_learner(4), oracle)
        assert (wins.r, wins.a) == (index >> 1, index & 1)


def test_classes_are_what_their_names_say() -> None:
    """Named classes have the right sizes, distinct concepts and labels by their definitions;
    unknown ones are refused."""
    sizes = {
        "parities": 16,
        "monotone-conjunctions": 16,
        "signed-conjunctions": 81,
        "thresholds": 16,
        "stumps": 8,
        "points": 16,
        "masked-parity": 32,
    }
    for name, size in sizes.items():
        concepts = build_class(name, {"d": 4})
        assert concepts.size == size == len(np.unique(concepts.labels, axis=0))
    assert build_class("juntas", {"d": 6, "k": 3}).size == 4524
    conjunction = build_class("signed-conjunctions", {"d": 3}).labelled(1 + 2 * 9)  # x0 and not x2
    assert ((conjunction["y"] == 1) == ((conjunction["x0"] == 1) & (conjunction["x2"] == 0))).all()
    for name, params in (
        ("nothing", {"d": 3}),
        ("parities", {}),
        ("parities", {"d": 99}),
        ("juntas", {"d": 3, "k": 4}),
    ):
        with pytest.raises(InputError):
            build_class(name, params)
    with pytest.raises(InputError, match="sign matrix"):
        sign_matrix(np.array([[1, 0], [1, 1]]))
