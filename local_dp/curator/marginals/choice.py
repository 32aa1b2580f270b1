"""Which mechanism answers a workload of marginals within a delta: by closed form, from public numbers alone, and why."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from local_dp.checks import check_whole
from local_dp.curator.marginals.base import DENSE, Marginals
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.loss import Approximate

Kind: TypeAlias = Literal["fourier", "nearest", "mst"]
MOST_CHARACTERS = 1 << 20
LITTLE = 50
"""Noise of one part in so many of the average cell, or less, is told as it is: the nearest table would hardly err less."""
MUCH = 8
"""Noise of more than one part in so many: on `fair`, where a spanning tree of pairs errs as much as the noise of all characters."""


@dataclass(frozen=True)
class Choice:
    """The mechanism, and the reason in one sentence."""

    kind: Kind
    reason: str


def choose(workload: Marginals, size: int, loss: Approximate) -> Choice:
    """For a table of `size` records: the Fourier mechanism where its noise is small against the average cell; else the table nearest to it, of up to 2^22 rows.

    With more rows there is no such table, and much noise makes it MST. It sees no record, so it costs nothing, and the reason may be told.
    """
    check_whole("the number of records", size, 1, 1 << 50)
    characters = len(workload.characters) - 1
    if characters > MOST_CHARACTERS:
        return Choice("mst", f"{characters:,} characters are too many to release; a tree of pairs takes {2 * workload.d - 1}")
    share = FourierGaussian(workload, loss.epsilon, loss.delta).deviation / size
    cell = len(workload.masks) / workload.cells
    told = f"noise of {share:.2g} of the records on a cell, {cell:.3g} on average"
    if share * LITTLE <= cell:
        return Choice("fourier", f"all characters at once have {told}: little, and no bias")
    if workload.d <= DENSE:
        return Choice("nearest", f"all characters at once have {told}, which the nearest table of 2^{workload.d} rows lessens")
    if share * MUCH <= cell:
        return Choice("fourier", f"all characters at once have {told}: no bias, and the 2^{workload.d} rows cannot be weighed")
    return Choice("mst", f"all characters at once would have {told}: too much, and the 2^{workload.d} rows cannot be weighed")
