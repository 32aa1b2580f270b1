"""A server that stands alone shows its run on the same page."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.runs.brokers import mosquitto, needs_mosquitto
from tests.support.runs.browser import browser, needs_chromium
from tests.support.runs.command import command, local_dp


@pytest.mark.long
@needs_chromium
@needs_mosquitto
def test_a_server_is_followed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`server --watch` shows the clients of another command joining and answering, and the result; of records that are their own, it knows no truth."""
    with mosquitto(tmp_path) as broker, browser() as tab:
        common = ["survey", "--broker", broker.url, "--run", "watched"]

        def open_it(url: str) -> bool:
            tab.go(url, "state !== null")
            assert "0 of 300" in tab.evaluate("document.body.innerText")
            hosts.append(subprocess.Popen(command("host", *common, "--clients", "300", "--seed", "3"), stderr=subprocess.DEVNULL))
            return True

        hosts: list[subprocess.Popen[bytes]] = []
        monkeypatch.setattr("local_dp.experiments.cli.run.options.look", open_it)
        done = local_dp("server", *common, "--clients", "300", "--seed", "3", "--watch", "--json")
        assert done.returncode == 0, done.stderr
        assert hosts[0].wait(timeout=60) == 0
        tab.wait("state.phase === 'over'")
        assert tab.evaluate("state.rows[0].value") == json.loads(done.stdout)["result"]["estimate"]
        assert tab.evaluate("state.rows[0].truth") is None
        assert (tab.evaluate("state.present"), tab.evaluate("state.spent")) == (300, 1)
        text = tab.evaluate("document.body.innerText")
        assert "The run is over." in text
        assert "300 asked, 300 answered" in text
        assert "True error" not in text
        assert tab.errors == []
