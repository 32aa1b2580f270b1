"""Learners of points; and learners that protect the labels alone, or have public points, by the
dichotomies of a class: its ways to label given points."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, Self

import numpy as np

from local_dp.arrays import Bools, Counts, Ints, Naturals
from local_dp.checks import check_whole
from local_dp.curator.mechanism import Law, Neighbours, R_co, WithinDelta, check_listed
from local_dp.curator.multisets import (
    LabelledMultiset,
    Multiset,
    absent,
    check_bits,
    check_same,
    upto,
)
from local_dp.curator.selection.exponential import LISTED, ByScore, numbered
from local_dp.curator.selection.groups import Groups, Singles
from local_dp.curator.selection.stable import Lead, StableChoice, best_acceptance
from local_dp.draws import Draws
from local_dp.errors import InputError


@dataclass(frozen=True)
class BucketClass:
    """The hypotheses [h_i(x) = b] for public hashes h_0, h_1, ... into 2^width buckets, and the
    zero function, number 0.

    `masks[i]` has `width` masks r of `bits` bits, and h_i(x) is the bits <r, x>. Uniform masks make
    h_i(x) xor h_i(y) uniform for x != y, so two points share a bucket with probability exactly
    2^-width. A point has a hypothesis within alpha except with probability at most (2^-width /
    alpha)^hashes (Markov): .023 for 8 hashes of 16 buckets at alpha .1. Source: Beimel, Nissim,
    Stemmer 2013b (characterizing pure learners); for thresholds that dimension grows with the bits
    (Feldman, Xiao 2014).
    """

    bits: int
    masks: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        check_bits(self.bits)
        widths = {len(masks) for masks in self.masks}
        if len(widths) != 1 or not 1 <= self.width <= 10:
            raise InputError(
                "the hashes have no masks, different numbers of masks, or more than 10; give each "
                "hash the same number, 1 to 10"
            )
        every = [mask for masks in self.masks for mask in masks]
        if any(type(mask) is not int or not 0 <= mask < 1 << self.bits for mask in every):
            raise InputError(
                f"a mask does not fit the domain; give whole numbers of {self.bits} bits"
            )

    @classmethod
    def drawn(cls, bits: int, coins: Draws, hashes: int = 8, width: int = 4) -> Self:
        """Draws the masks from public coins."""
        check_bits(bits)
        check_whole("hashes", hashes, 1, 1 << 10)
        check_whole("width", width, 1, 10)
        masks = (tuple(coins.below(1 << bits) for _ in range(width)) for _ in range(hashes))
        return cls(bits, tuple(masks))

    @property
    def width(self) -> int:
        return len(self.masks[0])

    @property
    def size(self) -> int:
        return 1 + (len(self.masks) << self.width)

    def hash(self, number: int, points: Naturals) -> Ints:
        """The bucket of each point under one hash."""
        buckets = np.zeros(len(points), dtype=np.int64)
        for bit, mask in enumerate(self.masks[number]):
            buckets |= parities(points, mask) << bit
        return buckets

    def predict(self, hypothesis: int, points: Naturals) -> Bools:
        if not hypothesis:
            return np.zeros(len(points), dtype=bool)
        number, bucket = divmod(hypothesis - 1, 1 << self.width)
        return np.asarray(self.hash(number, points) == bucket)

    def errors(self, examples: LabelledMultiset) -> Counts:
        """The number of examples that each hypothesis misclassifies, shape (size,). O(hashes s) and
        a table."""
        check_same(examples.bits, self.bits)
        gain, positive = examples.zeros - examples.ones, int(examples.ones.sum())
        errors = [np.array([positive])]
        for number in range(len(self.masks)):
            change = np.zeros(1 << self.width, dtype=np.int64)
            np.add.at(change, self.hash(number, examples.values), gain)
            errors.append(positive + change)
        return np.concatenate(errors)


def parities(points: Naturals, mask: int) -> Counts:
    """<mask, x> mod 2 for each point x."""
    if points.dtype == object:
        return np.array(
            [(mask & point).bit_count() & 1 for point in points.tolist()], dtype=np.int64
        )
    return np.asarray(np.bitwise_count(points & np.uint64(mask)) & 1, dtype=np.int64)


@dataclass(frozen=True)
class BucketPointLearner(ByScore[LabelledMultiset, int]):
    """A hypothesis of a bucket class, by its number, with probability proportional to e^(-eps
    (errors) / 2): private Occam on a representation of points.

    Privacy: eps. Utility: a point is learned within alpha .1 from 140 examples at eps 1, at any
    number of bits. Cost: O(hashes s). Source: KLNRS 2008, Theorem 3.7, on `BucketClass`.
    """

    summary = "Learns a point from classes of buckets"
    hypotheses: BucketClass
    epsilon: float

    def candidates(self, database: LabelledMultiset) -> Groups[int]:
        """A replaced example moves the errors of a hypothesis by at most 1."""
        return numbered(-self.hypotheses.errors(database))


class AllPoints(Groups[int]):
    """The points that occur, scored by their counts, and all others of the domain as one group of
    score 0."""

    def __init__(self, points: Multiset) -> None:
        others = (1 << points.bits) - len(points.values)
        fits = points.values.dtype != object and others >> 64 == 0
        self.scores: Ints = np.append(points.counts, 0)
        sizes = [1] * len(points.values) + [others]
        self.sizes: Naturals = np.array(sizes, dtype=np.uint64 if fits else object)
        self._values = points.values

    def member(self, group: int, place: int) -> int:
        if group < len(self._values):
            return int(self._values[group])
        return absent(self._values, [place])[0]


@dataclass(frozen=True)
class ProperPointLearner(ByScore[LabelledMultiset, int]):
    """A point x with probability proportional to e^(eps q(x) / 2), q(x) the number of examples (x,
    1).

    Privacy: eps. Utility: within alpha .1 of the target with 302 examples at 2^16 points, 90 % and
    eps 1, and 1,018 at 2^64 (`bounds.packing.pure_success`). Cost: that of the points that occur,
    and one power of 2 bits / eps factors. Source: KLNRS 2008, Theorem 3.7; Beimel, Nissim, Stemmer
    2013, Section 3.1.
    """

    summary = "Learns a point by the exponential mechanism"
    epsilon: float

    def candidates(self, database: LabelledMultiset) -> AllPoints:
        """A replaced example moves a multiplicity by at most 1."""
        return AllPoints(database.labelled(1))


def leading_point(examples: LabelledMultiset) -> Lead[int]:
    """The point most often labelled 1, the lowest of those that tie, and its lead; 0 without a lead
    if no label is 1."""
    second, first = np.partition(np.append(examples.ones, (0, 0)), -2)[-2:].tolist()
    if not first:
        return Lead(0, 0)
    return Lead(int(examples.values[np.argmax(examples.ones)]), first - second)


@dataclass(frozen=True)
class PointLearner(WithinDelta[LabelledMultiset, int | None]):
    """The point x whose examples (x, 1) lead by enough, by stable choice; otherwise None, the
    all-zero hypothesis, or a uniform point.

    The hypothesis x is 1 at x alone. `otherwise` "zero" is proper in the points with the all-zero
    function added, "uniform" in the points alone. Privacy: (eps, delta): a replaced example moves
    the multiplicity of (x, 1) by at most 1. Utility: within alpha .1 of the target with 345
    examples at 90 % and (1, 1e-6), 192 at delta 1e-3, whatever the domain
    (`bounds.packing.stable_success`). A uniform point errs by 2 alpha in the worst case (erratum
    E3), hardly ever in a large domain (`uniform_success`). Cost: one pass. Source: Beimel, Nissim,
    Stemmer 2013, Lemma 3.2 and Remark 3.3, on stable choice repaired (E1).
    """

    summary = "Learns the point that is labelled most often"
    epsilon: float
    delta: float
    otherwise: Literal["zero", "uniform"] = "zero"

    def __post_init__(self) -> None:
        best_acceptance(self.loss)
        if self.otherwise not in ("zero", "uniform"):
            raise InputError(f"otherwise is {self.otherwise!r}; give 'zero' or 'uniform'")

    @property
    def choice(self) -> StableChoice[LabelledMultiset, int]:
        return StableChoice(leading_point, self.epsilon, self.delta)

    def release(self, database: LabelledMultiset, draws: Draws) -> int | None:
        point = self.choice.release(database, draws)
        if point is None and self.otherwise == "uniform":
            return draws.below(1 << database.bits)
        return point

    def law(self, database: LabelledMultiset) -> Law[int | None]:
        law = self.choice.law(database)
        if self.otherwise == "zero":
            return law
        domain = 1 << database.bits
        check_listed(f"2^{database.bits} points", domain, LISTED)
        silent = law.get(None, 0)
        return {point: law.get(point, 0) * domain + silent for point in range(domain)}


_MOST = 1 << 22  # candidates


class ConceptClass(Protocol[R_co]):
    """A class that can list its dichotomies: of VC dimension v at most sum over i <= v of C(points,
    i) (Sauer)."""

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[R_co]:
        """One concept for each dichotomy of the points, or for some of them, whatever the examples.
        Its score is -errors on the examples."""
        ...


class Candidates(Singles[R_co]):
    """k candidates: their `errors`, shape (k,), and the concept of each number."""

    def __init__(self, errors: Ints, concept: Callable[[int], R_co]) -> None:
        if len(errors) > _MOST:
            raise InputError(f"there are {len(errors)} dichotomies; at most {_MOST} are listed")
        self.scores = -errors
        self._concept = concept

    def member(self, group: int, place: int) -> R_co:
        return self._concept(group)


@dataclass(frozen=True)
class Thresholds:
    """t = 0 .. 2^bits, 1 iff x >= t: s distinct points have s + 1 dichotomies, t one of the points
    or 2^bits. O(s log s).

    With `apart` above 1, only those at which the number of points below passes a multiple of it:
    many candidates close to each other outnumber the right one.
    """

    apart: int = 1

    def __post_init__(self) -> None:
        check_whole("apart", self.apart, 1, 1 << 40)

    def candidates(self, points: Multiset, examples: LabelledMultiset) -> Groups[int]:
        step = upto(points.counts) // self.apart
        starts = np.flatnonzero(np.append(True, step[1:] > step[:-1]))
        every = np.searchsorted(examples.values, points.values)
        places = np.append(every, len(examples.values)).astype(np.int64)[starts]
        zeros = upto(examples.zeros)
        errors = upto(examples.ones)[places] + zeros[-1] - zeros[places]
        last = len(points.values)  # the place of the dichotomy without a 1

        def concept(number: int) -> int:
            start = starts[number]
            return int(points.values[start]) if start < last else 1 << examples.bits

        return Candidates(errors, concept)


@dataclass(frozen=True)
class DichotomyLearner(ByScore[LabelledMultiset, R_co]):
    """Chooses by the exponential mechanism among one concept for each dichotomy of `listed_on`."""

    concepts: ConceptClass[R_co]
    epsilon: float

    @abstractmethod
    def listed_on(self, database: LabelledMultiset) -> Multiset:
        """The points whose dichotomies are the candidates; neighbours have the same points."""

    def candidates(self, database: LabelledMultiset) -> Groups[R_co]:
        """A replaced label, or example, moves each number of errors by at most 1."""
        return self.concepts.candidates(self.listed_on(database), database)


@dataclass(frozen=True)
class LabelPrivateLearner(DichotomyLearner[R_co]):
    """One concept for each dichotomy of the examples' own points is a candidate, chosen with
    probability proportional to e^(-eps (errors) / 2).

    Privacy: eps for the labels alone; the points are not protected, and the candidates depend on
    them. Utility: by VC dimension, not by the size of the class
    (`bounds.frequencies.label_examples`). Cost: one score for each dichotomy, m + 1 for thresholds.
    Source: Beimel, Nissim, Stemmer 2013, Figure 13 and Theorem 6.2; erratum E4.
    """

    summary = "Learns a concept; only the labels are private"
    neighbours: ClassVar[Neighbours] = "labels"

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        return Multiset(database.bits, database.values, database.zeros + database.ones)


@dataclass(frozen=True, kw_only=True)
class SemiPrivateLearner(DichotomyLearner[R_co]):
    """One concept for each dichotomy of `public` points is a candidate, chosen with probability
    proportional to e^(-eps (errors) / 2) on private examples.

    Privacy: eps for whole examples, points and labels; none for the public points. Utility: as of
    label privacy, by VC dimension, given `bounds.frequencies.public_points` public points from the
    same distribution. Cost: one score for each dichotomy. Source: Beimel, Nissim, Stemmer 2013,
    Section 6.2 and Example 6.3.
    """

    summary = "Learns from public points and private examples"
    public: Multiset

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        check_same(self.public.bits, database.bits)
        return self.public
