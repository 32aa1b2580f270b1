"""Class 9, and acceptance test 21: a run leaves nothing behind however it ends, and goes on
whatever becomes of its broker. Each test prints its figure."""

import asyncio
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus import broker as broker_module
from local_dp.bus.broker import ATTEMPTS, EmbeddedBroker
from local_dp.bus.children import allow_open_files, python
from local_dp.clients.fleet import Fleet
from local_dp.errors import BusError, InputError
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.server.progress import Progress, RoundProgress
from local_dp.server.quorum import Terms
from local_dp.simulation import over_bus
from local_dp.simulation.execute import execute
from local_dp.simulation.settings import EMBEDDED, Randomness, Settings, Tier
from tests.support.long import short
from tests.support.runs.brokers import Mosquitto, mosquitto, needs_mosquitto
from tests.support.runs.signalled import PATIENCE, marked

linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")


def _run(tier: str, clients: int, *more: str) -> tuple[str, ...]:
    return (
        "run",
        "quantiles",
        "--clients",
        str(clients),
        "--tier",
        tier,
        "--seed",
        "1",
        "--deadline",
        "60",
        "--tolerance",
        "0.05",
        *more,
    )


def _ended(folder: Path, number: int, clients: int, at: int) -> tuple[int, tuple[int, list[str]]]:
    """The exit code of a run that is ended by a signal once `at` processes are there, and what it
    leaves behind."""
    with marked(folder, *_run("processes", clients)) as command:
        assert command.wait(
            lambda: len(command.alive()) >= at or command.process.poll() is not None
        )
        command.process.send_signal(number)
        _, said = command.process.communicate(timeout=PATIENCE)
        assert "Traceback" not in said
        return command.process.returncode, command.left()


@pytest.mark.long
@linux
@pytest.mark.parametrize(
    ("number", "code"),
    short(
        [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9), (signal.SIGINT, 130)],
        lambda each: each[0] == signal.SIGKILL,
        several=True,
    ),
)
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: int, code: int) -> None:
    """The attack left folders behind: after any signal no process and no file of the run is
    left."""
    # which `nohup` has us and all that we start ignore
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        ended, left = _ended(tmp_path, number, 12, 8)
    finally:
        signal.signal(signal.SIGHUP, before)
    print(f"class 9: {signal.Signals(number).name}: exit code {ended}, left behind: {left}")
    assert left == (0, [])
    assert ended == code


@linux
@pytest.mark.slow
def test_no_moment_is_a_bad_one_to_be_ended(tmp_path: Path) -> None:
    """Its generalisation: 40 signals at every stage of the start of 60 clients, and a launcher
    killed among 3,000 forks: nothing is left."""
    for place in range(40):
        folder = tmp_path / str(place)
        folder.mkdir()
        number = (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT)[place % 4]
        _, left = _ended(folder, number, 60, 1 + place * 3 // 2)
        assert left == (0, []), (place, number)
    _, left = _ended(tmp_path / "0", signal.SIGKILL, 3000, 500)
    print(f"class 9: 40 signals at 40 stages, and 500 of 3,000 forks: {left} left behind")
    assert left == (0, [])


@linux
def test_a_stopped_helper_is_noticed() -> None:
    """The attack went unnoticed for 31 s: the launcher says so in one line after two, and ends what
    was started."""

    async def play() -> tuple[float, str]:
        async def never(index: int) -> Any:
            await asyncio.Event().wait()

        fleet = Fleet(4, never)
        try:
            await fleet.start()
            assert fleet._helper is not None
            os.kill(fleet._helper.pid, signal.SIGSTOP)
            began = asyncio.get_running_loop().time()
            with pytest.raises(BusError, match="is stopped") as error:
                await asyncio.wait_for(fleet.watch(), PATIENCE)
            return asyncio.get_running_loop().time() - began, str(error.value)
        finally:
            await fleet.stop()

    took, text = asyncio.run(play())
    print(f"class 9: a stopped helper is noticed after {took:.1f} s: {text}")
    assert "\n" not in text


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
sys.argv[0] = "local-dp"
from local_dp.cli.main import main
main()
"""


@linux
@pytest.mark.parametrize("clients", [40, pytest.param(1000, marks=pytest.mark.long)])
def test_too_few_open_files_are_said_before_anything_starts(tmp_path: Path, clients: int) -> None:
    """With a limit of 64 the attack printed 164,595 lines: now one, and no process was started."""
    with marked(tmp_path, *_run("processes", clients), code=LIMITED) as command:
        _, text = command.process.communicate(timeout=60)
        lines = [line for line in text.splitlines() if "open files" in line]
        print(
            f"class 9: RLIMIT_NOFILE 64 and {clients} clients: {len(text.splitlines())} lines: "
            f"{lines}"
        )
        assert (command.process.returncode, len(lines)) == (2, 1)
        assert "Traceback" not in text
        assert command.left() == (0, [])


def test_as_few_open_files_as_are_enough_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is raised as far as the machine permits, and asked for only as far as it is
    needed."""
    monkeypatch.setattr(resource, "getrlimit", lambda what: (64, 100))
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "setrlimit", lambda what, limits: raised.append(limits))
    allow_open_files(60)
    assert raised == [(100, 100)]
    with pytest.raises(InputError, match="101 open files, and the limit here is 100"):
        allow_open_files(61)


def test_a_broker_that_dies_as_it_starts_is_started_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One that fails a few times comes back at its address; one that never does is said in one
    line, after a stated number of attempts."""
    monkeypatch.setattr(broker_module, "_PAUSE", 0.0)
    real, started = python, list[int]()

    def failing(times: int) -> Callable[..., list[str]]:
        def words(*arguments: str) -> list[str]:
            started.append(1)
            return (
                real(*arguments)
                if len(started) == 1 or len(started) > 1 + times
                else [sys.executable, "-I", "-S", "-c", ""]
            )

        return words

    async def play(times: int) -> tuple[int, bool]:
        started.clear()
        monkeypatch.setattr(broker_module, "python", failing(times))
        broker = EmbeddedBroker(tmp_path)
        await broker.start()
        try:
            os.kill(broker.pid, signal.SIGKILL)
            waiting = asyncio.create_task(broker.watch())
            while len(started) < 2 + times and not waiting.done():
                await asyncio.sleep(0.02)
            if times > ATTEMPTS:
                with pytest.raises(BusError, match="in a row"):
                    await waiting
                return len(started), False
            while True:
                try:
                    _, writer = await asyncio.open_unix_connection(broker.path)
                    break
                except OSError:
                    assert not waiting.done(), "it was given up"
                    await asyncio.sleep(0.05)
            writer.close()
            waiting.cancel()
            return len(started), True
        finally:
            await broker.stop()

    again, gone = asyncio.run(play(3)), asyncio.run(play(1000))
    print(
        f"class 9: a broker that dies 3 times as it starts is back at the {again[0] - 1}th; one "
        f"that always does is given up after {gone[0] - 1}"
    )
    assert again == (5, True)
    assert gone == (ATTEMPTS + 1, False)


def _of_twelve_rounds() -> LocalProtocol[Any]:
    return PROTOCOLS["local-sgd"].from_settings(
        {"d": "2", "gamma": "0.9", "alpha": "0.9", "rounds": "12", "told": "one-bit-mean"}
    )


class Kept(EmbeddedBroker):
    """The broker of the run that is on."""

    current: "Kept"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        Kept.current = self


def _survives(kills: int, tier: Tier, clients: int, broker: Mosquitto | None) -> tuple[Any, float]:
    """A run whose broker is killed in each of the first rounds while replies are under way, by
    SIGTERM and SIGKILL in turn."""
    struck = list[int]()

    def strike(progress: Progress) -> None:
        if (
            not isinstance(progress, RoundProgress)
            or progress.round <= len(struck)
            or len(struck) >= kills
            or progress.answered >= progress.asked
        ):
            return
        struck.append(progress.round)
        number = signal.SIGKILL if len(struck) % 2 else signal.SIGTERM
        if broker is None:
            assert stat.S_IMODE(Kept.current.path.parent.stat().st_mode) == 0o700, (
                "others can reach the broker"
            )
            os.kill(Kept.current.pid, number)
        else:
            broker.process.send_signal(number)
            broker.process.wait()
            broker.process = broker._start()

    protocol = _of_twelve_rounds()
    url = EMBEDDED if broker is None else broker.url
    run = Settings(
        protocol,
        protocol.synthetic(clients, 1),
        4.0,
        Randomness(1, False),
        tier=tier,
        broker=url,
        terms=Terms(deadline=60.0, quorum=1.0),
    )
    outcome = execute(run, strike)
    assert len(struck) == kills
    return outcome, max(outcome.seconds)


def _nothing_lost(outcome: Any, clients: int) -> None:
    assert (outcome.counts.missing, outcome.counts.refused, outcome.counts.conflicting) == (0, 0, 0)
    assert outcome.counts.answered == outcome.counts.asked
    protocol = _of_twelve_rounds()
    alone = execute(
        Settings(
            protocol, protocol.synthetic(clients, 1), 4.0, Randomness(1, False), tier="population"
        ),
        lambda progress: None,
    )
    assert [each.digest for each in outcome.rounds] == [each.digest for each in alone.rounds]


@pytest.mark.parametrize(
    ("kills", "clients", "kind"),
    [
        (2, 24, "embedded"),
        *(
            pytest.param(20, 40, kind, marks=(needs_mosquitto, pytest.mark.slow))
            for kind in ("embedded", "Mosquitto")
        ),
    ],
)
def test_a_killed_broker_loses_nothing(
    kills: int, clients: int, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Killed in each of the first rounds as they begin, ten of twelve: every report counts once, as
    in an undisturbed run, bit for bit; many times, it is back within 10 s each time."""
    monkeypatch.setattr(over_bus, "EmbeddedBroker", Kept)
    longest = 0.0
    with nullcontext() if kind == "embedded" else mosquitto(tmp_path) as broker:
        for at in range(0, kills, 10):
            outcome, took = _survives(min(10, kills - at), "processes", clients, broker)
            _nothing_lost(outcome, clients)
            longest = max(longest, took)
    print(
        f"test 21: {kills} kills of the {kind} broker: 0 reports lost, the longest round took "
        f"{longest:.1f} s"
    )
    assert kills < 20 or longest < 10
