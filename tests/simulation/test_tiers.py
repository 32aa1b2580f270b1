"""The tiers give the same results: one ask a round, and several."""

import gc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar
from weakref import ref

import numpy as np
import pytest

import local_dp as ldp
from local_dp.arrays import Floats
from local_dp.errors import RefusedError
from local_dp.interaction import Nonadaptive
from local_dp.loss import split_epsilon
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Memoised
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Population, Rows, bernoulli
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol, PlainData, describe_estimate
from local_dp.queries.tables import Category, Question
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.quorum import Terms
from local_dp.simulation.execute import execute
from local_dp.simulation.settings import Randomness, Settings, Tier
from local_dp.tallies import Estimate, Tally
from tests.support.inputs.builders import SEED, small
from tests.support.long import short
from tests.support.runs.brokers import embedded, mosquitto, needs_mosquitto
from tests.support.runs.tiers import run_tier, told
from tests.support.wrong import wrong

pytestmark = pytest.mark.usefixtures("warm")
ALL = Terms(quorum=1.0)
ONE_OF_A_KIND = ("survey", "ladder-in-turn", "quantiles")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """One embedded broker for all runs of this file that do not ask for another."""
    with embedded() as url:
        yield url


@wrong(
    "local_dp.simulation.over_bus:_Members.config_of",
    "chunks(start, stop, CHUNK)",
    "chunks(0, stop - start, CHUNK)",
    "every client process is given the record of the first",
    at="compare",
)
@pytest.mark.parametrize("name", short(PROTOCOLS, lambda name: name in ONE_OF_A_KIND))
def test_the_tiers_agree_bit_for_bit(name: str, broker: str) -> None:
    """Every protocol gives identical reports and results from client processes, from one or three
    hosts, and from the population tier."""
    protocol, clients = small(name), 20
    population = run_tier(protocol, clients, "population")
    expected = told(protocol, population)
    assert None not in expected[1]
    others: tuple[tuple[Tier, int], ...] = (("processes", 1), ("hosts", 1), ("hosts", 3))
    for tier, hosts in others:
        outcome = run_tier(protocol, clients, tier, broker=broker, hosts=hosts, terms=ALL)
        assert told(protocol, outcome) == expected, (tier, hosts)
        assert (outcome.counts.asked, outcome.counts.answered, outcome.rejected) == (
            population.counts.asked,
            population.counts.asked,
            0,
        )


@needs_mosquitto
@pytest.mark.parametrize(
    "name",
    short(
        ["survey", "frequency", "mean", "sq", "masked-parity"], lambda name: name == "masked-parity"
    ),
)
def test_the_broker_makes_no_difference(name: str, tmp_path: Path) -> None:
    """On Mosquitto the reports and results are those of the population tier, from processes and
    from hosts."""
    protocol = PROTOCOLS[name]()
    expected = told(protocol, run_tier(protocol, 40, "population"))
    with mosquitto(tmp_path) as broker:
        tiers: tuple[Tier, ...] = ("processes", "hosts")
        for tier in tiers:
            assert (
                told(protocol, run_tier(protocol, 40, tier, broker=broker.url, terms=ALL))
                == expected
            )


def test_private_runs_differ_every_time() -> None:
    protocol = PROTOCOLS["survey"]()
    digests = set()
    for _ in range(2):
        settings = Settings(
            protocol, protocol.synthetic(200, SEED), 1.0, Randomness(SEED, True), tier="hosts"
        )
        digests.add(execute(settings, lambda progress: None).rounds[0].digest)
    assert len(digests) == 2


@dataclass(frozen=True)
class ThreeAsks(LocalProtocol[tuple[Estimate, ...]]):
    """Asks every client one question twice and its category once, and the first half a fourth time
    under a label; each with a quarter of epsilon."""

    name: ClassVar[str] = "three-asks"
    source: ClassVar[str] = "tests"

    def clients(self, epsilon: float) -> int:
        return 60

    def algorithm(
        self, epsilon: float, clients: int
    ) -> Nonadaptive[LocalQuery, Tally, tuple[Estimate, ...]]:
        each, everybody = split_epsilon(epsilon, 4), Cohort(0, clients)
        question = LocalQuery(Question("yes == 1"), BinaryRR(each), everybody)
        category = LocalQuery(Category("yes", ("0", "1")), Hadamard(each, k=2), everybody)
        again = LocalQuery(
            Question("yes == 1"), BinaryRR(each), Cohort(0, clients // 2), Memoised("again")
        )
        queries = (question, category, question, again)
        return Nonadaptive(
            queries,
            lambda tallies: tuple(
                query.randomizer.estimate(tally)
                for query, tally in zip(queries, tallies, strict=True)
            ),
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        return bernoulli("yes", 0.3, clients, seed)

    def describe(self, result: tuple[Estimate, ...]) -> PlainData:
        return {"parts": [describe_estimate(part) for part in result]}

    def values(self, result: tuple[Estimate, ...]) -> Floats:
        return result[0].value

    def truth(self, population: Population) -> Floats:
        return np.asarray(0.3)


def _facts(tier: Tier, clients: int = 20, **options: object) -> tuple[object, ...]:
    protocol = ThreeAsks()
    settings = Settings(
        protocol,
        protocol.synthetic(clients, SEED),
        1.0,
        Randomness(SEED, False),
        tier=tier,
        terms=Terms(quorum=1.0),
        **options,  # type: ignore[arg-type]
    )
    outcome = execute(settings, lambda progress: None)
    total = 3 * clients + clients // 2
    assert (outcome.counts.asked, outcome.counts.answered, outcome.rejected) == (total, total, 0)
    assert outcome.interaction == "non-interactive"
    assert outcome.max_epsilon_spent == pytest.approx(1.0)
    return (
        protocol.describe(outcome.result),
        outcome.rounds[0].digest,
        outcome.rounds[0].bits_per_client,
    )


def test_the_tiers_agree_on_several_asks() -> None:
    expected = _facts("population")
    assert expected[2] == 4
    tiers: tuple[tuple[Tier, int], ...] = (("processes", 1), ("hosts", 1), ("hosts", 3))
    for tier, hosts in tiers:
        assert _facts(tier, hosts=hosts) == expected, (tier, hosts)


def test_the_aggregate_tier_refuses_what_it_cannot_draw() -> None:
    """A synthetic client asked twice would get a fresh record there, in one round as in two;
    memoised answers have no law; the rows of a table stay theirs."""
    question = LocalQuery(Question("yes == 1"), BinaryRR(0.1), Cohort(0, 60))
    overlapping = LocalQuery(Question("yes == 1"), BinaryRR(0.1), Cohort(59, 70))
    population = bernoulli("yes", 0.3, 70, SEED)
    for rounds in ([(question, overlapping)], [(question,), (overlapping,)]):
        oracle = AggregateOracle(population, np.random.default_rng(1), 1.0)
        for queries in rounds[:-1]:
            oracle.answer(queries)
        before = oracle.ledger.max_spent
        with pytest.raises(RefusedError) as error:
            oracle.answer(rounds[-1])
        assert (error.value.code, oracle.ledger.max_spent) == ("asked-twice", before)
    with pytest.raises(RefusedError) as error:
        AggregateOracle(population, np.random.default_rng(1), 1.0).answer(
            (replace(question, repeat=Memoised("again")),)
        )
    assert error.value.code == "no-law"
    rows = AggregateOracle(Rows(population.batch(0, 70)), np.random.default_rng(1), 1.0)
    assert [tally.n for tally in rows.answer((question, overlapping))] == [60, 11]
    assert rows.interaction == "non-interactive"


def test_tallies_end_with_their_run() -> None:
    """Without a search for garbage: those of heavy hitters have 200 MB."""
    tallies: list[ref[Tally]] = []

    def progress(now: Any) -> None:
        tallies.extend(map(ref, now.interim.tallies()))

    gc.disable()
    try:
        ldp.run("frequency", k=4, clients=100, seed=1, progress=progress)
        assert tallies
        assert not any(each() for each in tallies)
    finally:
        gc.enable()
