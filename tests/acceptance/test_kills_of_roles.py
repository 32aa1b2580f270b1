"""Class 20, the roles of a run: `server`, `host` and `shuffler` as commands, killed at moments over
their whole length and started again."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local_dp.bus.interface import Delivery
from local_dp.bus.mqtt import MqttBus
from local_dp.clients.journal import SqliteStore
from local_dp.errors import WireError
from local_dp.wire import Reply, Request, behind, decode, encode
from tests.support.figures import figure
from tests.support.runs.brokers import a_broker, needs_mosquitto, overheard
from tests.support.runs.command import enrolled
from tests.support.runs.killed import Command

CLIENTS = 1_440  # a crowd in each round
EACH = CLIENTS // 2  # of one host
LEARNING = ("local-sgd", "--d", "2", "--gamma", "0.9", "--alpha", "0.9", "--rounds", "6")
SEARCH = (
    "quantiles",
    "--column",
    "age",
    "--low",
    "0",
    "--high",
    "90",
    "--rounds",
    "several",
    "--missing",
    "exclude",
)
FULL = [
    pytest.param(kills, kind, marks=pytest.mark.slow)
    for kills, kind in ((50, "mosquitto"), (10, "embedded"))
]


@dataclass
class Heard:
    """What everybody on the broker hears: each request and each reply, in as many forms as it
    came."""

    forms: dict[tuple[Any, ...], set[bytes]] = field(default_factory=dict)

    async def hear(self, bus: MqttBus, delivery: Delivery) -> None:
        try:
            message = decode(delivery.payload)
        except WireError:
            message = decode(delivery.payload[64:])  # behind its signature
        if isinstance(message, Request):
            self.forms.setdefault(("request", message.run, message.round), set()).add(
                encode(message.model_copy(update={"missing": ()}))
            )
        elif isinstance(message, Reply):
            self.forms.setdefault(
                (message.run, message.member, message.round, message.ask, message.start), set()
            ).add(delivery.payload)

    def passed(self, run: str) -> bool:
        """Whether a shuffler has passed on reports of this run."""
        return any(name[:2] == (behind(run), "shuffler") for name in [*self.forms])

    def check(self) -> None:
        """One request for a round, one reply of a member to each ask."""
        assert self.forms
        assert [name for name, forms in self.forms.items() if len(forms) > 1] == [], (
            "a second truth"
        )


class Play:
    """A run of commands in a folder of its own; each role can be killed and started again."""

    def __init__(
        self, line: str, folder: Path, url: str, *, shuffled: bool = False, private: bool = False
    ) -> None:
        folder.mkdir()
        self.private, self.protocol = private, SEARCH if private else LEARNING
        self.line, self.folder = line, folder
        self.common = ("--broker", url, "--run", folder.name)
        self.journal = ("--journal", str(folder))
        asking: tuple[str, ...] = (
            "--clients",
            str(CLIENTS),
            "--seed",
            "3",
            "--quorum",
            "1",
            "--joining",
            "4",
            "--json",
            *self.journal,
        )
        self.words: dict[str, tuple[str, ...]] = {
            f"host-{start}": self._host(start) for start in range(0, CLIENTS, EACH)
        }
        if shuffled:
            self.words["shuffler"] = (
                "shuffler",
                *self.common,
                "--clients",
                str(CLIENTS),
                *self.journal,
            )
        if private:
            enrolled(folder, 0, EACH, clients=EACH)
            asking += ("--key", str(folder / "server.key"), "--roster", str(folder / "roster"))
        self.words["server"] = (
            "server",
            *self.protocol,
            *self.common,
            *asking,
            *(("--shuffle",) if shuffled else ()),
        )
        self.running = {role: self.start(role) for role in self.words}

    def _host(self, start: int) -> tuple[str, ...]:
        store = ("--store", str(self.folder / f"{start}.store"))
        common = ("host", *self.protocol, *self.common, "--start", str(start), *store)
        if not self.private:
            return *common, "--clients", str(EACH), "--seed", "3"
        table, schema = self.folder / "t.csv", self.folder / "schema.json"
        table.write_text("age\n" + "\n".join(str(row % 90) for row in range(EACH)))
        schema.write_text('{"age": "number"}')
        keys = (
            "--key",
            str(self.folder / f"host-{start}.key"),
            "--server-key",
            str(self.folder / "server.key.pub"),
        )
        return *common, "--private", "--records", str(table), "--schema", str(schema), *keys

    def start(self, role: str) -> Command:
        """The role from the beginning, or the server from where its journal says."""
        if role == "server" and (self.folder / f"{self.folder.name}.run").exists():
            return Command(
                self.line,
                self.folder,
                "resume",
                self.folder.name,
                *self.journal,
                *self.common[:2],
                "--json",
            )
        return Command(self.line, self.folder, *self.words[role])

    def strike(self, role: str, when: float | Callable[[], bool]) -> bool:
        """Kills a role so many seconds after its start, or when something is seen, and starts it
        again; False where it was over by then."""
        victim = self.running[role]
        killed = (victim.kill_when(when) if callable(when) else victim.kill_after(when)) is None
        if killed:
            self.running[role] = self.start(role)
        return killed

    def outcome(self) -> Mapping[str, Any]:
        """The server's result, once it is over."""
        server = self.running["server"]
        for _ in range(5):
            if (code := server.code()) == 0:
                return dict(json.loads(server.out))
            assert "Traceback" not in server.err
            if code == 2 and "is over" in server.err:  # it had been stored, and not printed
                server = Command(
                    self.line, self.folder, "show", self.folder.name, *self.journal, "--json"
                )
            else:
                assert code == 3, server.err  # a host was away for too long, as on a busy machine
                for role in self.words:
                    if self.running[role].over(0.5):
                        self.running[role] = self.start(role)
                server = self.running["server"]
        raise AssertionError(server.err)

    def whole(self) -> Mapping[str, Any]:
        """The server's result, once every role has ended by itself."""
        data = self.outcome()
        assert {each.code() for each in self.running.values()} == {0}
        return data

    def end(self) -> None:
        """Ends the roles that wait for a run that is over."""
        for each in self.running.values():
            each.kill_after(0.0)

    def spent(self) -> list[tuple[int, float]]:
        """The rounds and the epsilon in each host's store."""
        found = []
        for start in range(0, CLIENTS, EACH):
            store = SqliteStore(self.folder / f"{start}.store", 1.0)
            found.append((store.rounds, store.ledger.max_spent))
            store.close()
        return found


@contextmanager
def _heard(url: str) -> Iterator[Heard]:
    heard = Heard()
    with overheard(url, "spy", heard.hear):
        yield heard


def _each_once(play: Play, spent: list[tuple[int, float]]) -> Mapping[str, Any]:
    """Every report of the run is accepted and paid once; its result."""
    data = play.outcome()
    play.end()
    assert (
        data["clients"]["asked"],
        data["clients"]["answered"],
        data["clients"]["conflicting"],
    ) == (CLIENTS, CLIENTS, 0)
    assert (
        data["reconciliation"]["accepted_not_charged"],
        data["reconciliation"]["charged_not_accepted"],
    ) == (0, 0)
    assert play.spent() == spent
    return data


@needs_mosquitto
@pytest.mark.parametrize(("kills", "kind"), [(3, "mosquitto"), *FULL])
def test_a_killed_role_changes_nothing(
    kills: int, kind: str, interpreter: str, tmp_path: Path
) -> None:
    """The server, and a host, each killed so often: the result bit for bit, each report accepted
    once and paid once, each message in one form."""
    generator, runs = random.Random(23), 0
    with a_broker(kind, tmp_path) as url, _heard(url) as heard:
        first = Play(interpreter, tmp_path / "plain", url)
        plain = first.whole()
        spent = first.spent()
        lengths = {role: command.length for role, command in first.running.items()}
        for role in ("server", "host-0"):
            done = 0
            while done < kills:
                runs, play = runs + 1, Play(interpreter, tmp_path / f"run-{runs}", url)
                for _ in range(min(3, kills - done)):
                    if not play.strike(role, generator.uniform(0, lengths[role])):
                        break
                    done += 1
                data = _each_once(play, spent)
                assert data["result"] == plain["result"]
                assert [each["digest"] for each in data["rounds"]] == [
                    each["digest"] for each in plain["rounds"]
                ]
        heard.check()
    figure("class 20", f"{kills} of `server` and of `host`: 0 changes, on {kind}")


@needs_mosquitto
@pytest.mark.parametrize(("kills", "kind"), [(2, "mosquitto"), *FULL])
def test_a_killed_private_host_repeats_itself(
    kills: int, kind: str, interpreter: str, tmp_path: Path
) -> None:
    """Its noise comes from its store: started again, it sends the same bytes, and pays once."""
    generator, runs, done = random.Random(25), 0, 0
    with a_broker(kind, tmp_path) as url, _heard(url) as heard:
        first = Play(interpreter, tmp_path / "plain", url, private=True)
        assert first.whole()["clients"]["answered"] == CLIENTS
        spent, length = first.spent(), first.running["host-0"].length
        while done < kills:
            runs, play = runs + 1, Play(interpreter, tmp_path / f"run-{runs}", url, private=True)
            for _ in range(min(3, kills - done)):
                if not play.strike("host-0", generator.uniform(0, length)):
                    break
                done += 1
            _each_once(play, spent)
        heard.check()
    figure("class 20", f"{kills} of a private `host` on {kind}")


@needs_mosquitto
@pytest.mark.parametrize(("kills", "kind"), [(3, "mosquitto"), *FULL])
def test_a_killed_shuffler_passes_on_one_batch(
    kills: int, kind: str, interpreter: str, tmp_path: Path
) -> None:
    """Killed at a moment, or every third time once reports were passed on, and started again.

    The run ends with the right result, or with a line and none; the server never hears a second
    batch of a round.
    """
    generator, ends = random.Random(24), {"same result": 0, "no result": 0}
    with a_broker(kind, tmp_path) as url, _heard(url) as heard:
        first = Play(interpreter, tmp_path / "plain", url, shuffled=True)
        plain = first.whole()
        for number in range(kills):
            play = Play(interpreter, tmp_path / f"run-{number}", url, shuffled=True)
            passed, moment = (
                partial(heard.passed, play.folder.name),
                generator.uniform(0, first.running["shuffler"].length),
            )
            play.strike("shuffler", moment if number % 3 else passed)
            server, shuffler = play.running["server"], play.running["shuffler"]
            if server.code() == 0:
                assert json.loads(server.out)["result"] == plain["result"]
                ends["same result"] += 1
            else:
                assert (server.exit_code, server.out, "Traceback" in server.err) == (3, "", False)
                assert (shuffler.code(), shuffler.err.count("were passed on before")) == (2, 1)
                ends["no result"] += 1
            play.end()
        heard.check()
    figure("class 20", f"{kills} of `shuffler` on {kind}, {ends}: 0 second batches of a round")
