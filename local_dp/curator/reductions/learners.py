"""From a sanitizer to a learner (Beimel, Nissim, Stemmer 2013, Section 5): larger databases,
labels, and thresholds (Theorem 5.5).

Thresholds are also learned without amplification, by trees of medians.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product
from typing import Generic, TypeVar

import numpy as np

from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.mechanism import (
    D,
    Law,
    Mechanism,
    OfRelease,
    check_listed,
    image,
    independent,
    probabilities,
    whole_weights,
)
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.sanitizers.medians import Medians, Steps
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Approximate, Loss, Pure, nano_epsilon

E = TypeVar("E")
P = TypeVar("P", Pure, Approximate)
_LISTED = 1 << 10  # sizes


@dataclass(frozen=True)
class ByLabel(Generic[E]):
    """A release for the points of each label, None where there are none, and their numbers of
    records."""

    zeros: E | None
    ones: E | None
    sizes: tuple[int, int]


@dataclass(frozen=True)
class LabelSanitizer(Mechanism[LabelledMultiset, ByLabel[E], P], Generic[E, P]):
    """A sanitizer of labelled databases from `sanitizer`, which takes any positive multiple of
    `records` records (`Amplified`).

    The points of each label become a multiple of `records` near their number plus discrete Laplace
    noise: 0 is repeated, or the largest are left out. Privacy: twice the sanitizer's and 2
    `epsilon`: a replaced record moves both numbers by at most 1, and given the noisy numbers one
    record in each part. Utility: 6 records / t more than the sanitizer's error, t the records,
    while the noise stays below records / 2. Source: Figure 12, Lemma 5.4.
    """

    summary = "Sanitizes the points of each label apart"
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
        noise = ClippedLaplace(nano_epsilon(self.epsilon), 1, database.size)

        def part(label: int) -> tuple[int, E | None]:
            points = database.labelled(label)
            size = self._rounded(noise.add(points.size, draws))
            return size, self.sanitizer.release(resized(points, size), draws) if size else None

        (zeros, zero), (ones, one) = part(0), part(1)
        return ByLabel(zero, one, (zeros, ones))

    def law(self, database: LabelledMultiset) -> Law[ByLabel[E]]:
        """With e^eps, for the numbers of records, replaced by a fraction just below it (relative
        gap 1e-50)."""
        zeros, ones = (self._label_law(database.labelled(label), database.size) for label in (0, 1))
        return {
            ByLabel(zero, one, (size, other)): weight
            for ((size, zero), (other, one)), weight in independent([zeros, ones])
        }

    def _label_law(self, points: Multiset, total: int) -> Law[tuple[int, E | None]]:
        """Of the number of records and the release of one label."""
        check_listed(f"{total} records", total, _LISTED)
        noisy = ClippedLaplace(nano_epsilon(self.epsilon), 1, total).law(points.size)
        sizes = probabilities(image(noisy, self._rounded))
        outcomes: dict[tuple[int, E | None], Fraction] = {(0, None): sizes.pop(0, Fraction(0))}
        for size, share in sizes.items():
            law = probabilities(self.sanitizer.law(resized(points, size)))
            outcomes |= {(size, release): share * chance for release, chance in law.items()}
        return whole_weights(outcomes)

    def _rounded(self, noisy: int) -> int:
        return (2 * noisy + self.records) // (2 * self.records) * self.records


def resized(points: Multiset, size: int) -> Multiset:
    """`size` records: 0 is repeated, or the largest are left out. Databases that differ by one
    added record become neighbours by replacement."""
    upto = np.cumsum(points.counts)
    missing = size - points.size
    if missing < 0:
        counts = np.diff(np.minimum(upto, size), prepend=0)
        return Multiset(points.bits, points.values[counts > 0], counts[counts > 0])
    values, counts = np.insert(points.values, 0, 0), np.insert(points.counts, 0, missing)
    if len(points.values) and not points.values[0]:
        values, counts = points.values, points.counts.copy()
        counts[0] += missing
    return Multiset(points.bits, values[counts > 0], counts[counts > 0])


L = TypeVar("L", bound=Loss)


@dataclass(frozen=True)
class Amplified(Mechanism[Multiset, E, L], Generic[E, L]):
    """Databases of any positive multiple of `records` records, shuffled and cut into parts of that
    many, each sanitized; `average` joins the releases.

    Privacy: the sanitizer's: whatever the shuffle, a replaced record changes one part. Utility:
    from an (alpha, beta)-sanitizer, alpha + 2 beta except with probability beta, given (18 / beta)
    ln(1 / beta) parts: by Chernoff few of them fail. Cost: O(m log m), m records. Source: Lemma 5.1
    with averages of answers for its synthetic databases of one size, which cost another alpha
    (erratum E13).
    """

    summary = "Sanitizes a large database by parts, and averages"
    sanitizer: Mechanism[Multiset, E, L]
    records: int
    average: Callable[[Sequence[E]], E]

    def __post_init__(self) -> None:
        check_whole("records", self.records, 1, 1 << 40)

    @property
    def loss(self) -> L:
        return self.sanitizer.loss

    def release(self, database: Multiset, draws: Draws) -> E:
        parts, rest = divmod(database.size, self.records)
        if rest or not parts:
            raise InputError(
                f"there are {database.size} records; give a positive multiple of {self.records}"
            )
        points = np.repeat(database.values, database.counts)
        shuffled = points[draws.order(len(points))].reshape(parts, self.records)
        cuts = [Multiset.of(part, database.bits) for part in shuffled]
        return self.average([self.sanitizer.release(part, draws) for part in cuts])

    def law(self, database: Multiset) -> Law[E]:
        """By all orders of at most 6 records."""
        check_listed(f"{database.size} records", database.size, 6)
        orders = list(permutations(np.repeat(database.values, database.counts).tolist()))
        averages: defaultdict[E, Fraction] = defaultdict(Fraction)
        for order in orders:
            parts = [
                Multiset.of(order[start : start + self.records], database.bits)
                for start in range(0, database.size, self.records)
            ]
            laws = [probabilities(self.sanitizer.law(part)) for part in parts]
            for releases, share in independent(laws):
                averages[self.average(releases)] += share / len(orders)
        return whole_weights(averages)


H = TypeVar("H")


@dataclass(frozen=True)
class Processed(OfRelease[D, H, L], Generic[D, E, H, L]):
    """A `function` of a release. Privacy: the mechanism's, pure or approximate.

    A proper learner from a sanitizer of the class with labels, if `function` gives the hypothesis
    that errs least on the release. Utility: from an (alpha, beta)-sanitizer, error 2 alpha + gamma
    except with probability 2 beta, given (50 VC / gamma^2) ln(1 / (gamma beta)) examples. Source:
    Lemma 5.3.
    """

    summary = "Applies a function to another release"
    mechanism: Mechanism[D, E, L]
    function: Callable[[E], H]

    def after(self, release: E) -> H:
        return self.function(release)


def best_threshold(release: ByLabel[Steps]) -> int:
    """The t that errs least on the release, x >= t being labelled 1: the middle of the first best
    step."""
    starts = sorted(
        {0, *(start for steps in (release.zeros, release.ones) if steps for start in steps.starts)}
    )
    errors = [threshold_error(release, start) for start in starts]
    best = min(range(len(starts)), key=errors.__getitem__)
    last = starts[best + 1] - 1 if best + 1 < len(starts) else starts[best]
    return (starts[best] + last) // 2


def threshold_error(release: ByLabel[Steps], threshold: int) -> float:
    """The estimated share of wrong labels: zeros from the threshold on, ones below it."""
    zeros, ones = release.sizes
    wrong = zeros * (1 - release.zeros.share(threshold)) if release.zeros else 0.0
    wrong += ones * release.ones.share(threshold) if release.ones else 0.0
    return wrong / max(1, zeros + ones)


def averaged(releases: Sequence[Steps]) -> Steps:
    starts = sorted({start for steps in releases for start in steps.starts})
    shares = (sum(steps.share(start) for steps in releases) / len(releases) for start in starts)
    return Steps(releases[0].bits, tuple(starts), tuple(shares))


def learner_of_thresholds(
    sanitizer: Mechanism[Multiset, Steps, P], records: int, epsilon: float
) -> Processed[LabelledMultiset, ByLabel[Steps], int, P]:
    """Theorem 5.5: a proper learner from any sanitizer of thresholds on `records` records,
    `epsilon` for the number of each label's records.

    Privacy: twice the sanitizer's and 2 epsilon. Utility: 15 alpha + 12 beta except with
    probability 10 beta for an (alpha, beta)-sanitizer, given (150 / (alpha^2 beta)) ln(2 / (alpha
    beta)) (records + 1 / epsilon) examples.
    """
    return Processed(
        LabelSanitizer(Amplified(sanitizer, records, averaged), records, epsilon), best_threshold
    )


@dataclass(frozen=True)
class MediansByLabel(Mechanism[LabelledMultiset, ByLabel[Steps], Pure]):
    """A tree of medians for the points of each label, and the number of ones with discrete Laplace
    noise: no amplification is needed.

    Privacy: epsilon, a tenth of it for the number. The label is one more bit at the top of the
    tree: a changed label removes a record from one tree and adds one to the other, at half the loss
    of a replaced record each (`Medians`).
    """

    summary = "Cuts the points of each label at noisy medians"
    epsilon: float
    levels: int
    low: int = 10

    def __post_init__(self) -> None:
        self._medians()

    @property
    def loss(self) -> Pure:
        return self._medians().loss + self._number

    def release(self, database: LabelledMultiset, draws: Draws) -> ByLabel[Steps]:
        zeros, ones = (self._medians().release(database.labelled(label), draws) for label in (0, 1))
        number = ClippedLaplace(self._number.nano, 1, database.size).add(
            int(database.ones.sum()), draws
        )
        return ByLabel(zeros, ones, (database.size - number, number))

    def law(self, database: LabelledMultiset) -> Law[ByLabel[Steps]]:
        zeros, ones = (self._medians().law(database.labelled(label)) for label in (0, 1))
        numbers = ClippedLaplace(self._number.nano, 1, database.size).law(int(database.ones.sum()))
        law, laws = (
            dict[ByLabel[Steps], int](),
            product(zeros.items(), ones.items(), numbers.items()),
        )
        for (zero, less), (one, more), (number, weight) in laws:
            law[ByLabel(zero, one, (database.size - number, number))] = less * more * weight
        return law

    @property
    def _number(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon) // 10)

    def _medians(self) -> Medians:
        return Medians(
            (nano_epsilon(self.epsilon) - self._number.nano) / NANO, self.levels, self.low
        )
