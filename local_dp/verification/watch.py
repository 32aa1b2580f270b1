"""The exact loss of all reports of a session, enumerated against every server; and the calls that a sampler makes."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from io import BytesIO, StringIO
from itertools import product
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from local_dp.errors import InputError, RefusedError
from local_dp.oracles.local.asked import Spoken
from local_dp.randomizers.finite import FiniteChannel

_SESSION = "enumerated"


def worst_transcript(randomizer: FiniteChannel, rounds: int) -> Fraction:
    """The largest Pr[reports | x] / Pr[reports | x'] over all reports of so many rounds of a session, records x and x', and servers.

    A server chooses each question by all earlier reports. So in each round of a transcript it may meet any value of x with any of x': the values that the
    client's own rule (`Spoken`) allows, with the whole weights of the channel. Transcripts with the same ratio and the same people silent are continued
    together, so the cost grows with the number of ratios, not with 2^rounds. Raises InputError for a randomizer without silence or with coins,
    RefusedError("unverifiable") where a report reveals a record.
    """
    silence = randomizer.silence
    if silence is None or randomizer.uses_coins:
        raise InputError(f"{randomizer.name} takes no part in sessions, or uses a public coin")
    values, channel = randomizer.domain.values(), randomizer.channel().tolist()
    reached = {(bytes(1), Fraction(1))}  # who of the two has spoken, as `Spoken.bits` has it, and the ratio so far
    for _ in range(rounds):
        further = set()
        for (spoken, ratio), pair in product(reached, product(values, values)):
            state = Spoken()
            state.restore(_SESSION, spoken)
            places = state.once_only(_SESSION, silence, 0, np.array(pair)) - randomizer.domain.low
            for one, other in zip(channel[places[0]], channel[places[1]], strict=True):
                if other == 0 < one:
                    raise RefusedError("unverifiable", f"{randomizer.name}: a report that some value never sends reveals that value")
                if other:
                    further.add((state.bits(_SESSION), ratio * Fraction(one, other)))
        reached = further
    return max(ratio for _, ratio in reached)


OUTSIDE = frozenset({"time", "posix", "nt", "random", "datetime", "io", "_io", "socket", "_socket", "signal", "resource", "select", "ctypes", "_warnings"})
_NAMES = frozenset({(module, name) for module, names in (("builtins", ("print", "input")), ("sys", ("_getframe", "getprofile", "gettrace"))) for name in names})


@contextmanager
def watched() -> Iterator[list[str]]:
    """The calls, within the block and in this thread, of compiled functions with input or output of their own, by whatever name they were imported."""
    calls: list[str] = []

    def look(frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and frame.f_globals.get("__name__") != __name__:
            home = _home(function)
            if home in OUTSIDE or (home, function.__name__) in _NAMES:
                calls.append(f"{home}.{function.__name__}")

    before: Callable[..., Any] | None = sys.getprofile()
    collecting = gc.isenabled()
    gc.disable()  # a package that times the collector (distributed) would be taken for the randomizer
    sys.setprofile(look)
    try:
        yield calls
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
