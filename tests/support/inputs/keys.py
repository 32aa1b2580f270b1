"""Keys and rosters in files, as a person makes them."""

from pathlib import Path

from tests.support.runs.command import local_dp


def enrolled(folder: Path, *hosts: int, clients: int = 20) -> None:
    """Keys of a server and of hosts of so many clients each, by their first one, and the roster."""
    for name in ("server", *(f"host-{start}" for start in hosts)):
        assert local_dp("keys", "create", str(folder / f"{name}.key")).returncode == 0
    for start in hosts:
        done = local_dp("keys", "enrol", str(folder / "roster"), str(folder / f"host-{start}.key.pub"), "--start", str(start), "--clients", str(clients))
        assert done.returncode == 0, done.stderr
