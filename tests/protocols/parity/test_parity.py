"""Parity and the ladder in the local model: exact laws, learners, paths that are followed whatever
the tables hold."""

import math
from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds import parity
from local_dp.bounds.interaction import few_rounds_plan, few_rounds_success, ladder_success
from local_dp.errors import InputError, RefusedError
from local_dp.experiments.lab.minimal_clients import exact_recovery
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Session
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.parity import LadderPopulation, ParityPopulation
from local_dp.protocols.parity.elimination import ParityElimination
from local_dp.protocols.parity.ladder import (
    Answers,
    LadderAgain,
    LadderInTurn,
    LadderOneRound,
    ways_on,
)
from local_dp.protocols.parity.parity import (
    ParityDeny,
    ParityHalving,
    ParityOneRound,
    ParityProtocol,
    ParityRounds,
    log_likelihoods,
)
from local_dp.queries.examples import ParityExample, PathStep, columns
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.records import Records
from local_dp.shuffle.central import check_shufflable
from local_dp.tallies import Tally
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.theory.alike import Z_TAIL, check_alike, user_level

LISTED = mask_set(np.array([1, 3, 5, 6]), 3)


def generic_law(population: ParityPopulation, randomizer: Characters) -> Floats:
    """Pr[cell, report] by summing the channel over the law of the examples."""
    law = population.law(ParityExample(population.d))
    weights = np.array([randomizer.channel(cell) for cell in range(randomizer.cells)])
    channel = weights.astype(np.float64) / randomizer.total
    return np.asarray(np.einsum("v,cvw->cw", law, channel) / randomizer.cells)


@pytest.mark.parametrize("r", [0, 3, 7])
def test_tally_law_by_enumeration(r: int) -> None:
    """The closed law of a tally equals the sum over all examples of the channel, whether or not r
    is listed."""
    population = ParityPopulation(3, r, 10, 0)
    for randomizer in (Characters(1.0, d=3), Characters(1.0, d=3, masks=LISTED)):
        law = population.tally_law(ParityExample(3), randomizer)
        assert law == pytest.approx(generic_law(population, randomizer), abs=1e-12)


def test_scores_are_log_likelihood_ratios() -> None:
    """The learners' scores equal the log likelihoods of the enumerated laws, up to a constant over
    r."""
    randomizer = Characters(1.0, d=3)
    tally = Tally(np.random.default_rng(1).integers(1, 40, size=(8, 2)))
    laws = [generic_law(ParityPopulation(3, r, 1, 0), randomizer) for r in range(8)]
    likelihoods = (tally.counts * np.log(laws)).sum(axis=(1, 2))
    scores = log_likelihoods(randomizer, tally)
    assert np.ptp(scores - likelihoods) < 1e-5
    assert np.ptp(scores) > 1


KINDS = [ParityDeny(d=5), ParityRounds(d=5), ParityRounds(d=5, rounds=3)]
ALIKE = [
    (ParityOneRound(d=5), 1_300),
    (ParityHalving(d=5), 700),
    *((each, each.clients(1.0) * 2 // 3) for each in KINDS),
]


@pytest.mark.parametrize(
    ("protocol", "n"),
    short(ALIKE, lambda each: each[0] in (ParityOneRound(d=5), ParityRounds(d=5)), several=True),
)
def test_user_level_and_aggregate_runs_succeed_alike(protocol: ParityProtocol, n: int) -> None:
    """Success over 100 simulated populations and 500 aggregate runs differ by less than 4.9
    deviations (1e-6), and with a third of the clients by more."""
    check_alike(protocol, n, 100, 500)


def test_protocols_ask_for_the_clients_of_their_bounds() -> None:
    """Those in few rounds are the least that succeed."""
    for kind, clients in (
        (ParityHalving, parity.parity_halving_clients),
        (ParityOneRound, parity.parity_one_round_clients),
        (ParityDeny, parity.parity_deny_clients),
    ):
        assert kind(d=5).clients(2.0) == clients(5, 2.0, 0.05)
    n, plan = ParityRounds(d=5).clients(2.0), few_rounds_plan(5, 2)
    assert few_rounds_success(5, 2.0, n - 1, plan) < 0.95 <= few_rounds_success(5, 2.0, n, plan)
    for ladder, epsilon, rounds, parts, below in (
        (LadderAgain(5, 2), 2.0, 2, 1, False),
        (LadderAgain(5, 2, "sum"), 1.0, 2, 1, False),
        (LadderInTurn(5, 2), 2.0, 2, 2, False),
        (LadderInTurn(5, 2, True), 2.0, 2, 2, True),
        (LadderOneRound(5), 2.0, 1, 1, False),
    ):
        n = ladder.clients(2.0)
        few, enough = (ladder_success(5, epsilon, rounds, m / parts, below) for m in (n - 1, n))
        assert few < 0.95 <= enough


@pytest.mark.parametrize(("d", "fall"), [(3, 2.0), pytest.param(5, 1.0, marks=pytest.mark.long)])
def test_elimination_drops_the_hidden_parity_no_more_often_than_it_says(
    d: int, fall: float
) -> None:
    """In 50 drawn runs it errs with probability e^-fall at most (1e-6), of 10 client by client as
    often; with a third of the clients it errs more."""
    protocol = ParityElimination(d=d, fall=fall)
    n = 2 * protocol.clients(1.0)
    recovery = exact_recovery(protocol, 1.0, 3)
    successes = recovery(n, 50)
    chance = math.exp(-fall)
    assert successes > 50 * (1 - chance) - Z_TAIL * math.sqrt(50 * chance * (1 - chance))
    users = user_level(protocol, n, 10)
    assert abs(users / 10 - successes / 50) < Z_TAIL * math.sqrt(
        chance * (1 - chance) * (1 / 10 + 1 / 50)
    )
    assert recovery(n // 12, 50) < successes - Z_TAIL * math.sqrt(50 / 4)


def test_a_run_of_elimination_asks_for_few_more_clients_than_it_says() -> None:
    """More for 28 and more of 300 runs by chance 4e-7, where it is for 9 of them in the mean; of
    the clients for a large d nearly every run needs more."""
    protocol, generator, asked = ParityElimination(d=2), np.random.default_rng(3), list[int]()
    most = protocol.clients(1.0)
    for seed in range(300):
        oracle = AggregateOracle(protocol.synthetic(4 * most, seed), generator, 1.0)
        run(protocol.algorithm(1.0, 4 * most), oracle)
        asked.append(sum(each.n for each in oracle.rounds))
    assert sum(clients > most for clients in asked) < 28
    assert sum(clients > most / 3.5 for clients in asked) > 150


@pytest.mark.parametrize("epsilon", [3.0, pytest.param(0.5, marks=pytest.mark.long)])
def test_the_formulas_say_how_often_they_succeed(epsilon: float) -> None:
    """At d = 6 and near 80 % the formulas are within 3 hundredths, and 4.9 deviations of chance, of
    400 drawn runs."""
    for protocol in (ParityDeny(d=6), ParityRounds(d=6), ParityRounds(d=6, rounds=4)):
        n = round(0.62 * protocol.clients(epsilon))
        if isinstance(protocol, ParityRounds):
            formula = few_rounds_success(6, epsilon, n, few_rounds_plan(6, protocol.rounds))
        else:
            formula = parity.parity_deny_success(6, epsilon, n)
        frequency = exact_recovery(protocol, epsilon, 3)(n, 400) / 400
        most = 0.03 + Z_TAIL * math.sqrt(formula * (1 - formula) / 400)
        assert abs(frequency - formula) < most


RANDOMIZER = OneOfRounds(20.0)


def expected(k: int, tables: list[int], levels: int) -> Answers:
    """The expected answers of one round from the root, where each path is put to every client: each
    level's answer to each path, counted once."""
    queries = ways_on("", levels, range(1 << levels), RANDOMIZER)
    records = Records({"level": np.arange(k), "table0": np.array(tables, dtype=np.uint64)})
    answers = Answers()
    for query in queries:
        values = query.query.values(records)
        counts = [[(values == 0).sum(), (values == 1).sum()]]
        answers.add((query,), (Tally(np.array(counts)),))
    return answers


@pytest.mark.parametrize("k", [1, 2, 3])
def test_other_levels_cancel_whatever_the_tables_hold(k: int) -> None:
    """For every table of every level: the exact score at every node is that of its own level alone,
    so the path is the true one."""
    for tables in product(*(range(1 << (1 << level)) for level in range(k))):
        answers = expected(k, list(tables), k)
        for level in range(k):
            for node in map("".join, product("01", repeat=level)):
                own = tables[level] >> int("0" + node, 2) & 1
                score = sum(
                    more if path[level] == "1" else -more
                    for path, _, more in answers.scores
                    if path.startswith(node)
                )
                assert score == (2 * own - 1) * 2 ** (k - level)
                assert answers.step(node) == str(own)


@pytest.mark.parametrize(
    "protocol",
    [
        LadderAgain(5),
        LadderAgain(5, 2),
        LadderAgain(3, charged="sum"),
        LadderInTurn(5),
        LadderInTurn(6, 4),
        LadderInTurn(5, below=True),
        LadderOneRound(5),
    ],
    ids=repr,
)
def test_without_noise_the_path_is_always_found(
    protocol: LadderAgain | LadderInTurn | LadderOneRound,
) -> None:
    """At epsilon 20 and 20,000 clients each of twenty paths is the true one, of the kind that its
    type says."""
    for seed in range(20):
        population = protocol.synthetic(20_000, seed)
        oracle = PopulationOracle(population, KeyedNoise(seed), seed, 20.0)
        path = run(protocol.algorithm(20.0, 20_000), oracle)
        assert (path, protocol.true_error(path, population)) == (population.path, 0.0)
        assert oracle.ledger.max_spent == pytest.approx(20.0)


@pytest.mark.parametrize("k", [1, 3, 6, 7, 9, 16])
def test_a_population_is_its_batches(k: int) -> None:
    """What a query reads of whole records is what the population answers without them; the tables
    of a level are alike and no longer than 2^level."""
    population = LadderPopulation(k, 500, 3)
    records = population.batch(0, 500)
    assert len(records.columns) == 1 + columns(k)
    for level in range(k):
        query = PathStep(population.path[: level + 1], level)
        assert (query.values(records) == population.values(query, 0, 500)).all()
        assert (query.values(records)[records["level"] == level] == 1).all()
        assert (query.values(records)[records["level"] != level] == 2).all()
    tables = np.stack([records.words(f"table{place}") for place in range(columns(k))], axis=1)
    for level in range(min(k, 6)):
        assert (tables[records["level"] == level] < 1 << (1 << level)).all()


def test_what_is_refused() -> None:
    """Bad paths, levels, rounds and ways; more questions than clients or than a request holds; a
    law of another ladder; a session on a shuffler."""
    for wrong in (
        lambda: PathStep("012", 0),
        lambda: PathStep("01", 2),
        lambda: LadderAgain(17),
        lambda: LadderOneRound(13),
        lambda: LadderInTurn(4, 5),
    ):
        with pytest.raises(InputError):
            wrong()
    refuse(
        ("charged", lambda: LadderAgain(4, charged="twice")),
        ("a client of its own", lambda: LadderOneRound(5).algorithm(1.0, 31)),
        ("at most 12 levels", lambda: ways_on("", 13, range(1 << 14), RANDOMIZER)),
        ("the law", lambda: LadderPopulation(2, 10, 1).law(PathStep("011", 0))),
        (
            "a session of one-of-rounds cannot be shuffled",
            lambda: check_shufflable(
                LocalQuery(PathStep("1"), RANDOMIZER, Cohort(0, 9), Session("path"))
            ),
        ),
    )
    poor = PopulationOracle(LadderPopulation(3, 100, 1), KeyedNoise(1), 1, 0.5)
    with pytest.raises(RefusedError, match="budget"):
        run(LadderAgain(3).algorithm(1.0, 100), poor)
