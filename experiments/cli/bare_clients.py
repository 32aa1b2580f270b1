"""What client processes are measured against: processes forked from a small one, which join a broker, say one word, and later answer one question."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path

from clients.member import PATIENCE, client_group, filters
from local_dp.bus.address import Address
from local_dp.bus.base import Connected
from local_dp.bus.blocking import BlockingBus, finish
from local_dp.bus.children import allow_open_files, environment, python
from local_dp.wire import topic

_RUN = "bare"
_PSS = "Pss:"
_QUESTION, _ANSWER = b"?" * 600, b"!" * 150  # as long as a signed request and a signed reply


@dataclass(frozen=True)
class Bare:
    """Seconds until all have said their word, from the start of the interpreter on, and until all have answered; the MiB of one at most (PSS)."""

    ready: float
    round: float
    memory: float


def proportional_size(pid: int) -> float:
    """The proportional set size of a process, in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(_PSS)) / 1024


def bare_clients(count: int, broker: str) -> Bare:
    """Starts so many, looks at them, and ends them."""
    started = time.perf_counter()
    told = subprocess.run([*python("experiments.cli.bare_clients", str(count), broker)], stdout=subprocess.PIPE, env=environment(), check=True).stdout
    ready, seconds, memory = json.loads(told)
    return Bare(ready - started, seconds, memory)


def _client(index: int, broker: str, line: socket.socket) -> None:
    bus = BlockingBus(Address.parse(broker), f"{_RUN}-{index}", filters(_RUN, client_group(index)), None, line, lambda: os._exit(0))

    async def live() -> None:
        async for event in bus.messages(PATIENCE):
            if isinstance(event, Connected):
                await bus.publish(topic(_RUN, "hello", client_group(index), str(index)), b"here")
                line.sendall(b"+")
            else:
                await bus.publish(topic(_RUN, "rep", client_group(index), str(index)), _ANSWER)

    finish(live())


async def _round(count: int, broker: str) -> float:
    """Seconds from a question until all have answered it."""
    bus = BlockingBus(Address.parse(broker), _RUN, [topic(_RUN, "rep", "+", "+")])
    started, missing = 0.0, count
    async with aclosing(bus.messages(PATIENCE)) as events:
        while missing:
            if isinstance(await anext(events), Connected):
                started = time.perf_counter()
                for group in sorted({client_group(index) for index in range(count)}):
                    await bus.publish(topic(_RUN, "req", group), _QUESTION)
            else:
                missing -= 1
    return time.perf_counter() - started


def main() -> None:
    """Forks `count` clients (first argument) of a broker (second): when all were there, on the clock of whoever started it, their round, the largest one."""
    count, broker = int(sys.argv[1]), sys.argv[2]
    allow_open_files(0)
    ours, theirs = socket.socketpair()
    pids = []
    for index in range(count):
        pid = os.fork()
        if pid == 0:
            ours.close()
            try:
                _client(index, broker, theirs)
            finally:
                os._exit(1)
        pids.append(pid)
    theirs.close()
    try:
        said = 0
        while said < count and (more := ours.recv(count)):
            said += len(more)
        ready = time.perf_counter()
        print(json.dumps([ready, finish(_round(count, broker)), max(map(proportional_size, pids))]))
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
