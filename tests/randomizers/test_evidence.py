"""The evidence of a loss, by its kinds: mixtures of corners, codes whose rows meet, parts behind
bits and coins; and tallies of finite channels."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import ClassVar

import numpy as np
import pytest

from local_dp.arrays import Counts, Ints, Words
from local_dp.errors import RefusedError
from local_dp.loss import Approximate, exp_epsilon
from local_dp.randomizers import evidence as met
from local_dp.randomizers.evidence import PROVEN, check_loss, exact_ratio, meetings
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard, SignedHadamard
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.numbers.rounded import RoundedGRR
from local_dp.randomizers.numbers.window import Piecewise
from local_dp.randomizers.randomizer import Evidence
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.verification.audit import verify
from tests.support.mechanisms.case import twin_of
from tests.support.wrong import wrong


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize(("steps", "groups"), [(1, 1), (7, 1), (5, 3)])
def test_the_loss_of_the_corners_is_that_of_the_whole_channel(
    epsilon: float, steps: int, groups: int
) -> None:
    """The ratio from the corners alone is the largest over every value, report and cell, one by
    one, and every row sums to one."""
    randomizer = RoundedGRR(epsilon, steps=steps, groups=groups)
    worst = Fraction(1)
    for cell in range(randomizer.cells):
        rows = randomizer.channel(cell).tolist()
        assert {sum(row) for row in rows} == {randomizer.total}
        worst = max(
            worst, *(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
        )
    assert exact_ratio(randomizer) == worst


def test_a_hundred_groups_of_65_537_numbers_are_verified() -> None:
    """Their channels have billions of entries; the corners' have some thousands."""
    randomizer = RoundedGRR(1.0, groups=100)
    assert randomizer.cells * randomizer.alphabet * randomizer.domain.size > 1 << 30
    assert abs(float(exact_ratio(randomizer)) - np.e) < 1e-5


class Beyond(RoundedGRR):  # one level is beyond its group's end
    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        first, second, level = super().between(values)
        return first, second, np.where(values == 3, self.steps + 1, level)


class Elsewhere(RoundedGRR):  # one corner is said to be another
    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        first, second, level = super().between(values)
        return np.where(values == 0, self.domain.high, first), second, level


class Uneven(RoundedGRR):  # the corners are no whole number of steps apart
    name: ClassVar[str] = "uneven"

    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        right, odd = super().corner_weight(reports, corners, cells), corners == 0
        more, less = odd & (reports == 0), odd & (reports == 1)
        weights: Words = right + more.astype(np.uint64) - less.astype(np.uint64)
        return weights


@wrong(
    "local_dp.randomizers.evidence:_lines",
    "between & (level >= 0) & (level <= randomizer.equal)",
    "between & (level >= 0)",
    "a value beyond its corners loses more than they do",
    at="rounded-grr-0",
)
@pytest.mark.parametrize(
    ("twin", "words"),
    [
        (Beyond(1.0, steps=5), "between two corners"),
        (Elsewhere(1.0, steps=5), "between two corners"),
        (Uneven(1.0, steps=5), "equal steps apart"),
    ],
    ids=lambda each: str(getattr(each, "name", "")),
)
def test_what_is_no_mixture_is_refused(twin: RoundedGRR, words: str) -> None:
    """A level beyond the end, a corner that is another, and corners that the steps do not
    divide."""
    with pytest.raises(RefusedError, match=words):
        exact_ratio(twin)


PAIRS = ((0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1))


def by_hand(code: Ints) -> set[tuple[int, ...]]:
    """Every way in which two different rows meet, counted place by place."""
    pairs = permutations(code.tolist(), 2)
    places = (list(zip(one, other, strict=True)) for one, other in pairs)
    return {tuple(each.count(pair) for pair in PAIRS) for each in places}


@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("seed", range(8))
def test_rows_meet_as_counted_by_hand(
    share: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On random codes of three symbols the ways are those that are counted by hand, with rows that
    meet so; and matrices find the same."""
    code = np.random.default_rng(seed).choice(3, (23, 17), p=(1 - 2 * share, share, share))
    ways = {meeting.counts: meeting.rows for meeting in meetings(code, PAIRS)}
    assert set(ways) == by_hand(code)
    for counts, (one, other) in ways.items():
        places = list(zip(code[one].tolist(), code[other].tolist(), strict=True))
        assert counts == tuple(map(places.count, PAIRS))
    monkeypatch.setattr(met, "MAX_KINDS", 0)
    # which counts a row with itself too
    others = {meeting.counts for meeting in meetings(code, PAIRS)}
    assert set(ways) - {(0,) * 6} == others - {(0,) * 6}


def test_unary_encoding_is_enumerated_without_a_product_of_matrices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 4,096 bits no two rows share a place, so nothing is counted pair by pair; with matrices it
    would be refused here."""
    monkeypatch.setattr(met, "_of_all", None)
    randomizer = OUE(1.0, k=4096)
    (meeting,) = meetings(randomizer.code, ((0, 1), (1, 0)))
    assert meeting.counts == (1, 1)
    assert met.exact_epsilon(randomizer) == pytest.approx(1.0, abs=1e-6)


def test_a_code_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    code = np.random.default_rng(1).integers(0, 8, (70, 4000))
    with pytest.raises(RefusedError, match="too many to enumerate"):
        list(meetings(code, list(permutations(range(8), 2))))
    monkeypatch.setattr(met, "MAX_ENTRIES", 10)
    with pytest.raises(RefusedError, match="too large"):
        meetings(np.eye(4, dtype=np.int64), ((0, 1), (1, 0)))


class OnlyAudited(BinaryRR):  # asks to be believed
    name: ClassVar[str] = "only-audited"
    evidence: ClassVar[Evidence] = "audited"


Gaussian = twin_of(BinaryRR, loss=lambda own, right: Approximate(10**9, 10**12))  # has a delta


def test_a_client_decides_which_evidence_it_accepts() -> None:
    """What is only audited is refused unless the client says otherwise, and so is any delta; what
    is proven is repeated, not believed."""
    with pytest.raises(RefusedError) as refusal:
        check_loss(OnlyAudited(1.0))
    assert refusal.value.code == "evidence"
    check_loss(OnlyAudited(1.0), PROVEN | {"audited"})
    with pytest.raises(RefusedError, match="delta"):
        check_loss(Gaussian(1.0))
    with pytest.raises(RefusedError, match="accepts product"):
        check_loss(BinaryRR(1.0), frozenset({"product"}))
    assert exact_ratio(BinaryRR(1.0)) <= exp_epsilon(10**9)


class ManyCells(GRR):  # GRR with a coin of 2^16 cells, which it does not look at
    cells = property(lambda self: 1 << 16)


# no cell, of one byte and of two; 2,048 to 16,384 places, that two bytes name; more than they name
CHANNELS = [
    GRR(1.0, k=5),
    PGR(1.0, k=300),
    Hadamard(1.0, k=1024),
    OLH(1.0, k=1024),
    Hadamard(1.0, k=4096),
    SignedHadamard(1.0, k=4096),
    ManyCells(1.0, k=5),
]


@pytest.mark.parametrize(
    "channel", CHANNELS, ids=lambda channel: f"{channel.name} {channel.cells} x {channel.alphabet}"
)
def test_what_is_impossible_is_counted_nowhere(channel: FiniteChannel) -> None:
    """The largest number that a report's type holds, in the last cell, is not folded into the place
    of another report."""
    reports = np.full(1, np.iinfo(channel.report_dtype).max, dtype=channel.report_dtype)
    with pytest.raises(IndexError, match="out of bounds"):
        channel.tally(reports, np.full(1, channel.cells - 1, dtype=np.uint16))


@dataclass(frozen=True)
class OneCorner(Piecewise):  # says that all rows are mixtures of the first one; they are not
    name: ClassVar[str] = "one-corner"

    @property
    def corners(self) -> Counts:
        return np.zeros(1, dtype=np.int64)

    def table(self) -> Words:
        weights = super().table().copy()
        weights[1:, 0] += weights[1:, -1]
        weights[1:, -1] = 0
        return weights


@wrong(
    "local_dp.randomizers.evidence:extremes",
    "isinstance(randomizer, NumberTable) and is_built_in",
    "isinstance(randomizer, NumberTable)",
    "a plug-in names the values from which its loss is computed, and leaves out those that leak",
)
def test_only_a_built_in_table_is_known_by_its_corners() -> None:
    """A class of somebody else is enumerated whole; of the built-in one the corners have the loss
    of all values."""
    with pytest.raises(RefusedError, match="that some value never sends"):
        verify(OneCorner(1.0, steps=512))
    own = Piecewise(1.0, steps=512)
    rows = own.channel()
    ends = zip(rows.max(axis=0).tolist(), rows.min(axis=0).tolist(), strict=True)
    assert exact_ratio(own) == max(Fraction(most, least) for most, least in ends)
