"""Test 21, the brokers of servers, shufflers and polls: killed with -9 at random moments, the run's
own or one that comes back at its port."""

import asyncio
import json
import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from local_dp.bus.broker import SETTING
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Rows
from local_dp.records import Records
from local_dp.server.poll.demo import records_of
from local_dp.server.poll.plan import Plan
from local_dp.server.poll.questions import read
from local_dp.server.remote import Journal
from local_dp.server.round import Round
from local_dp.simulation.over_bus import end
from tests.support.figures import figure
from tests.support.runs.brokers import Mosquitto, mosquitto, needs_mosquitto
from tests.support.runs.command import command, outcome_of
from tests.support.runs.poll_pages import Running, running
from tests.support.runs.polls import PATIENCE, Person

ROUNDS = 80
LEARNING = tuple(
    (
        f"local-sgd --d 2 --gamma 0.9 --alpha 0.9 --rounds {ROUNDS} --clients {120 * ROUNDS} "
        "--epsilon 4 --seed 1"
    ).split()
)
OWN = ("amqtt", "Mosquitto")  # kinds of the broker that a run starts
KINDS = [
    (3, "amqtt", pytest.mark.long),
    *((50, kind, pytest.mark.slow) for kind in (*OWN, "external")),
]
FILE = """
[[question]]
text = "Did you ever cheat?"
[[question]]
text = "Which colour?"
labels = ["red", "green", "blue"]
[[question]]
text = "How many hours?"
low = 0
high = 10
"""
EACH, PAUSE = (
    3,
    1.5,
    # kills of a run at most, and seconds between two; a run gives up a broker that ends ten times
    # in a row as it starts
)
MADE_UP, PHONES, SEED = 40, 6, 5


def _is_broker(process: psutil.Process) -> bool:
    try:
        return process.name() == "mosquitto" or bool(
            {"local_dp.bus.mosquitto", "local_dp.bus.embedded"} & {*process.cmdline()}
        )
    except psutil.Error:
        return False


class Killer:
    """Kills the broker below a process, or one that it starts again, a random while after the last
    kill."""

    def __init__(
        self,
        process: "subprocess.Popen[str]",
        moments: random.Random,
        most: int,
        external: Mosquitto | None,
    ) -> None:
        self.process, self.moments, self.most, self.external = process, moments, most, external
        self.kills = 0
        self._joined = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._play)

    def _play(self) -> None:
        while (
            self.kills < self.most
            and not self._over.wait(self.moments.uniform(0, PAUSE))
            and self.process.poll() is None
        ):
            self.kills += self._strike()

    def _strike(self) -> bool:
        """Whether there was a broker to be killed; an external one, once the process has joined
        it."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self.process.pid)
            if self.external is None:
                victims = [each for each in process.children(recursive=True) if _is_broker(each)]
                for victim in self.moments.sample(victims, min(1, len(victims))):
                    victim.kill()
                    return True
                return False
            self._joined |= any(
                each.raddr and each.raddr.port == self.external.port
                for each in process.net_connections()
            )
            if self._joined:
                self.external.process.kill()
                self.external.process.wait()
                time.sleep(self.moments.uniform(0, 0.5))
                self.external.process = self.external._start()
                return True
        return False

    def __enter__(self) -> "Killer":
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        self._thread.join()


@contextmanager
def _kind(
    kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Mosquitto | None, tuple[str, ...]]]:
    """A broker of this kind, if it is external, and the options that name it."""
    monkeypatch.setenv(SETTING, kind if kind in OWN else "")
    with nullcontext() if kind in OWN else mosquitto(folder) as external:
        yield external, () if external is None else ("--broker", external.url)


def _until(kills: int, play: Callable[[int], tuple[int, float]]) -> tuple[int, int, float]:
    """Plays runs until so many kills; the kills, the runs and the seconds of the longest one."""
    done, longest, runs = 0, 0.0, 0
    while done < kills:
        struck, seconds = play(runs)
        done, longest, runs = done + struck, max(longest, seconds), runs + 1
        assert runs < 4 * kills, "most runs end before a kill"
    return done, runs, longest


def _data(*words: str) -> Any:
    done = subprocess.run(
        command("run", *LEARNING, "--tier", "hosts", "--hosts", "4", "--json", *words),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def _mishaps(errors: str) -> list[str]:
    """The lines of tracebacks, and of exceptions that asyncio reports."""
    return [line for line in errors.splitlines() if "Traceback" in line or "exception" in line]


def _digests(data: Any) -> list[str]:
    return [each["digest"] for each in data["rounds"]]


@needs_mosquitto
@pytest.mark.parametrize("options", [(), ("--shuffle",)], ids=["server", "shuffler"])
@pytest.mark.parametrize(
    ("kills", "kind"), [pytest.param(kills, kind, marks=mark) for kills, kind, mark in KINDS]
)
def test_a_killed_broker_loses_no_run(
    kills: int, kind: str, options: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every run ends with exit code 0 and no traceback, with the population tier's result, and its
    digests; a shuffler's are those of a quiet run."""
    moments, alone = random.Random(49), outcome_of(*LEARNING, "--tier", "population", *options)
    digests = _digests(_data(*options) if options else alone)

    def play(number: int) -> tuple[int, float]:
        words = command(
            "run",
            *LEARNING,
            "--tier",
            "hosts",
            "--hosts",
            "4",
            "--quorum",
            "1",
            "--json",
            *options,
            *named,
        )
        began = time.monotonic()
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        with process, Killer(process, moments, min(EACH, kills), external) as killer:
            out, errors = process.communicate()
        assert (process.returncode, _mishaps(errors)) == (0, []), errors
        data = json.loads(out)
        assert (data["result"], _digests(data)) == (alone["result"], digests)
        return killer.kills, time.monotonic() - began

    with _kind(kind, tmp_path, monkeypatch) as (external, named):
        done, runs, longest = _until(kills, play)
    what = "a shuffler's" if options else "a server's"
    figure(
        21,
        (
            f"{done} kills of {what} broker, {kind}, in {runs} runs: 0 lost, 0 changes, the "
            f"longest took {longest:.0f} s"
        ),
    )


async def _answer(person: Person, link: str, records: Records) -> None:
    """As the made-up person whose place it takes, over the page's WebSocket."""
    await person.join(link)
    start = person.place["start"]
    person.record = records.take(slice(start, start + 1))
    await person.answer(link)


async def _all_answered(poll: Running) -> None:
    async with asyncio.timeout(2 * PATIENCE):
        while (
            min([len(await asyncio.to_thread(poll.counted, place)) for place in range(3)])
            < MADE_UP + PHONES
        ):
            await asyncio.sleep(0.1)


def _stored(folder: Path, run: str) -> tuple[Plan, str]:
    """The poll that is over, and the digest of its reports."""
    with closing(Journal.open(folder / "journal", run)) as journal:
        plan, past = Plan.from_dict(journal.began), journal.past(1)
        assert past is not None
        round = Round(run, 1, plan.questions.asks(plan.people), plan.coins)
        round.restore(past)
        return plan, round.digest()


@needs_mosquitto
@pytest.mark.parametrize(
    ("kills", "kind"),
    [pytest.param(kills, kind, marks=mark) for kills, kind, mark in KINDS if kind != "Mosquitto"],
)
def test_a_killed_broker_loses_no_poll(
    kills: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made-up people and phones all answer, each once; the poll ends with exit code 0; its digest
    is the population tier's."""
    moments = random.Random(50)

    async def answered(poll: Running, records: Records) -> None:
        people = [Person.of(0, noise=KeyedNoise(SEED)) for _ in range(PHONES)]
        tasks = [asyncio.create_task(_answer(person, poll.link, records)) for person in people]
        try:
            await _all_answered(poll)
            await asyncio.to_thread(poll.close)
        finally:
            await end(tasks)  # who was away at the end has not learnt of it

    def play(number: int) -> tuple[int, float]:
        folder, began = tmp_path / str(number), time.monotonic()
        folder.mkdir()
        words = (
            "--demo",
            str(MADE_UP),
            "--people",
            str(MADE_UP + PHONES),
            "--seed",
            str(SEED),
            *named,
        )
        with running(folder, *words, questions=FILE) as poll:
            records = records_of(
                read(str(folder / "questions.toml"), 1.0),
                MADE_UP + PHONES,
                np.random.default_rng(SEED),
            )
            with Killer(poll.process, moments, min(2 * EACH, kills), external) as killer:
                asyncio.run(answered(poll, records))
        (errors,) = folder.glob("errors-*")
        assert _mishaps(errors.read_text()) == []
        plan, digest = _stored(folder, poll.name)
        oracle = PopulationOracle(
            Rows(records), KeyedNoise(SEED), plan.coins, plan.questions.epsilon
        )
        oracle.answer(plan.questions.asks(plan.people))
        assert digest == oracle.rounds[0].digest
        return killer.kills, time.monotonic() - began

    with _kind(kind, tmp_path, monkeypatch) as (external, named):
        done, runs, longest = _until(kills, play)
    figure(
        21,
        (
            f"{done} kills of a poll's broker, {kind}, in {runs} polls: 0 lost, 0 changes, the "
            f"longest took {longest:.0f} s"
        ),
    )
