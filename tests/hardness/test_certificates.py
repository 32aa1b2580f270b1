"""Dimensions of concept classes, and certificates: the checker recomputes all on its own and
refuses every forgery."""

import ast
import copy
import json
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import local_dp.hardness.certificates
from local_dp.arrays import Bools, Floats
from local_dp.bounds.channels import parity_interactive_bound
from local_dp.hardness import dimensions as spectral
from local_dp.hardness.adversary import VersionSpaceOracle
from local_dp.hardness.certificates import load_certificate, verify_certificate
from local_dp.masked.queries import MaskedRandom
from local_dp.masked.statistical import (
    bent_learner,
    coset_learner,
    hidden_set_certificate,
    random_learner,
)
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.concepts import (
    ConceptClass,
    juntas,
    monotone_conjunctions,
    parities,
    point_functions,
    sign_matrix,
    signed_conjunctions,
    stumps,
    thresholds,
)
from local_dp.queries.tables import Question
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong

# limits 5.2 at d = 6: uniform prior, optimised prior, SQ dimension by a greedy search. The
# optimised ones there are lower bounds, 1 to 3 % short.
KNOWN: list[tuple[ConceptClass, float, float, int]] = [
    (parities(6), 64, 64, 64), (signed_conjunctions(6), 1.4, 7.8, 7),
    (stumps(6), 6, 6, 6),
    (juntas(6, 3), 8.8, 42.0, 38),
]  # fmt: skip


@pytest.mark.long(keep="stumps-6-6-6")
@pytest.mark.parametrize(
    ("concepts", "uniform", "best", "greedy"), KNOWN, ids=lambda value: getattr(value, "name", None)
)
def test_known_dimensions(concepts: ConceptClass, uniform: float, best: float, greedy: int) -> None:
    """The classes of limits 5.2 have its values with the uniform prior, at least its values with
    the optimised one, and at least its SQ dimensions."""
    dims = spectral.dimensions(concepts, np.random.default_rng(0))
    assert dims.uniform.value == pytest.approx(uniform, rel=0.02)
    assert best * 0.995 <= dims.optimised.value <= dims.optimised.at_most <= best * 1.04
    assert dims.sq.value >= greedy


def test_optimised_priors_have_closed_forms() -> None:
    """The optimised dimension of monotone conjunctions is d + 1; a class with every concept negated
    and repeated has the SQ dimension of the class itself."""
    for d in (4, 6):
        best = spectral.optimised_dimension(monotone_conjunctions(d))
        assert best.at_most / 1.005 <= best.value <= d + 1 + 1e-9
        assert best.at_most >= d + 1 - 1e-9
    labels = parities(4).labels
    matrix = sign_matrix(np.concatenate([labels, -labels, labels]))
    assert spectral.sq_dimension(matrix, np.random.default_rng(0)).value == 16


def test_the_value_belongs_to_the_prior() -> None:
    """1 / lambda_max of the correlations weighted by its own prior, also off the uniform domain; no
    prior does better than the upper bound."""
    generator = np.random.default_rng(5)
    random_class = sign_matrix(generator.choice([-1, 1], (9, 30)), generator.integers(0, 6, 30))
    for concepts in (random_class, thresholds(4)):
        correlations = concepts.correlations() / concepts.total

        def value(prior: Floats, correlations: Floats = correlations) -> float:
            root = np.sqrt(prior)
            return float(1 / np.linalg.eigvalsh(root[:, None] * correlations * root)[-1])

        for dimension in (
            spectral.uniform_dimension(concepts),
            spectral.optimised_dimension(concepts),
        ):
            assert dimension.value == pytest.approx(value(dimension.prior), rel=1e-9)
            for prior in (dimension.prior, *generator.dirichlet(np.full(concepts.size, 0.3), 20)):
                assert value(prior) <= dimension.at_most * (1 + 1e-9)


def test_sq_dimensions_are_attained_and_maximal() -> None:
    """The concepts returned have correlations of at most 1/m; on random small classes brute force
    over all subsets finds no larger m."""
    generator = np.random.default_rng(11)
    for _ in range(8):
        concepts = sign_matrix(generator.choice([-1, 1], (9, 12)), generator.integers(1, 4, 12))
        correlations = np.abs(concepts.correlations())
        dimension = spectral.sq_dimension(concepts, generator)
        m = dimension.value
        assert dimension.exact
        assert all(
            m * correlations[pair] <= concepts.total for pair in combinations(dimension.concepts, 2)
        )
        subsets = combinations(range(9), m + 1)
        assert not any(
            all((m + 1) * correlations[pair] <= concepts.total for pair in combinations(subset, 2))
            for subset in subsets
        )


def test_cliques_against_brute_force() -> None:
    """The exact search finds a clique of a size if and only if there is one; the greedy one finds a
    maximal clique; a search without time says so."""
    generator = np.random.default_rng(2)

    def is_clique(adjacent: Bools, subset: Iterable[int]) -> bool:
        return all(adjacent[pair] for pair in combinations(subset, 2))

    for density in (0.3, 0.5, 0.8):
        upper = np.triu(generator.random((11, 11)) < density, 1)
        adjacent = upper | upper.T
        for size in range(1, 9):
            search = spectral.CliqueSearch(adjacent, 10_000)
            clique = search.find(size)
            assert search.finished
            assert (clique is not None) == any(
                is_clique(adjacent, subset) for subset in combinations(range(11), size)
            )
            assert clique is None or (len(set(clique)) == size and is_clique(adjacent, clique))
        greedy = spectral.greedy_clique(adjacent, generator)
        assert [vertex for vertex in range(11) if is_clique(adjacent, {*greedy, vertex})] == sorted(
            greedy
        )
    large = spectral.CliqueSearch(np.ones((60, 60), dtype=bool) ^ np.eye(60, dtype=bool), 5)
    assert (large.find(16), large.finished) == (None, False)
    hard = sign_matrix(generator.choice([-1, 1], (200, 400)))
    assert not spectral.sq_dimension(hard, generator, steps=100).exact


def test_the_guess_is_never_underestimated() -> None:
    """No hypothesis is within alpha of concepts of more prior than `guessable` says: checked over
    all 2^8 hypotheses on 8 points."""
    generator = np.random.default_rng(4)
    for alpha in (0.125, 0.2, 0.3):
        concepts = sign_matrix(generator.choice([-1, 1], (20, 8)))
        prior = generator.dirichlet(np.ones(20))
        every = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
        good = (every[:, None, :] != concepts.labels[None]).mean(axis=2) <= alpha
        assert (good @ prior).max() <= spectral.guessable(concepts, prior, alpha) + 1e-12


def test_local_clients() -> None:
    """The bound is that of parity, below the known protocol's 2,040 (limits 4.2), and 0 where a
    guess is good enough."""
    parity = parities(6)
    dims = spectral.dimensions(parity, np.random.default_rng(0))
    assert spectral.local_clients(parity, dims, 1.0, 0.9, 0.2) == pytest.approx(
        parity_interactive_bound(6, 1.0, 0.9)
    )
    assert 100 < parity_interactive_bound(6, 1.0, 0.9) < 2040
    assert spectral.local_clients(parity, dims, 1.0, 0.9, 0.5) == 0
    refuse(("epsilon", lambda: spectral.local_clients(parity, dims, 0.0, 0.9, 0.2)))


Data = dict[str, Any]


def travelled(certificate: Data | None) -> Data:
    """A certificate after a journey as JSON text."""
    assert certificate is not None
    return load_certificate(json.dumps(certificate))


def hidden() -> Data:
    """Four random functions at d = 6: some strings are hidden, some revealed."""
    learner = random_learner(6, 0.1, 4, 3)
    return travelled(hidden_set_certificate(learner.queries, 6))


def survivors() -> Data:
    """Stump queries against conjunctions."""
    oracle = VersionSpaceOracle(monotone_conjunctions(4), 0.05)
    oracle.answer(tuple(StatisticalQuery(Question(f"x{j} == 1 and y == 1"), 0.2) for j in range(4)))
    return travelled(oracle.certificate())


def test_the_checker_shares_no_shortcut_with_the_oracles() -> None:
    """The checker's module imports neither adversary nor the Walsh-Hadamard transform, so a bug
    there cannot vouch for itself."""
    tree = ast.parse(Path(local_dp.hardness.certificates.__file__).read_text())
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not modules & {
        "local_dp.hardness.adversary",
        "local_dp.masked.statistical",
        "local_dp.cube",
    }
    assert "walsh_hadamard" not in names


def test_hidden_sets_verify_and_bound_success() -> None:
    """A hidden-set certificate survives JSON, verifies, and states the success bound 1 - rho / 2
    and the tolerance; an empty hidden set proves that a is always revealed."""
    data = hidden()
    verdict = verify_certificate(data)
    count = sum(byte.bit_count() for byte in bytes.fromhex(data["hidden"]))
    assert verdict.valid
    assert "tolerance 0.1," in verdict.statement
    assert 0 < count < 64
    assert verdict.figures["success_at_most"] == str(1 - Fraction(count, 128))
    wins = verify_certificate(
        travelled(hidden_set_certificate(bent_learner(8, 2 ** (-16 / 3)).queries, 8))
    )
    assert wins.valid
    assert wins.statement.startswith("for every r")


Change = Callable[[Data], Data]


def query(number: int, **changes: Any) -> Change:
    """Another setting of a query, or of its parameters."""

    def change(data: Data) -> Data:
        queries = copy.deepcopy(data["queries"])
        own = queries[number] if "tolerance" in changes else queries[number]["params"]
        own.update(changes)
        return {"queries": queries}

    return change


FORGED_HIDDEN: list[Data | Change] = [
    query(-1, seed=99), lambda data: {"queries": data["queries"][:7]},
    {"rho": "1"}, {"success_at_most": "1/2"},
    lambda data: {"hidden": data["hidden"] + "00"},
]  # fmt: skip
FORGED_SURVIVORS: list[Data | Change] = [
    lambda data: {"answers": data["answers"][1:]}, {"survivors": [0, 15]},
    {"survivors": [3, 3]}, {"survivors": [3, 16]},
    lambda data: {"survivors": data["survivors"][:1]},
    lambda data: {"survivors": [float(index) for index in data["survivors"]]},
    {"class": {"name": "stumps", "params": {"d": 4}}}, query(1, text="x0 == 0 or x0 == 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("certificate", "forge"),
    [
        *((hidden, forge) for forge in FORGED_HIDDEN),
        *((survivors, forge) for forge in FORGED_SURVIVORS),
    ],
)
def test_forged_certificates_fail(certificate: Callable[[], Data], forge: Data | Change) -> None:
    """Moving a string, an answer, a survivor, a tolerance, a query, the share, the bound, the error
    or the class makes a certificate invalid."""
    data = certificate()
    assert verify_certificate(data).valid
    assert not verify_certificate(data | (forge(data) if callable(forge) else forge)).valid


@wrong(
    "local_dp.hardness.certificates:_verify_survivors",
    "_fraction(query.tolerance)",
    "2 * _fraction(query.tolerance)",
    "answers that are illegal for a survivor pass",
    at="0.3-beyond1",
)
@pytest.mark.parametrize("beyond", [Fraction(0), Fraction(1, 10**75)])
@pytest.mark.parametrize("tolerance", [0.01, 0.1, 0.15, 0.3, 0.7])
def test_survivors_are_judged_to_the_last_fraction(tolerance: float, beyond: Fraction) -> None:
    """An answer at the very edge of what is legal for every survivor verifies, and none 1e-75
    beyond or with the next smaller tolerance, on either side."""
    concepts = parities(3)
    question = StatisticalQuery(Question("x0 == 1 and y == 1"), tolerance)
    oracle = VersionSpaceOracle(concepts, 0.2, "count")
    oracle.answer((question,))
    data = travelled(oracle.certificate("all"))
    size = len(concepts.points)
    means = [
        Fraction(int(question.numerators(concepts.labelled(index)).sum()), size)
        for index in data["survivors"]
    ]
    far = Fraction(str(tolerance)) + beyond
    for edge in (min(means) + far, max(means) - far):
        verdict = verify_certificate(data | {"answers": [str(edge)]})
        assert verdict.valid == (beyond == 0)
        assert f"tolerance {tolerance} " in verdict.statement or beyond
        less = query(0, tolerance=math.nextafter(tolerance, 0))(data)
        assert not verify_certificate(data | less | {"answers": [str(edge)]}).valid


@wrong(
    "local_dp.hardness.certificates:_verify_survivors",
    "2 * alpha",
    "alpha",
    "the checker accepts proofs that are wrong by a factor of 2",
    at="thresholds",
)
@pytest.mark.parametrize(
    "concepts",
    [thresholds(3), monotone_conjunctions(3), point_functions(3)],
    ids=lambda concepts: concepts.name,
)
def test_no_hypothesis_beats_a_certificate(concepts: ConceptClass) -> None:
    """Against all 256 hypotheses on 8 points, in fractions, around every alpha where a distance is
    met: never less than the best, and the definition."""
    query_of_all = StatisticalQuery(Question("y == y"), 0.3)
    answer = Fraction(int(query_of_all.numerators(concepts.labelled(0)).sum()), 8)
    base: Data = {
        "format": "local-dp certificate 1",
        "kind": "survivors",
        "class": {"name": concepts.name, "params": concepts.params},
    }
    base |= {
        "answers": [str(answer)],
        "queries": [{"name": "question", "params": {"text": "y == y"}, "tolerance": 0.3}],
    }
    labels = np.stack([concepts.row(index) for index in range(concepts.size)]).astype(np.int64)
    every = 1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)
    # of each hypothesis for each concept, in points
    errors, apart = ((rows[:, None, :] != labels).sum(axis=2) for rows in (every, labels))
    for points, beyond in product(range(1, 16), (-1, 0, 1)):  # alpha is half so many points
        alpha = Fraction(points, 16) + Fraction(beyond, 10**75)
        best = int((errors < math.ceil(alpha * 8)).sum(axis=1).max())
        near = int((apart < math.ceil(16 * alpha)).sum(axis=1).max())
        verdict = verify_certificate(
            base | {"alpha": str(alpha), "survivors": list(range(concepts.size))}
        )
        assert best <= near
        assert verdict.valid == (near < concepts.size)
        assert not verdict.valid or verdict.figures["success_at_most"] == str(
            Fraction(near, concepts.size)
        )


@settings(max_examples=20)
@given(
    st.integers(1, 6),
    st.floats(0.01, 0.6),
    st.lists(st.integers(0, 2**32), min_size=1, max_size=4),
    st.integers(0, 63),
)
def test_hidden_sets_agree_with_the_definition(
    d: int, tolerance: float, seeds: list[int], place: int
) -> None:
    """For random functions and tolerances the certificate verifies, equals the hidden set of the
    definition, and fails with any one string moved."""
    functions = [MaskedRandom(d, seed) for seed in seeds]
    certificate = travelled(
        hidden_set_certificate(
            tuple(StatisticalQuery(function, tolerance) for function in functions), d
        )
    )
    assert verify_certificate(certificate).valid
    claim = int.from_bytes(bytes.fromhex(certificate["hidden"]), "little")
    for r in range(1 << d):
        gaps = (
            abs(function.mean(r, 0) - function.mean(r, 1)) <= 2 * tolerance
            for function in functions
        )
        assert (claim >> r & 1) == all(gaps)
    length = max(1, (1 << d) // 8)
    other = (claim ^ 1 << place % (1 << d)).to_bytes(length, "little").hex()
    assert not verify_certificate(certificate | {"hidden": other}).valid


def test_thresholds_are_decided_exactly() -> None:
    """At tau = 2^(-k/2-1) exactly every mask is hidden, and one float below none is: by the oracle
    and by the checker alike."""
    for tolerance, rho in ((2.0**-3, "1"), (float(np.nextafter(2.0**-3, 0)), "0")):
        certificate = travelled(hidden_set_certificate(coset_learner(6, tolerance, 4).queries, 6))
        assert certificate["rho"] == rho
        assert verify_certificate(certificate).valid
        less = query(-1, tolerance=math.nextafter(tolerance, 0))(certificate)
        assert verify_certificate(certificate | less).valid == (rho == "0")


BAD_HIDDEN: list[Data | Change] = [
    {"queries": None}, {"kind": "proof"}, {"queries": []},
    {"queries": [{"name": "no-such-query", "params": {}, "tolerance": 0.1}]},
    query(0, tolerance="wide"), query(0, tolerance=2.0), {"d": 40}, {"d": "6"}, {"hidden": "zz"},
    {"rho": "1/0"},
]  # fmt: skip
BAD_SURVIVORS: list[Data] = [
    {"alpha": 0}, {"alpha": -1}, {"alpha": math.nan}, {"answers": ["one"] * 4},
    {"answers": ["1e999999999"] * 4}, {"survivors": 7},
    {"class": {"name": "juntas", "params": {"d": 10, "k": 4}}},
    {"class": {"name": "no such class", "params": {"d": 4}}},
    {"class": {"name": "parities", "params": {"d": "4"}}},
    {"class": {"name": "parities", "params": {"d": 16}}, "survivors": list(range(8192))},
]  # fmt: skip


@pytest.mark.parametrize(
    ("certificate", "spoil"),
    [*((hidden, spoil) for spoil in BAD_HIDDEN), *((survivors, spoil) for spoil in BAD_SURVIVORS)],
)
def test_malformed_certificates_are_refused(
    certificate: Callable[[], Data], spoil: Data | Change
) -> None:
    """A part missing, of the wrong type, out of range or of unbounded cost is refused with an
    InputError, before anything is computed."""
    data = certificate()
    refuse((".", lambda: verify_certificate(data | (spoil(data) if callable(spoil) else spoil))))


def test_what_is_no_certificate_is_refused() -> None:
    refuse(
        *(
            ("certificate", partial(load_certificate, text))
            for text in ("", "[]", '{"format": "something else"}', "[" * 100_000)
        )
    )


def test_a_beaten_oracle_has_no_certificate() -> None:
    """Once one concept is left, there is nothing to certify."""
    oracle = VersionSpaceOracle(stumps(3), 0.1)
    oracle.answer(
        tuple(
            StatisticalQuery(Question(f"x{j} == {value} and y == 1"), 0.001)
            for j in range(3)
            for value in (0, 1)
        )
    )
    assert (len(oracle.alive), oracle.certificate()) == (1, None)


def test_weights_that_wrap_around_are_refused() -> None:
    """Eight of 2^61 and one of 5 are 5 in 64 bits; half a record is none."""
    labels = np.ones((2, 9), dtype=np.int64)
    weights = ([2**61] * 8 + [5], [1.5] * 9)
    refuse(*(("in sum", partial(sign_matrix, labels, np.array(each))) for each in weights))
