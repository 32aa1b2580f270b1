"""Bare client processes, the reference of ours: they join a broker by aiomqtt, publish one word,
and later answer one question."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiomqtt

from local_dp.bus.address import Address
from local_dp.bus.children import allow_open_files, environment, python
from local_dp.errors import BusError

_PSS = "Pss:"
_GROUP = 250
_QUESTION, _ANSWER = b"?" * 600, b"!" * 150  # as long as a signed request and a signed reply
_PATIENCE = 60.0  # seconds


@dataclass(frozen=True)
class Fleet:
    """Client processes: seconds from their start until all are ready, seconds of one round, and the
    MiB of the largest (PSS)."""

    ready: float
    round: float
    memory: float


def proportional_size(pid: int) -> float:
    """The proportional set size of a process, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(_PSS)) / 1024


def bare_clients(count: int, broker: str) -> Fleet:
    """Starts, measures and ends them. Raises BusError if one cannot join."""
    start = time.perf_counter()
    done = subprocess.run(
        [*python("local_dp.experiments.bench.bare_clients", str(count), broker)],
        stdout=subprocess.PIPE,
        env=environment(),
        check=False,
    )
    if done.returncode:
        raise BusError(
            f"of {count} processes of aiomqtt alone some could not join the broker; their output "
            "is above"
        )
    ready, seconds, memory = json.loads(done.stdout)
    return Fleet(ready - start, seconds, memory)


def _connection(broker: Address, name: str) -> aiomqtt.Client:
    login = {"username": broker.user, "password": broker.password, "transport": broker.transport}
    return aiomqtt.Client(
        broker.host,
        broker.port,
        identifier=f"bare-{name}",
        timeout=_PATIENCE,
        **login,  # type: ignore[arg-type]
    )


async def _client(index: int, broker: Address, line: socket.socket) -> None:
    async with _connection(broker, str(index)) as client:
        await client.subscribe([(f"bare/req/g{index // _GROUP}", 0), ("bare/req/all", 0)])
        await client.publish(f"bare/hello/{index}", b"here")
        line.sendall(b"+")
        async for _ in client.messages:
            await client.publish(f"bare/rep/{index}", _ANSWER)


async def _round(count: int, broker: Address) -> float:
    """Seconds from a question until all have answered it."""
    async with _connection(broker, "asking") as client:
        await client.subscribe("bare/rep/+")
        start = time.perf_counter()
        for group in range(-(-count // _GROUP)):
            await client.publish(f"bare/req/g{group}", _QUESTION)
        for _ in range(count):
            await anext(client.messages)
        return time.perf_counter() - start


def main() -> None:
    """Forks `count` clients (first argument) of a broker (second). Prints the clock when all were
    ready, the seconds of a round, and the largest size."""
    count, broker = int(sys.argv[1]), Address.parse(sys.argv[2])
    allow_open_files(0)
    ours, theirs = socket.socketpair()
    pids = []
    for index in range(count):
        pid = os.fork()
        if pid == 0:
            ours.close()
            try:
                asyncio.run(_client(index, broker, theirs))
            finally:
                os._exit(1)
        pids.append(pid)
    theirs.close()
    try:
        arrivals = 0
        while arrivals < count and (more := ours.recv(count)):
            arrivals += len(more)
        if arrivals < count:
            # a question would wait for them forever
            sys.exit(f"{count - arrivals} of {count} could not join")
        ready = time.perf_counter()
        print(
            json.dumps(
                [ready, asyncio.run(_round(count, broker)), max(map(proportional_size, pids))]
            )
        )
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            # freeing their memory takes seconds, which would slow the next measurement
            os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
