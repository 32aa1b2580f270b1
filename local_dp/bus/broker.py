"""The broker that a run starts: Mosquitto if the machine has one, else amqtt, in a process of its
own that is restarted when it dies.

It listens on a socket of the run's folder, for one user with a random password.
"""

import asyncio
import os
import secrets
from asyncio.subprocess import PIPE
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from local_dp.bus.children import ending, environment, is_stopped, python
from local_dp.errors import BusError, InputError

USER = "run"
SETTING = "LOCAL_DP_BROKER"  # an environment variable; "amqtt" looks for no Mosquitto
# asyncio asks for 256 KiB at each look at a connection
_MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20), "MALLOC_TRIM_THRESHOLD_": str(1 << 24)}
ATTEMPTS = 10  # to start it again
# seconds: that it must live to be said to be up, between two starts, between two looks
_STEADY, _PAUSE, _GLANCE = 1.0, 0.3, 1.0


def announce(name: str) -> None:
    """Reports to the starter, which may be gone, that the broker of this name listens."""
    with suppress(BrokenPipeError):
        os.write(1, f"{name}\n".encode())


class EmbeddedBroker:
    """The broker's process; `url` is where it listens: in a folder that others cannot enter. Its
    address and password outlive a crash.

    `name` is Mosquitto or amqtt, once it has started; `fair`: amqtt, which paces a client that
    floods.
    """

    def __init__(self, folder: Path, *, fair: bool = False) -> None:
        self.path = folder / "broker"
        self.name = ""
        choice = os.environ.get(SETTING, "").lower()
        if choice not in ("", "amqtt", "mosquitto"):
            raise InputError(
                f"{SETTING} is {choice!r:.80} in the environment; give amqtt or mosquitto, or "
                "leave it out"
            )
        self._home = (
            "local_dp.bus.embedded" if fair or choice == "amqtt" else "local_dp.bus.mosquitto"
        )
        self._password = secrets.token_hex(16)
        self._process: asyncio.subprocess.Process | None = None
        self._keeper: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return f"mqtt+unix://{USER}:{self._password}@{quote(str(self.path))}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Starts the process, waits until it listens, and from then on restarts it when it dies.
        Raises BusError."""
        command = python(self._home, str(self.path))
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, env=environment(**_MALLOC), start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # on the command line, every user of the machine would read it
        self._process.stdin.write(f"{self._password}\n".encode())
        self.name = (await self._process.stdout.readline()).decode().strip()
        # one that was killed is started again
        if not self.name and await self._process.wait() >= 0:
            raise BusError(
                "the embedded broker did not start; its message is above. A real broker can be "
                "used with --broker mqtt://host:port"
            )
        if self._keeper is None:
            self._keeper = asyncio.create_task(self._keep())

    async def watch(self) -> None:
        """Waits until the broker fails to restart ATTEMPTS times, and raises BusError then."""
        assert self._keeper is not None
        await asyncio.shield(self._keeper)

    async def _keep(self) -> None:
        failures = 0
        while True:
            began = asyncio.get_running_loop().time()
            process = self._process
            assert process is not None
            # until the process has ended; one that is stopped is ended
            while process.returncode is None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), _GLANCE)
                if process.returncode is None and is_stopped(process.pid):
                    process.kill()
            steady = asyncio.get_running_loop().time() - began >= _STEADY
            failures = 0 if steady else failures + 1
            if failures > ATTEMPTS:
                how = (
                    f"{failures} times in a row as soon as it was started, the last time "
                    f"{ending(process.returncode)}"
                )
                raise BusError(
                    f"the embedded broker ended {how}; use a broker of your own: --broker "
                    "mqtt://host"
                )
            if failures:
                await asyncio.sleep(_PAUSE)
            with suppress(BusError):  # it died as it started: then it is dead at once
                await self.start()

    async def stop(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
