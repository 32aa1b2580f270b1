"""Randomizers of a vector: lattices, public directions, exact channels behind them, the caps of
PrivUnit and the projections of ProjUnit."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

from local_dp.arrays import Floats, Words
from local_dp.bounds.means import random_coordinate_variance, signs_variance
from local_dp.bounds.response import response_gain
from local_dp.domains import vectors
from local_dp.errors import InputError, RefusedError
from local_dp.loss import nano_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.queries.query import QUERIES
from local_dp.queries.vectors import Coordinates
from local_dp.randomizers.evidence import check_loss
from local_dp.randomizers.vectors.base import UNIT, normals_of, quantiles, signs_of, words_of
from local_dp.randomizers.vectors.coordinates import (
    MAX_DIRECTIONS,
    SampledSigns,
    best_directions,
    best_signs,
    largest_normal,
    nearest_variance,
)
from local_dp.randomizers.vectors.privunit import (
    Cap,
    PrivUnit,
    ProjUnit,
    best_cap,
    mean_length,
    projunit_moment,
    projunit_on_axis,
)
from local_dp.records import Records
from local_dp.verification.audit import audit
from tests.support.mechanisms.case import twin_of
from tests.support.wrong import wrong

COINS = stream_key("coins", 7, 1)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_ball_is_what_clipping_leads_to(d: int) -> None:
    """Every row of a cube around it is clipped into the ball, members stay, and others keep their
    direction up to a step."""
    ball = vectors("ball", d, 8)
    around = np.array(list(product(range(-20, 21), repeat=d)))
    inside = ball.clip(around)
    norms = np.sqrt((inside**2).sum(axis=1))
    assert norms.max() <= 8
    members = ball.values()
    assert np.array_equal(ball.clip(members), members)
    assert {tuple(row) for row in inside.tolist()} <= {tuple(row) for row in members.tolist()}
    cube = np.clip(around, -8, 8)
    right = cube * np.minimum(1, 8 / np.maximum(np.sqrt((cube**2).sum(axis=1)), 1))[:, None]
    assert abs(inside - right).max() < 1 + 1e-9
    assert ball.some(4 * d + 4).shape[1] == d


def test_bodies_that_are_none_are_refused() -> None:
    for d in (0, 1025, True, 2.0):
        with pytest.raises(InputError, match="d is"):
            vectors("cube", d, 4)  # type: ignore[arg-type]
    for steps in (0, 3, 1 << 15, True):
        with pytest.raises(InputError, match="power of two"):
            vectors("ball", 2, steps)


def test_columns_make_a_vector() -> None:
    """Columns over a bound are the rows of a lattice; what is beyond is moved inside, what is
    missing counts as 0; the query travels."""
    query = Coordinates(("a", "b"), (0.0, 0.0), (2.0, 2.0), "ball", 8)
    one, other = np.array([1.0, 2.0, np.nan, -5.0]), np.array([0.0, 2.0, np.inf, 0.1])
    records = Records({"a": one, "b": other})
    values = query.values(records)
    assert values[1].tolist() == pytest.approx([8 / 2**0.5 - 1] * 2)
    assert (np.sqrt((values**2).sum(axis=1)) <= 8).all()
    assert QUERIES.build("coordinates", query.params()) == query


def test_the_normal_table_is_normal() -> None:
    """Symmetric, of variance 1 and fourth moment 3 nearly, its mean of the absolute value that of
    the normal law: what a bias of 1e-5 needs."""
    table = quantiles().astype(np.float64) / UNIT
    assert np.array_equal(table, -table[::-1])
    assert (np.diff(table) >= 0).all()
    assert (table**2).mean() == pytest.approx(1, abs=1e-5)
    assert (table**4).mean() == pytest.approx(3, abs=1e-3)
    assert abs(table).mean() == pytest.approx(math.sqrt(2 / math.pi), abs=1e-6)


def test_words_of_coins_are_uniform_and_apart() -> None:
    """Bits of the words of consecutive coins are fair and words do not repeat; SplitMix64's
    published first words."""
    words = words_of(np.arange(20_000, dtype=np.uint64), 5)
    assert len(np.unique(words)) == words.size
    ones = signs_of(words, 320).sum(axis=0)
    assert abs(ones).max() < 6 * math.sqrt(20_000)  # 320 normal tails at 6: 7e-7
    assert words_of(np.array([0], dtype=np.uint64), 3)[0].tolist() == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
    counts = np.bincount(normals_of(words, 20).astype(np.int64).ravel() > 0, minlength=2)
    assert abs(counts[1] / counts.sum() - 0.5) < 6 * 0.5 / math.sqrt(counts.sum())


@wrong(
    "local_dp.randomizers.vectors.coordinates:SampledSigns.code_of",
    "uniform < coordinates + self.steps",
    "uniform <= coordinates + self.steps",
    "a coordinate is rounded up by one step in 2 steps too often",
)
def test_rounding_to_corners_is_exact() -> None:
    """On a lattice of one step, corners are never rounded to others: without noise a client reports
    the signs of its coordinates, for every coin."""
    randomizer = SampledSigns(1.0, d=3, steps=1, signs=3)
    coins = public_coins(COINS, 0, 5000)
    first = ((coins >> np.uint64(32)) * np.uint64(3) >> np.uint64(32)).astype(np.int64)
    for corner in product((-1, 1), repeat=3):
        x = np.array(corner)
        plus = x[(first[:, None] + np.arange(3)) % 3] > 0
        codes = randomizer.encode(np.repeat(x[None], 5000, axis=0), coins)
        assert np.array_equal(codes, plus @ np.array([1, 2, 4]))


def test_the_largest_of_normals() -> None:
    assert largest_normal(2) == pytest.approx((1 / math.sqrt(math.pi), 1.0), rel=1e-9)
    assert largest_normal(3) == pytest.approx(
        (1.5 / math.sqrt(math.pi), 1 + math.sqrt(3) / (2 * math.pi)), rel=1e-9
    )


def test_privunit_is_its_integral() -> None:
    """The closed form is that of the density on the sphere, integrated; with a half-sphere and many
    coordinates, (pi / 2) C^2 d."""
    epsilon, d, cap = 1.5, 7, 0.2
    height = stats.beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)  # of <v, x>
    share = 1 - height.cdf(cap)
    inside, _ = integrate.quad(lambda t: t * height.pdf(t), cap, 1)
    in_cap = math.exp(epsilon) * share / (math.exp(epsilon) * share + 1 - share)
    mean = inside * (in_cap / share - (1 - in_cap) / (1 - share))
    assert Cap.of(d, cap).mean(epsilon) == pytest.approx(mean, rel=1e-9)
    half_sphere = Cap.of(1000, 0.0).mean(1.0) ** -2 - 1
    limit = math.pi / 2 * response_gain(1.0) ** 2 * 1000
    assert half_sphere == pytest.approx(limit, rel=2e-3)


@pytest.mark.parametrize(
    ("epsilon", "most"), [(0.1, 1.01), (0.5, 1.05), (1.0, 1.12), (2.0, 1.17), (4.0, 1.19)]
)
def test_a_few_directions_come_near_privunit(epsilon: float, most: float) -> None:
    """In 100 dimensions, the best number of public directions has at most so many times the
    variance of PrivUnit with its best cap."""
    best = best_cap(epsilon, 100).mean(epsilon) ** -2 - 1
    assert best <= Cap.of(100, 0.0).mean(epsilon) ** -2 - 1
    nearest = min(
        nearest_variance(math.exp(epsilon), count, 100) for count in range(2, MAX_DIRECTIONS + 1)
    )
    assert best < nearest < most * best
    assert nearest_variance(
        math.exp(epsilon), best_directions(nano_epsilon(epsilon)), 100
    ) == pytest.approx(nearest, rel=1e-3)


def test_several_signs_beat_one_from_where_they_do() -> None:
    """The best number of signs is that of a search, grows with epsilon, and more than halves the
    variance of a random coordinate at epsilon 4."""
    for epsilon in (0.1, 1.0, 1.4, 1.5, 2.0, 4.0, 8.0):
        variances = [signs_variance(epsilon, 100, count) for count in range(1, 13)]
        assert variances[0] == pytest.approx(random_coordinate_variance(epsilon, 100), rel=1e-9)
        assert best_signs(nano_epsilon(epsilon), 100) == 1 + int(np.argmin(variances))
    assert [best_signs(nano_epsilon(epsilon), 100) for epsilon in (1.0, 1.3, 1.4, 4.0, 8.0)] == [
        1,
        1,
        2,
        4,
        8,
    ]
    assert best_signs(nano_epsilon(8.0), 3) == 3
    assert 2.5 < random_coordinate_variance(4.0, 100) / signs_variance(4.0, 100, 4) < 2.6


# the cap of twice the epsilon
Overspent = twin_of(
    PrivUnit, threshold=lambda own, right: int(own.cap.chosen(2 * own.epsilon) * 2.0**64)
)


@pytest.mark.parametrize("randomizer", [PrivUnit(1.0), ProjUnit(1.0)], ids=lambda each: each.name)
def test_a_density_is_no_proof(randomizer: PrivUnit | ProjUnit) -> None:
    with pytest.raises(RefusedError) as refusal:
        check_loss(randomizer)
    assert refusal.value.code == "evidence"
    check_loss(randomizer, frozenset({"density"}))


@pytest.mark.long
def test_the_audit_of_a_density() -> None:
    """It has nothing to enumerate, finds no violation, and one where there is one."""
    for randomizer in (PrivUnit(1.0, d=2), ProjUnit(1.0, d=2)):
        report = audit(randomizer)
        assert report.holds, report
        assert (report.grade, report.loss) == ("black box", None)
    assert not audit(Overspent(1.0, d=2)).holds


@wrong(
    "local_dp.randomizers.vectors.privunit:PrivUnit._heights",
    "share + (1 - share) * within",
    "within",
    "who is to be outside the cap may be in it: the mean is larger than decoded",
)
def test_the_cap_is_chosen_as_its_density_allows() -> None:
    """Cap and rest, of densities threshold / q and the rest's, differ by less than e^eps, and by
    that almost; the choice itself is by a whole threshold."""
    for epsilon in (0.1, 1.0, 4.0):
        randomizer = PrivUnit(epsilon, d=20)
        in_cap, share = randomizer.threshold / 2.0**64, randomizer.cap.share
        ratio = in_cap / share / ((1 - in_cap) / (1 - share))
        assert epsilon - 1e-6 < math.log(ratio) <= epsilon
        below = stats.beta(9.5, 9.5, loc=-1, scale=2).cdf(randomizer.cap.height)
        assert 1 - below == pytest.approx(share, rel=1e-9)
        words = np.full((2, randomizer.words), 1 << 63, dtype=np.uint64)
        words[:, 0] = randomizer.threshold - 1, randomizer.threshold
        words[:, 1] = 0  # as near to the vector as may be
        x = randomizer.domain.some(5)[[0, 0]]
        near = abs(randomizer.respond(x, words, np.zeros(1, dtype=np.uint8))[:, 0]) / 2.0**14
        assert near[0] > 0.9
        assert near[1] == pytest.approx(randomizer.cap.height, abs=1e-4)
    # in three dimensions heights are uniform: a mean square of 1.75 / 3 in the cap, .75 / 3 outside
    square = Cap.of(3, 0.5).square(1.0, 3)
    assert square == pytest.approx((0.75 + math.e / (math.e + 3)) / 3)


@pytest.mark.parametrize(
    ("d", "k"),
    [
        (64, 32),
        pytest.param(128, 32, marks=pytest.mark.long),
        pytest.param(100, 64, marks=pytest.mark.long),
    ],
)
def test_projections_shorten_as_uniform_ones_do(d: int, k: int) -> None:
    """Over 60,000 coins the mean along the vector is that of a uniform projection, within 5
    standard errors and 5e-4: of one, two, half and all coordinates."""
    randomizer, coins = ProjUnit(1.0, d=d, k=k), public_coins(COINS, 0, 60_000)
    # a plane in four dimensions: the square is uniform
    assert mean_length(4, 2) == pytest.approx(2 / 3)
    for size in (1, 2, d // 2, d):
        x = (np.arange(d) < size) / math.sqrt(size)
        lengths = _lengths(randomizer, x, coins)
        away = lengths.mean() / mean_length(randomizer.filled, k) - 1
        assert abs(away) < 5 * lengths.std() / math.sqrt(60_000) / lengths.mean() + 5e-4


def _lengths(randomizer: ProjUnit, x: Floats, coins: Words) -> Floats:
    projections = (
        randomizer.projected(np.repeat(x[None], len(some), axis=0), some)
        for some in np.array_split(coins, 60)
    )
    return np.concatenate([np.sqrt((each**2).sum(axis=1)) for each in projections])


@pytest.mark.parametrize(
    ("epsilon", "d"), [(0.5, 100), (1.0, 100), (4.0, 100), (1.0, 1000), (8.0, 500)]
)
def test_projunit_costs_little_more_than_privunit(epsilon: float, d: int) -> None:
    """With the k that it takes, at most 2.1 % more than in all dimensions and 3 % more than
    PrivUnit in d, for a fraction of its bits; on an axis no less."""
    randomizer = ProjUnit(epsilon, d=d)
    moment = projunit_moment(epsilon, d, randomizer.chosen)
    best = best_cap(epsilon, d).mean(epsilon) ** -2
    assert best < moment < 1.03 * best
    assert moment <= 1.02 * projunit_moment(epsilon, d, randomizer.filled)
    assert moment / d <= projunit_on_axis(epsilon, d, randomizer.chosen) < moment
    assert randomizer.bits < PrivUnit(epsilon, d=d).bits
    assert projunit_moment(epsilon, 128, 128) == pytest.approx(
        best_cap(epsilon, 128).mean(epsilon) ** -2, rel=1e-9
    )


def test_the_variance_of_projections_is_that_of_their_reports() -> None:
    """20,000 reports of an axis of 64 by 32 projected coordinates: 6 errors from it at most; and
    mean squares, in all and on the axis, within 5 and 6 % of the stated ones: 5 errors or more."""
    randomizer, n = ProjUnit(1.0, d=64, k=32), 20_000
    axis = np.eye(64)[0]
    values = np.tile(randomizer.steps * axis.astype(np.int64), (n, 1))
    cells = randomizer.cells_of(public_coins(COINS, 0, n))
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(11), Draw(1), 0, n), cells)
    estimate = randomizer.estimate(randomizer.tally(reports, cells))
    assert (abs(estimate.value - axis) < 6 * estimate.standard_error).all()
    variance = n * estimate.standard_error**2
    assert variance.sum() == pytest.approx(
        randomizer.variance(values[:1], np.ones(1)).sum(), rel=0.05
    )
    assert variance[0] + 1 == pytest.approx(projunit_on_axis(1.0, 64, 32), rel=0.06)
