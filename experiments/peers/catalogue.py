"""Every installed peer's oracle for a task."""

from local_dp.experiments.peers import multi_freq, opendp, pure_ldp
from local_dp.experiments.peers.base import Peer, Task, installed


def peers(task: Task) -> list[Peer]:
    """The oracles of the installed libraries that have one for it."""
    return [peer for library in (pure_ldp, multi_freq, opendp) if installed(library.NAME) for peer in library.oracles(task)]
