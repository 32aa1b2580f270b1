"""The log of `local-dp run`: the result of each of the last runs, without the truth, for
`local-dp runs` and `show`."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local_dp.errors import InputError, reading
from local_dp.simulation.installation import runs_folder
from local_dp.text.screen import SCREEN

SETTING = "LOCAL_DP_LOG"  # an environment variable; "off" stores nothing
ENDING = ".json"
MOST = 100  # runs that are stored; older ones are deleted


def store(data: dict[str, Any]) -> None:
    """Stores a result without its truth. A folder that cannot be written costs a note and not the
    run."""
    if os.environ.get(SETTING, "").lower() == "off":
        return
    now, folder = datetime.now(UTC), runs_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path = _reserve(folder, f"{data['protocol']}-{now:%Y%m%d-%H%M%S}")
        path.write_text(
            json.dumps({"at": now.isoformat(timespec="seconds"), "result": data}), encoding="utf-8"
        )
        for old in sorted(folder.glob(f"*{ENDING}"), key=lambda each: each.stat().st_mtime)[:-MOST]:
            old.unlink(missing_ok=True)
    except (OSError, InputError) as error:
        SCREEN.note(f"the run is not stored: {error}; {SETTING}=off stores none")


def _reserve(folder: Path, name: str) -> Path:
    """A new file that only its owner reads, named so, or with a number behind it."""
    for place in range(1, MOST + 1):
        path = folder / (name + (f"-{place}" if place > 1 else "") + ENDING)
        try:
            path.touch(0o600, exist_ok=False)
        except FileExistsError:
            continue
        return path
    raise InputError(f"{MOST} runs began in one second")


def stored(folder: Path, run: str) -> dict[str, Any] | None:
    """When a run was stored, and its result; None where there is none of this name. Raises
    InputError if it cannot be read."""
    path = folder / (run + ENDING)
    if not path.exists():
        return None
    with reading(path, "delete it"):
        data = json.loads(path.read_text(encoding="utf-8"))
        return {"at": str(data["at"]), "result": dict(data["result"])}
