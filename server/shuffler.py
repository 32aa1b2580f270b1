"""The process of a shuffler, beside the server of a run."""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from local_dp.bus.address import Address
from local_dp.bus.children import ending, environment, python
from local_dp.bus.interface import SealedBus
from local_dp.bus.mqtt import MqttBus
from local_dp.errors import BusError, InputError, LocalDPError
from local_dp.loss import MAX_EPSILON
from local_dp.registry import load
from local_dp.sealing import UNSIGNED, Envelopes, Party
from local_dp.server.coordinator import Coordinator
from local_dp.server.members import Roster
from local_dp.server.members import filters as server_filters
from local_dp.server.mixer import NAME, Mixer, filters, will
from local_dp.server.quorum import GRACE, Terms
from local_dp.server.remote import RemoteOracle
from local_dp.shuffle.central import Shuffler
from local_dp.storage.log import sync
from local_dp.wire import behind

PASSED = ".passed"  # the name of a run's file, after that of the run
LOST = 5  # the exit code, as on the command line


@dataclass(frozen=True)
class Passed:
    """A file that stands for a run whose reports were passed on. Two shufflers would pass on two
    batches: their difference reveals the clients between them."""

    path: Path

    def check(self) -> None:
        """Raises InputError if the file exists."""
        if self.path.exists():
            run = self.path.name.removesuffix(PASSED)
            raise InputError(
                f"reports of run {run!r} were passed on before, and a second batch would reveal "
                "clients; begin a run of a new name"
            )

    def note(self) -> None:
        """Puts it on the disk. Raises InputError if the file exists or cannot be written."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            sync(self.path.parent)
        except FileExistsError:
            self.check()
        except OSError as error:
            raise InputError(f"cannot write {str(self.path)!r}: {error.strerror}") from None


class ShufflerConfig(BaseModel):
    """One shuffler: its run, the brokers of the clients and of the server, how many clients there
    are, its crowd, and its seed, or None for entropy.

    `joining`, `deadline` and `grace` are in seconds: the longest wait for the clients, for the
    reports of a round, and for a client that went. `key`, its own and private, `server_key` and
    `roster` come together; without them nothing is signed. `folder` is for the file of a run that
    is passed on once; without it, nobody starts this one again. `plug_ins` are the places of the
    modules that the queries need.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    run: str
    broker: str
    server_broker: str
    clients: Annotated[int, Field(ge=1)]
    crowd: Annotated[int, Field(ge=2)]
    seed: int | None
    deadline: float = 24.0
    joining: float = 60.0
    grace: float = GRACE
    key: Annotated[str, Field(repr=False)] = ""
    server_key: str = ""
    roster: str = ""
    folder: str = ""
    plug_ins: tuple[str, ...] = ()

    async def serve(self) -> None:
        """Mixes until the run is over. Raises BusError or QuorumError, and InputError if the run
        was passed on before."""
        marker = Passed(Path(self.folder) / (self.run + PASSED)) if self.folder else None
        if marker is not None:
            marker.check()
        for place in self.plug_ins:
            load(place)
        roster: Roster | None = None
        before: Envelopes = UNSIGNED
        after: Envelopes = UNSIGNED
        if self.key:
            own, roster = bytes.fromhex(self.key), Roster.parse(self.roster)
            before = Party.server(self.run, own, roster.speaker)
            after = Party.member(behind(self.run), bytes.fromhex(self.server_key), own)
        coordinator = Coordinator(
            self.run,
            self.clients,
            0,
            MAX_EPSILON,
            Terms(self.deadline, grace=self.grace),
            roster,
        )
        clients = MqttBus(
            Address.parse(self.broker), f"{self.run}-{NAME}-front", server_filters(self.run)
        )
        server = MqttBus(
            Address.parse(self.server_broker),
            f"{self.run}-{NAME}",
            filters(self.run),
            will(self.run, after),
        )
        front = RemoteOracle(clients, coordinator, envelopes=before)
        mixer = Mixer(
            front,
            SealedBus(server, after),
            Shuffler.of(self.seed, self.crowd),
            marker.note if marker else lambda: None,
        )
        await mixer.serve(self.joining)


class ShufflerProcess:
    """A shuffler beside the run that starts it, for as long as that holds its standard input
    open."""

    def __init__(self, config: ShufflerConfig) -> None:
        self.config = config
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Starts the process; it joins the run by itself."""
        self._process = await asyncio.create_subprocess_exec(
            *python("local_dp.server.shuffler"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env=environment(),
            start_new_session=True,
        )
        assert self._process.stdin is not None
        self._process.stdin.write(self.config.model_dump_json().encode() + b"\n")

    async def watch(self) -> None:
        """Waits until it ends. Raises BusError if that was before the run did."""
        assert self._process is not None
        assert self._process.stdout is not None
        message = (await self._process.stdout.read()).decode(errors="replace").strip()
        code = await self._process.wait()
        if code:
            raise BusError(
                message
                or (
                    f"the shuffler ended before the run did ({ending(code)}); its reports are "
                    "lost, start the run again"
                )
            )

    async def stop(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()


async def main() -> int:
    """The shuffler's process: its configuration is a line of JSON on standard input."""
    config = sys.stdin.readline()
    # its starter is gone: there is nothing to save
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), os._exit, 0)
    try:
        await ShufflerConfig.model_validate_json(config).serve()
    except LocalDPError as error:
        print(error, flush=True)
        return LOST
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
