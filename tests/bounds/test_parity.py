"""Parities without a mask: lower bounds for one round and in turn, the best channels, and the
clients of every protocol."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import binom, poisson

from local_dp.arrays import Floats
from local_dp.bounds.channels import (
    best_channel,
    divergence_curvature,
    report_squares,
    staircase_columns,
)
from local_dp.bounds.interaction import (
    Plan,
    _answer_scores,
    few_rounds_plan,
    few_rounds_success,
)
from local_dp.bounds.parity import (
    best_parity_information,
    deny_information,
    parity_deny_clients,
    parity_deny_success,
    parity_elimination_clients,
    parity_elimination_limit,
    parity_information,
    parity_one_round_bound,
    parity_one_round_clients,
    parity_report_bound,
    random_channel,
    report_curvature,
    support_information,
)
from local_dp.bounds.response import response_gain
from local_dp.cube import parity
from tests.support.inputs.refusals import refuse
from tests.support.long import short

EPSILONS = (0.5, 1.0, math.log(3), 2.0, 3.0)


def masked_success(d: int, n: int, score: tuple[float, float]) -> float:
    """Pr[r has the largest score of 2^d masks] at epsilon 1. A client who agrees with its mask
    scores `score[0]`, another `score[1]`; counts are Poisson."""
    mean = n / 2.0**d
    reach = 12 * math.sqrt(n / 2.0**d)
    counts = np.arange(int(n / 2.0**d + reach + 20))
    sums = np.add.outer(counts * score[0], counts * score[1])
    scores, place = np.unique(np.round(sums, 9), return_inverse=True)

    def law(share: float) -> Floats:
        agree = poisson.pmf(counts, mean * share)
        differ = poisson.pmf(counts, mean * (1 - share))
        joint = np.outer(agree, differ)
        return np.bincount(place.ravel(), joint.ravel(), len(scores)).astype(np.float64)

    other = law(0.5)
    upto = np.minimum(1.0, np.cumsum(other))
    below = upto - other
    # a random one of those with the largest score
    least = np.maximum(other * 2**d, 1e-300)
    ties = (upto ** (2**d) - below ** (2**d)) / least
    keep = math.e / (math.e + 1)
    return float(law(keep) @ np.where(other > 1e-9, ties, below ** (2**d - 1)))


@pytest.mark.parametrize(
    ("d", "n", "plain", "likeliest"), [(6, 3_880, 0.873, 0.893), (8, 19_700, 0.872, 0.894)]
)
def test_the_likeliest_mask_is_right_more_often(
    d: int, n: int, plain: float, likeliest: float
) -> None:
    """The two decoders of masks at the counts of limits 4.2; the count of the normal approximation
    is that of the plain sum."""
    scale = math.e + 1
    logs = math.log(2 * math.e / scale), math.log(2 / scale)
    successes = [masked_success(d, n, score) for score in ((1.0, -1.0), logs)]
    assert successes == pytest.approx([plain, likeliest], abs=6e-4)
    enough = parity_one_round_clients(d, 1.0, 0.1)
    assert masked_success(d, enough, (1.0, -1.0)) == pytest.approx(0.9, abs=2e-3)


def test_the_constants_of_the_bound() -> None:
    """kappa is .6020 at epsilon 1, G is continuous at ln 3, and the bound is 3.60 to 11.89 C^2 2^d
    at d = 4 to 12. Deny's count tends to 1/.9 of it."""
    assert report_curvature(1.0) == pytest.approx(0.6020, abs=5e-5)
    assert report_squares(math.log(3) + 1e-9) == pytest.approx(
        report_squares(math.log(3)), rel=1e-7
    )
    units = [
        parity_one_round_bound(d, 1.0, 0.9) / response_gain(1.0) ** 2 / 2**d for d in (4, 8, 12)
    ]
    assert units == pytest.approx([3.605, 7.750, 11.894], abs=1e-3)
    ratios = [
        parity_deny_clients(d, 1.0, 0.1) / parity_one_round_bound(d, 1.0, 0.9)
        for d in (4, 8, 16, 32, 48)
    ]
    assert ratios == sorted(ratios, reverse=True)
    assert 1 / 0.9 < ratios[-1] < 1.4


@pytest.mark.parametrize(
    ("d", "epsilon"),
    short(list(product((2, 3), EPSILONS)), lambda each: each[0] == 2, several=True),
)
def test_no_channel_tells_more_than_the_bound(d: int, epsilon: float) -> None:
    """The best of all channels tells less, and random ones, which are private, less than it. Deny
    is within 5 % of it up to ln 3, and not above."""
    best = best_parity_information(d, epsilon)
    generator = np.random.default_rng(2)
    assert 0.4 < best / parity_report_bound(d, epsilon) < 1
    assert (0.95 < deny_information(d, epsilon) / best <= 1 + 1e-9) == (epsilon <= math.log(3))
    for reports in (2, 3, 9, 4 << d):
        for _ in range(20):
            channel = random_channel(d, epsilon, reports, generator)
            assert channel.sum(axis=0) == pytest.approx(1.0)
            assert (
                channel.max(axis=1) <= math.exp(epsilon) * channel.min(axis=1) * (1 + 1e-9)
            ).all()
            assert parity_information(d, channel).sum() <= best * (1 + 1e-9)


@pytest.mark.parametrize(
    ("d", "epsilon", "share"),
    short(
        [(2, 1.0, 0.6947), (2, 0.5, 0.7203), (3, 1.0, 0.8377)],
        lambda each: each[0] == 2,
        several=True,
    ),
)
def test_the_best_of_all_channels_has_the_published_share(
    d: int, epsilon: float, share: float
) -> None:
    """Also with three conditions in place of 2^(d + 1): shifts and linear maps of the cube leave
    the information of a report."""
    best = best_parity_information(d, epsilon)
    columns = staircase_columns(epsilon, 2 << d)
    assert best / parity_report_bound(d, epsilon) == pytest.approx(share, abs=1e-3)
    rest = columns[:, 2:].mean(axis=1)
    orbits = np.stack([columns[:, 0], columns[:, 1], rest])
    information = parity_information(d, columns)
    assert -linprog(-information, A_eq=orbits, b_eq=np.ones(3)).fun == pytest.approx(best, rel=1e-7)


def test_deny_is_near_the_best_of_all_channels() -> None:
    """Its shares of the bound are those published, and naming a parity that agrees reveals less."""
    kinds = {deny_information: [0.683, 0.834, 0.9986], support_information: [0.583, 0.657]}
    for information, shares in kinds.items():
        ratios = [information(d, 1.0) / parity_report_bound(d, 1.0) for d in (2, 3, 10)]
        assert ratios[: len(shares)] == pytest.approx(shares, abs=5e-4)


def test_what_the_proof_does_not_cover_is_refused() -> None:
    refuse(
        *(
            ("epsilon", partial(parity_one_round_bound, 4, epsilon, 0.9))
            for epsilon in (0.0, -1.0, 25.0)
        ),
        ("success", lambda: parity_one_round_bound(4, 1.0, 1.0)),
        ("d is 4", lambda: best_parity_information(4, 1.0)),
        *(("rounds", partial(few_rounds_plan, 4, wrong)) for wrong in (1, 5)),
        ("too few", lambda: few_rounds_plan(4, 3).sizes(2)),
    )


def best_divergence(d: int, epsilon: float) -> float:
    """2^d times the most that KL(M, M_r) can be on average over r for one report, M its law under
    random labels: over ALL channels."""
    x = np.arange(1 << d)
    examples = 2 * x + parity((x & x[:, None]).astype(np.uint64))  # row r: those of the parity r

    def divergence(columns: Floats) -> Floats:
        mean = columns.mean(axis=1, keepdims=True)
        return np.asarray((mean * np.log(mean / columns[:, examples].mean(axis=2))).mean(axis=1))

    return best_channel(epsilon, 2 << d, divergence).value * 2.0**d


@pytest.mark.long
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_channel_tells_more_than_the_proof_allows(epsilon: float) -> None:
    """The best of all channels has less than c G 2^-d. With c at +1/C it would have more."""
    shrink = 1 / response_gain(epsilon)
    for d in (1, 2, 3):
        assert (
            shrink - math.log1p(shrink)
            < best_divergence(d, epsilon)
            < divergence_curvature(epsilon) * report_squares(epsilon)
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_answer_adds_its_log_likelihood(epsilon: float) -> None:
    """The mean is the divergence of the law of the hidden parity from that of another, and less the
    divergence the other way; the mean square is that of the same logarithm."""
    shrink = 1 / response_gain(epsilon)
    truth, even = np.array([1 + shrink, 1 - shrink]) / 2, np.array([0.5, 0.5])
    step = np.log(truth / even)
    expected = [(law @ step, law @ step**2) for law in (truth, even)]
    assert np.array(_answer_scores(epsilon)) == pytest.approx(np.array(expected))


def test_the_hidden_one_of_four_is_named_least() -> None:
    """Or among the two least of the first round, where the second is never wrong: counts by
    Poisson's law, of which equal ones hardly matter."""
    counts, step = np.arange(60), math.tanh(0.5) / 16
    right = poisson.pmf(counts, 100 * (0.25 - 3 * step))
    other = poisson.cdf(counts, 100 * (0.25 + step)) - poisson.pmf(counts, 100 * (0.25 + step)) / 2
    deny = parity_deny_success(2, 1.0, 100)
    rounds = few_rounds_success(2, 1.0, 2000, Plan((1,), (1,)))
    for place, success in enumerate((deny, rounds)):
        assert success == pytest.approx(right @ binom.cdf(place, 3, other), abs=2e-4)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_elimination_has_the_limit_of_one_survivor(epsilon: float) -> None:
    """The clients until a survivor has fallen by 2, in rounds of so many, and the mean of e^L
    there, by the law of its jumps; in the limit of small rounds, which two of them give."""
    shrink, means = 1 / response_gain(epsilon), []
    for step in (2.0, 0.2, 0.1):
        law, time, clients, mean = np.ones(1), 0.0, 0.0, 0.0
        while (stays := law.sum()) > 1e-7:
            time, clients = time + step, clients + step * stays
            law = np.convolve(law, poisson.pmf(np.arange(20), step))
            scores = shrink * time + math.log1p(-shrink) * np.arange(len(law))
            mean += float(law @ np.where(scores > -2, 0, np.exp(scores)))
            law = law[scores > -2]
        assert parity_elimination_clients(0, epsilon, 2.0, step) == pytest.approx(clients, rel=0.05)
        means.append(np.array([shrink**2 * clients, mean]))
    limit = pytest.approx(parity_elimination_limit(epsilon, 2.0), rel=0.002)
    assert 2 * means[2] - means[1] == limit
