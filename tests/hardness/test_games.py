"""Games and transcripts: what an adversary may hide, how transcripts factor, margin complexity by
linear programs and its certificates."""

import json
import math
from fractions import Fraction
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.bounds.parity import parities_told, parity_sq_queries, parity_sq_success
from local_dp.hardness.adversary import (
    SilentOracle,
    all_parities,
    bent_cosets,
    exact_success,
    parity_expectations,
)
from local_dp.hardness.certificates import load_certificate, verify_certificate
from local_dp.hardness.margins import margin, margin_limit, on_the_matrix
from local_dp.hardness.transcripts import (
    Turn,
    as_randomized_response,
    cube_inputs,
    cut_inputs,
    random_protocol,
    transcript_laws,
)
from local_dp.interaction import run
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery, legal
from local_dp.populations.concepts import FUNCTIONS, BlockClass, parities
from local_dp.queries.examples import Correlation, ParityCoset
from local_dp.queries.query import QUERIES, Query
from local_dp.queries.tables import Question
from tests.support.inputs.refusals import refuse
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong


@pytest.mark.parametrize(("clients", "turns"), [(2, 6), (3, 8)])
def test_transcripts_factor(clients: int, turns: int) -> None:
    """Of inputs a and b the products of the two laws depend on the pairs {a_i, b_i} only: in
    fractions, for every pair of inputs of 20 protocols."""
    generator = np.random.default_rng(4)
    inputs = np.array(list(product((0, 1), repeat=clients)))
    for _ in range(20):
        laws = transcript_laws(random_protocol(clients, turns, generator), inputs)
        affinities = dict[tuple[int, ...], list[int]]()
        assert laws.sum(axis=1).tolist() == [1.0] * len(inputs)
        whole = (laws * 2**40).astype(np.int64).astype(object)  # ten turns in sixteenths
        for (a, first), (b, second) in product(zip(inputs, whole, strict=True), repeat=2):
            affinity = (first * second).tolist()
            assert affinities.setdefault(tuple((a + b).tolist()), affinity) == affinity


@wrong(
    "local_dp.hardness.transcripts:as_randomized_response",
    "(growth * factors - factors[:, :, ::-1]) / (growth - 1)",
    "factors",
    "the server takes randomized reports for the bits themselves: another law",
    at="1-4-1",
)
@pytest.mark.parametrize(("clients", "turns", "least"), [(1, 4, 1), (2, 6, 4), (3, 5, 2)])
def test_on_bits_one_round_of_randomized_response_has_the_law_of_every_protocol(
    clients: int, turns: int, least: int
) -> None:
    """In fractions, for all inputs, at the protocol's own loss and at a larger one; a smaller one
    leaves a server no law, and is refused."""
    generator = np.random.default_rng(6)
    inputs = cube_inputs(clients)
    for _ in range(4):
        protocol = random_protocol(clients, turns, generator, least)
        laws = np.vectorize(Fraction, otypes=[object])(transcript_laws(protocol, inputs))
        own = as_randomized_response(protocol, clients)
        for one in (own, as_randomized_response(protocol, clients, 3 * own.growth)):
            assert (one.laws() == laws).all()
            assert (one.server >= 0).all()
            assert (one.server.sum(axis=1) == 1).all()
        # those of one client's two bits, side by side
        pairs = (laws.reshape(1 << client, 2, -1) for client in range(clients))
        ratios = (max((pair / pair[:, ::-1]).ravel()) for pair in pairs)
        assert own.growth == max(ratios)
        refuse(
            (
                "needs",
                partial(as_randomized_response, protocol, clients, own.growth - Fraction(1, 100)),
            )
        )


def test_what_one_round_cannot_replay() -> None:
    """A transcript that betrays a bit for certain is refused; replies that depend on no bit are
    replayed at any loss."""
    refuse(("loss is infinite", lambda: as_randomized_response(Turn(0, (0.0, 0.5)), 1)))
    refuse(("above 1", lambda: as_randomized_response(Turn(0, (0.5, 0.5)), 1, Fraction(1))))
    laws = as_randomized_response(Turn(1, (0.25, 0.25), (Turn(0, (0.5, 0.5)), None)), 2).laws()
    assert laws.tolist() == 4 * [[Fraction(3, 8), Fraction(3, 8), Fraction(1, 4)]]


@pytest.mark.parametrize(("clients", "turns"), [(2, 6), (5, 8)])
def test_everybody_is_the_product_of_each_alone(clients: int, turns: int) -> None:
    """P_all P_0^(n - 1) is the product of the laws with one changed input, in fractions."""
    generator = np.random.default_rng(5)
    for _ in range(20):
        laws = transcript_laws(random_protocol(clients, turns, generator, 1), cut_inputs(clients))
        nobody, *alone, everybody = np.vectorize(Fraction, otypes=[object])(laws)
        assert (everybody * nobody ** (clients - 1) == math.prod(alone)).all()


COSETS = st.builds(
    lambda k, s, t: ParityCoset(6, 2 * k, s % 2 ** (6 - 2 * k), t % 2 ** (2 * k)),
    st.integers(0, 3),
    st.integers(0, 63),
    st.integers(0, 63),
)
ASKED = st.lists(
    st.tuples(
        COSETS | st.just(Question("x0 == 1 and y == 1")),
        st.sampled_from([0.1, 0.125, 0.25, 0.3, 0.5, 0.9]),
    ),
    min_size=1,
    max_size=6,
)


def test_expectations_are_those_of_the_definition() -> None:
    """The transform's expectations under every parity equal the mean over the labelled cube, for
    coset queries and for plain questions."""
    concepts = parities(4)
    queries = [
        ParityCoset(4, 2, 3, 1),
        ParityCoset(4, 0, 9),
        Question("x0 == 1 and y == 1"),
        Correlation(("x1", "x3"), "y"),
    ]
    for query in queries:
        statistical = StatisticalQuery(query, 0.1)
        expectations = parity_expectations(statistical, 4)
        for r in range(16):
            exact = ExactOracle(concepts.population(r, 1, 0)).answer((statistical,))[0]
            assert (
                expectations.base + int(expectations.half[r])
            ) / expectations.scale == pytest.approx(exact, abs=1e-12)
            if isinstance(query, ParityCoset):
                assert query.mean(r) == pytest.approx(exact, abs=1e-12)


@settings(max_examples=15)
@given(ASKED, st.integers(0, 63))
def test_the_adversary_is_legal_and_tells_few(
    pairs: list[tuple[Query, float]], target: int
) -> None:
    """Every answer is legal for the target, no query reveals more parities than Parseval allows,
    and the certificate of the survivors verifies."""
    queries = tuple(StatisticalQuery(query, tolerance) for query, tolerance in pairs)
    oracle = SilentOracle(6, target)
    legal(oracle, parities(6).population(target, 1, 0)).answer(queries)
    for query in queries:
        assert (
            int(parity_expectations(query, 6).revealed.sum())
            <= parities_told(query.tolerance)
            < 1 / query.tolerance**2
        )
    alive = int(oracle.alive.sum())
    certificate = oracle.certificate()
    assert oracle.alive[target]
    assert (certificate is None) == (alive == 1)
    if certificate is not None:
        assert verify_certificate(certificate).figures["success_at_most"] == str(Fraction(1, alive))


def test_an_adversary_that_lies_has_no_valid_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer moved beyond the tolerance, or a revealed parity among the survivors, is found by
    the checker."""
    oracle = SilentOracle(6, 63)
    oracle.answer(tuple(StatisticalQuery(ParityCoset(6, 2, s), 0.4) for s in range(4)))
    certificate = oracle.certificate()
    assert certificate is not None
    assert len(certificate["survivors"]) == 64 - 16
    assert verify_certificate(certificate).valid
    assert not verify_certificate(
        {**certificate, "answers": ["1/2", *certificate["answers"][1:]]}
    ).valid
    assert not verify_certificate(
        {**certificate, "survivors": [0, *certificate["survivors"]]}
    ).valid


@pytest.mark.parametrize("d", [1, 4])
def test_who_asks_all_parities_wins_exactly_when_it_must(d: int) -> None:
    """Asking about q parities one by one finds min(q + 1, 2^d) of the 2^d targets: the bound, and 1
    from 2^d - 1 queries on."""
    for count in range(1, 2**d + 1):
        success = exact_success(all_parities(d, 0.9, count), d)
        assert success == parity_sq_success(d, count, 0.9) == Fraction(min(count + 1, 2**d), 2**d)
        assert (success == 1) == (count >= parity_sq_queries(d, 0.9))
    refuse(("asked is 0", lambda: all_parities(d, 0.9, 0)))


@pytest.mark.parametrize("k", [2, 4, 6])
def test_bent_cosets_meet_the_bound(k: int) -> None:
    """Just below tolerance 2^(-k/2) they find all 64 targets with k queries more than any learner
    needs; at it the adversary stays silent to all."""
    edge = 2.0 ** (-k / 2)
    for tolerance, wins in ((edge * (1 - 1e-9), 64), (edge, 1)):
        oracles = [SilentOracle(6, target) for target in range(64)]
        wins_of_64 = (
            run(bent_cosets(6, tolerance, k), oracle) == target
            for target, oracle in enumerate(oracles)
        )
        assert sum(wins_of_64) == wins
        counts = {(oracle.queries, oracle.rounds) for oracle in oracles}
        assert wins == 1 or counts == {(parity_sq_queries(6, tolerance) + k, 2)}


def test_bad_cosets_are_refused() -> None:
    ranges = ((0, 0, 0, 0), (4, 3, 0, 0), (4, 6, 0, 0), (4, 2, 4, 0), (4, 0, 0, 1), (4, True, 0, 0))
    refuse(
        *((r"give a whole number|even number", partial(ParityCoset, *params)) for params in ranges)
    )
    assert QUERIES.build("parity-coset", {"d": 4, "k": 2, "s": 1}) == ParityCoset(4, 2, 1)


Data = dict[str, Any]
LISTS = "odd-max-bit"
KNOWN = [
    (LISTS, 4, 2, 5.932), (LISTS, 8, 16, 88.975),
    ("parity", 8, 4, 256.0),
    ("parity", 3, 1, 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("function", "t", "b", "value"), KNOWN)
def test_both_sides_meet_and_are_certified(function: str, t: int, b: int, value: float) -> None:
    """The law and the polynomial bound MC on either side, to one part in a million, whatever the
    solver said; the certificate proves as much."""
    program = margin(BlockClass(function, t, b))
    assert program.at_least == pytest.approx(value, abs=5e-4)
    assert 1 - 1e-12 <= program.at_most / program.at_least <= 1 + 1e-6
    data = load_certificate(json.dumps(program.certificate(1.0)))
    verdict = verify_certificate(data)
    assert verdict.valid, verdict.statement
    assert f"{t * b} variables" in verdict.statement
    assert math.sqrt(1 / Fraction(data["squared_margin_at_most"])) == pytest.approx(value, abs=5e-4)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("t", "b"), [(1, 3), (2, 3), (3, 2)])
def test_the_symmetric_program_is_that_of_the_matrix(function: str, t: int, b: int) -> None:
    """The spectral norm of the whole matrix, and vectors of unit length for every concept and
    point, give the value of the program."""
    program = margin(BlockClass(function, t, b))
    assert np.array(on_the_matrix(program)) == pytest.approx(np.full(2, program.at_least), rel=1e-9)


def certified(function: str = LISTS, t: int = 4, b: int = 2) -> Data:
    """A certificate after a journey as JSON text."""
    return load_certificate(json.dumps(margin(BlockClass(function, t, b)).certificate(1.0)))


def test_limits_are_fibonacci_numbers() -> None:
    """For large b odd-max-bit has sqrt(b) times 1, 2, 4, 7, 12, ...: near it from b = 10^6 on; AND
    has t, and parity, no halfspace, no limit."""
    limits = [margin_limit(BlockClass(LISTS, t, 1)) for t in range(1, 9)]
    assert limits == pytest.approx([1, 2, 4, 7, 12, 20, 33, 54])
    assert margin_limit(BlockClass("and", 6, 1)) == pytest.approx(6)
    assert margin(BlockClass(LISTS, 3, 10**6)).at_least / 1e3 == pytest.approx(4, rel=1e-2)
    refuse(("parity", lambda: margin_limit(BlockClass("parity", 2, 1))))


def test_the_certified_figure_is_the_definition() -> None:
    """max_S E_mu[f chi_S]^2 / b^|S| summed in fractions, set by set and point by point, for an
    uneven law; no other b has it."""
    data, worst = certified(), Fraction(0)
    for blocks in range(16):
        terms = zip(
            data["weights"], BlockClass(LISTS, 4, 2).signs().tolist(), range(16), strict=True
        )
        values = (weight * sign * (-1) ** (u & blocks).bit_count() for weight, sign, u in terms)
        value = sum(values)
        worst = max(worst, Fraction(value, sum(data["weights"])) ** 2 / 2 ** blocks.bit_count())
    assert worst == Fraction(data["squared_margin_at_most"])
    assert [b for b in range(1, 41) if verify_certificate(data | {"b": b}).valid] == [2]


FORGED: list[Data] = [
    {"clients_at_least": 82}, {"squared_margin_at_most": "1/1000"},
    {"epsilon": 0.5},
    {"success": 0.99}, {"variables": 9}, {"t": 3}, {"function": "and"},
    {"weights": [1] * 16, "total": 16},
    {"weights": [0] * 16}, {"weights": [1] * 15}, {"weights": [1.0] * 16, "total": 16},
    {"weights": [-1, *[1] * 15], "total": 14}, {"weights": [1 << 61, *[1] * 15]},
]  # fmt: skip


def test_forged_margins_fail() -> None:
    """Nor do those with one weight more, less, twice or none."""
    data, changes = certified(), list(FORGED)
    for place, weight in enumerate(data["weights"]):
        others = {weight + 1, weight - 1, 0, 2 * weight} - {weight}
        changes += [
            {"weights": [*data["weights"][:place], other, *data["weights"][place + 1 :]]}
            for other in others
        ]
    assert [change for change in changes if verify_certificate(data | change).valid] == []


MALFORMED: list[Data] = [
    {"function": "or"}, {"function": ["and"]}, {"t": 40}, {"t": "4"}, {"b": 0}, {"b": 1 << 21},
    {"epsilon": 0.0}, {"epsilon": "one"},
    {"success": 0.4}, {"weights": 7}, {"total": "many"},
]  # fmt: skip


def test_malformed_margins_are_refused() -> None:
    """A part that is missing, of the wrong type or out of range is refused with an InputError,
    never with another exception."""
    data = certified()
    without = {name: value for name, value in data.items() if name != "weights"}
    refuse(
        *(
            (".", partial(verify_certificate, broken_data))
            for broken_data in (without, *(data | change for change in MALFORMED))
        )
    )


def test_the_command_takes_it_and_refuses_it_altered(tmp_path: Path) -> None:
    """`local-dp certify` says what a file proves; with b altered it ends with code 4."""
    file, results = tmp_path / "certificate.json", []
    for data in (certified(LISTS, 8, 16), certified(LISTS, 8, 16) | {"b": 17}):
        file.write_text(json.dumps(data))
        results.append(local_dp("certify", str(file)))
    assert [each.returncode for each in results] == [0, 4]
    statement = " ".join(results[0].stdout.split())
    assert "margin complexity 88.9749 or more" in statement  # rounded down
    assert "fewer than 25,058 clients" in statement
