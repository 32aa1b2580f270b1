"""Real processes killed in the middle of a round, on real brokers: everybody who lives is counted exactly once."""

import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from local_dp.errors import BusError
from local_dp.experiments.tiers.execute import execute
from local_dp.experiments.tiers.outcome import Outcome
from local_dp.experiments.tiers.settings import Randomness, Settings
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.shuffle.central import Behind
from tests.support.inputs.builders import SEED
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.tiers import run_tier, told


def members() -> list[psutil.Process]:
    """The member processes of the run that this process has started."""
    helpers = [child for child in psutil.Process().children() if "local_dp.clients.helper" in child.cmdline()]
    return [member for helper in helpers for member in helper.children()]


def broker_process() -> psutil.Process:
    """The embedded broker of the run that this process has started."""
    return next(child for child in psutil.Process().children() if "local_dp.bus.broker" in child.cmdline())


def shuffler_process() -> psutil.Process:
    """The shuffler of the run that this process has started."""
    return next(child for child in psutil.Process().children() if "local_dp.server.shuffler" in child.cmdline())


def kill(processes: list[psutil.Process]) -> None:
    """SIGKILL, without a word."""
    for process in processes:
        process.kill()


def run_with(disturb: Callable[[], None], clients: int, **options: Any) -> Outcome:
    """A survey that is disturbed once, when its round has just begun."""
    done = False

    def once(progress: Progress) -> None:
        nonlocal done
        if not done and isinstance(progress, RoundProgress):
            done = True
            disturb()

    protocol = Survey()
    settings = Settings(protocol, protocol.synthetic(clients, SEED), 1.0, Randomness(SEED, False), **options)
    outcome = execute(settings, once)
    assert done
    return outcome


def assert_counted_once(outcome: Outcome, clients: int, at_most_lost: int) -> None:
    """Everybody is answered or missing, only the killed can be missing, and the estimate uses those that came."""
    counts = outcome.counts
    assert counts.asked == clients
    assert counts.answered + counts.missing == clients
    assert counts.missing <= at_most_lost
    assert outcome.result.n == outcome.rounds[0].n == counts.answered
    assert counts.conflicting == 0


@pytest.mark.long
def test_clients_killed_in_mid_round() -> None:
    """Ten of sixty client processes stopped at the start of the round and then killed: the fifty others are counted, and the ten are missing."""
    stopped: list[psutil.Process] = []

    def stop() -> None:
        stopped.extend(members()[:10])
        for member in stopped:
            member.send_signal(signal.SIGSTOP)
        threading.Timer(0.3, lambda: kill(stopped)).start()

    outcome = run_with(stop, 60, tier="processes", terms=Terms(20.0, 0.5))
    assert_counted_once(outcome, 60, 10)
    assert outcome.seconds[0] < 20.0


def test_a_host_killed_in_mid_round() -> None:
    """One of four hosts killed at the start of the round: the clients of the others are counted once."""
    outcome = run_with(lambda: kill(members()[:1]), 4000, tier="hosts", hosts=4, terms=Terms(20.0, 0.5))
    assert_counted_once(outcome, 4000, 1000)


@pytest.mark.long
@needs_mosquitto
def test_mosquitto_with_its_default_queue_killed_in_mid_round(tmp_path: Path) -> None:
    """5,000 logical clients in 25 hosts on a Mosquitto in default configuration that is killed and restarted in mid-round: 5,000 of 5,000."""
    with mosquitto(tmp_path) as broker:
        outcome = run_with(broker.restart, 5000, tier="hosts", hosts=25, broker=broker.url, terms=Terms(60.0, 1.0))
    assert_counted_once(outcome, 5000, 0)
    assert told(Survey(), outcome) == told(Survey(), run_tier(Survey(), 5000, "population"))


@pytest.mark.long
def test_the_shuffler_killed_in_mid_round() -> None:
    """The run ends with one line that says so; no client, no broker and no shuffler is left. Undisturbed, its estimate is that of no shuffler."""
    before, seen = psutil.Process().children(), list[psutil.Process]()

    def disturb() -> None:
        mixing = shuffler_process()
        mixing.send_signal(signal.SIGSTOP)  # at once: the round would be over before all are found
        seen.extend([*members(), broker_process(), mixing])
        threading.Timer(0.3, mixing.kill).start()

    with pytest.raises(BusError, match="the shuffler ended before the run did"):
        run_with(disturb, 40, tier="processes", behind=Behind(20), terms=Terms(20.0, 1.0))
    assert len(seen) == 42
    _, alive = psutil.wait_procs(seen, timeout=0.5)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert [child for child in psutil.Process().children() if child not in before and child.status() != psutil.STATUS_ZOMBIE] == []
    mixed, plain = (run_tier(Survey(), 40, "processes", **behind) for behind in ({"behind": Behind(20)}, {}))
    assert Survey().describe(mixed.result) == Survey().describe(plain.result)
    assert mixed.central is not None
    assert mixed.central.upper < mixed.central.local == 1.0
