"""Counts with noise in the shape of the cube, on each count, discrete Gaussian and normal; and
exact draws by inversion."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm, poisson

from local_dp.accounting.losses import gaussian_delta
from local_dp.accounting.rules import delta
from local_dp.curator import counts, inversion
from local_dp.curator.clipped import NoisySum, laplace_tail
from local_dp.curator.counts import (
    ColumnCounts,
    ComposedLaplaceCounts,
    DiscreteGaussianCounts,
    GaussianCounts,
    KNormCounts,
    LaplaceCounts,
    NoCounts,
)
from local_dp.curator.inversion import (
    Cumulative,
    binomial,
    exp_minus,
    invert,
    least_variance,
    mu_squared,
    rounded_sizes,
    signed,
)
from local_dp.loss import NANO, Approximate, Pure, approximate
from local_dp.populations.finite import Rows
from local_dp.queries.tables import Question
from local_dp.records import Records
from tests.support.long import short
from tests.support.mechanisms.paths import follows, law_of
from tests.support.mechanisms.sensitivity import Steps
from tests.support.runs.scripted import Script, seeded
from tests.support.theory.fits import p_value
from tests.support.wrong import wrong


def test_all_of_a_shell_is_alike() -> None:
    """Uncut, by all paths: three noises z are as likely as none at all times e^(-eps max |z|)."""
    mechanism = KNormCounts(3, 4.0)
    paths = law_of(lambda draws: tuple(mechanism.noise(draws).tolist()))
    for z in product(range(-2, 3), repeat=3):
        largest = max(map(abs, z))
        expected = pytest.approx(math.exp(-4 * largest), rel=1e-2 ** (3 - largest))
        assert float(paths[z] / paths[0, 0, 0]) == expected


def test_a_median_is_the_least_that_half_of_all_keep_to() -> None:
    """The figures of 16, 256 and 4,096 counts at epsilon 1, by the laws; also within a delta of
    1e-6."""
    figures = {
        KNormCounts: [16, 256, 4096],
        LaplaceCounts: [51, 1514, 35571],
        ComposedLaplaceCounts: [49, 398, 2347],
        GaussianCounts: [34, 203, 1017],
    }
    for kind, medians in figures.items():
        loss = (1.0,) if kind in (KNormCounts, LaplaceCounts) else (1.0, 1e-6)
        assert [kind(k, *loss).median_error for k in (16, 256, 4096)] == medians
    for mechanism in (KNormCounts(16, 1.0), LaplaceCounts(16, 1.0)):
        error = mechanism.median_error
        assert mechanism.within(error - 1) < 0.5 <= mechanism.within(error)


def test_nothing_is_half_of_all() -> None:
    """It costs nothing, does not look at the counts, and errs by half of the records at most."""
    database = ColumnCounts.of(np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1]]))
    assert NoCounts().loss == Pure(0)
    assert NoCounts().law(database) == NoCounts().law(ColumnCounts(3, np.zeros(3, dtype=np.int64)))
    assert NoCounts().release(database, seeded(1)).largest_error(database) == 2


@cache
def discrete(variance: Fraction, most: int) -> dict[int, Decimal]:
    """Weights e^(-y^2 / (2 V)) over their sum, to 60 digits; nothing of 1e-30 lies beyond
    `most`."""
    with localcontext(prec=60):
        weights = {
            y: (-Decimal(y * y * variance.denominator) / (2 * variance.numerator)).exp()
            for y in range(-most, most + 1)
        }
        total = sum(weights.values())
        return {y: weight / total for y, weight in weights.items()}


@cache
def rounded(variance: Fraction, most: int) -> dict[int, Decimal]:
    """Pr[round(N(0, V)) = y], as floats have it."""
    tails = norm.sf((np.arange(most + 2) - 0.5) / math.sqrt(variance))
    shares = (tails[:-1] - tails[1:]).tolist()
    return {y: Decimal(shares[abs(y)]) for y in range(-most, most + 1)}


def spent(law: dict[int, Decimal], move: tuple[int, ...], whole: float) -> float:
    """The least delta beside epsilon `whole` where a record moves the counts by `move`: over all
    outcomes."""
    most, growth = max(law) - max(move), Decimal(whole).exp()
    result = Decimal(0)
    for noise in product(range(-most, most + 1), repeat=len(move)):
        here, there = Decimal(1), Decimal(1)
        for y, step in zip(noise, move, strict=True):
            here, there = here * law[y], there * law[y + step]
        result += max(Decimal(0), here - growth * there)
    return float(result)


@pytest.mark.parametrize(
    ("k", "variance"), [(1, Fraction(7, 2)), (2, Fraction(5)), (3, Fraction(2))]
)
def test_all_neighbours_of_discrete_noise(k: int, variance: Fraction) -> None:
    """Over all vectors by which a record can move the counts the worst moves all; its price is the
    exact one of k parts. That of one part is too little."""
    mechanism = DiscreteGaussianCounts(k, k / (2 * float(variance)))
    law = discrete(variance, math.ceil(12 * math.sqrt(variance)) if k < 3 else 9)
    losses = {move: spent(law, move, 1.5) for move in product((0, 1), repeat=k)}
    worst = losses[(1,) * k]
    assert max(losses.values()) == worst
    assert worst * (1 - 1e-6) <= delta(mechanism.parts, 1.5) <= worst * (1 + 1e-3)
    assert k == 1 or worst > 1.2 * delta(
        DiscreteGaussianCounts(1, 1 / (2 * float(variance))).parts, 1.5
    )


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(20)])
def test_rho_is_what_it_costs(variance: Fraction) -> None:
    """The divergence of each order is at most order times rho, and nearly that; with half of the
    variance it is more."""
    rho = DiscreteGaussianCounts(1, 1 / (2 * float(variance))).loss.rho

    def divergence(own: Fraction, order: int) -> float:
        most = math.ceil(14 * math.sqrt(own)) + order
        law = discrete(own, most)
        with localcontext(prec=60):
            moment = sum(
                (law[y] * (law[y] / law[y - 1]) ** (order - 1) for y in range(1 - most, most + 1)),
                Decimal(0),
            )
            return float(moment.ln()) / (order - 1)

    for order in (2, 8):
        assert order * rho * 0.99 < divergence(variance, order) <= order * rho * (1 + 1e-12)
        assert divergence(variance / 2, order) > order * rho


@pytest.mark.parametrize("k", [1, 2])
def test_all_neighbours_of_rounded_noise(k: int) -> None:
    """The least variance keeps to delta, and hardly more, for every vector a record can move by;
    four fifths of it do not."""
    variance = Fraction(GaussianCounts(k, 1.0, 1e-3).variance)
    moves = list(product((0, 1), repeat=k))
    assert 0.7e-3 < max(spent(rounded(variance, 40), move, 1.0) for move in moves) <= 1e-3
    assert spent(rounded(variance * 4 / 5, 40), moves[-1], 1.0) > 1e-3


@wrong(
    "local_dp.curator.counts:_sizes",
    "1 / (2 * variance)",
    "Fraction(50, 49) / (2 * variance)",
    "discrete Gaussian noise of 98 % of its variance",
)
def test_draws_have_their_law() -> None:
    """Discrete noise of variance 2.4, by all paths of its table and its sign, and the largest of
    300. Rho is rounded down, and the cost of one of three counts up."""
    mechanism = DiscreteGaussianCounts(300, 62.5)
    law = discrete(Fraction(12, 5), 40)
    assert mechanism.variance == Fraction(12, 5)
    assert follows(lambda draws: int(signed(counts._sizes(mechanism.variance), draws, 1)[0]), law)
    for error in (0, 3):
        one = sum(law[y] for y in range(-error, error + 1))
        assert mechanism.within(error) == pytest.approx(float(one) ** 300, rel=1e-9)
    mechanism = DiscreteGaussianCounts(3, 0.0054746972870877595)
    (part,) = mechanism.parts
    assert (mechanism.loss.atto_rho, part.atto_mu2) == (5474697287087759, 3649798191391840)


def test_sums_are_exact_across_chunks() -> None:
    """With a huge epsilon the release is the sum, of yes/no and of level queries, from records and
    from a population handed out in chunks."""
    votes = Records({"v": np.arange(100_000, dtype=np.int64) % 5})
    for database in (votes, Rows(votes)):
        assert abs(NoisySum(Question("v == 1"), 24.0).release(database, seeded(0)) - 20_000) <= 1
        assert abs(NoisySum(Steps(), 24.0).release(database, seeded(0)) - 200_000) <= 10


@pytest.mark.parametrize(
    "epsilon", short([Fraction(1, 4), Fraction(7, 3)], lambda epsilon: epsilon >= 1)
)
def test_many_noises_have_their_law(epsilon: Fraction) -> None:
    """By all paths of the table and the sign: to 1e-12 the law with a fraction just below
    e^epsilon."""
    sizes, nano = inversion._laplace_sizes(epsilon), epsilon * NANO
    for y, share in law_of(lambda draws: int(signed(sizes, draws, 1)[0])).items():
        assert abs(share - laplace_tail(nano, y) + laplace_tail(nano, y + 1)) < 1e-12


@wrong(
    "local_dp.curator.inversion:invert",
    "sample[place] = _refine(cumulative, int(words[place]), draws)",
    "sample[place] += 1",
    "a draw near a border of the table is rounded: the law is not the one that is private",
    at="laplace",
)
@pytest.mark.parametrize(
    "sizes",
    [inversion._laplace_sizes(Fraction(1, 2)), counts._sizes(Fraction(12, 5)), rounded_sizes(5)],
    ids=["laplace", "discrete", "rounded"],
)
def test_what_a_table_leaves_open_is_decided_by_more_digits(sizes: Cumulative) -> None:
    """At each probability F(k): the words below, at and above it, followed by the least and the
    largest word, and the 128 bits just below and just above."""
    exact, word = [Fraction(share) for share in sizes(60)], 1 << 64
    for share in exact[:40]:
        first, second = divmod(int(share * word * word), word)
        words = [*product((first - 1, first, first + 1), (0, word - 1))]
        words += [(first, second - 1), (first, second + 2)]
        for near, rest in words:
            if max(near, rest) < word:
                answer = int(invert(sizes, Script([near, rest, *[0] * 6]), 1)[0])
                assert answer == sum(each * word * word <= near * word + rest for each in exact)


def test_successes_have_their_law() -> None:
    """By all paths of the table: the binomial law."""
    trials, share = 300, Fraction(1, 100)
    law = {
        value: math.comb(trials, value) * share**value * (1 - share) ** (trials - value)
        for value in range(trials + 1)
    }
    assert follows(lambda draws: binomial(draws, trials, lambda: Decimal(1) / 100), law)


def test_successes_among_more_than_atoms() -> None:
    """Of 2^4096, each with probability 3 / 2^4096: Poisson of mean 3 (chi-squared over 100 draws,
    failure 1e-6); 2^65536 are no other."""
    draws, trials = seeded(5), 1 << 4096
    tally = Counter(binomial(draws, trials, lambda: Decimal(3) / trials) for _ in range(100))
    assert p_value(tally, {value: float(poisson.pmf(value, 3)) for value in range(40)}) > 1e-6
    assert binomial(draws, 1 << 65536, lambda: Decimal(3) / (1 << 65536)) < 20
    assert binomial(draws, 0, lambda: Decimal(1) / 3) == 0
    assert float(exp_minus(Fraction(1, 2))) == pytest.approx(0.6065306597126334)


def test_a_guide_decides_what_is_decided() -> None:
    """Each of the 2^16 beginnings of a word: where the guide answers k, all uniforms that begin so
    lie between F(k - 1) and F(k), in fractions. It answers all but as many as there are
    probabilities, and what it leaves open is open."""
    sizes = inversion._laplace_sizes(Fraction(1, 20))
    guide, exact = inversion._table(sizes).guide.tolist(), [Fraction(0), *map(Fraction, sizes(60))]
    doubt, part = Fraction(1, 10**60), Fraction(1, 1 << 16)
    for prefix, k in enumerate(guide):
        if k >= 0:
            assert exact[k] + doubt <= prefix * part or not k
            assert (prefix + 1) * part <= exact[k + 1] - doubt
    borders = {int(share / part) for share in exact[1:]} - {1 << 16}
    assert borders == {prefix for prefix, k in enumerate(guide) if k < 0}


@wrong(
    "local_dp.curator.inversion:rounded_sizes",
    "-1",
    "-Decimal('1.02')",
    "rounded normal noise of 98 % of its variance",
    at="1",
)
@pytest.mark.parametrize("variance", [1, 37])
def test_a_table_is_the_integral(variance: int) -> None:
    """Erf of (k + 1/2) / sqrt(2 V) by its own series, to 40 digits."""

    def series(x: Decimal) -> Decimal:
        total, term, n = Decimal(0), x, 0
        while abs(term) > Decimal(10) ** -60:
            total, n = total + term / (2 * n + 1), n + 1
            term = -term * x * x / n
        return total

    with localcontext(prec=200):
        table = rounded_sizes(variance)(40)
        root = Decimal(2 * variance).sqrt()
        halves = [series((k + Decimal("0.5")) / root) for k in range(len(table) + 3)]
        for share, half in zip(table, halves, strict=False):
            assert abs(share - half / halves[-1]) < Decimal(10) ** -40


@pytest.mark.parametrize(
    "loss", [approximate(1.0, 1e-6), approximate(0.1, 1e-9), approximate(8.0, 0.5)]
)
def test_the_ratio_is_the_most_that_a_loss_allows(loss: Approximate) -> None:
    """A move of mu^2 per variance keeps to delta, one larger by a millionth does not; and every
    least variance is the squared move over it, rounded up."""
    ratio = mu_squared(loss)
    less, more = (
        gaussian_delta(math.sqrt(ratio * factor), loss.epsilon) for factor in (1, 1 + 1e-6)
    )
    assert less <= loss.delta < more
    for square in (1, 7, 10**6):
        assert least_variance(square, loss) == math.ceil(square / ratio)
