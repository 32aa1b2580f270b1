"""Clients with a store in a file, in processes that end where a test wants them to."""

import os
import signal
import struct
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.clients.journal import SqliteStore
from local_dp.clients.role import ClientRole, Policy
from local_dp.noise import StoreNoise
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.wire import Refusal, Reply, Request, encode
from tests.support.inputs.builders import request, survey_query, yes_records
from tests.support.runs.at_end import OPEN

CLIENTS = 64  # of one member: so that two replies with noise of their own are never equal
LABEL = "weekly"
AGES = tuple(map(str, range(64)))
FIRST, LATER = 23, 52  # the age of somebody, and what it becomes
SMALL = 0.01  # of the epsilon that is asked for in a round


def open_store(path: Path, budget: float = 1.0, lifetime: float | None = None) -> SqliteStore:
    """A store that the end of the test closes."""
    return OPEN.enter_context(closing(SqliteStore(path, budget, lifetime)))


def member(
    path: Path,
    budget: float = 1.0,
    lifetime: float | None = None,
    clients: int = CLIENTS,
    start: int = 0,
) -> ClientRole:
    """A private member whose store is the file `path`."""
    store = open_store(path, budget, lifetime)
    return ClientRole(
        "host-0", start, yes_records(clients), StoreNoise(store.secret), store, Policy()
    )


def device(path: Path, age: int) -> ClientRole:
    """A private client with one record, whose store is the file `path`."""
    store = open_store(path)
    return ClientRole(
        "client-0", 0, Records({"age": np.array([str(age)])}), StoreNoise(store.secret), store
    )


def close(role: ClientRole) -> None:
    assert isinstance(role.store, SqliteStore)
    role.store.close()


def asked(number: int, epsilon: float = SMALL, run: str = "run", clients: int = CLIENTS) -> Request:
    return request(survey_query(clients, randomizer=BinaryRR(epsilon)), number=number, run=run)


def told(answers: Iterable[Reply | Refusal]) -> bytes:
    return b"".join(map(encode, answers))


def code(answers: tuple[Reply | Refusal, ...]) -> str:
    return answers[0].code if isinstance(answers[0], Refusal) else "reply"


class Stepping:
    """Takes a step before each call of `target`, and one after it."""

    def __init__(self, target: Any) -> None:
        self.target = target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.target, name)

        def call(*arguments: Any) -> Any:
            self.step()
            done = method(*arguments)
            self.step()
            return done

        return call

    def step(self) -> None:
        raise NotImplementedError


class Doomed(Stepping):
    """A connection to SQLite that kills its process by SIGKILL before its statement number
    `point // 2`, or after it."""

    def __init__(self, target: object, point: int) -> None:
        super().__init__(target)
        self.left = point

    def step(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1


def forked(
    live: Callable[[Callable[[bytes], None]], None],
) -> tuple[list[bytes], int]:
    """What `live` has sent by the function it is given, in a process of its own, and the signal
    that ended it; 0 if it came to its end."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            live(lambda data: _send(writing, data))
            os._exit(0)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        messages = _split(stream.read())
    _, status = os.waitpid(pid, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, "the child failed by itself"
    return messages, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _send(writing: int, data: bytes) -> None:
    os.write(writing, struct.pack("<I", len(data)) + data)


def _split(stream: bytes) -> list[bytes]:
    """The messages that came whole."""
    parts = []
    while len(stream) >= 4:
        size = int.from_bytes(stream[:4], "little")
        if len(stream) < 4 + size:
            break
        parts.append(stream[4 : 4 + size])
        stream = stream[4 + size :]
    return parts
