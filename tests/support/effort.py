"""What work costs, the same on every machine and however busy it is: steps of Python, and the most
memory that Python and numpy hold meanwhile."""

import gc
import sys
import tracemalloc
from types import FrameType
from typing import Any


class Effort:
    """Counts the lines of Python that run inside its block, or with `finely` the single steps."""

    def __init__(self, finely: bool = False) -> None:
        self.steps = 0
        self._event = "opcode" if finely else "line"

    def __enter__(self) -> "Effort":
        self._before = sys.gettrace()
        sys.settrace(self._trace)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = self._event == "opcode"
        self.steps += event == self._event
        return self._trace


class Peak:
    """The most memory held at a time inside its block, in bytes."""

    def __enter__(self) -> "Peak":
        gc.disable()
        tracemalloc.start()
        return self

    @property
    def held(self) -> int:
        """The memory held now, in bytes, without what nothing refers to."""
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    def __exit__(self, *error: object) -> None:
        self.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.enable()
