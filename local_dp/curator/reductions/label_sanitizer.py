"""A sanitizer of labelled databases from one of points: each label's points apart, their number noisy (Beimel, Nissim, Stemmer 2013, Lemma 5.4)."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.laws import probabilities, whole_weights
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Pure, nano_epsilon

E = TypeVar("E")
P = TypeVar("P", Pure, Approximate)
_LISTED = 1 << 10  # sizes


@dataclass(frozen=True)
class ByLabel(Generic[E]):
    """A release for the points of each label, None where there are none, and how many records each stands for."""

    zeros: E | None
    ones: E | None
    sizes: tuple[int, int]


@dataclass(frozen=True)
class LabelSanitizer(Mechanism[LabelledMultiset, ByLabel[E], P], Generic[E, P]):
    """The points of each label, made to be a multiple of `records` by repeating 0 or leaving out the largest, near their number plus discrete Laplace noise.

    `sanitizer` takes any positive multiple of `records` (`amplified`), and protects against a replaced record.
    Privacy: twice the sanitizer's and 2 `epsilon`: a replaced record moves both numbers by at most 1, and given the noisy numbers one record in each part.
    The text says 6 eps where both are eps: it counts the noisy numbers twice. Utility: 6 records / t more than the sanitizer's error, t the records, while the
    noise stays below records / 2. Source: Figure 12, Lemma 5.4.
    """

    sanitizer: Mechanism[Multiset, E, P]
    records: int
    epsilon: float

    def __post_init__(self) -> None:
        check_whole("records", self.records, 1, 1 << 40)
        nano_epsilon(self.epsilon)

    @property
    def loss(self) -> P:
        return self.sanitizer.loss + self.sanitizer.loss + Pure(2 * nano_epsilon(self.epsilon))

    def release(self, database: LabelledMultiset, draws: Draws) -> ByLabel[E]:
        found: list[E | None] = []
        sizes = []
        for label in (0, 1):
            points = database.labelled(label)
            noisy = points.size + draws.discrete_laplace(Fraction(nano_epsilon(self.epsilon), NANO))
            size = self._rounded(min(database.size, max(0, noisy)))
            sizes.append(size)
            found.append(self.sanitizer.release(resized(points, size), draws) if size else None)
        return ByLabel(found[0], found[1], (sizes[0], sizes[1]))

    def law(self, database: LabelledMultiset) -> Law[ByLabel[E]]:
        """With e^eps, for the numbers of records, replaced by a fraction just below it (relative gap 1e-50)."""
        zeros, ones = (self._label_law(database.labelled(label), database.size) for label in (0, 1))
        return {ByLabel(zero, one, (size, other)): weight * more for (size, zero), weight in zeros.items() for (other, one), more in ones.items()}

    def _label_law(self, points: Multiset, total: int) -> dict[tuple[int, E | None], int]:
        """Of the number of records and the release of one label."""
        if total > _LISTED:
            raise InputError(f"there are {total} records; a law is listed up to {_LISTED}")
        shares: dict[int, Fraction] = {}
        for noisy, chance in probabilities(ClippedLaplace(nano_epsilon(self.epsilon), 1, total).law(points.size)).items():
            shares[self._rounded(noisy)] = shares.get(self._rounded(noisy), Fraction(0)) + chance
        found: dict[tuple[int, E | None], Fraction] = {}
        for size, share in shares.items():
            if not size:
                found[size, None] = share
                continue
            law = self.sanitizer.law(resized(points, size))
            found |= {(size, released): share * Fraction(weight, sum(law.values())) for released, weight in law.items()}
        return dict(whole_weights(found))

    def _rounded(self, noisy: int) -> int:
        """The nearest multiple of `records`."""
        return (2 * noisy + self.records) // (2 * self.records) * self.records


def label_sanitizer(sanitizer: Mechanism[Multiset, E, P], records: int, epsilon: float) -> LabelSanitizer[E, P]:
    """A sanitizer of the class with labels from one of the class that takes any positive multiple of `records`: Lemma 5.4."""
    return LabelSanitizer(sanitizer, records, epsilon)


def resized(points: Multiset, size: int) -> Multiset:
    """As many records as wanted: 0 is repeated, or the largest left out. Databases of sizes that differ by an added record become ones with one replaced."""
    upto = np.cumsum(points.counts)
    missing = size - points.size
    if missing < 0:
        counts = np.diff(np.minimum(upto, size), prepend=0)
        return Multiset(points.bits, points.values[counts > 0], counts[counts > 0])
    values, counts = np.insert(points.values, 0, 0), np.insert(points.counts, 0, missing)
    if len(points.values) and not points.values[0]:
        values, counts = points.values, points.counts + np.eye(1, len(points.counts), dtype=np.int64)[0] * missing
    return Multiset(points.bits, values[counts > 0], counts[counts > 0])
