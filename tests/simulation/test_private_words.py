"""Client processes: all imports happen before the fork, a failed start ends the run, and no two
draw the same (reliability 16)."""

import asyncio
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from local_dp.clients.fleet import Fleet
from local_dp.clients.helper import warm_up
from local_dp.clients.process import MemberConfig, RunConfig, pack_columns
from local_dp.errors import BusError
from local_dp.experiments.bench import fleets
from local_dp.noise import Draw, KeyedNoise, Noise, StoreNoise
from local_dp.protocols.surveys.survey import Survey
from local_dp.simulation.settings import EMBEDDED
from tests.support.inputs.builders import yes_records
from tests.support.runs.tiers import run_tier

PROCESSES = 200
BYTES = 32


def member(index: int, seed: int | None = None) -> MemberConfig:
    run = RunConfig(run="r", broker="", budget=1.0, seed=seed)
    return MemberConfig(
        run=run,
        member=f"client-{index}",
        group="g0",
        start=index,
        columns=pack_columns([yes_records(1)]),
    )


def first_bytes(config: bytes) -> bytes:
    """The first 32 random bytes that a client's process has for its reports."""
    noise = MemberConfig.from_bytes(config).role().noise
    assert not isinstance(noise, StoreNoise)
    return noise.words(Draw(1), 0, BYTES // 4, 32).tobytes()


def by_fork(draw: Callable[[bytes], bytes], processes: int) -> Iterator[bytes]:
    """What each of the processes draws that are forked from this one, as the helper forks them:
    after it has answered itself."""
    warm_up()
    draw(member(0).to_bytes())
    for index in range(processes):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.write(writing, draw(member(index).to_bytes()))
            os._exit(0)
        os.close(writing)
        os.wait()
        yield os.read(reading, BYTES)
        os.close(reading)


@pytest.mark.slow(only=("200",))
@pytest.mark.parametrize("processes", [8, pytest.param(PROCESSES, marks=pytest.mark.long)])
def test_forked_clients_draw_apart(processes: int) -> None:
    """Of 200 client processes forked from one that has drawn already, no two have the same first 32
    bytes; a fork's own generator is noticed."""
    samples = list(by_fork(first_bytes, processes))
    assert {len(each) for each in samples} == {BYTES}
    assert len(set(samples)) == processes
    generator = np.random.default_rng()
    assert len(set(by_fork(lambda config: generator.bytes(BYTES), 8))) == 1, (
        "a generator that a fork inherits draws the same in each"
    )


@pytest.mark.slow
def test_spawned_clients_draw_apart() -> None:
    with multiprocessing.get_context("spawn").Pool(2, maxtasksperchild=1) as pool:
        samples = pool.map(
            first_bytes, [member(index).to_bytes() for index in range(PROCESSES)], chunksize=1
        )
    assert len(set(samples)) == PROCESSES


def test_a_private_client_has_no_seed() -> None:
    """Its configuration holds none, and what it draws is not what any of the first seeds give; a
    seeded one draws what its seed says."""
    seeded: list[Noise] = [KeyedNoise(seed) for seed in range(100)]
    of_seeds = {noise.words(Draw(1), 0, BYTES // 4, 32).tobytes() for noise in seeded}
    assert first_bytes(member(0).to_bytes()) not in of_seeds
    assert (
        first_bytes(member(0, seed=7).to_bytes())
        == KeyedNoise(7).words(Draw(1), 0, BYTES // 4, 32).tobytes()
    )


def test_a_client_process_imports_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Joining a broker and answering a round: all that takes was imported before the fork. The
    interpreter itself lists the imports of every process."""
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")

    def imports(clients: int) -> Counter[str]:
        run_tier(Survey(), clients, "processes")
        return Counter(
            re.findall(
                r"^import time: +\d+ \| +\d+ \| +(\S+)$", capfd.readouterr().err, re.MULTILINE
            )
        )

    alone = imports(1)
    assert alone["local_dp.clients.role"] == alone["amqtt.broker"] == 1, (
        "the helper and the embedded broker say what they import"
    )
    assert imports(3) == alone


def test_clients_that_cannot_be_started_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def watch() -> None:
        fleet = Fleet(3, lambda index: asyncio.Future())
        await fleet.start()
        try:
            await fleet.watch()
        finally:
            await fleet.stop()

    monkeypatch.setattr(
        "local_dp.clients.fleet.python",
        lambda module, *arguments: [sys.executable, "-c", "raise SystemExit(1)"],
    )
    with pytest.raises(BusError, match="only 0 of 3 client processes started"):
        asyncio.run(asyncio.wait_for(watch(), 30.0))


@pytest.mark.long
def test_the_benchmark_times_neither_its_own_looks_nor_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What `bench` takes to read the sizes of the processes is neither in the time until they are
    ready nor in that of their round."""

    def slowly() -> list[float]:
        time.sleep(1.0)
        return [1.0]

    monkeypatch.setattr(fleets, "_member_sizes", slowly)
    start = time.perf_counter()
    fleet = fleets._fleet(2, EMBEDDED)
    assert fleet.ready + fleet.round <= time.perf_counter() - start - 1.0
    assert fleet.memory == 1.0
