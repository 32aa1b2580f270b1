"""Members that come and go, on the command line: after a missed quorum they wait for `resume`, and
one that hears nothing leaves."""

import asyncio
import math
import random
import shlex
import time
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus.address import Address
from local_dp.bus.interface import Delivery
from local_dp.bus.memory import MemoryBroker
from local_dp.clients.member import HOSTS, PARTING, filters, serve
from local_dp.errors import InputError, QuorumError
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.remote import Journal
from local_dp.simulation import over_bus
from local_dp.simulation.outcome import Outcome
from local_dp.simulation.settings import Randomness, Settings
from local_dp.wire import decode
from tests.support.inputs.builders import RUN, SEED, in_population, role, small
from tests.support.runs.brokers import embedded
from tests.support.runs.command import local_dp
from tests.support.runs.virtual_time import beside, run_virtually
from tests.support.wrong import wrong

CLIENTS, ROUNDS = 60, 4


def test_a_member_that_hears_nothing_leaves_with_one_line() -> None:
    """No server comes: the client ends by itself, with the time that it waited and what to type,
    and exit code 3. A limit that is none is refused."""
    with embedded() as url:
        options = ("client", "survey", "--index", "7", "--broker", url, "--run", "nobody")
        began = time.monotonic()
        left = local_dp(*options, "--idle", "0.5")
        assert left.returncode == 3
        assert 0.5 <= time.monotonic() - began < 10
        assert "client-7: nothing came of run nobody for 0.5 seconds; start it again" in " ".join(
            left.stderr.split()
        )
        refusal = local_dp(*options, "--idle", "0")
        assert refusal.returncode == 2
        assert "--idle is 0.0 seconds; give a number above 0" in " ".join(refusal.stderr.split())


@wrong(
    "local_dp.cli.run.join:Server.__call__",
    "GRACE if self.shuffle else math.inf",
    "GRACE",
    "a server gives up a member that is cut off for more than two seconds",
)
def test_the_grace_of_a_server_is_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --grace a lost member is waited for to the end of the round, a shuffler for two
    seconds; a negative grace is refused."""
    graces: list[float] = []

    async def note(settings: Settings, *rest: object, **options: object) -> Outcome:
        graces.append(settings.terms.grace)
        raise QuorumError("nobody is asked")

    monkeypatch.setattr(over_bus, "serve_run", note)
    arguments = shlex.split(
        "server survey --clients 200 --broker mqtt://127.0.0.1:1 --run graceful"
    )
    for words in ((), ("--grace", "7"), ("--shuffle",)):
        assert local_dp(*arguments, *words).returncode == 3
    assert graces == [math.inf, 7.0, GRACE]
    refusal = local_dp(*arguments, "--grace", "-1")
    assert refusal.returncode == 2
    assert "the grace is -1" in refusal.stderr


@wrong(
    "local_dp.simulation.over_bus:serve_run",
    "journal is not None and crowds is None",
    "False",
    "a run that missed its quorum has no members when it is resumed",
)
def test_rounds_that_were_closed_stay_and_the_rest_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In virtual time, with a twentieth of the messages lost: a round below its quorum after
    others, no end is sent, the missing host comes, and the digests are those of the uncut run.
    """
    broker, protocol = MemoryBroker(), small("local-sgd")
    population = protocol.synthetic(40, SEED)
    settings = Settings(
        protocol,
        population,
        1.0,
        Randomness(SEED, False),
        tier="hosts",
        terms=Terms(60.0, 1.0, math.inf),
    )
    monkeypatch.setattr(over_bus, "MqttBus", lambda address, name, filters: broker.join(filters))
    kinds: list[str] = []
    chance = random.Random(SEED)

    def note(delivery: Delivery) -> int:
        kinds.append(type(decode(delivery.payload)).__name__)
        return int(chance.random() >= 0.05)

    broker.fate = note

    def host(index: int) -> Coroutine[Any, Any, bool]:
        member = role(
            population.batch(10 * index, 10 * index + 10), 10 * index, member=f"host-{index}"
        )
        return serve(member, broker.join(filters(RUN, HOSTS)), RUN, HOSTS)

    async def play() -> Outcome:
        async with beside(*map(host, range(3))) as hosts:
            setting = (settings, RUN, Address("", 0, transport="unix"), 5.0, lambda progress: None)
            journal = Journal.begin(tmp_path, RUN, {})
            with pytest.raises(QuorumError):
                await over_bus.serve_run(*setting, journal=journal)
            assert 1 < journal.standing()[1] == journal.standing()[0] + 1
            journal.close()
            assert "End" not in kinds
            assert not any(each.done() for each in hosts)
            async with beside(host(3)):
                journal_again = Journal.open(tmp_path, RUN)
                outcome = await over_bus.serve_run(*setting, journal=journal_again)
                journal_again.close()
                await asyncio.sleep(PARTING)
            assert all(each.result() for each in hosts), "the run is over for each"
            return outcome

    outcome = run_virtually(play())
    assert [each.digest for each in outcome.rounds] == in_population(
        protocol.algorithm(1.0, 40), population
    )[1]


def test_advice_works_as_typed(tmp_path: Path) -> None:
    """A run in a folder of its own is named with it; one that is over is shown, not resumed."""
    folder = tmp_path / "my runs"
    where = f"cut --journal '{folder}'"
    with (
        closing(Journal.begin(folder, "cut", {})) as journal,
        pytest.raises(InputError, match=f"`local-dp resume {where}`"),
    ):
        Journal.begin(folder, "cut", {})
    with closing(Journal.open(folder, "cut")) as journal:
        journal.end({})
    with pytest.raises(InputError, match=f"`local-dp show {where}`"):
        Journal.begin(folder, "cut", {})
    assert f"`local-dp show {where}`" in local_dp("resume", "cut", "--journal", str(folder)).stderr
