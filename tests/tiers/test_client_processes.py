"""The start of client processes: all imports happen before the fork, and a failed start ends the run."""

import asyncio
import re
import sys
import time
from collections import Counter

import pytest

from local_dp.clients.fleet import Fleet
from local_dp.errors import BusError
from local_dp.experiments.bench import runs as bench_runs
from local_dp.experiments.tiers.settings import EMBEDDED
from local_dp.protocols.surveys.survey import Survey
from tests.support.runs.tiers import run_tier


def test_a_client_process_imports_nothing(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Joining a broker and answering a round: all that takes was imported before the fork. The interpreter itself lists the imports of every process."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    def imported(clients: int) -> Counter[str]:
        run_tier(Survey(), clients, "processes")
        return Counter(re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", capfd.readouterr().err, re.MULTILINE))

    alone = imported(1)
    assert alone["local_dp.clients.role"] == alone["amqtt.broker"] == 1, "the helper and the embedded broker say what they import"
    assert imported(3) == alone


def test_clients_that_cannot_be_started_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def watched() -> None:
        fleet = Fleet(3, lambda index: asyncio.Future())
        await fleet.start()
        try:
            await fleet.watch()
        finally:
            await fleet.stop()

    monkeypatch.setattr("local_dp.clients.fleet.python", lambda module, *arguments: [sys.executable, "-c", "raise SystemExit(1)"])
    with pytest.raises(BusError, match="only 0 of 3 client processes started"):
        asyncio.run(asyncio.wait_for(watched(), 30.0))


@pytest.mark.long
def test_the_benchmark_times_neither_its_own_looks_nor_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `bench` takes to read the sizes of the processes is neither in the time until they are ready nor in that of their round."""

    def slowly() -> list[float]:
        time.sleep(1.0)
        return [1.0]

    monkeypatch.setattr(bench_runs, "_member_sizes", slowly)
    started = time.perf_counter()
    fleet = bench_runs._fleet(2, EMBEDDED)
    assert fleet.ready + fleet.round <= time.perf_counter() - started - 1.0
    assert fleet.memory == 1.0
