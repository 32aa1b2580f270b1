"""An event loop whose clock jumps: whatever waits waits no time, and what would wait for ever is an
error."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


class VirtualLoop(asyncio.SelectorEventLoop):
    """When nothing is ready the clock moves to the next timer. For coroutines that speak to each
    other only: a socket is never waited for."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._look = self._selector.select  # type: ignore[attr-defined]
        self._selector.select = self._jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now

    def work(self, seconds: float) -> None:
        """Somebody computes for so long, and nobody else runs."""
        self._now += seconds

    def _jump(self, timeout: float | None) -> Any:
        if timeout is None:
            raise RuntimeError("everybody waits and no timer runs: this would hang")
        self._now += max(0.0, timeout)
        return self._look(0)


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, Any]) -> AsyncIterator[list["asyncio.Task[Any]"]]:
    """Tasks that run until the block ends."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
