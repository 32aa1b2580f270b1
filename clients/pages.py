"""How objects lie in memory before the first fork: Python counts in each object who uses it, so a child copies every page of which it uses one."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType

import numpy as np

_FILLING = 1 << 16  # bytes of each size
_GAPS = 1 << 10  # of each size, at most
_LARGE = 16  # of the largest, of which few gaps are
_SIZES = (*(1 << power for power in range(16, 10, -1)), *range(1024, 16, -16))


def filled() -> list[object]:
    """Small objects of every size, so many that no page which children share has a gap left: what is made while they are kept lies together."""
    smallest = [made for number in range(_FILLING // 32) for made in (object(), float(number))]
    return [*smallest, *(bytes(size) for size in range(15, 480, 16) for _ in range(_FILLING // size)), _gaps()]


def _gaps() -> object:
    """The same of the C library, whose arrays are numpy's: of each size, from the largest, until one lies behind all others.

    They are held as a chain: a list would leave a gap behind whenever it grows.
    """
    held: object = None
    end = 0
    for size in (*[_SIZES[0]] * _LARGE, *_SIZES):
        for _ in range(_GAPS):
            gap = np.empty(size, dtype=np.uint8)
            held = (gap, held)
            if gap.ctypes.data > end:
                end = gap.ctypes.data
                break
    return held


@contextmanager
def together() -> Iterator[None]:
    """Lays the code of every function that runs meanwhile side by side, and not between that of others which children never run."""
    ran = set[CodeType]()
    sys.setprofile(lambda frame, event, _: ran.add(frame.f_code) if event == "call" else None)
    try:
        yield
    finally:
        sys.setprofile(None)
    functions = [each for each in gc.get_objects() if type(each) is FunctionType and each.__code__ in ran]
    gaps = filled()
    for each in functions:
        each.__code__ = _copied(each.__code__)
    del gaps


def _copied(code: CodeType) -> CodeType:
    """With that of the functions within."""
    return code.replace(co_consts=tuple(_copied(each) if type(each) is CodeType else each for each in code.co_consts))
