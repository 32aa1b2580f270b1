"""The parity game: what the adversary may hide, what its certificates prove, and the learners that meet the bound."""

from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.bounds.parity import parities_told, parity_sq_queries, parity_sq_success
from local_dp.hardness.adversary import SilentOracle, all_parities, bent_cosets, exact_success, parity_expectations
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import run
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery, legal
from local_dp.populations.concepts import parities
from local_dp.queries.examples import Correlation, ParityCoset
from local_dp.queries.registry import QUERIES
from local_dp.queries.tables import Question
from tests.support.inputs.refusals import refuse

COSETS = st.builds(lambda k, s, t: ParityCoset(6, 2 * k, s % 2 ** (6 - 2 * k), t % 2 ** (2 * k)), st.integers(0, 3), st.integers(0, 63), st.integers(0, 63))
ASKED = st.lists(st.tuples(COSETS, st.sampled_from([0.1, 0.125, 0.25, 0.3, 0.5, 0.9])), min_size=1, max_size=6)


def test_expectations_are_those_of_the_definition() -> None:
    """The transform's expectations under every parity equal the mean over the labelled cube, for coset queries and for plain questions."""
    concepts = parities(4)
    queries = [ParityCoset(4, 2, 3, 1), ParityCoset(4, 0, 9), Question("x0 == 1 and y == 1"), Correlation(("x1", "x3"), "y")]
    for query in queries:
        statistical = StatisticalQuery(query, 0.1)
        expectations = parity_expectations(statistical, 4)
        for r in range(16):
            exact = ExactOracle(concepts.population(r, 1, 0)).answer((statistical,))[0]
            assert (expectations.base + int(expectations.half[r])) / expectations.scale == pytest.approx(exact, abs=1e-12)
            if isinstance(query, ParityCoset):
                assert query.mean(r) == pytest.approx(exact, abs=1e-12)


@settings(max_examples=15, deadline=None)
@given(ASKED, st.integers(0, 63))
def test_the_adversary_is_legal_and_tells_few(pairs: list[tuple[ParityCoset, float]], target: int) -> None:
    """Every answer is legal for the target, no query reveals more parities than Parseval allows, and the certificate of the survivors verifies."""
    queries = tuple(StatisticalQuery(query, tolerance) for query, tolerance in pairs)
    oracle = SilentOracle(6, target)
    answers = legal(oracle, parities(6).population(target, 1, 0)).answer(queries)
    assert oracle.alive[target]
    for query in queries:
        assert int(parity_expectations(query, 6).revealed.sum()) <= parities_told(query.tolerance) < 1 / query.tolerance**2
    if not any(answers):
        assert int(oracle.alive.sum()) >= 64 - sum(parities_told(query.tolerance) for query in queries)
    certificate = oracle.certificate()
    assert (certificate is None) == (int(oracle.alive.sum()) == 1)
    if certificate is not None:
        assert verify_certificate(certificate).figures["success_at_most"] == str(Fraction(1, int(oracle.alive.sum())))


def test_an_adversary_that_lies_has_no_valid_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer moved beyond the tolerance, or a revealed parity among the survivors, is found by the checker."""
    oracle = SilentOracle(6, 63)
    oracle.answer(tuple(StatisticalQuery(ParityCoset(6, 2, s), 0.4) for s in range(4)))
    certificate = oracle.certificate()
    assert certificate is not None
    assert len(certificate["survivors"]) == 64 - 16
    assert verify_certificate(certificate).valid
    assert not verify_certificate({**certificate, "answers": ["1/2", *certificate["answers"][1:]]}).valid
    assert not verify_certificate({**certificate, "survivors": [0, *certificate["survivors"]]}).valid


@pytest.mark.parametrize("d", [1, 4])
def test_who_asks_all_parities_wins_exactly_when_it_must(d: int) -> None:
    """Asking about q parities one by one finds min(q + 1, 2^d) of the 2^d targets: the bound, and 1 from 2^d - 1 queries on."""
    for count in range(1, 2**d + 1):
        success = exact_success(all_parities(d, 0.9, count), d)
        assert success == parity_sq_success(d, count, 0.9) == Fraction(min(count + 1, 2**d), 2**d)
        assert (success == 1) == (count >= parity_sq_queries(d, 0.9))
    refuse(("asked is 0", lambda: all_parities(d, 0.9, 0)))


@pytest.mark.parametrize("k", [2, 4, 6])
def test_bent_cosets_meet_the_bound(k: int) -> None:
    """Just below tolerance 2^(-k/2) they find all 64 targets with k queries more than any learner needs; at it the adversary stays silent to all."""
    for tolerance, wins in ((2.0 ** (-k / 2) * (1 - 1e-9), 64), (2.0 ** (-k / 2), 1)):
        oracles = [SilentOracle(6, target) for target in range(64)]
        assert sum(run(bent_cosets(6, tolerance, k), oracle) == target for target, oracle in enumerate(oracles)) == wins
        if wins == 64:
            assert {oracle.queries for oracle in oracles} == {parity_sq_queries(6, tolerance) + k}
            assert {oracle.rounds for oracle in oracles} == {2}


def test_bad_cosets_are_refused() -> None:
    """A query outside its ranges is refused; a good one is built from its name."""
    ranges = ({"d": 0, "k": 0}, {"d": 4, "k": 3}, {"d": 4, "k": 6}, {"d": 4, "k": 2, "s": 4}, {"d": 4, "k": 0, "t": 1}, {"d": 4, "k": True})
    refuse(*((r"give a whole number|even number", partial(ParityCoset, **params)) for params in ranges))
    assert QUERIES.build("parity-coset", {"d": 4, "k": 2, "s": 1}) == ParityCoset(4, 2, 1)
