"""The members of a run in Node: the example client of examples/node, which knows nothing of this package."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_dp.server.members import Place
from tests.support.web import NODE

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "node"


@dataclass(frozen=True)
class NodeMember:
    """A member with one client: its place and private key, its record, and the file of its answers."""

    place: Place
    own: bytes
    record: Mapping[str, object]
    store: Path

    @property
    def config(self) -> dict[str, Any]:
        place = self.place
        named = {"member": place.member, "group": place.group, "start": place.start, "record": self.record}
        return {**named, "key": self.own.hex(), "store": str(self.store)}

    def answers(self) -> dict[int, dict[str, Any]]:
        """Its entries by round."""
        return {entry["round"]: entry for entry in map(json.loads, self.store.read_text().splitlines())} if self.store.exists() else {}


@asynccontextmanager
async def joined(members: Sequence[NodeMember], folder: Path, processes: int, **run: Any) -> AsyncIterator[list[str]]:
    """The members in some processes of Node, from here until they have left; gives the lines that they print. They are killed where the test fails."""
    assert NODE is not None
    started, lines = list[asyncio.subprocess.Process](), list[str]()
    try:
        for part in range(processes):
            file = folder / f"members-{part}.json"
            file.write_text(json.dumps({**run, "members": [member.config for member in members[part::processes]]}))
            command = (NODE, str(EXAMPLE / "join.mjs"), str(file))
            started.append(await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, env={"PATH": os.environ["PATH"]}))
        yield lines
        for process in started:
            out, _ = await asyncio.wait_for(process.communicate(), 60)
            assert process.returncode == 0
            lines += out.decode().splitlines()
    finally:
        for process in started:
            if process.returncode is None:
                process.kill()
                await process.wait()
