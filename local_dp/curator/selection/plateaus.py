"""Plateaus: how high a function on 0..last stays over some window of length 1, 2, 4, ...; right for every function, which privacy needs."""

import numpy as np

from local_dp.arrays import Counts, Ints, Naturals
from local_dp.curator.selection.runs import Runs

_WORD = 64


def doubled(last: int) -> int:
    """The least k with 2^k >= last."""
    return max(last - 1, 0).bit_length()


def extended(runs: Runs) -> Runs:
    """The same function on 0..2^k, 2^k the least power that is no less than `last`: beyond `last` it is the smaller of 0 and its last value."""
    top = 1 << doubled(runs.last)
    if top == runs.last:
        return runs
    fits = runs.ends.dtype != object and runs.last >> _WORD == 0
    ends = np.append(runs.ends if fits else runs.ends.astype(object), np.array([runs.last], dtype=np.uint64 if fits else object))
    return Runs(ends, np.append(runs.scores, min(0, int(runs.scores[-1]))), top)


def plateaus(runs: Runs) -> Counts:
    """L[0..k+1] on 0..2^k: L[j] is the largest v such that all of some window of length 2^j is at v or above; L[k + 1] = min(0, L[k]).

    Non-increasing in j, and no neighbour moves an entry by more than it moves a value (Beimel, Nissim, Stemmer, Observation 3.11). O(runs).
    """
    steps = doubled(runs.last)
    scores = runs.scores.astype(np.int64)
    lengths = np.minimum(steps, _whole_log2(runs, *_reaches(scores)))
    found = np.full(steps + 2, scores.min(), dtype=np.int64)
    np.maximum.at(found, lengths, scores)
    found[: steps + 1] = np.maximum.accumulate(found[steps::-1])[::-1]
    found[steps + 1] = min(0, found[steps])
    return found


def _reaches(scores: Counts) -> tuple[Ints, Ints]:
    """For each run the first and the last of the runs around it that are nowhere lower than it: at least for one of those that tie."""
    first, final = np.zeros(len(scores), dtype=np.int64), np.full(len(scores), len(scores) - 1, dtype=np.int64)
    left, right = first.tolist(), final.tolist()
    open_runs: list[int] = []
    levels = scores.tolist()
    for run, level in enumerate(levels):
        while open_runs and levels[open_runs[-1]] > level:
            right[open_runs.pop()] = run - 1
        if open_runs:
            left[run] = open_runs[-1] + 1
        open_runs.append(run)
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)


def _whole_log2(runs: Runs, first: Ints, final: Ints) -> Ints:
    """floor(log2 of how many candidates there are from run `first` to run `final`), exactly; at least k = log2 of `last` for all of them."""
    before, upto = _marks(runs, first, 0), _marks(runs, final, 1)
    lengths = upto - before
    if lengths.dtype == object:
        return np.array([length.bit_length() - 1 for length in lengths.tolist()], dtype=np.int64)
    found = np.searchsorted(np.uint64(1) << np.arange(_WORD, dtype=np.uint64), lengths, side="right").astype(np.int64) - 1
    wrapped = (lengths == 0) | ((first == 0) & (final == len(runs.ends)))  # lengths of 2^64 and of 2^64 + 1, in words
    return np.where(wrapped, doubled(runs.last), found)


def _marks(runs: Runs, which: Ints, shift: int) -> Naturals:
    """One after the last candidate of run `which` - 1 + `shift`: modulo 2^64 in words."""
    if runs.ends.dtype == object or runs.last >> _WORD > 1:
        every = np.array([0, *(int(end) + 1 for end in runs.ends.tolist()), runs.last + 1], dtype=object)
    else:
        every = np.concatenate([np.zeros(1, dtype=np.uint64), runs.ends + np.uint64(1), np.array([(runs.last + 1) % (1 << _WORD)], dtype=np.uint64)])
    return every[which + shift]
