"""One-bit parities over a list of masks: a public coin picks a mask from the list, the client randomizes its example's parity with it."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Ints, Words
from local_dp.checks import check_built, check_dimension
from local_dp.cube import parity
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.randomizers.one_bit import OneBit
from local_dp.tallies import Estimate, Tally

MAX_BITS = 12  # the channel over all 2^12 masks is the largest that a client can verify


def examples(d: int) -> Domain:
    """A labelled example (x, y) of parity over d bits, as the number 2 x + 1(y = -1). 1 <= d <= 12."""
    check_dimension(d, MAX_BITS)
    return Domain("labelled examples", 0, (2 << d) - 1)


def mask_set(masks: Counts, d: int) -> str:
    """A set of masks of d bits as text: the hexadecimal form of its 2^d-bit indicator."""
    member = np.zeros(1 << d, dtype=np.uint8)
    member[masks] = 1
    return np.packbits(member, bitorder="little").tobytes().hex()


@dataclass(frozen=True, kw_only=True)
class Characters(OneBit):
    """Reports y (-1)^<s, x>, randomized, for the labelled example (x, y) of d bits and a public mask s from the list `masks`.

    `masks` is `mask_set` of a power of two of them; empty, it is every mask. Estimates the mean of y (-1)^<s, x> for each mask on the list, ascending.
    Privacy: binary randomized response for every mask. Utility: variance (C^2 - m^2) / n_s with n_s the clients that drew s, about n / (list length).
    Cost: 1 bit; no transform.
    """

    name: ClassVar[str] = "characters"
    source: ClassVar[str] = "KLNRS 2008, Section 4.3, parity queries under a public coin (limits 4.2)"
    estimates: ClassVar[str] = "parities"
    d: int = 1
    masks: str = ""

    def check(self) -> None:
        check_built(self.domain, self.listed)

    @cached_property
    def listed(self) -> Counts:
        """The masks on the list, ascending."""
        if self.masks == "":
            return np.arange(1 << self.d, dtype=np.int64)
        try:
            packed = np.frombuffer(bytes.fromhex(self.masks), dtype=np.uint8)
        except (TypeError, ValueError):
            raise InputError(f"the list of masks is {self.masks!r:.40}; give hexadecimal digits") from None
        members = np.flatnonzero(np.unpackbits(packed, bitorder="little"))
        if len(packed) != max(1, (1 << self.d) // 8) or len(members) == 0 or int(members[-1]) >= 1 << self.d or len(members).bit_count() != 1:
            raise InputError(f"the list of masks has {len(members)} members in {len(packed)} bytes; give a power of two of the 2^{self.d} masks")
        return members.astype(np.int64)

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    @property
    def cells(self) -> int:
        return len(self.listed)

    def encode(self, values: Ints, cells: Ints) -> Words:
        signed = (2 * self.listed[cells.astype(np.int64)] + 1).astype(np.uint32)  # the last bit of the value is the label's
        return parity(values.astype(np.uint32) & signed)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of y (-1)^<s, x> for each mask on the list, unbiased, shape (list length,); 0 with infinite error for a mask that no client drew."""
        n, sizes = tally.answered, tally.counts.sum(axis=1)
        signs = (tally.counts[:, 0] - tally.counts[:, 1]).astype(np.float64)
        drawn = np.maximum(sizes, 1)
        mean = self.gain * signs / drawn
        error = np.sqrt(np.maximum(self.gain**2 - mean**2, 0.0) / drawn)
        return Estimate(mean, np.where(sizes > 0, error, np.inf), n)
