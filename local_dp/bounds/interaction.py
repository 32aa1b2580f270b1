"""What rounds save: the ladder, parities in a few rounds, margins, and testing identity with public
or private coins."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, combinations, pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.channels import report_capacity
from local_dp.bounds.parity import (
    entropy,
    named_counts,
    named_score,
    parity_halving_clients,
    survival,
)
from local_dp.bounds.posterior import DIGITS, ROUNDING, decimal, exact_budget
from local_dp.bounds.response import check_positive_epsilon, response_gain
from local_dp.bounds.tails import add_normal, normal_quantile, normal_tail
from local_dp.checks import check_positive, check_share, check_success, check_whole
from local_dp.errors import InputError
from local_dp.optimise import least_clients


def group_lengths(k: int, rounds: int) -> tuple[int, ...]:
    """k levels in so many groups of consecutive ones, as equal as they can be, the longer ones
    first. Raises InputError unless 1 <= rounds <= k."""
    check_whole("rounds", rounds, 1, k)
    return tuple(k // rounds + (place < k % rounds) for place in range(rounds))


def ladder_success(
    k: int, epsilon: float, rounds: int, each: float, below: bool = False, *, apart: bool = False
) -> float:
    """About the probability that the majority of every level is right, if `each` clients are asked
    in each round, by answers of this epsilon.

    A round asks about the path to here, and on from here at random: at depth d below, a part 2^-d
    of its clients are asked about the right node. With `below` it asks about all remaining levels,
    and later rounds have its answers too; without, about the levels of its own group. prod Phi(m t
    / sqrt(v)) over levels, t = tanh(eps/2) / k, m the answers about the right node, and v their
    variance, 1 - t^2 (d^2 + g - d) each, where g levels are asked about: the d levels above all
    confirm the path, and the others confirm or deny as likely. With `apart` they are taken for
    coins, of variance 1 - t^2: so it would be if each level's answers were flipped by a public coin
    of its own. The normal law for each level's sum, levels as if independent.
    """
    lean = math.tanh(epsilon / 2) / k
    lengths = group_lengths(k, rounds)
    starts = list(accumulate(lengths, initial=0))[:-1]
    ends = [k] * rounds if below else list(accumulate(lengths))
    right = 1.0
    for level in range(k):
        parts = [
            (each * 2.0 ** (start - level), level - start, end - start)
            for start, end in zip(starts, ends, strict=True)
            if start <= level < end
        ]
        answers = sum(many for many, _, _ in parts)
        variance = sum(
            many * (1 - lean**2 * (1 if apart else depth**2 + levels - depth))
            for many, depth, levels in parts
        )
        right *= normal_tail(-answers * lean / math.sqrt(variance))
    return right


def ladder_clients(
    k: int,
    epsilon: float,
    beta: float,
    rounds: int,
    *,
    again: bool = False,
    below: bool = False,
    apart: bool = False,
) -> int:
    """The least n for which `ladder_success` is at least 1 - beta: all n are asked in every round
    (`again`), or a fresh n / rounds in each.

    `epsilon` is that of one answer: of all together in a session, a part of it where rounds are
    charged by the sum.
    """
    return least_clients(
        lambda n: (
            ladder_success(k, epsilon, rounds, n if again else n / rounds, below, apart=apart)
            >= 1 - beta
        )
    )


def ladder_one_round_least(k: int, epsilon: float, beta: float) -> float:
    """Proven: in one round nobody finds the path with probability 1 - beta from fewer: k 2^(k-1)
    (ln 2 - h(beta)) / `report_capacity` (limits 12.1)."""
    return k * 2.0 ** (k - 1) * (math.log(2) - entropy(beta)) / report_capacity(epsilon)


_PARTS = 20
_FIRST = 14  # twentieths, near the best of every plan
_REACH = 8  # deviations
_COARSE = 0.5  # of a score


@dataclass(frozen=True)
class Plan:
    """For each round but the last: how many twentieths of the clients that are left it asks, and
    the list it keeps, 2^bits parities."""

    twentieths: tuple[int, ...]
    bits: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """How many parities each round keeps: the last one 1."""
        return (*(1 << bits for bits in self.bits), 1)

    def sizes(self, n: int) -> tuple[int, ...]:
        """The clients of each round, one at least, together n. Raises InputError."""
        sizes, left = [], n
        for later, share in zip(range(len(self.twentieths), 0, -1), self.twentieths, strict=True):
            sizes.append(min(max(1, left * share // _PARTS), left - later))
            left -= sizes[-1]
        if min(*sizes, left) < 1:
            raise InputError(f"{len(sizes) + 1} rounds need a client each; {n} are too few")
        return (*sizes, left)


def few_rounds_success(d: int, epsilon: float, n: int, plan: Plan) -> float:
    """Pr[the hidden parity is on every list and comes out first], the scores of the others followed
    as independent draws from one density."""
    sizes, count = plan.sizes(n), 1 << d
    right_step, other_step = _answer_scores(epsilon)
    means = [size / bits for size, bits in zip(sizes[1:], plan.kept, strict=False)]
    ahead = sum(right_step[0] * mean + _REACH * math.sqrt(right_step[1] * mean) for mean in means)
    behind = sum(-other_step[0] * mean + _REACH * math.sqrt(other_step[1] * mean) for mean in means)
    grid, null, right = _first_scores(d, epsilon, sizes[0], behind, ahead)
    for mean, keep in zip([0.0, *means], plan.kept, strict=True):
        if mean:
            null = add_normal(null, grid, other_step[0] * mean, other_step[1] * mean)
            right = add_normal(right, grid, right_step[0] * mean, right_step[1] * mean)
        stays = survival(null, keep, count)
        null, right = null * stays, right * stays
        count = keep
    return float(right.sum())


def _answer_scores(epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and mean square of what one answer about a parity adds to its score: of the hidden one,
    and of another one."""
    shrink = 1 / response_gain(epsilon)
    scores = np.array([math.log1p(shrink), math.log1p(-shrink)])
    laws = np.array([[1 + shrink, 1 - shrink], [1.0, 1.0]]) / 2
    (right, other) = ((float(law @ scores), float(law @ scores**2)) for law in laws)
    return right, other


def _first_scores(
    d: int, epsilon: float, n: int, behind: float, ahead: float
) -> tuple[Floats, Floats, Floats]:
    """A grid of scores with room for later rounds, and the laws of the scores that `Deny` gives to
    another parity and to the hidden one."""
    counts, *laws = named_counts(d, epsilon, n)
    steps = float(counts[1] - counts[0]) * -named_score(d, epsilon)
    parts = math.ceil(steps / _COARSE)
    before, after = (math.ceil(parts * room / steps) for room in (behind, ahead))
    spread = [np.zeros(before + parts * len(counts) + after) for _ in laws]
    for mass, law in zip(spread, laws, strict=True):
        mass[before : before + parts * len(counts) : parts] = law[::-1]
    return np.arange(len(spread[0])) * steps / parts, spread[0], spread[1]


def check_rounds(d: int, rounds: int) -> None:
    check_whole("the number of rounds", rounds, 2, d)


@lru_cache
def few_rounds_plan(d: int, rounds: int) -> Plan:
    """The plan with the fewest clients for success in 90 % of runs at epsilon 1. Raises InputError
    unless 2 <= rounds <= d."""
    check_rounds(d, rounds)
    near = _best_plan(d, rounds, parity_halving_clients(d, 1.0, 0.1))
    return _best_plan(d, rounds, _least(d, 1.0, near, 0.1))


def _best_plan(d: int, rounds: int, n: int) -> Plan:
    """The one that succeeds most often with n clients: all lists are tried, then steps of a
    twentieth."""

    def success(plan: Plan) -> float:
        return few_rounds_success(d, 1.0, n, plan)

    lists = combinations(range(1, d), rounds - 1)
    best = max((Plan((_FIRST,) * (rounds - 1), bits[::-1]) for bits in lists), key=success)
    plan = replace(best, bits=())
    while best != plan:
        plan = best
        best = max((best, *_near(best, d)), key=success)
    return plan


def _near(plan: Plan, d: int) -> Iterator[Plan]:
    """The plans that differ by one in one number, or in a share and its list."""
    for place in range(len(plan.bits)):
        for share in (-1, 0, 1):
            for bits in (-1, 0, 1):
                near = replace(
                    plan,
                    twentieths=_shift(plan.twentieths, place, share),
                    bits=_shift(plan.bits, place, bits),
                )
                lists = (d, *near.bits, 0)
                if 1 <= near.twentieths[place] < _PARTS and all(
                    longer > shorter for longer, shorter in pairwise(lists)
                ):
                    yield near


def _shift(numbers: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*numbers[:place], numbers[place] + by, *numbers[place + 1 :])


@lru_cache
def few_rounds_clients(d: int, epsilon: float, rounds: int, beta: float) -> int:
    """n for which the parity is found in so many rounds with probability 1 - beta."""
    return _least(d, epsilon, few_rounds_plan(d, rounds), beta)


def _least(d: int, epsilon: float, plan: Plan, beta: float) -> int:
    return least_clients(
        lambda n: few_rounds_success(d, epsilon, n, plan) >= 1 - beta, least=2 * len(plan.kept)
    )


def margin_constant(epsilon: float, success: float = 0.9) -> float:
    """K, n >= K MC^2 in one round: 2 B (E + 1) / (E - 1)^2, 3.1651 at p = .9, epsilon 1; pure
    randomizers. B is the `posterior_budget` for likelihoods of 1 +- 1 / C (limits 12.4)."""
    return float(_least_constant(epsilon, success))


def _least_constant(epsilon: float, success: float) -> Fraction:
    """K, rounded down by 1e-40 of it."""
    check_positive_epsilon(epsilon)
    with localcontext(prec=DIGITS):
        growth = decimal(epsilon).exp()
        reach = (growth - 1) / (growth + 1)
        budget = exact_budget(reach, reach**2, success)
        return Fraction(2 * budget * (growth + 1) / (growth - 1) ** 2 * (1 - ROUNDING))


def margin_clients(squared: Fraction | float, epsilon: float, success: float = 0.9) -> int:
    """The least n with n >= K MC^2, `squared` being MC^2: no NON-INTERACTIVE eps-local protocol,
    public coins or not, learns barely with fewer clients.

    Barely: for every concept of a class closed under negation and every law of x, right more often
    than wrong with probability `success`. K rounded down; epsilon and success as they are written.
    """
    check_positive("the squared margin complexity", float(squared))
    return math.ceil(_least_constant(epsilon, success) * Fraction(squared))


def vote_clients(squared: Fraction | float, epsilon: float, success: float = 0.9) -> int:
    """n >= C^2 MC^2 p / (1 - p), enough in one round to be right more often than wrong, for every
    concept of a class of blocks and every law of x.

    A client reports whether a random character agrees with its label; the predictor repeats a
    client's report: 42.1 MC^2 at p = .9, epsilon 1 (limits 12.4).
    """
    return _enough(1.0, squared, epsilon, success)


def direction_clients(squared: Fraction | float, epsilon: float, success: float = 0.9) -> int:
    """n >= (pi / 2) C^2 MC^2 p / (1 - p), the same for every class that has vectors of margin 1 /
    MC: clients are named random halfspaces (limits 12.4)."""
    return _enough(math.pi / 2, squared, epsilon, success)


def _enough(factor: float, squared: Fraction | float, epsilon: float, success: float) -> int:
    check_success(success, 0.5)
    check_positive("the squared margin complexity", float(squared))
    return math.ceil(
        factor * response_gain(epsilon) ** 2 * float(squared) * success / (1 - success)
    )


ROWS = 16  # random rows all clients share: near the 12 that are best, and a power of two


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Pr[chi-square with so many degrees of freedom > statistic]."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees, max(statistic, 0.0)))


def chi_square_quantile(tail: float, degrees: int) -> float:
    """The statistic with that tail probability."""
    from scipy.special import chdtri

    check_share("a tail probability", tail)
    return float(chdtri(degrees, tail))


def check_distance(alpha: float) -> None:
    """Raises InputError unless this is a total variation distance that a Paninski law has."""
    if not 0 < alpha <= 0.5:
        raise InputError(f"the distance is {alpha}; give a number above 0 and at most 1/2")


def public_coin_clients(epsilon: float, k: int, alpha: float, beta: float) -> int:
    """n with which 16 public random rows of signs tell k shares from any law alpha away, with
    errors of at most beta: Theta(k C^2 / alpha^2).

    A chi-square of 16 degrees, stretched by 1 + 4 alpha^2 n / (16 k C^2). Source: Acharya, Canonne,
    Freitag, Tyagi 2019.
    """
    check_distance(alpha)
    stretch = chi_square_quantile(beta, ROWS) / chi_square_quantile(1 - beta, ROWS)
    gain = response_gain(epsilon) ** 2
    return math.ceil((stretch - 1) * ROWS * k * gain / (4 * alpha**2))


def private_coin_clients(epsilon: float, k: int, alpha: float, beta: float) -> int:
    """The same where each client draws a row of Sylvester's matrix alone: Theta(k^(3/2) C^2 /
    alpha^2), the best without public coins; normal law."""
    check_distance(alpha)
    degrees = (1 << (k - 1).bit_length()) - 1
    threshold, z = chi_square_quantile(beta, degrees), normal_quantile(beta)

    def enough(n: int) -> bool:
        shift = 4 * alpha**2 * n / (k * response_gain(epsilon) ** 2)
        return degrees + shift - z * math.sqrt(2 * (degrees + 2 * shift)) >= threshold

    return least_clients(enough)


def half_stretch(epsilon: float, k: int, alpha: float, clients: int, groups: int) -> float:
    """1 + 4 alpha^2 m / (C^2 (k - 1)): by what a law alpha away stretches the square of a group's
    standardised sum: m clients are asked about a random half."""
    check_distance(alpha)
    return 1 + 4 * alpha**2 * clients / (groups * (k - 1) * response_gain(epsilon) ** 2)


def half_threshold(stretch: float, groups: int) -> float:
    """Half of what a law alpha away adds to the sum of `groups` squares: the threshold that needs
    no table. Its errors are those of `half_errors`."""
    return groups * (1 + (stretch - 1) / 2)


def likely_threshold(stretch: float, groups: int) -> float:
    """Where the two laws of the sum of squares are equally likely, which makes the mean of both
    errors least: g ln(stretch) / (1 - 1 / stretch)."""
    return groups * math.log(stretch) / (1 - 1 / stretch)


def half_errors(stretch: float, groups: int, threshold: float) -> tuple[float, float]:
    """Pr[the uniform law is rejected] and Pr[one alpha away is not], the sums of squares being
    chi-squares of `groups` degrees."""
    return chi_square_tail(threshold, groups), 1 - chi_square_tail(threshold / stretch, groups)


def shared_half_clients(epsilon: float, k: int, alpha: float, beta: float, groups: int) -> int:
    """n for mean error beta with a public random half in each of `groups`. Source: Acharya,
    Canonne, Freitag, Tyagi 2019 (limits 12.5)."""

    def enough(n: int) -> bool:
        stretch = half_stretch(epsilon, k, alpha, n, groups)
        return sum(half_errors(stretch, groups, likely_threshold(stretch, groups))) <= 2 * beta

    return least_clients(enough, least=groups)
