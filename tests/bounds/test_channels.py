"""What one report can carry, and what rounds save: closed forms above every channel that is
found."""

import math
import random
from bisect import bisect
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds.channels import (
    best_channel,
    best_two_laws,
    divergence_curvature,
    divergence_needed,
    easiest_laws,
    interactive_bound,
    parity_interactive_bound,
    report_capacity,
    report_squares,
    staircase_columns,
    two_laws_asked_again_bound,
    two_laws_clients,
    two_laws_in_turn_bound,
)
from local_dp.bounds.interaction import (
    direction_clients,
    group_lengths,
    ladder_one_round_least,
    ladder_success,
    margin_clients,
    margin_constant,
    vote_clients,
)
from local_dp.bounds.parity import parity_halving_clients, report_curvature
from local_dp.bounds.posterior import distance_needed, posterior_curves
from local_dp.bounds.response import response_gain
from tests.support.inputs.refusals import refuse


def squares(columns: Floats) -> Floats:
    """sum_x B^2 / A of each report; the first half of the symbols bears the label +1, the other
    -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    return np.asarray((((plus - minus) / 2) ** 2).mean(axis=-1) / columns.mean(axis=-1))


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_no_channel_tells_more_than_the_capacity(epsilon: float) -> None:
    """The best channel of all on a uniform record of 2 to 12 values, by its linear program, stays
    below, and the best of them is near."""

    def information(columns: Floats) -> Floats:
        mean = columns.mean(axis=1, keepdims=True)
        return np.asarray((columns * np.log(columns / mean)).mean(axis=1))

    values = [best_channel(epsilon, symbols, information).value for symbols in (2, 3, 5, 8, 12)]
    assert max(values) <= report_capacity(epsilon) * (1 + 1e-9)
    assert max(values) >= 0.97 * report_capacity(epsilon)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.log(3), 1.5, 2.0, 3.0])
def test_report_squares_are_the_most_of_all_channels(epsilon: float) -> None:
    """No channel on two, four or eight examples has more than G; on eight the best reaches it up to
    ln 3, and comes within 4 % at epsilon 2."""
    bests = [best_channel(epsilon, symbols, squares) for symbols in (2, 4, 8)]
    most, part = report_squares(epsilon), {1.5: 0.96, 2.0: 0.96, 3.0: 0.8}.get(epsilon, 1 - 1e-9)
    assert max(best.value for best in bests) <= most * (1 + 1e-9)
    assert bests[-1].value >= part * most
    for best in bests:
        assert best.columns.sum(axis=0) == pytest.approx(1)
        most = math.exp(epsilon) * best.columns.min(axis=1)
        assert (best.columns.max(axis=1) <= most * (1 + 1e-12)).all()


CURVES: list[tuple[Callable[[float], float], Callable[[Floats], Floats]]] = [
    (divergence_curvature, lambda t: t - np.log1p(t)),
    (report_curvature, lambda t: (1 + t) * np.log1p(t) - t),
]


@pytest.mark.parametrize(("curvature", "curve"), CURVES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_curvature_is_the_largest(
    curvature: Callable[[float], float], curve: Callable[[Floats], Floats], epsilon: float
) -> None:
    """The curve over t^2 falls for |t| <= 1/C, so that it is largest at t = -1/C."""
    t = np.linspace(-1, 1, 1000) / response_gain(epsilon)
    values = curve(t) / t**2
    assert (np.diff(values) < 1e-9).all()
    assert values[0] == pytest.approx(curvature(epsilon))


def test_total_variation_needs_so_much_distance() -> None:
    """No pair of laws drawn at random has less squared Hellinger distance than its total variation
    needs; the symmetric pair of two symbols has no more."""
    for first, second in np.random.default_rng(2).dirichlet(np.full(4, 0.5), size=(500, 2)):
        variation = float(abs(first - second).sum() / 2)
        needed = float(distance_needed(Decimal(variation)))
        assert 1 - np.sqrt(first * second).sum() >= needed - 1e-12
    assert 1 - 2 * math.sqrt(0.9 * 0.1) == pytest.approx(float(distance_needed(Decimal("0.8"))))


@pytest.mark.parametrize(
    ("d", "epsilon", "units"),
    [(30, 0.5, 3.836), (30, 1.0, 3.112), (6, 1.0, 2.957), (10, 1.0, 3.099)],
)
def test_parity_whatever_is_asked(d: int, epsilon: float, units: float) -> None:
    """n >= units C^2 2^d at 90 %, below halving. At any success it is more than Bretagnolle and
    Huber's inequality gives."""
    bound = parity_interactive_bound(d, epsilon, 0.9)
    assert bound / response_gain(epsilon) ** 2 / 2**d == pytest.approx(units, abs=0.0005)
    assert divergence_needed(2.0**-d, 1.0) == math.inf
    assert d > 10 or bound < parity_halving_clients(d, epsilon, 0.1)
    for success in (0.1, 0.5, 0.99):
        carriage = divergence_curvature(epsilon) * report_squares(epsilon)
        huber = -math.log1p(-((success - 1 / 64) ** 2)) * 64 / carriage
        assert parity_interactive_bound(6, epsilon, success) > huber


@pytest.mark.parametrize(
    ("epsilon", "turn", "again", "gain"),
    [(0.5, 1.525, 0.833, 1.051), (1.0, 1.176, 0.650, 1.349), (2.0, 0.519, 0.303, 2.840)],
)
def test_two_laws(epsilon: float, turn: float, again: float, gain: float) -> None:
    """The bounds in units of C^2 / t^2, below yes-or-no's 1.64, and what the best report carries
    beside it."""
    bounds = [
        bound(epsilon, 0.1, 0.9) for bound in (two_laws_in_turn_bound, two_laws_asked_again_bound)
    ]
    assert np.array(bounds) / (10 * response_gain(epsilon)) ** 2 == pytest.approx(
        [turn, again], abs=0.0005
    )
    assert two_laws_clients(epsilon, 0.1, 0.1) / (
        10 * response_gain(epsilon)
    ) ** 2 == pytest.approx(1.645, abs=0.003)
    yes = (0.1 / response_gain(epsilon)) ** 2
    assert best_two_laws(epsilon, 0.1).value / yes == pytest.approx(gain, abs=0.0005)


@pytest.mark.parametrize("bound", [two_laws_in_turn_bound, two_laws_asked_again_bound])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_two_laws_that_are_close(bound: Callable[..., float], epsilon: float) -> None:
    """In units of 1 / t^2 the bound hardly moves from variation .001 to a millionth."""
    bounds = [bound(epsilon, variation, 0.9) * variation**2 for variation in (1e-3, 1e-6)]
    assert bounds[1] == pytest.approx(bounds[0], rel=2e-3)


def test_ladders() -> None:
    """At epsilon 1 2.985 k 2^(k-1) clients, 1,565,038 at k = 16; of k = 3 the law is that of all
    eight paths; groups of levels are as equal as they can be."""
    assert ladder_one_round_least(1, 1.0, 0.1) == pytest.approx(2.985, abs=5e-4)
    assert ladder_one_round_least(16, 1.0, 0.1) == pytest.approx(1_565_038, abs=1)
    agree = np.array(list(product((1, -1), repeat=3)))  # half go on from the right node
    means = agree.sum(axis=1) * math.tanh(2.0) / 3
    right = [
        stats.norm.cdf(agree[:part, level] @ means[:part] / math.sqrt((1 - means**2)[:part].sum()))
        for level, part in ((0, 8), (1, 4), (2, 2))
    ]
    assert ladder_success(3, 4.0, 1, 8) == pytest.approx(math.prod(right))
    lengths = [group_lengths(*each) for each in ((12, 5), (4, 1))]
    assert lengths == [(3, 3, 2, 2, 2), (4,)]


@pytest.mark.parametrize("count", [100, pytest.param(20_000, marks=pytest.mark.long)])
def test_counts_are_true_to_the_last_digit(count: int) -> None:
    """By other formulas in 200 digits, for epsilon from 1e-9, success near a coin's or near 1, and
    seed 52."""
    draw = random.Random(52)
    for _ in range(count):
        squared, near = draw.randint(1, 10 ** draw.choice((12, 60))), 10 ** -draw.uniform(0.5, 15)
        numbers = 10 ** draw.uniform(-9, 1.3), draw.choice((0.5 + near, 1 - near))
        with localcontext(prec=200):
            epsilon, p = (Decimal(str(number)) for number in numbers)
            reach = ((epsilon / 2).exp() - (-epsilon / 2).exp()) / (
                (epsilon / 2).exp() + (-epsilon / 2).exp()
            )
            budgets = [1 - (4 * p * (1 - p)).sqrt()]
            for widest, dearest, *corners in posterior_curves():
                at = bisect(corners[1].tolist(), numbers[1])
                if at and reach <= widest and reach**2 <= dearest:
                    (low, high), (start, end) = (
                        [Decimal(str(each)) for each in ends[at - 1 : at + 1]] for ends in corners
                    )
                    budgets.append((low * (end - p) + high * (p - start)) / (end - start))
            clients = squared * max(budgets) / ((epsilon.exp() - 1) * reach) * 2
        least = margin_clients(squared, *numbers)
        assert Fraction(clients) * (1 - Fraction(1, 10**39)) <= least <= math.ceil(clients)


def test_counts_of_votes() -> None:
    """The vote's count is C^2 MC^2 p / (1 - p)."""
    assert margin_clients(88.975**2, 1.0) == 25_058
    assert margin_constant(0.5) == pytest.approx(margin_clients(1e12, 0.5) / 1e12)
    assert vote_clients(100.0, 1.0) == math.ceil(900 * response_gain(1.0) ** 2) == 4215
    assert direction_clients(100.0, 1.0) == math.ceil(450 * math.pi * response_gain(1.0) ** 2)


def test_bad_input() -> None:
    """What the proofs do not cover: a success that a coin has, or certainty; epsilons, counts and
    chances out of range."""
    successes = (0.5, 1.0, 0.1, math.nan)
    bounds: list[Callable[[float], float]] = [
        partial(vote_clients, 4.0, 1.0),
        partial(margin_constant, 1.0),
    ]
    bounds += [partial(direction_clients, 4.0, 1.0)]
    rounds: list[Any] = [0, 5, 2.0, True]
    refuse(
        *(("success", partial(bound, success)) for bound, success in product(bounds, successes)),
        ("margin complexity", lambda: margin_clients(math.nan, 1.0)),
        ("number of symbols is 17", lambda: staircase_columns(1.0, 17)),
        ("total variation", lambda: easiest_laws(1.0)),
        ("dimension", lambda: interactive_bound(0, 1.0, 0.9, 0.1)),
        ("success", lambda: interactive_bound(64, 1.0, 1.1, 0.1)),
        ("epsilon", lambda: interactive_bound(64, 0.0, 0.9, 0.1)),
        *(("rounds", partial(group_lengths, 4, wrong)) for wrong in rounds),
    )
