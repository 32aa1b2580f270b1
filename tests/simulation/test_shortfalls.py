"""Real runs that fall short, over a real broker: the one line has the cause."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from local_dp.errors import QuorumError
from local_dp.protocols.surveys.survey import Survey
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.simulation.execute import execute
from local_dp.simulation.settings import Randomness, Settings
from tests.support.inputs.builders import SEED
from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.tiers import run_tier

SHORT = Terms(1.5, 0.9)  # each member that answers does so in a tenth of that
OPEN = "allow_anonymous true"


def _members() -> list[psutil.Process]:
    helpers = [
        child
        for child in psutil.Process().children()
        if "local_dp.clients.helper" in child.cmdline()
    ]
    return [member for helper in helpers for member in helper.children()]


def _disturb(disturb: Callable[[], object], **options: Any) -> str:
    """The line of a survey of 2 hosts that is disturbed before anybody is asked."""
    struck = list[int]()

    def strike(progress: Progress) -> None:
        if (
            not isinstance(progress, RoundProgress)
            and progress.present == progress.clients
            and not struck
        ):
            struck.append(1)
            disturb()

    run = Settings(
        Survey(),
        Survey().synthetic(40, SEED),
        1.0,
        Randomness(SEED, False),
        tier="hosts",
        terms=SHORT,
        **options,
    )
    with pytest.raises(QuorumError) as short:
        execute(run, strike)
    assert struck
    return str(short.value)


@needs_mosquitto
@pytest.mark.long
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("limit", "clients", "says"),
    [
        (
            "message_size_limit 2000",
            8000,
            r"8,000 present, but no reply arrives \(host-0, host-1\)",
        ),
        ("max_packet_size 2000", 8000, r"8,000 cut off by the broker \(host-0, host-1\)"),
        (
            "max_packet_size 300",
            2,
            r"2 not asked, as the broker cuts the server off \(host-0, host-1\)",
        ),
    ],
)
def test_a_broker_that_refuses_the_size(
    limit: str, clients: int, says: str, tmp_path: Path
) -> None:
    """It drops a reply of 4 KB, or cuts the connection of its sender, or that of the server for a
    request: the limits are named, and no deadline."""
    with (
        mosquitto(tmp_path, OPEN, limit) as broker,
        pytest.raises(
            QuorumError, match=f"{says}; read .* max_packet_size and message_size_limit"
        ) as short,
    ):
        run_tier(Survey(), clients, "hosts", broker=broker.url, terms=SHORT)
    assert "--deadline" not in str(short.value)


@pytest.mark.long
@pytest.mark.parametrize(("number", "name"), [(9, "SIGKILL"), (15, "SIGTERM"), (19, "")])
def test_members_that_are_killed_or_stopped(number: int, name: str) -> None:
    """The signal is named, and the members are to be started; one that is stopped is silent, and
    that is a matter of the deadline."""
    line = _disturb(lambda: [member.send_signal(number) for member in _members()])
    if name:
        assert (
            f"40 left (host-0: killed by {name}, host-1: killed by {name}); start them again"
            in line
        )
    else:
        assert line.endswith("40 present but silent (host-0, host-1); give it a longer --deadline")


@needs_mosquitto
@pytest.mark.long
@pytest.mark.usefixtures("warm")
def test_a_broker_that_dies(tmp_path: Path) -> None:
    with mosquitto(tmp_path) as broker:
        line = _disturb(broker.stop, broker=broker.url)
    assert "40 out of reach (host-0, host-1); cannot reach the broker" in line
    assert line.endswith("Connection refused); start it, or correct --broker")
