"""What the tests of the command line share."""

from pathlib import Path

import pytest

from local_dp.bus.mqtt import MqttBus


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A small sorted table with numbers and text."""
    path = tmp_path / "people.csv"
    towns = ("north", "south", "east")
    rows = [
        f"{20 + index % 50},{'yes' if index < 150 else 'no'},{towns[index % 3]}"
        for index in range(500)
    ]
    path.write_text("age,smokes,home town\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that gives up a broker it cannot reach after a fifth of a second, not after five."""
    patiently = MqttBus.messages
    monkeypatch.setattr(
        MqttBus, "messages", lambda bus, patience: patiently(bus, min(patience, 0.2))
    )
