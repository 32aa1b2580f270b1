"""Estimates and their intervals, and the lattice that queries answer on."""

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.populations.finite import rounding_law
from local_dp.queries.cells import Grouped
from local_dp.queries.examples import Product
from local_dp.queries.members import Members
from local_dp.queries.query import Query
from local_dp.queries.vectors import Coordinates
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.prefix_signs import PrefixSigns
from local_dp.records import Records
from local_dp.tallies import (
    ANY,
    Z95,
    Estimate,
    Possible,
    Ratio,
    Steadied,
    Tally,
    exact_interval,
    score_interval,
    steadied,
)
from tests.support.wrong import wrong


def test_nobody_answered() -> None:
    for randomizer in (RANDOMIZERS[name](1.0) for name in RANDOMIZERS.built_in):
        with pytest.raises(InputError, match="nobody answered"):
            randomizer.estimate(randomizer.empty())


@pytest.mark.parametrize(
    ("count", "n", "half"),
    [
        (0, 40, 0.5),
        (3, 40, 0.5),
        (20, 40, 0.5),
        (40, 40, 0.5),
        (45, 400, 0.0),
        (41, 400, 0.0),
        (39, 400, 0.5),
    ],
)
def test_the_interval_inverts_the_score_test(count: int, n: int, half: float) -> None:
    """An interval holds exactly the truths of a fine grid from which the estimate is 1.96 of their
    own standard errors away; where reports are few, and half a report. That of the clients' own
    mean leaves out the variance of their values, on any scale."""
    grid = np.linspace(-1.5, 3, 2_000_001)
    estimate = Estimate.between((-0.4, 1.9), -0.4 + 2.3 * count / n, n)
    noise = estimate.of_sample.on_scale(0.1, 1.2)
    at = np.append(grid, np.clip(noise.value, 0.1, 1.2))
    left = (2.19 - at) * (at + 0.34) - (1.2 - at) * (at - 0.1)
    assert n * noise.standard_error**2 == pytest.approx(left[-1])
    cases = (estimate, half, (1.9 - grid) * (grid + 0.4)), (noise, (n == 40) * 0.55, left[:-1])
    for each, more, variance in cases:
        away = np.maximum(abs(grid - each.value) - more * 2.3 / n, 0.0)
        reach = grid[away**2 <= Z95**2 * variance / n]
        assert each.interval() == pytest.approx((reach[0], reach[-1]), abs=3e-6)


@pytest.mark.parametrize("n", [1, 20, 50, 200, 797, 1799])
def test_any_truth_is_covered_in_94_percent_of_runs(n: int) -> None:
    """Summed over the binomial law of the count, for shares down to 1e-7; without the half report
    some share of 50 clients is covered in 84 %. The exact interval misses less on either side."""
    counts = np.arange(n + 1)
    shares = np.concatenate([np.geomspace(1e-7, 0.5, 400), 1 - np.geomspace(1e-7, 0.5, 400)])
    law = stats.binom.pmf(counts, n, shares[:, None])

    def least(low: Floats, high: Floats) -> float:
        return float(
            np.where((low <= shares[:, None]) & (shares[:, None] <= high), law, 0.0)
            .sum(axis=1)
            .min()
        )

    assert least(*Estimate(counts / n, np.zeros(n + 1), n, (0.0, 1.0)).interval()) >= 0.94
    assert n != 50 or least(*score_interval(counts / n, (0.0, 1.0), n)) < 0.85
    low, high = exact_interval(counts / n, (0.0, 1.0), n, Z95)
    for beyond in (low > shares[:, None], high < shares[:, None]):
        assert (law * beyond).sum(axis=1).max() <= stats.norm.sf(Z95)


@pytest.mark.parametrize("n", [1, 5, 20, 80, 400])
def test_a_signed_mean_is_covered_where_few_reports_count(n: int) -> None:
    """Summed over the law of the reports that count and of their signs, for shares that count from
    .3 / n to 1."""
    counting, plus = np.arange(n + 1)[:, None], np.arange(n + 1)
    value, square = (2 * plus - counting) / n, counting / n
    low, high = Steadied.of(
        value, (square - value**2) / n, n, steadied(value, square, (-1.0, 1.0), n)
    ).interval()
    for share in sorted({min(each / n, 1.0) for each in (0.3, 1, 2, 3, 5, 10, 0.3 * n, n)}):
        for lean in (0.5, 0.6, 0.75, 0.9, 1.0):
            law = stats.binom.pmf(counting, n, share) * stats.binom.pmf(plus, counting, lean)
            truth = share * (2 * lean - 1)
            assert law[(low <= truth) & (truth <= high)].sum() >= 0.94


def test_errors_by_hand() -> None:
    """A value beyond 1 has the error of 1, a quotient that of its gradient, and the interval of a
    fine grid; a steadied interval reaches as far out from the lower mean as from the higher."""
    assert Estimate.between((-1.0, 2.5), 1.8, 9).standard_error == pytest.approx(3**0.5 / 3)
    moments = tuple(np.array([0.1, 0.4, 2e-4, 5e-5, 1e-4]))
    ratio = Ratio.of(moments, 100, -1.0, 1.0)
    assert ratio.standard_error**2 == pytest.approx((2e-4 - 2.5e-5 + 6.25e-6) / 0.16)
    t = np.linspace(-1, 1, 200_001)
    near = t[(0.1 - 0.4 * t) ** 2 <= Z95**2 * (2e-4 - 1e-4 * t + 1e-4 * t**2)]
    assert ratio.interval() == pytest.approx((near[0], near[-1]), abs=2e-5)
    low, high = Steadied.of(np.zeros(1), np.zeros(1), 9, np.array([[0.5], [0.01]])).interval()
    assert high - 0.5 == pytest.approx(-low)


def test_intervals_follow_the_scale() -> None:
    """Moving an estimate to other units moves value, error and interval alike; a coordinate keeps
    its own."""
    estimate = GRR(1.0, k=3).estimate(Tally(np.array([[50, 30, 20]])))
    inside = estimate.on_scale(10.0, 40.0)
    ends: tuple[Floats, Floats] = estimate.interval()
    assert np.allclose(inside.value, 10 + 30 * estimate.value)
    assert np.allclose(inside.standard_error, 30 * estimate.standard_error)
    assert np.allclose(inside.interval(), [10 + 30 * end for end in ends])
    assert np.allclose(inside.at(1).interval(), [10 + 30 * end[1] for end in ends])
    plain = DiscreteLaplace(1.0).estimate(Tally(np.arange(64)[None, :]))
    assert np.allclose(
        plain.on_scale(-1.0, 1.0).interval(), [2 * end - 1 for end in plain.interval()]
    )


def test_what_is_known_has_no_width() -> None:
    """The last prefix sum is 1 and certain; all others have an interval of positive width around
    the estimate."""
    randomizer = PrefixSigns(1.0, k=8)
    tally = randomizer.draw_tally({3: 60, 5: 40}, np.random.default_rng(1))
    low, high = randomizer.estimate(tally).interval()
    assert float(low[-1]) == 1.0
    assert float(high[-1]) == 1.0
    assert np.all(low[:-1] < high[:-1])


def test_a_measured_error_gets_students_quantile() -> None:
    """Without `ends`, 30 or more reports give Student's interval within .5 %: t quantile of n - 1
    degrees times the error with n - 1; 1.96 is 5 % short."""
    for n in (30, 100, 10_000):
        low, high = Estimate(np.array(0.0), np.array(1.0), n).interval()
        student = float(stats.t.ppf(0.975, n - 1)) * float(np.sqrt(n / (n - 1)))
        assert float(high) == -float(low) == pytest.approx(student, rel=5e-3)
    assert 0.95 * float(stats.t.ppf(0.975, 29) * np.sqrt(30 / 29)) > Z95


X = np.array([-9.0, 0.3, 1.9999, np.inf, np.nan])
NUMBERS = Records({"x": X, "y": X, "s": np.array(["a=-1.3;b=1.9", "b=.2", "a", "", "b;a=.5"])})


@wrong(
    "local_dp.domains:Domain.discretize",
    "np.floor(places + shift)",
    "np.rint(places)",
    "to the nearest step",
    at="Product",
)
@pytest.mark.parametrize(
    "query",
    [
        Grouped("x", -2.0, 2.0, steps=7),
        Product(("x",), 2.0),
        Members("s", ("a", "b"), -2.0, 2.0, 3),
        Coordinates(("x", "y"), (0.0, 0.0), (2.0, 2.0), steps=8),
    ],
    ids=lambda query: type(query).__name__,
)
def test_rounding_keeps_the_mean(query: Query) -> None:
    """By its exact law, of each record; in a ball too, for no vector leaves it."""
    values, chances = rounding_law(query, NUMBERS)
    if isinstance(query, Members):
        values = np.stack([values // 5**key % 5 for key in (0, 1)], axis=1)
    means = np.einsum("n...p,np->n...", values + query.domain.low, chances)
    assert means == pytest.approx(query.values(NUMBERS), abs=1e-9)


def test_a_number_beyond_the_possible_is_moved_and_covers_as_before() -> None:
    """10,000 estimates near .5: moved ones are possible, lie in their interval, and cover every
    truth that the raw ones cover; none has a width of 0."""
    generator = np.random.default_rng(4)
    raw = Estimate(generator.normal(0.51, 0.1, 10_000), np.full(10_000, 0.05), 400)
    inside = raw.within(Possible(0.5, 1.5))
    (low, high), ends = inside.interval(), raw.interval()
    assert np.all((low >= 0.5) & (low <= inside.value) & (inside.value <= high) & (high > low))
    assert np.any(ends[1] < 0.5)  # where cutting alone would leave no width
    for truth in (0.5, 0.51, 0.8, 1.5):
        assert np.all((low <= truth) & (truth <= high) | (truth < ends[0]) | (truth > ends[1]))
    assert raw.within(ANY) is raw


@wrong("local_dp.tallies:Possible.interval", "np.fmin(low_end, value)", "low_end", "beside it")
def test_small_parts_of_a_whole_give_way() -> None:
    """The largest part stays; the interval of another has the moved number."""
    parts = Estimate(np.array([0.5, 0.6]), np.full(2, 0.01), 400).within(Possible(0.0, 1.0, ()))
    assert [*parts.value, *parts.interval()[0]] == pytest.approx([0.4, 0.6, 0.4, 0.58], abs=1e-3)
