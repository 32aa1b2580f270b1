"""Parities of a labelled example: one bit about a public mask from a list, or one parity named out
of all, more often one that the example rules out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_built, check_dimension
from local_dp.cube import parity
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.randomizers.finite import OneBit, OneThreshold
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Tally

MAX_BITS = 12  # the channel over all 2^12 masks is the largest that a client can verify


def examples(d: int) -> Domain:
    """A labelled example (x, y) of parity over d bits, as the number 2 x + 1(y = -1). 1 <= d <=
    12."""
    check_dimension(d, MAX_BITS)
    return Domain("labelled examples", 0, (2 << d) - 1)


def mask_set(masks: Counts, d: int) -> str:
    """A set of masks of d bits as text: the hexadecimal form of its 2^d-bit indicator."""
    member = np.zeros(1 << d, dtype=np.uint8)
    member[masks] = 1
    return np.packbits(member, bitorder="little").tobytes().hex()


def masks_of(masks: str, d: int) -> Counts:
    """The members of a `mask_set`, ascending; of the empty text every mask of d bits. Raises
    InputError."""
    if masks == "":
        return np.arange(1 << d, dtype=np.int64)
    try:
        indicator = np.frombuffer(bytes.fromhex(masks), dtype=np.uint8)
    except (TypeError, ValueError):
        raise InputError(f"the list of masks is {masks!r:.40}; give hexadecimal digits") from None
    members = np.flatnonzero(np.unpackbits(indicator, bitorder="little"))
    if len(indicator) != max(1, (1 << d) // 8) or len(members) == 0 or int(members[-1]) >= 1 << d:
        raise InputError(
            f"the list of masks has {len(members)} members in {len(indicator)} bytes; give one to "
            f"all of the 2^{d} masks"
        )
    return members.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class OfExamples(Randomizer):
    """A randomizer of a labelled example of parity over d bits. It estimates parities."""

    estimates = "parities"
    d: int = 1

    @property
    def domain(self) -> Domain:
        return examples(self.d)

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"d": (size - 1).bit_length()}


@dataclass(frozen=True, kw_only=True)
class Characters(OneBit, OfExamples):
    """Reports y (-1)^<s, x>, randomized, for the labelled example (x, y) of d bits and a public
    mask s from the list `masks`.

    `masks` is `mask_set` of a power of two of them; empty, it is every mask. Estimates the mean of
    y (-1)^<s, x> for each mask on the list, ascending. Privacy: binary randomized response for
    every mask. Utility: variance (C^2 - m^2) / n_s, n_s about n / (list length). Cost: 1 bit; no
    transform.
    """

    name = "characters"
    summary = "Reports a parity of an example under a public mask"
    source = "KLNRS 2008, Section 4.3, parity queries under a public coin (limits 4.2)"
    masks: str = ""

    def check(self) -> None:
        check_built(self.domain, self.listed)

    @cached_property
    def listed(self) -> Counts:
        """The masks on the list, ascending."""
        members = masks_of(self.masks, self.d)
        if len(members).bit_count() != 1:
            raise InputError(
                f"the list of masks has {len(members)} members; give a power of two of the "
                f"2^{self.d} masks"
            )
        return members

    @property
    def cells(self) -> int:
        return len(self.listed)

    def encode(self, values: Ints, cells: Ints) -> Words:
        # the last bit of the value is the label's
        signed = (2 * self.listed[cells.astype(np.int64)] + 1).astype(np.uint32)
        return parity(values.astype(np.uint32) & signed)

    def truths(self, values: Ints) -> Floats:
        return 1 - 2 * self.encode(values[:, None], np.arange(self.cells)).astype(np.float64)

    def variance(self, values: Ints, law: Floats) -> Floats:
        """One client in so many as there are masks draws each."""
        return self.cells * super().variance(values, law)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of y (-1)^<s, x> for each mask on the list, unbiased, shape (list length,); 0
        with infinite error for a mask that no client drew."""
        n, sizes = tally.answered, tally.counts.sum(axis=1)
        signs = (tally.counts[:, 0] - tally.counts[:, 1]).astype(np.float64)
        clients = np.maximum(sizes, 1)
        mean = self.gain * signs / clients
        error = np.sqrt(np.maximum(self.gain**2 - mean**2, 0.0) / clients)
        return Estimate(mean, np.where(sizes > 0, error, np.inf), n)


@dataclass(frozen=True, kw_only=True)
class Deny(OneThreshold, OfExamples):
    """Names a uniform parity w with y (-1)^<w, x> = -1 with probability E / (E + 1), else a uniform
    one with +1; any of the 2^d where x = 0.

    A uniform name of the wrong kind becomes one of the right kind by flipping one bit of w, the
    lowest that is set in x: no table, no rejection. It estimates the mean of y (-1)^<w, x> 1(x !=
    0) for each w. Privacy: T / F <= E, F = ceil(2^(b - d) / (E + 1)), T = 2^(b - d) - F, words of b
    bits. Utility: variance about C^2 2^d / n each. One round finds a parity from 1.2 d C^2 2^d
    clients, for epsilon up to ln 3 the fewest of all randomizers as d grows (limits 12.2). Cost: d
    bits, one word. 1 <= d <= 12.
    """

    name = "deny"
    summary = "Names a parity, more often one that the example rules out"
    source = "limits 12.2"

    @property
    def spare(self) -> int:
        """d: the last bits of a word are the uniform name. Raises InputError unless 1 <= d <=
        12."""
        examples(self.d)
        return self.d

    @property
    def alphabet(self) -> int:
        return 1 << self.d

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        word, short = words.dtype.type, np.uint16
        labelled = values.astype(short)
        names = words.astype(short) & short(self.alphabet - 1)
        agree = (words < word(self.flip << self.d)).view(np.uint8)
        # ruled out where it should agree, or the reverse
        wrong = ruled_out(labelled, names) == agree
        x = labelled >> short(1)
        names ^= (x & (~x + short(1))) * wrong  # the lowest set bit of x: none where x = 0
        return names.astype(self.report_dtype, copy=False)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        labelled = np.asarray(values).astype(np.uint16)
        names = np.asarray(reports).astype(np.uint16)
        kinds = np.where(
            ruled_out(labelled, names),
            np.uint64(2 * (self.whole - self.flip)),
            np.uint64(2 * self.flip),
        )
        return np.where(labelled >> np.uint16(1), kinds, np.uint64(self.whole))

    def truths(self, values: Ints) -> Floats:
        labelled = values.astype(np.uint16)[:, None]
        return np.where(
            labelled > 1,
            1.0 - 2 * ruled_out(labelled, np.arange(self.alphabet, dtype=np.uint16)),
            0.0,
        )

    def law(self, r: int) -> Floats:
        """Pr[report w] over uniform examples of the parity r, shape (2^d,): 2^-d (1 + 2^-d / C),
        and 2^-d / C less at w = r."""
        law = np.full(self.alphabet, (1 + 1 / (self.alphabet * self.gain)) / self.alphabet)
        law[r] -= 1 / (self.alphabet * self.gain)
        return law

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of y (-1)^<w, x> 1(x != 0) for each w, unbiased, shape (2^d,)."""
        n = tally.answered
        share = tally.counts[0] / n
        factor = self.gain * self.alphabet
        return Estimate(self.gain - factor * share, factor * np.sqrt(share * (1 - share) / n), n)


def ruled_out(labelled: Words, names: Words) -> Words:
    """1 where y (-1)^<w, x> = -1: the last bit of an example is the label's."""
    return parity(labelled & (names << np.uint16(1) | np.uint16(1)))
