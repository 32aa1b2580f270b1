"""What a randomizer's code calls outside of itself: a clock, the system's entropy, a file, the screen."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO
from types import FrameType, ModuleType
from typing import Any

OUTSIDE = frozenset({"time", "posix", "nt", "random", "datetime", "io", "_io", "socket", "_socket", "signal", "resource", "select", "ctypes", "_warnings"})
_NAMES = frozenset({(module, name) for module, names in (("builtins", ("print", "input")), ("sys", ("_getframe", "getprofile", "gettrace"))) for name in names})


@contextmanager
def watched() -> Iterator[list[str]]:
    """The calls, within the block and in this thread, of compiled functions that tell or are told something; by whatever name they were imported."""
    found: list[str] = []

    def look(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and frame.f_globals.get("__name__") != __name__:
            home = _home(function)
            if home in OUTSIDE or (home, function.__name__) in _NAMES:
                found.append(f"{home}.{function.__name__}")

    before: Callable[..., Any] | None = sys.getprofile()
    collecting = gc.isenabled()
    gc.disable()  # a package that times the collector (distributed) would be taken for the randomizer
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()


def _home(function: Any) -> str:
    """The module of a compiled function, or of the class whose method it is."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):
        return owner.__name__
    if owner is None or isinstance(owner, StringIO | BytesIO):
        return str(getattr(function, "__module__", None) or "")
    return str(owner.__module__ if isinstance(owner, type) else type(owner).__module__)
