"""Processes that are forked from one that has just imported the bus, and that join a broker and do nothing else: what client processes are compared with.

`python -m tests.support.runs.bare_members COUNT URL` prints the process id of each once it has joined, and ends with them when its standard input closes.
"""

import os
import signal
import sys

from local_dp.bus.address import Address
from local_dp.bus.blocking import BlockingBus, finish


async def _join(url: str) -> None:
    async for _ in BlockingBus(Address.parse(url), f"bare-{os.getpid()}", ["bare/one", "bare/two"]).messages(10.0):
        os.write(1, b"%d\n" % os.getpid())  # at once, so that lines do not mix


def main() -> None:
    children = []
    for _ in range(int(sys.argv[1])):
        child = os.fork()
        if child == 0:
            finish(_join(sys.argv[2]))
        children.append(child)
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    main()
