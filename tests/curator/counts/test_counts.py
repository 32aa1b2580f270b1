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

from local_dp.accounting.losses import DiscreteGaussian, conversion, gaussian_delta
from local_dp.accounting.rules import delta, epsilon
from local_dp.curator import counts, inversion
from local_dp.curator.account import ConcentratedAccount, TrustedOracle
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
    discrete_laplaces,
    exp_minus,
    invert,
    least_variance,
    mu_squared,
    rounded_sizes,
    signed,
)
from local_dp.errors import RefusedError
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import ATTO, NANO, Approximate, Pure, approximate, exp_epsilon
from local_dp.optimise import least_clients
from local_dp.populations.finite import Rows
from local_dp.queries.tables import Question
from local_dp.records import Records
from tests.support.long import short
from tests.support.mechanisms.paths import follows, law_of
from tests.support.mechanisms.sensitivity import Steps
from tests.support.runs.scripted import Script, seeded
from tests.support.theory.fits import p_value


def test_all_of_a_shell_is_alike() -> None:
    """Uncut, by all paths: three noises z are as likely as none at all times e^(-eps max |z|)."""
    mechanism = KNormCounts(3, 4.0)
    paths = law_of(lambda draws: tuple(mechanism.noise(draws).tolist()))
    for z in product(range(-2, 3), repeat=3):
        assert float(paths[z] / paths[0, 0, 0]) == pytest.approx(
            math.exp(-4 * max(map(abs, z))), rel=1e-2 ** (3 - max(map(abs, z)))
        )


@pytest.mark.parametrize(("k", "epsilon"), [(1, 1.0), (2, 0.1), (16, 1.0), (300, 1.0)])
def test_the_law_of_the_largest_error(k: int, epsilon: float) -> None:
    """The closed form is, to 1e-9, the sum of e^(-eps r) ((2r + 1)^k - (2r - 1)^k) in whole
    numbers."""
    mechanism = KNormCounts(k, epsilon)
    decay = (1 << 200) // exp_epsilon(mechanism.loss.nano)  # e^-eps in units of 2^-200
    weights, power = [1 << 3000], 1 << 3000
    for r in range(1, int((3 * k + 60) / epsilon)):
        power = power * decay >> 200
        weights.append(power * ((2 * r + 1) ** k - (2 * r - 1) ** k))
    total, below = sum(weights), 0
    for r, weight in enumerate(weights):
        below += weight
        assert mechanism.within(r) == pytest.approx(below / total, abs=1e-9)


def test_a_median_is_the_least_that_half_of_all_keep_to() -> None:
    """The figures of 16, 256 and 4,096 counts at epsilon 1, by the laws; also within a delta of
    1e-6."""
    assert [KNormCounts(k, 1.0).median_error for k in (16, 256, 4096)] == [16, 256, 4096]
    assert [LaplaceCounts(k, 1.0).median_error for k in (16, 256, 4096)] == [51, 1514, 35571]
    assert [ComposedLaplaceCounts(k, 1.0, 1e-6).median_error for k in (16, 256, 4096)] == [
        49,
        398,
        2347,
    ]
    assert [GaussianCounts(k, 1.0, 1e-6).median_error for k in (16, 256, 4096)] == [34, 203, 1017]
    discrete_noise = [
        DiscreteGaussianCounts(k, k / (2 * GaussianCounts(k, 1.0, 1e-6).variance))
        for k in (16, 256, 4096)
    ]
    assert [mechanism.median_error for mechanism in discrete_noise] == [34, 203, 1017]
    for mechanism in (KNormCounts(16, 1.0), LaplaceCounts(16, 1.0)):
        assert (
            mechanism.within(mechanism.median_error - 1)
            < 0.5
            <= mechanism.within(mechanism.median_error)
        )


def test_noise_is_within_its_median_half_of_the_time() -> None:
    """1,000 largest errors of 16 counts: as many within the median as it says (binomial, failure
    1e-6)."""
    draws = seeded(7)
    for mechanism in (
        LaplaceCounts(16, 1.0),
        ComposedLaplaceCounts(16, 1.0, 1e-6),
        GaussianCounts(16, 1.0, 1e-6),
    ):
        share, errors = (
            mechanism.within(mechanism.median_error),
            np.array([np.abs(mechanism.noise(draws)).max() for _ in range(1000)]),
        )
        assert (
            abs(int((errors <= mechanism.median_error).sum()) - 1000 * share)
            < 4.9 * (1000 * share * (1 - share)) ** 0.5
        )
        assert int((errors <= mechanism.median_error // 2).sum()) < 250


def test_nothing_is_half_of_all() -> None:
    """It costs nothing, does not look at the counts, and errs by half of the records at most."""
    database = ColumnCounts.of(np.array([[0, 1, 1], [0, 1, 0], [0, 1, 1]]))
    assert database.counts.tolist() == [0, 3, 2]
    assert NoCounts().loss == Pure(0)
    assert NoCounts().law(database) == NoCounts().law(ColumnCounts(3, np.zeros(3, dtype=np.int64)))
    assert NoCounts().release(database, seeded(1)).largest_error(database) == 2


LOSS = approximate(1.0, 1e-3)


@cache
def discrete(variance: Fraction, most: int) -> dict[int, Decimal]:
    """Weights e^(-y^2 / (2 V)) over their sum, to 60 digits; nothing of 1e-30 lies beyond
    `most`."""
    with localcontext() as context:
        context.prec = 60
        weights = {
            y: (-Decimal(y * y * variance.denominator) / (2 * variance.numerator)).exp()
            for y in range(-most, most + 1)
        }
        total = sum(weights.values())
        return {y: weight / total for y, weight in weights.items()}


@cache
def rounded(variance: Fraction, most: int) -> dict[int, Decimal]:
    """Pr[round(N(0, V)) = y], as floats have it."""
    sigma = math.sqrt(variance)
    return {
        y: Decimal(float(norm.sf((abs(y) - 0.5) / sigma) - norm.sf((abs(y) + 0.5) / sigma)))
        for y in range(-most, most + 1)
    }


def spent(law: dict[int, Decimal], moved: tuple[int, ...], whole: float) -> float:
    """The least delta beside epsilon `whole` where a record moves the counts by `moved`: over all
    outcomes."""
    most, growth = max(law) - max(moved), Decimal(whole).exp()
    result = Decimal(0)
    for noise in product(range(-most, most + 1), repeat=len(moved)):
        here, there = (
            math.prod(
                (law[y + step] for y, step in zip(noise, steps, strict=True)), start=Decimal(1)
            )
            for steps in ((0,) * len(moved), moved)
        )
        result += max(Decimal(0), here - growth * there)
    return float(result)


@pytest.mark.parametrize(
    ("k", "variance"), [(1, Fraction(7, 2)), (2, Fraction(5)), (3, Fraction(2))]
)
def test_all_neighbours_of_discrete_noise(k: int, variance: Fraction) -> None:
    """Enumerated over all vectors by which a record can move the counts, the worst is the one that
    moves all; its price is the exact one of k parts. Noise of k = 1 on two counts costs more."""
    mechanism = DiscreteGaussianCounts(k, k / (2 * float(variance)))
    assert float(mechanism.variance) == pytest.approx(float(variance), rel=1e-9)
    law = discrete(variance, math.ceil(12 * math.sqrt(variance)) if k < 3 else 9)
    losses = {moved: spent(law, moved, 1.5) for moved in product((0, 1), repeat=k)}
    worst = losses[(1,) * k]
    assert max(losses.values()) == worst
    if k > 1:
        assert spent(law, (1, *(-1 for _ in range(k - 1))), 1.5) == pytest.approx(worst, rel=1e-9)
        assert worst > 1.2 * delta(DiscreteGaussianCounts(1, 1 / (2 * float(variance))).parts, 1.5)
    assert worst * (1 - 1e-6) <= delta(mechanism.parts, 1.5) <= worst * (1 + 1e-3)


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(3), Fraction(20)])
def test_rho_is_what_it_costs(variance: Fraction) -> None:
    """The divergence of each order is at most order times rho, and nearly that; with half of the
    variance it is more."""
    rho = DiscreteGaussianCounts(1, 1 / (2 * float(variance))).loss.rho

    def divergence(own: Fraction, order: int) -> float:
        most = math.ceil(14 * math.sqrt(own)) + order
        law = discrete(own, most)
        with localcontext() as context:
            context.prec = 60
            moment = sum(
                (law[y] * (law[y] / law[y - 1]) ** (order - 1) for y in range(1 - most, most + 1)),
                Decimal(0),
            )
            return float(moment.ln()) / (order - 1)

    for order in (2, 3, 8):
        assert order * rho * 0.99 < divergence(variance, order) <= order * rho * (1 + 1e-12)
        assert divergence(variance / 2, order) > order * rho


@pytest.mark.parametrize("k", [1, 2])
def test_all_neighbours_of_rounded_noise(k: int) -> None:
    """The least variance keeps to delta for every vector a record can move by; that for one count
    does not for two."""
    law = rounded(Fraction(GaussianCounts(k, 1.0, 1e-3).variance), 40)
    assert max(spent(law, moved, 1.0) for moved in product((0, 1), repeat=k)) <= 1e-3
    if k == 2:
        assert (
            spent(rounded(Fraction(GaussianCounts(1, 1.0, 1e-3).variance), 40), (1, 1), 1.0) > 3e-3
        )


@pytest.mark.parametrize("k", [1, 4, 64])
def test_least_variances(k: int) -> None:
    """Of discrete noise by the exact rule: one less is too little; and by zCDP 5 to 30 % more
    variance would be needed."""
    least = least_clients(
        lambda variance: (
            delta({DiscreteGaussian(-(-ATTO // variance)): k}, LOSS.epsilon) <= LOSS.delta
        )
    )
    assert delta(DiscreteGaussianCounts(k, k / (2 * least)).parts, LOSS.epsilon) <= LOSS.delta * (
        1 + 1e-9
    )
    assert delta(DiscreteGaussianCounts(k, k / (2 * (least - 1))).parts, LOSS.epsilon) > LOSS.delta
    assert abs(least - GaussianCounts(k, 1.0, 1e-3).variance) <= 0.02 * least + 1
    mechanism = DiscreteGaussianCounts(k, k / (2 * least))
    assert epsilon(mechanism.parts, 1e-3) < conversion(mechanism.loss.rho, 1e-3) < 1.3


def test_draws_have_their_law() -> None:
    """Discrete noise of variance 2.4, by all paths of its table and its sign, and the largest of
    300."""
    mechanism = DiscreteGaussianCounts(300, 62.5)
    law = discrete(Fraction(12, 5), 40)
    assert mechanism.variance == Fraction(12, 5)
    assert follows(lambda draws: int(signed(counts._sizes(mechanism.variance), draws, 1)[0]), law)
    assert [mechanism.within(error) for error in (0, 3)] == pytest.approx(
        [
            float(sum(share for y, share in law.items() if abs(y) <= error)) ** 300
            for error in (0, 3)
        ],
        rel=1e-9,
    )


def test_a_budget_pays_in_rho() -> None:
    """A curator's algorithm asks two rounds of discrete Gaussian noise at once from a budget in
    rho, which pays for no third."""
    database, account = (
        ColumnCounts(3, np.array([3, 0])),
        ConcentratedAccount(approximate(1.0, 1e-6)),
    )
    each = DiscreteGaussianCounts(2, account.rho.rho / 2.000001)
    oracle = TrustedOracle(database, account, seeded(1))
    mean = run(
        Nonadaptive((each, each), lambda answers: (answers[0].counts + answers[1].counts) / 2),
        oracle,
    )
    assert mean.shape == (2,)
    with pytest.raises(RefusedError, match="exceeds"):
        oracle.answer((each,))


def test_sums_are_exact_across_chunks() -> None:
    """With a huge epsilon the release is the sum, of yes/no and of level queries, from records and
    from a population handed out in chunks."""
    votes = Records({"v": np.arange(100_000, dtype=np.int64) % 5})
    for database in (votes, Rows(votes)):
        assert abs(NoisySum(Question("v == 1"), 24.0).release(database, seeded(0)) - 20_000) <= 1
        assert abs(NoisySum(Steps(), 24.0).release(database, seeded(0)) - 200_000) <= 10


@pytest.mark.parametrize(
    "epsilon", short([Fraction(1, 4), Fraction(1), Fraction(7, 3)], lambda epsilon: epsilon >= 1)
)
def test_many_noises_have_their_law(epsilon: Fraction) -> None:
    """By all paths of the table and the sign: to 1e-12 the law with a fraction just below
    e^epsilon."""
    for y, share in law_of(
        lambda draws: int(signed(inversion._laplace_sizes(epsilon), draws, 1)[0])
    ).items():
        assert (
            abs(share - (laplace_tail(epsilon * NANO, y) - laplace_tail(epsilon * NANO, y + 1)))
            < 1e-12
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
        tried = [
            (near, rest) for near in (first - 1, first, first + 1) for rest in (0, word - 1)
        ] + [(first, second - 1), (first, second + 2)]
        for near, rest in [words for words in tried if max(words) < word]:
            drawn = int(invert(sizes, Script([near, rest, *[0] * 6]), 1)[0])
            assert drawn == sum(each * word * word <= near * word + rest for each in exact)


def test_a_table_says_how_sure_it_is() -> None:
    """Words below `low` have not reached a probability, those from `high` on have; what lies
    between is within twice the rounding."""
    low, high = inversion._bounds([Decimal("0.25"), Decimal(1)], 25, 64)
    assert low[0] < 1 << 62 < high[0]
    assert high[0] - low[0] == 2
    assert high[1] >= 1 << 64


def test_small_epsilons_are_drawn_one_by_one() -> None:
    """Where the table would be too long: a standard deviation of sqrt(2) / eps, within 6 standard
    errors of 200 draws."""
    drawn = discrete_laplaces(seeded(3), Fraction(1, 10**5), 200)
    assert float(np.abs(drawn).mean()) == pytest.approx(1e5, rel=6 / 200**0.5)


@pytest.mark.parametrize(("trials", "share"), [(5, Fraction(1, 2)), (300, Fraction(1, 100))])
def test_successes_have_their_law(trials: int, share: Fraction) -> None:
    """By all paths of the table: the binomial law."""
    law = {
        value: math.comb(trials, value) * share**value * (1 - share) ** (trials - value)
        for value in range(trials + 1)
    }
    assert follows(
        lambda draws: binomial(draws, trials, lambda: Decimal(share.numerator) / share.denominator),
        law,
    )


def test_successes_among_more_than_atoms() -> None:
    """Of 2^4096, each with probability 3 / 2^4096: Poisson of mean 3 (chi-squared over 100 draws,
    failure 1e-6); 2^65536 are no other."""
    draws, trials = seeded(5), 1 << 4096
    drawn = Counter(binomial(draws, trials, lambda: Decimal(3) / trials) for _ in range(100))
    assert p_value(drawn, {value: float(poisson.pmf(value, 3)) for value in range(40)}) > 1e-6
    assert binomial(draws, 1 << 65536, lambda: Decimal(3) / (1 << 65536)) < 20
    assert binomial(draws, 0, lambda: Decimal(1) / 3) == 0
    assert float(exp_minus(Fraction(1, 2))) == pytest.approx(0.6065306597126334)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20)])
def test_a_guide_decides_what_is_decided(epsilon: Fraction) -> None:
    """Each of the 2^16 beginnings of a word: where the guide answers k, all uniforms that begin so
    lie between F(k - 1) and F(k), in fractions. It answers all but as many as there are
    probabilities, and what it leaves open is open."""
    sizes = inversion._laplace_sizes(epsilon)
    table, exact = inversion._table(sizes), [Fraction(0), *(Fraction(share) for share in sizes(60))]
    doubt, part, guide = Fraction(1, 10**60), Fraction(1, 1 << 16), table.guide.tolist()
    for prefix, k in enumerate(guide):
        if k >= 0:
            assert exact[k] + doubt <= prefix * part or not k
            assert (prefix + 1) * part <= exact[k + 1] - doubt
    borders = {int(share / part) for share in exact[1:]}
    assert {prefix for prefix, k in enumerate(guide) if k < 0} == {
        prefix for prefix in borders if prefix < 1 << 16
    }


def test_draws_do_not_depend_on_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    guided = discrete_laplaces(seeded(8), Fraction(1, 3), 20_000)
    monkeypatch.setattr(inversion, "_GUIDED", 1 << 30)
    assert np.array_equal(guided, discrete_laplaces(seeded(8), Fraction(1, 3), 20_000))
    monkeypatch.setattr(inversion, "_CHUNK", 15_000)
    draws = seeded(8)
    assert np.array_equal(
        discrete_laplaces(draws, Fraction(1, 3), 20_000)[:1000],
        discrete_laplaces(seeded(8), Fraction(1, 3), 15_000)[:1000],
    )


@pytest.mark.parametrize("variance", [1, 7, 1000])
def test_a_table_is_as_precise_as_it_says(variance: int) -> None:
    """Each probability of a table of 25 digits is within 1e-25 of that in a table of 60, and what
    is beyond its end below 1e-25."""
    short, long = rounded_sizes(variance)(25), rounded_sizes(variance)(60)
    with localcontext() as context:
        context.prec = 90
        assert (
            max(abs(one - other) for one, other in zip(short, long, strict=False))
            < Decimal(10) ** -25
        )
        assert 1 - long[len(short) - 1] < Decimal(10) ** -25


def test_a_table_is_the_integral() -> None:
    """Variance 1: erf of (k + 1/2) / sqrt 2 by its own series, to 40 digits."""
    with localcontext() as context:
        context.prec = 160
        table = rounded_sizes(1)(40)

        def series(x: Decimal) -> Decimal:
            total, term, n = Decimal(0), x, 0
            while abs(term) > Decimal(10) ** -60:
                total, n = total + term / (2 * n + 1), n + 1
                term = -term * x * x / n
            return total

        halves = [
            series((Decimal(k) + Decimal("0.5")) / Decimal(2).sqrt()) for k in range(len(table) + 3)
        ]
        assert all(
            abs(share - half / halves[-1]) < Decimal(10) ** -40
            for share, half in zip(table, halves, strict=False)
        )


@pytest.mark.parametrize("variance", [1, 5, 37])
def test_rounded_normals_have_their_law(variance: int) -> None:
    """By all paths of the table and the sign."""
    for y, share in law_of(lambda draws: int(signed(rounded_sizes(variance), draws, 1)[0])).items():
        assert float(share) == pytest.approx(float(rounded(Fraction(variance), 60)[y]), abs=1e-12)


@pytest.mark.parametrize("moved", [1, 2, 5])
def test_the_price_is_that_of_normal_noise(moved: int) -> None:
    """The worst set of whole answers has at most the normal mechanism's delta, and most of that;
    with four fifths of the variance it has more."""
    loss = approximate(1.0, 1e-3)
    variance = least_variance(moved**2, loss)
    assert (
        gaussian_delta(moved / math.sqrt(variance), 1.0)
        <= 1e-3
        < gaussian_delta(moved / math.sqrt(variance - 1), 1.0)
    )

    most = int(12 * math.sqrt(variance)) + moved
    least, less = (
        spent(rounded(Fraction(share * variance, 5), most), (moved,), 1.0) for share in (5, 4)
    )
    assert 0.75e-3 < least <= 1e-3 < less


@pytest.mark.parametrize(
    "loss", [approximate(1.0, 1e-6), approximate(0.1, 1e-9), approximate(8.0, 0.5)]
)
def test_the_ratio_is_the_most_that_a_loss_allows(loss: Approximate) -> None:
    """A move of mu^2 per variance keeps to delta, one larger by a millionth does not; and every
    least variance is the squared move over it, rounded up."""
    ratio = mu_squared(loss)
    assert (
        gaussian_delta(math.sqrt(ratio), loss.epsilon)
        <= loss.delta
        < gaussian_delta(math.sqrt(ratio * (1 + 1e-6)), loss.epsilon)
    )
    assert [least_variance(square, loss) for square in (1, 7, 10**6)] == [
        math.ceil(square / ratio) for square in (1, 7, 10**6)
    ]
