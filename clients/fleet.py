"""Starts the members of a run on this machine, each in its own process, and ends them all with the
run."""

import asyncio
import os
import signal
import struct
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgpack

from local_dp.bus.children import Folder, allow_open_files, ending, environment, is_stopped, python
from local_dp.clients.process import FAILED, MemberConfig
from local_dp.errors import BusError
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.verification.audit import is_built_in

_CONNECTING = 64  # members joining the broker at one time: brokers have short listen queues
# a member computes little: no thread pool, one heap
LEAN = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}
_NONE: bytes = msgpack.packb([])
# randomizers that are verified beforehand; they travel on a command line
_VERIFIED, _BYTES = 16, 1 << 15
_GLANCE = 0.2  # seconds
_STOPPED = 2.0  # seconds that the helper may be stopped for while members are still to be started
_PARTING = 5.0  # seconds


def packed(randomizers: Iterable[Randomizer]) -> bytes:
    """The names and parameters of randomizers that other packages define, for
    `helper.verify_first`; none if they are too long for a command line."""
    outside = dict[str, tuple[str, Any]]()
    for each in map(without_coin, randomizers):
        if not is_built_in(each):
            outside[repr((each.name, each.params()))] = each.name, each.params()
    try:
        first: bytes = msgpack.packb(list(outside.values())[:_VERIFIED], use_bin_type=True)
    except (TypeError, ValueError):  # parameters that are no data: a client refuses them
        first = _NONE
    return first if len(first) <= _BYTES else _NONE


class Fleet:
    """`count` member processes; `config_of(index)` makes the configuration of one when it asks: no
    other member and not the helper ever holds it. The launcher holds the whole table.

    The randomizers in `first`, as `packed` names them, are verified once, before the fork; a member
    verifies every other one that it is asked for. Members import the modules in `plug_ins`.
    """

    def __init__(
        self,
        count: int,
        config_of: Callable[[int], Awaitable[MemberConfig]],
        first: bytes = _NONE,
        plug_ins: Iterable[str] = (),
    ) -> None:
        self.count = count
        self.config_of = config_of
        self.plug_ins = tuple(plug_ins)
        self._first = first.hex()
        self.pids: dict[int, int] = {}
        self._codes: dict[int, int] = {}  # exit codes by process id
        self.failures: list[str] = []
        self._gate = asyncio.Semaphore(_CONNECTING)
        self.folder = Folder()
        self._stopping = False
        self._helper: asyncio.subprocess.Process | None = None
        self._server: asyncio.Server | None = None
        self._calls: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._alive: set[int] = set()

    async def start(self) -> None:
        """Starts the processes; they join the run by themselves. Raises InputError where they need
        more open files than there may be."""
        allow_open_files(self.count)
        path = str(Path(self.folder.name) / "launcher")
        self._server = await asyncio.start_unix_server(
            self._serve_member, path, backlog=max(128, self.count)
        )
        self._helper = await asyncio.create_subprocess_exec(
            *python("local_dp.clients.helper", str(self.count), path, self._first, *self.plug_ins),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(**LEAN),
            start_new_session=True,
        )
        self._reading = asyncio.create_task(self._read(self._helper.stdout))

    async def _read(self, reports: asyncio.StreamReader | None) -> None:
        """Notes how members ended, which their parent reports."""
        assert reports is not None
        with suppress(asyncio.IncompleteReadError):
            while True:
                pid, code = struct.unpack("<Ii", await reports.readexactly(8))
                self._codes[pid] = code

    def ended(self, index: int) -> str:
        """How a member's process ended; empty while it lives, or before it was started."""
        pid = self.pids.get(index)
        if pid is None or index in self._alive:
            return ""
        return ending(self._codes[pid]) if pid in self._codes else "its process ended"

    async def _serve_member(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        call = asyncio.current_task()
        assert call is not None
        self._calls[call] = writer
        index = -1
        try:
            index, pid = struct.unpack("<II", await reader.readexactly(8))
            self.pids[index] = pid
            self._alive.add(index)
            async with self._gate:
                data = (await self.config_of(index)).to_bytes()
                if self._stopping:
                    return
                writer.write(struct.pack("<I", len(data)) + data)
                await writer.drain()
                status = await reader.read(1)
            if status == FAILED:
                self.failures.append((await reader.read(1000)).decode(errors="replace"))
            await reader.read()  # until the member ends
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # the member ended, and the round's deadline and counts deal with it; or the run did
            pass
        finally:
            self._alive.discard(index)
            del self._calls[call]
            writer.close()

    async def watch(self) -> None:
        """Waits until a member could not join the broker, or could not be started, and raises
        BusError then."""
        assert self._helper is not None
        stall = 0.0
        while True:
            await asyncio.sleep(_GLANCE)
            waits = len(self.pids) < self.count
            stall = stall + _GLANCE if waits and is_stopped(self._helper.pid) else 0.0
            if stall >= _STOPPED:
                raise BusError(
                    f"only {len(self.pids)} of {self.count} client processes started: the process "
                    f"that starts them, {self._helper.pid}, is stopped"
                )
            if self._helper.returncode is not None and waits:
                raise BusError(
                    f"only {len(self.pids)} of {self.count} client processes started; the message "
                    "of the process that starts them is above"
                )
            if self.failures:
                raise BusError(
                    f"{len(self.failures)} of {self.count} client processes could not join: "
                    f"{self.failures[0]}"
                )

    def kill(self, index: int) -> bool:
        """Kills a member's process; whether it was there."""
        alive = index in self._alive
        if alive:
            os.kill(self.pids[index], signal.SIGKILL)
        return alive

    async def stop(self) -> None:
        """Ends every process of the fleet: members end when their line to us closes, and are killed
        if they do not."""
        self._stopping = True
        if self._helper is not None and self._helper.returncode is None:
            self._helper.kill()
            await self._helper.wait()
        if self._server is not None:
            self._server.close()
        for writer in self._calls.values():
            writer.write_eof()
        if self._calls:
            await asyncio.wait(self._calls, timeout=_PARTING)
        for index in self._alive:
            os.kill(self.pids[index], signal.SIGKILL)
        self.folder.cleanup()
