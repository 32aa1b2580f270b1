"""One seed, the same reports: processes, hosts and population, on the embedded broker and on Mosquitto."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_dp.experiments.tiers.execute import execute
from local_dp.experiments.tiers.settings import Randomness, Settings, Tier
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.server.quorum import Terms
from tests.support.inputs.builders import SEED, small
from tests.support.long import short
from tests.support.runs.brokers import embedded, mosquitto, needs_mosquitto
from tests.support.runs.tiers import run_tier, told

pytestmark = pytest.mark.usefixtures("warm")
ALL = Terms(quorum=1.0)
ONE_OF_A_KIND = ("survey", "masked-parity", "ladder-in-turn", "quantiles")


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """One embedded broker for all runs of this file that do not ask for another."""
    with embedded() as url:
        yield url


@pytest.mark.parametrize("name", short(PROTOCOLS, lambda name: name in ONE_OF_A_KIND))
def test_the_tiers_agree_bit_for_bit(name: str, broker: str) -> None:
    """Every protocol gives identical reports and results from client processes, from one or three hosts, and from the population tier."""
    protocol, clients = small(name), 20
    population = run_tier(protocol, clients, "population")
    expected = told(protocol, population)
    assert None not in expected[1]
    others: tuple[tuple[Tier, int], ...] = (("processes", 1), ("hosts", 1), ("hosts", 3))
    for tier, hosts in others:
        outcome = run_tier(protocol, clients, tier, broker=broker, hosts=hosts, terms=ALL)
        assert told(protocol, outcome) == expected, (tier, hosts)
        assert (outcome.counts.asked, outcome.counts.answered, outcome.rejected) == (population.counts.asked, population.counts.asked, 0)


@needs_mosquitto
@pytest.mark.parametrize("name", short(["survey", "frequency", "mean", "sq", "masked-parity"], lambda name: name in ("frequency", "masked-parity")))
def test_the_broker_makes_no_difference(name: str, tmp_path: Path) -> None:
    """On Mosquitto the reports and results are those of the population tier, from processes and from hosts."""
    protocol = PROTOCOLS[name]()
    expected = told(protocol, run_tier(protocol, 40, "population"))
    with mosquitto(tmp_path) as broker:
        tiers: tuple[Tier, ...] = ("processes", "hosts")
        for tier in tiers:
            assert told(protocol, run_tier(protocol, 40, tier, broker=broker.url, terms=ALL)) == expected


def test_private_runs_differ_every_time() -> None:
    protocol = PROTOCOLS["survey"]()
    digests = set()
    for _ in range(2):
        settings = Settings(protocol, protocol.synthetic(200, SEED), 1.0, Randomness(SEED, True), tier="hosts")
        digests.add(execute(settings, lambda progress: None).rounds[0].digest)
    assert len(digests) == 2
