"""What is laid together before the first fork: the same functions, in other places."""

import subprocess
import sys
from types import CodeType

import pytest

from local_dp.clients.pages import together


def _outer(count: int) -> list[int]:
    def within(number: int) -> int:
        return _inner(number)

    return list(map(within, range(count)))


def _inner(number: int) -> int:
    return -number


def _other() -> None:
    """Is not run."""


def test_what_ran_is_copied_and_does_the_same() -> None:
    """With what is defined within it; and nothing else."""
    before = [each.__code__ for each in (_outer, _inner, _other)]
    with together():
        _outer(2)
    after = [each.__code__ for each in (_outer, _inner, _other)]
    assert after == before
    assert [new is old for new, old in zip(after, before, strict=True)] == [False, False, True]
    assert _outer(3) == [0, -1, -2]
    (new,), (old,) = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (after[0], before[0]))
    assert new is not old


GAPS = """
import numpy as np
from local_dp.clients.pages import filled
arrays = [np.empty(700, dtype=np.uint8) for _ in range(1000)]
first, last = arrays[0].ctypes.data, arrays[-1].ctypes.data
del arrays[1:-1:2]

def between(least):
    made = [np.empty(size, dtype=np.uint8) for size in range(least, 700, 10)]  # other sizes each time: numpy keeps what it was given back
    return sum(first < each.ctypes.data < last for each in made)

before, kept = between(31), filled()
while_kept = between(33)
del kept
print(before, while_kept, between(35))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="another C library keeps its gaps otherwise")
def test_no_gap_is_left_where_it_was() -> None:
    """Of 500 gaps between arrays the next ones fill some; while all are filled, what is made lies elsewhere. A fresh process, whose memory is always alike."""
    before, while_kept, after = map(int, subprocess.run([sys.executable, "-c", GAPS], stdout=subprocess.PIPE, check=True).stdout.split())
    assert while_kept == 0
    assert min(before, after) >= 5
