"""Parity in a few rounds: `Deny` first, then one-bit parities over a list that shrinks (limits 12.2). n in clients, epsilon in nats; normal approximations."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.normal import add_normal
from local_dp.bounds.one_round_parity import named_counts, named_score
from local_dp.bounds.parity import at_most, parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from local_dp.optimise import least_clients

_PARTS = 20
_FIRST = 14  # twentieths, near the best of every plan
_REACH = 8  # deviations
_COARSE = 0.5  # of a score


@dataclass(frozen=True)
class Plan:
    """For each round but the last: how many twentieths of the clients that are left it asks, and the list it keeps, 2^bits parities."""

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
    """Pr[the hidden parity is on every list and comes out first], the scores of the others followed as independent draws from one density."""
    sizes, listed = plan.sizes(n), 1 << d
    right_step, other_step = _answer_scores(epsilon)
    means = [size / bits for size, bits in zip(sizes[1:], plan.kept, strict=False)]
    ahead = sum(right_step[0] * mean + _REACH * math.sqrt(right_step[1] * mean) for mean in means)
    behind = sum(-other_step[0] * mean + _REACH * math.sqrt(other_step[1] * mean) for mean in means)
    grid, null, right = _first_scores(d, epsilon, sizes[0], behind, ahead)
    for place, keep in enumerate(plan.kept):
        if place:
            null = add_normal(null, grid, other_step[0] * means[place - 1], other_step[1] * means[place - 1])
            right = add_normal(right, grid, right_step[0] * means[place - 1], right_step[1] * means[place - 1])
        total = max(float(null.sum()), 1e-300)
        beaten = np.clip(1 - np.cumsum(null) / total + null / (2 * total), 0.0, 1.0)
        survives = at_most(keep - 1, listed - 1, beaten)
        null, right, listed = null * survives, right * survives, keep
    return float(right.sum())


def _answer_scores(epsilon: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and mean square of what one answer about a parity adds to its score: of the hidden one, and of another one."""
    shrink = 1 / response_gain(epsilon)
    scores = np.array([math.log1p(shrink), math.log1p(-shrink)])
    laws = np.array([[1 + shrink, 1 - shrink], [1.0, 1.0]]) / 2
    (right, other) = ((float(law @ scores), float(law @ scores**2)) for law in laws)
    return right, other


def _first_scores(d: int, epsilon: float, n: int, behind: float, ahead: float) -> tuple[Floats, Floats, Floats]:
    """A grid of scores with room for what later rounds add, and the law of what `Deny` gives a parity that is not hidden, and the hidden one."""
    counts, *laws = named_counts(d, epsilon, n)
    steps = float(counts[1] - counts[0]) * -named_score(d, epsilon)
    parts = math.ceil(steps / _COARSE)
    before, after = (math.ceil(parts * room / steps) for room in (behind, ahead))
    spread = [np.zeros(before + parts * len(counts) + after) for _ in laws]
    for mass, law in zip(spread, laws, strict=True):
        mass[before : before + parts * len(counts) : parts] = law[::-1]
    return np.arange(len(spread[0])) * steps / parts, spread[0], spread[1]


def check_rounds(d: int, rounds: int) -> None:
    if type(rounds) is not int or not 2 <= rounds <= d:
        raise InputError(f"the number of rounds is {rounds!r}; give a whole number from 2 to d = {d}")


@lru_cache
def few_rounds_plan(d: int, rounds: int) -> Plan:
    """The lists and shares that find a parity in 90 % of runs at epsilon 1 with the fewest clients: the best ones for the count that the best ones need.

    Raises InputError unless 2 <= rounds <= d.
    """
    check_rounds(d, rounds)
    near = _best_plan(d, rounds, parity_halving_clients(d, 1.0, 0.1))
    return _best_plan(d, rounds, _least(d, 1.0, near, 0.1))


def _best_plan(d: int, rounds: int, n: int) -> Plan:
    """The one that succeeds most often with n clients: all lists are tried, then steps of a twentieth."""

    def success(plan: Plan) -> float:
        return few_rounds_success(d, 1.0, n, plan)

    found = max((Plan((_FIRST,) * (rounds - 1), bits[::-1]) for bits in combinations(range(1, d), rounds - 1)), key=success)
    plan = replace(found, bits=())
    while found != plan:
        plan, found = found, max((found, *_near(found, d)), key=success)
    return plan


def _near(plan: Plan, d: int) -> Iterator[Plan]:
    """The plans that differ by one in one number, or in a share and its list."""
    for place in range(len(plan.bits)):
        for share in (-1, 0, 1):
            for bits in (-1, 0, 1):
                near = replace(plan, twentieths=_moved(plan.twentieths, place, share), bits=_moved(plan.bits, place, bits))
                lists = (d, *near.bits, 0)
                if 1 <= near.twentieths[place] < _PARTS and all(longer > shorter for longer, shorter in pairwise(lists)):
                    yield near


def _moved(numbers: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return (*numbers[:place], numbers[place] + by, *numbers[place + 1 :])


@lru_cache
def few_rounds_clients(d: int, epsilon: float, rounds: int, beta: float) -> int:
    """n for which the parity is found in so many rounds with probability 1 - beta."""
    return _least(d, epsilon, few_rounds_plan(d, rounds), beta)


def _least(d: int, epsilon: float, plan: Plan, beta: float) -> int:
    return least_clients(lambda n: few_rounds_success(d, epsilon, n, plan) >= 1 - beta, least=2 * len(plan.kept))
