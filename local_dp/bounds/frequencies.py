"""Shares of values, of labels, and of the frequent among many: variances, clients and error."""

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import check_positive_epsilon, check_tolerance, response_gain
from local_dp.bounds.simulations import growth
from local_dp.bounds.tails import NEAR, Errors, normal_quantile, widest_reach
from local_dp.checks import check_positive, check_shares, check_whole
from local_dp.domains import MAX_SYMBOLS
from local_dp.optimise import least_clients
from local_dp.randomizers.frequencies.base import support_variance
from local_dp.randomizers.frequencies.best import best_choice
from local_dp.randomizers.frequencies.wide_hashing import best_parities

_FREQUENT = 64  # more than so many frequent symbols are each as good as rare


def prefers_grr(epsilon: float, k: int) -> bool:
    """True if k-ary randomized response has the smaller variance for a rare symbol than one-bit
    Hadamard: k < e^(2 eps) + e^eps + 3.

    From (E + k - 2) / (E - 1)^2 < C^2 = (E + 1)^2 / (E - 1)^2, E = e^eps. The often quoted k < 3 E
    + 2 compares with unary encoding (OUE) instead.
    """
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    return k < growth**2 + growth + 3


def frequency_variance(epsilon: float, k: int, share: float) -> float:
    """n times the variance of the estimate of a symbol held by `share` of the clients, under the
    best oracle for k symbols (limits 2)."""
    check_positive_epsilon(epsilon)
    best = best_choice(epsilon, k)
    return subset_variance(epsilon, best.order, best.w, share)


def oue_variance(epsilon: float, share: float) -> float:
    """n times the variance of optimised unary encoding's estimate of a symbol held by `share`,
    whatever k: 4 E / (E - 1)^2 + f (2 - f), E = e^eps (limits 2).

    The worst case is a symbol that all hold: C^2 = (E + 1)^2 / (E - 1)^2, as much as one-bit
    Hadamard needs for every symbol that is rare.
    """
    return response_gain(epsilon) ** 2 - (1 - share) ** 2


def sue_variance(epsilon: float, share: float) -> float:
    """n times the variance of symmetric unary encoding: r / (r - 1)^2 + f (1 - f), r = e^(eps / 2);
    at worst C(eps / 2)^2 / 4, at f = 1/2 (limits 2)."""
    check_positive_epsilon(epsilon)
    return (math.tanh(epsilon / 4) ** -2 - (1 - 2 * share) ** 2) / 4


def summed_variance(epsilon: float, share: float) -> float:
    """n times the variance of summation with histogram encoding of a symbol held by `share`,
    whatever k: 2 a / (1 - a)^2 + f (1 - f), a = e^(-eps / 2)."""
    check_positive_epsilon(epsilon)
    return 1 / (2 * math.sinh(epsilon / 4) ** 2) + share * (1 - share)


def _chances(epsilon: float, order: int, w: int) -> tuple[float, float]:
    """Subset selection, w of `order` symbols: p = Pr[true symbol in the set], q = Pr[another symbol
    in the set]."""
    growth = math.exp(epsilon)
    p = w * growth / (w * growth + order - w)
    return p, (w - p) / (order - 1)


def _pair_chances(p: float, order: int, w: int) -> tuple[float, float]:
    """The chances that two symbols are in a set, one of them held or neither."""
    if order > 2:
        with_none = ((w - 2) * p + w * (1 - p)) * (w - 1) / ((order - 1) * (order - 2))
    else:
        with_none = 0.0
    return p * (w - 1) / (order - 1), with_none


def subset_variance(epsilon: float, order: int, w: int, share: float) -> float:
    """n times the variance of subset selection's estimate of a symbol held by `share`, with sets of
    w of `order` symbols (limits 2).

    l (1 - l) / (p - q)^2, l = q + f (p - q), p = w E / (w E + K - w) = Pr[true symbol in the
    set], q = (w - p) / (K - 1) = Pr[another in the set].
    """
    check_positive_epsilon(epsilon)
    return support_variance(*_chances(epsilon, order, w), share)


def contrast_factors(epsilon: float, order: int, w: int) -> tuple[float, float]:
    """(a, b) for which n times the variance of an estimate of sum_x c_x f_x, with sum_x c_x = 0, is
    at most a |c|^2 + b max c^2, whatever the law.

    Of an oracle whose reports name sets of w of `order` points: with r and s the chances that two
    symbols are in a set, one of them held or neither, E[(sum of c over the set)^2 | u held] = (q -
    s) |c|^2 + (p - q - 2 r + 2 s) c_u^2; at the uniform law of all points b / k stands for b.
    Proven for single symbols; for larger sets exact on average over triples, which their designs do
    not hold alike: at a law of one symbol up to 1.5 times that was found.
    """
    p, q = _chances(epsilon, order, w)
    with_one, with_none = _pair_chances(p, order, w)
    gap = p - q
    rest = q - with_none
    return rest / gap**2, max(0.0, gap - 2 * with_one + 2 * with_none) / gap**2


def parities_variance(epsilon: float, b: int, share: float) -> float:
    """n times the variance of a symbol's estimate from reports of b random parities:
    `support_variance` of E / (E + 2^b - 1) and 2^-b."""
    check_positive_epsilon(epsilon)
    growth = math.exp(epsilon)
    return support_variance(growth / (growth + (1 << b) - 1), math.ldexp(1.0, -b), share)


def shares_errors(epsilon: float, law: Floats, *, joint: bool = False) -> Errors:
    """The errors of one report's estimates of all shares under the best oracle for them, with
    `joint` the best with cheap covariances."""
    best = best_choice(epsilon, len(law), joint=joint)
    return set_errors(epsilon, best.order, best.w, law)


def set_errors(
    epsilon: float, order: int, w: int, law: Floats, sample: Floats | None = None
) -> Errors:
    """Those of reports that name sets of w of `order` points, as random ones hold two symbols:
    exact on average over pairs, and for each at w = 1; less the covariance `sample`, if given."""
    p, q = _chances(epsilon, order, w)
    inclusion = q + law * (p - q)
    variance = inclusion * (1 - inclusion) / (p - q) ** 2
    if sample is not None:
        variance = np.maximum(variance - np.diagonal(sample), 0.0)
    near = np.argsort(-variance, kind="stable")[:NEAR]
    mass = law[near, None] + law[None, near]
    with_one, with_none = _pair_chances(p, order, w)
    both = with_one * mass + with_none * (1 - mass)
    covariance = (both - np.outer(inclusion[near], inclusion[near])) / (p - q) ** 2
    if sample is not None:
        covariance -= sample[np.ix_(near, near)]
    np.fill_diagonal(covariance, variance[near])
    return Errors(np.sort(variance)[::-1], covariance)


def unfavourable_laws(k: int) -> list[Floats]:
    """Uniform on the first few of k symbols, or on all: among these the least favourable law is
    looked for. Beyond 64, symbols are as good as rare."""
    sizes = [*range(1, min(k, _FREQUENT) + 1), *([k] if k > _FREQUENT else [])]
    return [np.where(np.arange(k) < size, 1 / size, 0.0) for size in sizes]


@lru_cache(maxsize=1024)
def _frequency_reach(epsilon: float, k: int, beta: float, joint: bool) -> float:
    return widest_reach(
        [shares_errors(epsilon, law, joint=joint) for law in unfavourable_laws(k)], beta
    )


def frequency_clients(
    epsilon: float, k: int, tau: float, beta: float, *, joint: bool = False
) -> int:
    """n for which all k frequencies are within tau (in frequency units) except with probability
    beta, whatever the law: central limit form.

    For the least favourable law that is uniform on some symbols, with the errors' correlation,
    which two frequent symbols have most (`bounds.tails`). For k above 4096 by random parities: a
    union of normal tails, beta / 2 for the 64 symbols that may be frequent.
    """
    check_tolerance(tau)
    if k > MAX_SYMBOLS:
        reach = max(
            parities_variance(epsilon, best_parities(epsilon, (k - 1).bit_length()), share)
            * normal_quantile(beta / (4 * count)) ** 2
            for count, shares in ((_FREQUENT, range(1, _FREQUENT + 1)), (k, (_FREQUENT, k)))
            for share in (1 / each for each in shares)
        )
        return math.ceil(reach / tau**2)
    return math.ceil((_frequency_reach(epsilon, k, beta, joint) / tau) ** 2)


def grouped_clients(epsilon: float, groups: int, tau: float, beta: float) -> int:
    """n for which a share within each of `groups` equal groups is within tau, all except with
    probability beta: a union of normal tails.

    By k-ary randomized response or one-bit Hadamard (`prefers_grr`): G times the error of a cell,
    at most that of one of 2 G + 1 symbols.
    """
    check_tolerance(tau)
    k = 2 * groups + 1
    direct = prefers_grr(epsilon, k)
    shares = (0.0, 1 / (2 * groups), 1 / groups)
    variance = max(
        subset_variance(epsilon, k, 1, share) if direct else response_gain(epsilon) ** 2 - share**2
        for share in shares
    )
    return math.ceil(variance * (groups * normal_quantile(beta / (2 * groups)) / tau) ** 2)


NOISE = 0.01  # the chance that noise anywhere is taken for a string
FREQUENT = 10  # so many strings are to be found at once


@dataclass(frozen=True)
class Schedule:
    """A search by prefixes of `first` bits, then `step` bits more of each of `beam`; in several
    rounds a report encodes them in `width` bits."""

    first: int
    step: int
    beam: int
    width: int

    def lengths(self, bits: int) -> tuple[int, ...]:
        """The bits of the prefix at each level, the last one `bits`."""
        return (*range(min(self.first, bits), bits, self.step), bits)

    def needs(self, bits: int, share: float, beta: float) -> list[float]:
        """How many clients each level needs, and at last the count, in units of V / share^2, for
        ten strings to be found except with probability beta.

        A prefix of the first level must be among the `beam` best of its length: (z_{beam /
        2^length} + z)^2. Later it competes with the wrong ends of the ten, and with three times as
        many of noise that was followed so far (simulated): (z_{beam / (40 2^step)} + z)^2. At the
        last level all ends of the followed prefixes compete for few places. If few are kept, a
        prefix must exceed the best of them, which varies too: 1.17 z. The count needs (h + z)^2, h
        the height that noise reaches among the listed candidates with probability 1 %. The rest of
        beta bounds the event that one of the ten falls short by z somewhere.
        """
        lengths = self.lengths(bits)
        varies = 1.17 if self is NARROW else 1.0
        miss = normal_quantile((beta - NOISE) / (FREQUENT * (len(lengths) + 1)))
        needs = []
        for before, length in pairwise((0, *lengths)):
            last = length == bits
            rivals = (
                (self.beam if last else 4 * FREQUENT) * 2 ** (length - before)
                if before
                else 2**length
            )
            places = listed(share, self) if last else self.beam
            needs.append(
                (normal_quantile(min(0.5, places / rivals)) + (varies if before else 1.0) * miss)
                ** 2
            )
        return [*needs, (normal_quantile(NOISE / listed(share, self)) + miss) ** 2]

    def variance(self, epsilon: float, bits: int, share: float) -> float:
        """n times that of one level's estimate of a prefix that `share` hold."""
        if self is NARROW:
            return frequency_variance(epsilon, 1 << self.lengths(bits)[0], share)
        return parities_variance(epsilon, best_parities(epsilon, self.lengths(bits)[0]), share)

    def clients(self, epsilon: float, bits: int, share: float, beta: float) -> int:
        """n for which ten strings that `share` of the clients hold each are all found, and no
        other, except with probability beta above 1 %."""
        needs = sum(self.needs(bits, share, beta))
        return math.ceil(self.variance(epsilon, bits, share) * needs / share**2)


ONE_ROUND = Schedule(20, 12, 512, 18)
WIDE = Schedule(20, 12, 511, 21)
NARROW = Schedule(12, 7, 31, 12)


def listed(share: float, schedule: Schedule) -> int:
    """How many candidates are counted at the end: 2 / share, for no more strings have half of
    `share`, or as many as are kept."""
    return min(schedule.beam, math.ceil(2 / share))


def heavy_hitters_clients(epsilon: float, bits: int, share: float, beta: float) -> int:
    """n for which one round finds ten strings that `share` of the clients hold each, and no other,
    except with probability beta above 1 %."""
    return ONE_ROUND.clients(epsilon, bits, share, beta)


def best_schedule(epsilon: float, bits: int, share: float, beta: float) -> Schedule:
    """The one that needs fewer clients: few long rounds, or for short strings many short ones."""
    return min((WIDE, NARROW), key=lambda schedule: schedule.clients(epsilon, bits, share, beta))


def public_points(dimension: int, alpha: float, beta: float) -> int:
    """n >= (64 / alpha)(VC ln(128 / alpha) + ln(8 / beta)): Theorem 2.13 at alpha / 8, as the proof
    of 6.2 needs it (printed: alpha / 4, erratum E4)."""
    _check(dimension, 1.0, alpha, beta)
    log_size = dimension * math.log(128 / alpha) + math.log(8 / beta)
    return math.ceil(64 / alpha * log_size)


def log_dichotomies(dimension: int, points: int) -> float:
    """ln of sum over i <= VC of C(points, i): at most so many dichotomies (Sauer)."""
    return math.log(growth(dimension, points))


def semi_private_examples(dimension: int, epsilon: float, alpha: float, beta: float) -> int:
    """Private examples beside `public_points` n: max((24 / alpha) ln(4 / beta), (8 / (alpha min(1,
    eps))) (ln |H| + ln(4 / beta))), |H| by Sauer for n."""
    _check(dimension, epsilon, alpha, beta)
    size = log_dichotomies(dimension, public_points(dimension, alpha, beta))
    tail = math.log(4 / beta)
    sampling = 24 / alpha * tail
    choosing = 8 / (alpha * min(1, epsilon)) * (size + tail)
    return math.ceil(max(sampling, choosing))


def label_examples(dimension: int, epsilon: float, alpha: float, beta: float) -> int:
    """The least m with 4 Pi(2m) e^(-alpha m / 16) + Pi(m) e^(-eps alpha m / 4) <= beta, Pi(n) = sum
    over i <= VC of C(n, i): all m list and choose.

    Proof: some candidate errs on no example, so one that errs on more than alpha m / 2 is chosen
    with probability at most Pi(m) e^(-eps alpha m / 4) (Sauer); and some concept errs on at most
    alpha m / 2 of them and by more than alpha with at most 4 Pi(2m) e^(-alpha m / 16) (Vapnik's
    relative deviations). 1,910 for thresholds at alpha = beta = .1 and eps 1, where the printed
    size is 1.2e6; in the worst distribution that was tried 80 are enough.
    """
    _check(dimension, epsilon, alpha, beta)

    def is_enough(m: int) -> bool:
        strays = math.log(4) + log_dichotomies(dimension, 2 * m) - alpha * m / 16
        choice = log_dichotomies(dimension, m) - epsilon * alpha * m / 4
        return max(strays, choice) < 0 and math.exp(strays) + math.exp(choice) <= beta

    return least_clients(is_enough, least=dimension)


def _check(dimension: int, epsilon: float, alpha: float, beta: float) -> None:
    check_whole("the VC dimension", dimension, 1, 1 << 20)
    check_positive("epsilon", epsilon)
    check_shares(alpha=alpha, beta=beta)
