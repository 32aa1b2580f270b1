"""Tallies of finite channels: every report is counted in its cell, over block borders, and what is impossible is counted nowhere."""

import numpy as np
import pytest

from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard, SignedHadamard
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.projective import PGR


class ManyCells(GRR):
    """GRR with a coin of 2^16 cells, which it does not look at."""

    cells = property(lambda self: 1 << 16)


# no cell, of one byte and of two; 2,048 to 16,384 places, that two bytes name; more than they name
CHANNELS = [GRR(1.0, k=5), PGR(1.0, k=300), Hadamard(1.0, k=1024), OLH(1.0, k=1024), Hadamard(1.0, k=4096), SignedHadamard(1.0, k=4096), ManyCells(1.0, k=5)]


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: f"{channel.name} {channel.cells} x {channel.alphabet}")
@pytest.mark.parametrize("wider", [False, True])
def test_a_tally_counts_every_report_in_its_cell(channel: FiniteChannel, wider: bool) -> None:
    """As many of each report and cell as there are, in more than one block, whether a report comes in its own type or in eight bytes."""
    drawn, n = np.random.default_rng(5), 100_007
    cells = drawn.integers(0, channel.cells, n).astype(np.uint16)
    reports = drawn.integers(0, channel.alphabet, n).astype(np.uint64 if wider else channel.report_dtype)
    places = cells.astype(np.int64) * channel.alphabet + reports.astype(np.int64)
    counts = np.bincount(places, minlength=channel.cells * channel.alphabet).reshape(channel.cells, channel.alphabet)
    tally = channel.tally(reports, cells)
    assert tally.n == n
    assert np.array_equal(tally.counts, counts)
    assert np.array_equal(channel.tally(reports[:0], cells[:0]).counts, 0 * counts)


@pytest.mark.parametrize("channel", CHANNELS, ids=lambda channel: f"{channel.name} {channel.cells} x {channel.alphabet}")
def test_what_is_impossible_is_counted_nowhere(channel: FiniteChannel) -> None:
    """The largest number that a report's type holds, in the last cell, is not folded into the place of another report."""
    reports = np.full(1, np.iinfo(channel.report_dtype).max, dtype=channel.report_dtype)
    with pytest.raises(IndexError, match="out of bounds"):
        channel.tally(reports, np.full(1, channel.cells - 1, dtype=np.uint16))
