"""A session survives crashes: a client speaks once in it, and a server that was killed between two rounds ends with the same digest."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from local_dp.clients.journal import SqliteStore
from local_dp.clients.role import ClientRole
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.parity.ladder import LadderAgain
from local_dp.queries.examples import PathStep
from local_dp.randomizers.repeated.memoised import OneOfRounds
from local_dp.records import Records
from local_dp.wire import Refusal, Reply, Request
from tests.support.inputs.builders import SEED, population_oracle, request
from tests.support.runs.mortal import Town
from tests.support.runs.stores import Doomed, forked, told
from tests.support.runs.virtual_time import run_virtually

PEOPLE, LEVELS = 400, 4
SESSION = "path"
STEPS = 28  # more than two commits take, before and after each: some come to their end


def asks(path: str, epsilon: float = 1.0) -> Request:
    """Of 64 people of level 1, what they hold at a node of it."""
    return request(LocalQuery(PathStep(path, 1), OneOfRounds(epsilon), Cohort(0, 64), SESSION), number=1 + int(path, 2))


def someone(path: Path) -> ClientRole:
    """64 people of level 1 whose tables are all ones, with a store in a file."""
    records = Records({"level": np.ones(64, dtype=np.uint8), "table0": np.full(64, 3, dtype=np.uint64)})
    return ClientRole("host-0", 0, records, KeyedNoise(SEED), SqliteStore(path, 1.0))


def _lives(path: Path, point: int) -> Callable[[Callable[[bytes], None]], None]:
    def live(send: Callable[[bytes], None]) -> None:
        role = someone(path)
        store = role.store
        assert isinstance(store, SqliteStore)
        store._log._held = Doomed(store._log._held, point)  # type: ignore[assignment]
        for question in ("01", "11"):
            send(told(role.handle(asks(question))))

    return live


def test_no_crash_gives_a_second_truth(tmp_path: Path) -> None:
    """Killed before and after each step of two commits: a client that has sent anything has stored that it spoke, and speaks no more; another one may still."""
    spoke = set()
    for point in range(STEPS):
        sent, _ = forked(_lives(tmp_path / f"{point}.store", point))
        role = someone(tmp_path / f"{point}.store")
        stored = [question for question in ("01", "11") if role.store.get("test-run", asks(question).round) is not None]
        assert len(sent) <= len(stored), "sent, and not kept"
        assert [told(role.handle(asks(question))) for question in ("01", "11")[: len(sent)]] == sent, "other bytes"
        spoken = role.store.spoken.copy([SESSION])
        assert (spoken._bits.get(SESSION, np.zeros(8, dtype=np.uint8)) == (255 if stored else 0)).all(), "a truth is spent exactly if it is kept"
        assert role.store.ledger.max_spent == (1.0 if stored else 0.0)
        role.handle(asks("00"))
        assert role.store.spoken.bits(SESSION) == b"\xff" * 8
        role.store.close()  # type: ignore[attr-defined]
        spoke.add(len(stored))
    assert spoke == {0, 1, 2}


class DiesOften(ClientRole):
    """Dies after every answer, and comes back with what its file kept."""

    path: Path

    def handle(self, request: Request) -> tuple[Reply | Refusal, ...]:
        self.store = SqliteStore(self.path, 1.0)
        try:
            return super().handle(request)
        finally:
            self.store.close()


def members(folder: Path, seed: int) -> list[ClientRole]:
    """Four hosts of a hundred people."""
    population, roles = LadderAgain(LEVELS).synthetic(PEOPLE, seed), list[ClientRole]()
    for index, start in enumerate(range(0, PEOPLE, 100)):
        path = folder / f"{index}.store"
        store = SqliteStore(path, 1.0)
        role = DiesOften(f"host-{index}", start, population.batch(start, start + 100), KeyedNoise(SEED), store)
        store.close()
        role.path = path
        roles.append(role)
    return roles


def test_a_run_killed_between_its_rounds_ends_with_the_same_digest(tmp_path: Path) -> None:
    """The ladder over a bus in memory: the server is killed at random points, the hosts after each answer, and all reports are those of the population."""
    protocol, generator = LadderAgain(LEVELS), random.Random(12)
    oracle = population_oracle(protocol.synthetic(PEOPLE, 5))
    expected = run(protocol.algorithm(1.0, PEOPLE), oracle), [summary.digest for summary in oracle.rounds]
    kills = 0
    for turn in range(3):
        folder = tmp_path / str(turn)
        folder.mkdir()
        town = Town(folder, members(folder, 5), protocol.algorithm(1.0, PEOPLE))
        result, coordinator, died = run_virtually(town.live(iter([*(generator.randrange(1, 20) for _ in range(4)), 10**9])))
        assert (result, [summary.digest for summary in coordinator.rounds]) == expected
        assert all(len(forms) == 1 for forms in town.requests.values()), "a round was asked in two ways"
        assert (coordinator.interaction, coordinator.ledger.max_spent) == ("fully interactive", 1.0)
        kills += died
        for role in town.members:
            assert isinstance(role, DiesOften)
            store = SqliteStore(role.path, 1.0)
            assert (store.ledger.max_spent, store.rounds) == (1.0, LEVELS)
            assert store.spoken.bits("ladder") == b"\xff" * 12 + b"\x0f", "everybody has a level, and has spoken"
            store.close()
    assert kills >= 6


def test_a_store_of_before_sessions_is_read(tmp_path: Path) -> None:
    role = someone(tmp_path / "a.store")
    plain = asks("01")
    role.handle(plain.model_copy(update={"asks": (plain.asks[0].model_copy(update={"once": ""}),)}))
    commit = role.store.get("test-run", plain.round)
    assert commit is not None
    assert commit.spoken == ()
    assert replace(commit, spoken=((SESSION, b"\x01"),)) != commit
    role.store.close()  # type: ignore[attr-defined]
    with pytest.raises(KeyError):
        SqliteStore(tmp_path / "a.store", 1.0).spoken.bits(SESSION)
