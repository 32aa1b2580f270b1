"""The exponential mechanism (McSherry, Talwar 2007; KLNRS Definition 3.5 and Theorem 3.6): sampled
in whole numbers, analysed in the log domain."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from operator import mul
from typing import Protocol, Self

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Naturals, Words
from local_dp.checks import check_built, check_dimension, check_whole
from local_dp.cube import walsh_hadamard
from local_dp.curator.mechanism import D, D_contra, Law, Mechanism, R, R_co, check_listed
from local_dp.curator.selection.groups import Groups, Listed, powers, sum_by
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Concentrated, Pure, nano_epsilon
from local_dp.records import Records

_RATIO_BITS = 40
LISTED = 1 << 16  # candidates
_COUNTED = 1 << 20  # gaps
# nats: candidates less than e^-45 / |H| times as likely as the best all count as equally bad
_FORGOTTEN = 45.0


def log_probabilities(scores: Ints | Floats, epsilon: float, sensitivity: float = 1.0) -> Floats:
    """ln Pr[h] with Pr[h] proportional to e^(eps score(h) / (2 sensitivity)), finite for every
    finite score. For analysis; never sampled from."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.all(np.isfinite(scores)):
        raise InputError(
            "some score is not finite, or there are none; give one finite number for each candidate"
        )
    with np.errstate(over="ignore"):
        exponents = (scores - scores.max()) * (epsilon / (2 * sensitivity))
    exponents = np.maximum(exponents, -np.finfo(np.float64).max)
    return np.asarray(exponents - math.log(float(np.exp(exponents).sum())))


@lru_cache(maxsize=256)
def decay_of(nano: int, sensitivity: int = 1) -> Fraction:
    """a: the multiple of 2^-40 just above e^(-eps / (2 sensitivity)). Raises InputError where it
    would be 1."""
    with localcontext() as context:
        context.prec = 60
        exact = (-Decimal(nano) / NANO / (2 * sensitivity)).exp()
    # one for rounding up, one that pays for the rounded weights
    numerator = math.floor(exact * (1 << _RATIO_BITS)) + 2
    if numerator >= 1 << _RATIO_BITS:
        raise InputError(
            f"epsilon {nano / NANO:g} over sensitivity {sensitivity} is too small for the "
            "weights; give a larger epsilon or a smaller sensitivity"
        )
    return Fraction(numerator, 1 << _RATIO_BITS)


def reach_of(decay: Fraction, log_candidates: float) -> int:
    """The distance below the best at which scores are clamped: all clamped candidates together are
    chosen with probability below e^-45."""
    return math.ceil((log_candidates + _FORGOTTEN) / -math.log1p(float(decay - 1)))


_SLACK = 1e-9  # of a logarithm in floats


@dataclass(frozen=True)
class ExponentialChoice:
    """Chooses a candidate of whole score q with probability proportional to a^(best - q), a =
    e^(-eps / (2 sensitivity)).

    Privacy: epsilon, where no neighbour moves a score by more than `sensitivity` and all neighbours
    have the same candidates. No float touches the choice: a is a multiple of 2^-40 and the weights
    are whole numbers within 2^-96 of its powers. a is rounded up by more than that costs, so `law`
    keeps to epsilon exactly. Scores more than `reach` below the best are clamped to best - reach,
    which also moves by at most the sensitivity. Utility: clamped candidates have total probability
    below e^-45. Cost: O(groups + reach), reach about (ln |H| + 45) 2 sensitivity / eps. Source:
    KLNRS 2008, Definition 3.5 and Theorem 3.6.
    """

    epsilon: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)
        check_whole("the sensitivity", self.sensitivity, 1, 1 << 32)

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @cached_property
    def decay(self) -> Fraction:
        """a: the factor on a candidate's probability for one point of score less."""
        return decay_of(nano_epsilon(self.epsilon), self.sensitivity)

    def reach(self, candidates: int) -> int:
        return reach_of(self.decay, math.log(candidates))

    def shortfall(self, candidates: int, misses: float = 0.05) -> int:
        """The least t such that a candidate more than t below the best is chosen with at most this
        probability, whatever the scores of so many candidates.

        The worst scores: one candidate is the best, and all others lie t + 1 below. Then it is (k -
        1) a^(t + 1) / (1 + (k - 1) a^(t + 1)) exactly.
        """
        if candidates == 1:
            return 0
        odds = (candidates - 1) * (1 - misses) / misses
        return max(0, math.ceil(math.log(odds) / -math.log1p(float(self.decay - 1)) + _SLACK) - 1)

    def choose(self, groups: Groups[R], draws: Draws) -> R:
        """A candidate of these groups, which have at least one."""
        return self.choose_many(groups, 1, draws)[0]

    def choose_many(self, groups: Groups[R], count: int, draws: Draws) -> tuple[R, ...]:
        """`count` independent choices, each of this loss; the weights are computed once."""
        ranks, weights = self._weigh(groups)
        shares = list(map(mul, sum_by(groups.sizes, ranks, len(weights)), weights))
        return tuple(groups.pick(ranks == draws.among(shares), draws) for _ in range(count))

    def law(self, groups: Groups[R]) -> Law[R]:
        """The law of `choose`. Raises InputError above 65,536 candidates."""
        check_listed(f"{groups.total} candidates", groups.total, LISTED)
        ranks, weights = self._weigh(groups)
        return {candidate: weights[ranks[group]] for group, candidate in groups.members()}

    def share(self, groups: Groups[R], counts: Naturals) -> Fraction:
        """The probability of choosing one of `counts[g]` candidates of each group g."""
        ranks, weights = self._weigh(groups)
        inside, every = (sum_by(sizes, ranks, len(weights)) for sizes in (counts, groups.sizes))
        return Fraction(sum(map(mul, inside, weights)), sum(map(mul, every, weights)))

    def _weigh(self, groups: Groups[R]) -> tuple[Ints, list[int]]:
        """The rank of each group among the scores that occur, the best first, and the weight of
        each rank."""
        if not len(groups.scores):
            raise InputError(
                "there are no scores; give at least one candidate, each with a signed whole number"
            )
        reach = self.reach(groups.total)
        gaps, ranks = ranked(gaps_below(int(groups.scores.max()), groups.scores, reach), reach)
        return ranks, powers(self.decay, gaps, reach)


class ByScore(Mechanism[D_contra, R_co, Pure]):
    """A mechanism that scores its candidates and chooses by an `ExponentialChoice`, by default of
    sensitivity 1.

    Its subclasses are dataclasses with an `epsilon`.
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_built(self.choice)  # refuses a wrong epsilon

    @abstractmethod
    def candidates(self, database: D_contra) -> Groups[R_co]:
        """All candidates with their scores; neighbours have the same candidates."""

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon)

    @property
    def loss(self) -> Pure:
        return self.choice.loss

    def release(self, database: D_contra, draws: Draws) -> R_co:
        return self.choice.choose(self.candidates(database), draws)

    def law(self, database: D_contra) -> Law[R_co]:
        return self.choice.law(self.candidates(database))


@dataclass(frozen=True)
class ExponentialMechanism(ByScore[D, int]):
    """The exponential mechanism of any score: `ExponentialChoice` among numbered candidates.

    `score` gives each candidate a whole number, higher is better: an array of shape (|H|,), or
    `Groups` of equal score where there are too many to list. Privacy: epsilon, pure, where no
    neighbour moves a score by more than `sensitivity`.
    """

    summary = "Chooses a candidate by any score, the best most often"
    score: Callable[[D], Ints | Groups[int]]
    epsilon: float
    sensitivity: int = 1

    @property
    def choice(self) -> ExponentialChoice:
        return ExponentialChoice(self.epsilon, self.sensitivity)

    def candidates(self, database: D) -> Groups[int]:
        """Raises InputError where the scores are not whole numbers."""
        scores = self.score(database)
        return scores if isinstance(scores, Groups) else numbered(scores)


def numbered(scores: Ints) -> Listed:
    """The candidates 0..k-1 with these scores, shape (k,)."""
    return Listed(scores, np.arange(len(scores)))


def gaps_below(best: int, scores: Ints, reach: int) -> Ints:
    """How far each score lies below the best, at most `reach`."""
    floor = max(best - reach, int(np.iinfo(np.int64).min))
    return np.asarray(
        np.int64(best) - np.maximum(scores.astype(np.int64, copy=False), np.int64(floor))
    )


def ranked(gaps: Ints, reach: int) -> tuple[Ints, Ints]:
    """The gaps of 0..reach that occur, ascending, and the rank of each one among them."""
    if reach > _COUNTED:
        return np.unique(gaps, return_inverse=True)
    occurs = np.bincount(gaps, minlength=1) > 0  # counting is several times as fast as sorting
    ranks: Ints = (np.cumsum(occurs, dtype=np.int32) - 1)[gaps]
    return np.flatnonzero(occurs), ranks


@dataclass(frozen=True)
class BoundedRange(Mechanism[D, R, Concentrated]):
    """An exponential mechanism of epsilon e as a concentrated one, to be composed with Gaussian
    noise.

    Privacy: rho = e^2 / 8, in place of e^2 / 2 for any pure e. Its losses on two databases lie in
    an interval of length e: each weight moves by a factor e^+-(e / 2), and the normaliser is common
    to all. Permute-and-flip has no such range. Source: Cesar, Rogers 2021, Corollary 4.2; Dong,
    Durfee, Rogers 2020.
    """

    summary = "Chooses a candidate, at the price of concentrated privacy"
    mechanism: ByScore[D, R]

    def __post_init__(self) -> None:
        if type(self.mechanism.choice) is not ExponentialChoice:
            raise InputError(
                f"{type(self.mechanism.choice).__name__} has no bounded range; choose by the "
                "exponential mechanism"
            )

    @property
    def loss(self) -> Concentrated:
        # nano-nats squared are units of 1e-18
        return Concentrated(-(-(self.mechanism.loss.nano**2) // 8))

    def release(self, database: D, draws: Draws) -> R:
        return self.mechanism.release(database, draws)

    def law(self, database: D) -> Law[R]:
        return self.mechanism.law(database)


def expand(factors: Iterable[tuple[Fraction | int, Fraction]]) -> list[Fraction]:
    """The coefficients of the product of a + b t over these factors (a, b), by the power of t."""
    product = [Fraction(1)]
    for a, b in factors:
        low, high = [*product, Fraction(0)], [Fraction(0), *product]
        product = [a * here + b * before for here, before in zip(low, high, strict=True)]
    return product


MAX_MASKED_DIMENSION = 22


class HypothesisClass(Protocol):
    """Finitely many numbered hypotheses, and the number of examples that each misclassifies."""

    def errors(self, x: Ints, y: Ints) -> Counts:
        """The number of examples that each hypothesis misclassifies, shape (|H|,); x in the class's
        own encoding and y of 0/1, both of shape (n,)."""
        ...


@dataclass(frozen=True)
class Labelled:
    """n labelled points: x in the hypothesis class's own encoding and y of 0/1, both of shape
    (n,)."""

    x: Ints
    y: Ints

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or np.any((self.y != 0) & (self.y != 1)):
            raise InputError(
                f"there are {len(self.x)} points and {len(self.y)} labels; give one label of 0 or "
                "1 for each point"
            )

    @classmethod
    def of(cls, pairs: tuple[tuple[int, int], ...]) -> Self:
        x, y = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return cls(x, y)


@dataclass(frozen=True)
class OccamLearner(ByScore[Labelled, int]):
    """Chooses a hypothesis h, by its number, with probability proportional to e^(-eps (errors of h)
    / 2).

    Privacy: epsilon, exactly, on all databases; sampled in whole numbers. Utility: within alpha of
    the best hypothesis under any distribution, except with probability beta. That takes n >=
    `occam_examples` of `bounds.curator`, about 2 ln(|H| / beta) max(1 / (eps alpha), 1 / alpha^2).
    Cost: one score for each hypothesis. Source: KLNRS 2008, Theorem 3.7.
    """

    summary = "Learns a hypothesis by the exponential mechanism"
    hypotheses: HypothesisClass
    epsilon: float

    def candidates(self, database: Labelled) -> Groups[int]:
        """One replaced example moves the errors of a hypothesis by at most 1."""
        return numbered(-self.hypotheses.errors(database.x, database.y))


@dataclass(frozen=True)
class MaskedParityClass:
    """The concepts c_{r,a} over {0,1}^d, number 2 r + a. An example (x, i, b) is encoded as (x d +
    i) 2 + b (KLNRS Section 5).

    All errors by one Walsh-Hadamard transform of the examples with b = 0 and d sums over those with
    b = 1: O(n + d 2^d).
    """

    d: int

    def __post_init__(self) -> None:
        check_dimension(self.d, MAX_MASKED_DIMENSION)

    @property
    def size(self) -> int:
        return 2 << self.d

    def encoded(self, records: Records) -> tuple[Ints, Ints]:
        """The examples of masked-parity records in this encoding: (x, y), y of 0/1, both of shape
        (n,)."""
        x, i, b = (records[name].astype(np.int64) for name in ("x", "i", "b"))
        return (x * self.d + i) * 2 + b, (records["y"] < 0).astype(np.int64)

    def errors(self, x: Ints | Words, y: Ints) -> Counts:
        codes, signs = x.astype(np.int64), 1.0 - 2.0 * y
        is_hint = codes % 2 == 1
        bits = np.bincount(codes[is_hint] // 2 % self.d, weights=signs[is_hint], minlength=self.d)
        hints = np.zeros(1)
        for bit in bits:  # entry r: the sum over bits j of (-1)^(r_j) bits[j]
            hints = np.concatenate([hints + bit, hints - bit])
        rows = codes[~is_hint] // (2 * self.d)
        counts = np.bincount(rows, weights=signs[~is_hint], minlength=1 << self.d)
        parity = walsh_hadamard(counts.astype(np.float64))
        # whole numbers up to n: exact in floats
        agreement = np.stack([hints + parity, hints - parity], axis=1).ravel()
        errors: Counts = ((len(y) - agreement) / 2).astype(np.int64)
        return errors
