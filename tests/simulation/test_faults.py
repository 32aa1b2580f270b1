"""Runs with faults, on purpose or by real kills: the same reports are counted, once each, and the
result shows the faults."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import numpy as np
import pytest

from local_dp.clients.journal import MemoryStore
from local_dp.clients.process import LyingRole, worst
from local_dp.clients.role import ClientRole
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.tables import Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.server.quorum import Terms
from local_dp.simulation.execute import execute
from local_dp.simulation.faults import Faults, Trouble
from local_dp.simulation.outcome import as_data
from local_dp.simulation.settings import Randomness, Settings
from local_dp.wire import Reply
from tests.support.inputs.builders import SEED, request, yes_records
from tests.support.runs.tiers import run_tier, told

CLIENTS = 40


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("tier", ["hosts", pytest.param("processes", marks=pytest.mark.long)])
def test_a_bad_network_changes_no_report(tier: Any) -> None:
    """A twentieth of the messages lost, a third repeated, all of them delayed: the result and the
    digest of all reports are those of the faultless run."""
    faults = Faults(drop=0.05, duplicate=0.3, delay=0.05)
    plain = run_tier(Survey(), CLIENTS, "population")
    faulty = run_tier(Survey(), CLIENTS, tier, faults=faults, hosts=4)
    assert told(Survey(), faulty) == told(Survey(), plain)
    assert faulty.faults is not None
    assert faulty.faults.asked == faults
    assert faulty.faults.repeated > 0
    assert faulty.faults.delayed > 0
    assert faulty.counts.answered == faulty.counts.asked == CLIENTS


@pytest.mark.long
def test_killed_members_are_missing() -> None:
    """Of 40 client processes three are killed while they answer: each of the others is counted, and
    the outcome, in its schema, shows the three."""
    population = Survey().synthetic(CLIENTS, SEED)
    settings = Settings(
        Survey(),
        population,
        1.0,
        Randomness(SEED, False),
        tier="processes",
        faults=Faults(kill=3, lie=0.1),
        terms=Terms(20.0, 0.5),
    )
    outcome = execute(settings, lambda progress: None)
    data = as_data(settings, outcome)
    jsonschema.validate(
        json.loads(json.dumps(data)),
        json.loads(files("local_dp.simulation").joinpath("outcome.schema.json").read_text()),
    )
    assert (data["faults"]["killed"], data["faults"]["lied"]) == (3, 4)
    assert CLIENTS - 3 <= outcome.counts.answered == CLIENTS - outcome.counts.missing


WRONG = [
    "",
    "drop",
    "drop=",
    "drop=x",
    "drop=nan",
    "drop=.95",
    "drop=-1",
    "kill=1.5",
    "kill=-1",
    "lose=.1",
    "drop=.1,drop=.2",
    "lie=2",
    "delay=1e9",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_fault_is_one_line(text: str) -> None:
    with pytest.raises(InputError) as error:
        Faults.parse(text)
    assert str(error.value).startswith("--fault")
    assert "\n" not in str(error.value)


def test_faults_are_of_real_messages() -> None:
    with pytest.raises(InputError, match="--fault"):
        Settings(
            Survey(),
            Survey().synthetic(9, 1),
            1.0,
            Randomness(1, False),
            tier="population",
            faults=Faults(drop=0.1),
        )


def test_the_fate_of_a_message_is_the_seeds() -> None:
    """By sender, direction and number, whatever the run is called; other seeds give others; and as
    often as was asked, by Hoeffding at 1e-9 each."""

    def fates(seed: int, run: str) -> list[list[float]]:
        trouble = Trouble(Faults(drop=0.2, duplicate=0.25, delay=0.5), seed, 10)
        return [
            trouble.fate("in", f"ldp/1/{run}/rep/g0/client-{place % 10}") for place in range(5_000)
        ]

    sample = fates(1, "a")
    assert sample == fates(1, "b") != fates(2, "a")
    slack = (np.log(2e9) / 2 / len(sample)) ** 0.5
    assert abs(np.mean([len(copies) == 0 for copies in sample]) - 0.2) < slack
    assert abs(np.mean([len(copies) == 2 for copies in sample]) - 0.8 * 0.25) < slack
    assert all(0 <= seconds <= 0.5 for copies in sample for seconds in copies)


def test_as_many_are_killed_as_were_named() -> None:
    """Each of them once, none before all members have been heard, all before they have been heard
    twice."""
    victims: list[int] = []

    def kill(member: int) -> bool:
        victims.append(member)
        return True

    trouble = Trouble(Faults(kill=4), 3, 10, kill)
    after = []
    for _ in range(30):
        trouble.heard()
        after.append(len(victims))
    assert (after[8], after[19:]) == (0, [4] * 11)
    assert len(set(victims)) == trouble.result(0).killed == 4


@pytest.mark.parametrize("randomizer", [BinaryRR(1.0), GRR(1.0, k=2)])
def test_liars_send_what_misleads_most(randomizer: Randomizer) -> None:
    """Six clients of ten send one report, which is possible and farthest from 0; the others send
    theirs, and all pay alike."""
    question = request(LocalQuery(Question("yes == 1"), randomizer, Cohort(0, 10)))
    reports, stores = [], []
    for kind in (ClientRole, LyingRole):
        store = MemoryStore(1.0)
        member = kind("m", 0, yes_records(10), KeyedNoise(1), store)
        if isinstance(member, LyingRole):
            member.liars = (0, 1, 2, 3, 5, 8, 12)
        (reply,) = member.handle(question)
        assert isinstance(reply, Reply)
        reports.append(np.frombuffer(reply.reports, dtype=randomizer.report_dtype))
        stores.append(store.ledger.max_spent)
    honest, lies = reports
    fixed = worst(randomizer, np.zeros(1, dtype=np.uint8))
    assert stores == [1.0, 1.0]
    assert bool(randomizer.possible(fixed).all())
    assert {place for place in range(10) if lies[place] != honest[place]} <= {0, 1, 2, 3, 5, 8}
    assert (lies[[0, 1, 2, 3, 5, 8]] == fixed).all()
    assert not (honest == lies).all()
