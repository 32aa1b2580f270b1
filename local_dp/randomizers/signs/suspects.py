"""One parity named out of any list, more often one that the example rules out: sequential
elimination asks it of the survivors."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_built
from local_dp.cube import parity, sign, walsh_hadamard
from local_dp.errors import InputError
from local_dp.randomizers.finite import (
    OwnWeights,
    in_blocks,
    loses_little,
    too_narrow,
)
from local_dp.randomizers.signs.characters import OfExamples, masks_of, ruled_out
from local_dp.tallies import Estimate, Tally

BLOCK = 1 << 20  # entries of a table of clients and parities
WIDE = 1 << 10  # times the remainders of all divisions lies between the two weights


@dataclass(frozen=True, kw_only=True)
class Suspects(OwnWeights, OfExamples):
    """Names one parity w of m listed ones, e^eps times as likely one of the half that an example
    rules out, as y (-1)^<w, x> = -1.

    An example rules out R of the list, not always half of it, h = floor(m / 2). The half is rounded
    at random: R <= h have weight T, and the others share the rest equally; or R > h share what m -
    R of weight s leave. Without this the number R would betray the example. `masks` is the list as
    a `mask_set`; empty, it is all 2^d, and the law is that of `deny`. It estimates m Pr[w] - 1 for
    each listed w, 0 for one that is named as often as by chance. Privacy: every weight lies from s
    to T <= e^eps s. Utility: for large m a report separates a hidden one from others by (-ln(1 -
    1/C) - 1/C) / m nats, the most that is possible up to epsilon ln 3 (limits 12.3). Cost: log2 m
    bits, one word; O(m) a client. 1 <= d <= 12.
    """

    name = "suspects"
    summary = "Names one of several parities that an example rules out"
    source = "limits 12.3"
    masks: str = ""

    def check(self) -> None:
        check_built(self.domain, self.listed)

    @cached_property
    def listed(self) -> Counts:
        """The listed parities, ascending. Raises InputError for fewer than two."""
        members = masks_of(self.masks, self.d)
        if len(members) < 2:
            raise InputError(f"the list of masks has {len(members)} member; give two or more")
        return members

    @property
    def alphabet(self) -> int:
        return len(self.listed)

    @property
    def w(self) -> int:
        """h: how many are named more often."""
        return self.alphabet // 2

    def _fits(self, bits: int) -> bool:
        self.check()
        high, low = self._steps(bits)
        return high - low >= WIDE * self.alphabet**2 and loses_little(high, low, self.nano)

    def prepare(self) -> None:
        high, low = self._steps(self.word_bits)
        # what divisions leave over goes to one name, which must stay below T
        if high - low <= (self.alphabet + 1) ** 2:
            raise too_narrow(self)

    def ruled(self, values: Ints) -> Words:
        """Which of the list each example rules out, uint8, shape (n, m)."""
        return ruled_out(values.astype(np.uint16)[:, None], self.listed.astype(np.uint16))

    @cached_property
    def _parts(self) -> tuple[Counts, Counts, Words, Words, Counts]:
        """For each example: the kind of fixed weight (1: ruled out), their number, that weight, the
        share of each other, and the last of these."""
        values, m = self.domain.values(), self.alphabet
        step, parts = max(1, BLOCK // m), []
        for start in range(0, len(values), step):
            table = self.ruled(values[start : start + step])
            count = table.sum(axis=1, dtype=np.int64)
            kind = (count <= self.w).astype(np.int64)
            last = m - 1 - np.argmax(table[:, ::-1] != kind[:, None], axis=1)
            parts.append((kind, np.where(kind == 1, count, m - count), last))
        kind, fixed, last = (np.concatenate(each) for each in zip(*parts, strict=True))
        weight = np.where(kind == 1, np.uint64(self.held), np.uint64(self.other))
        pairs = zip(fixed.tolist(), weight.tolist(), strict=True)
        rest = [(self.total - number * each) // (m - number) for number, each in pairs]
        return kind, fixed, weight, np.array(rest, dtype=np.uint64), last

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return in_blocks(self._respond, values, words, block=max(1, BLOCK // self.alphabet))

    def _respond(self, values: Ints, words: Words) -> Words:
        kind, fixed, weight, share, _ = (part[values] for part in self._parts)
        number = fixed.astype(np.uint64)
        inside, wide = words.astype(np.uint64) // weight, number * weight
        beyond = (np.maximum(words, wide) - wide) // share
        is_fixed = inside < number
        others = np.minimum(beyond, np.uint64(self.alphabet - 1) - number)
        place = np.where(is_fixed, inside, others).astype(np.int64)
        of_kind = (self.ruled(values) == kind[:, None]) == is_fixed[:, None]
        before = np.cumsum(of_kind, axis=1) <= place[:, None]
        reports: Words = before.sum(axis=1).astype(self.report_dtype)
        return reports

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        values, reports = np.asarray(values, dtype=np.int64), np.asarray(reports, dtype=np.int64)
        kind, fixed, weight, share, last = (part[values] for part in self._parts)
        is_kind = (
            ruled_out(values.astype(np.uint16), self.listed[reports].astype(np.uint16)) == kind
        )
        others = (self.alphabet - fixed).astype(np.uint64)
        # 2^64 is no uint64
        left = (
            np.uint64(self.total - 1)
            - fixed.astype(np.uint64) * weight
            - others * share
            + np.uint64(1)
        )
        return np.where(is_kind, weight, np.where(reports == last, share + left, share))

    def truths(self, values: Ints) -> Floats:
        return np.asarray(self.alphabet * (self.rows(values, 0) / self.total) - 1)

    def law(self, r: int) -> Floats:
        """Pr[report] over uniform examples of the parity r, shape (m,)."""
        agreeing, excluding = self._name_chances
        bits = parity(np.arange(1 << self.d, dtype=np.uint64) & np.uint64(r))
        each = np.where(bits, agreeing[1], agreeing[0])
        other = np.where(bits, excluding[1], excluding[0])
        return self._over_examples((each + other) / 2, (each - other) / 2 * sign(bits))

    @cached_property
    def hidden(self) -> Floats:
        """Pr[w is named] over uniform examples of the parity w itself, shape (m,)."""
        agreeing, _ = self._name_chances
        return self._over_examples((agreeing[0] + agreeing[1]) / 2, (agreeing[0] - agreeing[1]) / 2)

    @cached_property
    def blind(self) -> Floats:
        """Pr[w is named] over uniform examples with random labels, shape (m,)."""
        agreeing, excluding = self._name_chances
        even = (agreeing + excluding).sum(axis=0) / 4
        more, less = agreeing - excluding
        return self._over_examples(even, (more - less) / 4)

    @cached_property
    def _name_chances(self) -> tuple[Floats, Floats]:
        """Pr[w | (x, y)] of a w that agrees with the example and of one that it rules out: each of
        shape (labels +1 and -1, 2^d)."""
        member = np.zeros(1 << self.d)
        member[self.listed] = 1
        m = self.alphabet
        sums = walsh_hadamard(member)
        high = self.held / self.total
        low = self.other / self.total
        count = np.stack([m - sums, m + sums]) / 2
        few = count <= self.w
        agreeing = np.where(few, (1 - count * high) / np.maximum(m - count, 1), low)
        return agreeing, np.where(few, high, (1 - (m - count) * low) / np.maximum(count, 1))

    def _over_examples(self, even: Floats, odd: Floats) -> Floats:
        """The mean over x of even(x) + odd(x) (-1)^<w, x>, for each listed w."""
        return np.asarray(even.mean() + walsh_hadamard(odd)[self.listed] / (1 << self.d))

    def estimate(self, tally: Tally) -> Estimate:
        """m Pr[w] - 1 for each listed w, unbiased, shape (m,)."""
        m, share = self.alphabet, tally.counts[0] / tally.answered
        error = m * np.sqrt(share * (1 - share) / tally.answered)
        return Estimate(m * share - 1, error, tally.answered)
