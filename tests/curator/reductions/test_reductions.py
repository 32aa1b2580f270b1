"""From a sanitizer to a learner: each step's loss and error."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from local_dp.curator.mechanism import Mechanism, SmallDatabases
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.reductions import learners
from local_dp.curator.reductions.learners import Amplified, LabelSanitizer, MediansByLabel
from local_dp.curator.sanitizers.medians import Medians, SparseMedians, Steps
from local_dp.draws import Draws
from local_dp.loss import Pure
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.oracle_efficient import OnesCounted
from tests.support.runs.scripted import seeded


@dataclass(frozen=True)
class Truth(Mechanism[Multiset, Steps, Pure]):
    """No sanitizer at all: the exact answers. Its loss is not what it says."""

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: Multiset, draws: Draws) -> Steps:
        upto = np.cumsum(database.counts) / max(1, database.size)
        ends = (database.values + 1).tolist()
        return Steps.of(database.bits, zip(ends, upto.tolist(), strict=True))


def resized(records: tuple[tuple[int], ...], size: int) -> Counter[int]:
    points = learners.resized(Multiset.of([value for (value,) in records], 2), size)
    return Counter(dict(zip(points.values.tolist(), points.counts.tolist(), strict=True)))


def test_resized_neighbours_are_neighbours() -> None:
    """A record removed or replaced before, at most one replaced after, whatever the size."""
    databases = SmallDatabases([(value,) for value in range(3)], 5, list)
    for records, others in (*databases.pairs("add-remove"), *databases.pairs("replace")):
        for size in range(9):
            one, two = resized(records, size), resized(others, size)
            assert one.total() == two.total() == size
            assert (one - two).total() <= 1


def labelled(m: int, bits: int, seed: int, share: float = 0.1001) -> tuple[LabelledMultiset, int]:
    """The needle: just over a tenth of the records beside the threshold, on both sides of it, the
    rest at both ends; and the threshold, odd."""
    generator = np.random.default_rng(seed)
    threshold = int.from_bytes(generator.bytes(bits // 8), "little") | 1
    points = np.array([0, threshold - 1, threshold, (1 << bits) - 1], dtype=np.uint64)
    counts = generator.multinomial(m, [0.5 - share, share, share, 0.5 - share])
    zeros = np.array([1, 1, 0, 0])
    return LabelledMultiset(bits, points, counts * zeros, counts * (1 - zeros)), threshold


@pytest.mark.parametrize("records", [10, 100])
def test_the_identity_errs_by_what_padding_costs(records: int) -> None:
    """6 records / t at every threshold, t the number of records; not 0."""
    database, threshold = labelled(20_000, 16, 1)
    release = LabelSanitizer(Truth(), records, 1.0).release(database, seeded(3))
    errors = []
    for at in (0, 1, threshold - 1, threshold, threshold + 1, 1 << 15, 1 << 16):
        below = database.values < at
        truth = (database.ones[below].sum() + database.zeros[~below].sum()) / database.size
        errors.append(abs(learners.threshold_error(release, at) - truth))
    assert 0 < max(errors) <= 6 * records / database.size
    assert all(size % records == 0 for size in release.sizes)


def test_amplified_is_a_mean_over_parts() -> None:
    """Twenty exact parts of 60 records: the mean answer is the whole database's. Parts are
    shuffled: of half 0 and half 1 each has near half."""
    points = Multiset.of(np.random.default_rng(0).integers(0, 256, 1200), 8)
    assert Amplified(Truth(), 60, learners.averaged).release(points, seeded(0)).error(points) < 1e-9
    halves = Multiset(1, np.array([0, 1], dtype=np.uint64), np.array([500, 500]))
    first = Amplified(Truth(), 500, lambda parts: parts[0]).release(halves, seeded(0))
    assert 0.35 < first.share(1) < 0.65
    refuse(
        (
            "1201 records",
            lambda: Amplified(Truth(), 60, learners.averaged).release(
                Multiset.of([1] * 1201, 8), seeded(0)
            ),
        ),
        ("records is 0", lambda: learners.learner_of_thresholds(Truth(), 0, 1.0)),
    )


def test_losses_are_carried() -> None:
    """Pure to pure, approximate to approximate: twice the sanitizer's and twice the sizes', not the
    printed 6 epsilon."""
    pure, sparse = Medians(1.0, 2), SparseMedians(1.0, 2)
    assert LabelSanitizer(OnesCounted(), 1, 1.0).loss == Pure(4 * 10**9)
    assert learners.learner_of_thresholds(pure, 100, 0.5).loss == Pure(3 * 10**9)
    assert learners.learner_of_thresholds(
        sparse, 100, 0.5
    ).loss == sparse.loss + sparse.loss + Pure(10**9)
    assert MediansByLabel(1.0, 3).loss == Pure(10**9)
