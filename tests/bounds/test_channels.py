"""What one report can carry, and what rounds save: closed forms above every channel that is
found."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds import channels, interaction
from local_dp.bounds.parity import parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from tests.support.inputs.refusals import refuse


def squares(columns: Floats) -> Floats:
    """sum_x B^2 / A of each report; the first half of the symbols bears the label +1, the other
    -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    return np.asarray((((plus - minus) / 2) ** 2).mean(axis=-1) / columns.mean(axis=-1))


def hellinger(columns: Floats, first: Floats, second: Floats) -> Floats:
    """Half the squared difference of the square roots of a report's two probabilities."""
    return np.asarray((np.sqrt(columns @ first) - np.sqrt(columns @ second)) ** 2 / 2)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.log(3), 2.0, 3.0])
def test_report_squares_are_the_most_of_all_channels(epsilon: float) -> None:
    """No channel on two, four or eight examples has more than G; on eight the best reaches it up to
    ln 3, and comes within 4 % at epsilon 2."""
    found = [channels.best_channel(epsilon, symbols, squares).value for symbols in (2, 4, 8)]
    assert max(found) <= channels.report_squares(epsilon) * (1 + 1e-9)
    least = {2.0: 0.96, 3.0: 0.8}.get(epsilon, 1 - 1e-9)
    assert found[-1] >= least * channels.report_squares(epsilon)


def test_two_symbols_are_asked_by_randomized_response() -> None:
    """The best channel for two disjoint laws is randomized response, whose affinity is 2 sqrt(E) /
    (E + 1)."""
    found = channels.best_channel(
        1.0, 2, partial(hellinger, first=np.array([1.0, 0.0]), second=np.array([0.0, 1.0]))
    )
    assert found.value == pytest.approx(1 - 2 * math.exp(0.5) / (math.e + 1))
    assert found.columns.sum(axis=0) == pytest.approx(np.ones(2))


def test_a_best_channel_is_a_channel() -> None:
    found = channels.best_channel(2.0, 6, squares).columns
    assert found.sum(axis=0) == pytest.approx(np.ones(6))
    assert (found.max(axis=1) <= math.exp(2) * found.min(axis=1) * (1 + 1e-12)).all()


def test_random_channels_are_below_the_best_one() -> None:
    """The value of the linear program stands above 300 channels that were drawn, none of them made
    of corners."""
    generator, best = np.random.default_rng(5), channels.best_channel(1.0, 4, squares).value
    for reports in generator.integers(2, 9, size=300):
        laws = generator.dirichlet(np.full(reports, 0.3), size=4)
        # the share of the law that keeps the ratio below E beside a uniform report
        told = (math.e - 1) / (math.e - 1 + reports)
        columns = told * laws.T + (1 - told) / reports
        assert (columns.max(axis=1) <= math.e * columns.min(axis=1)).all()
        assert squares(columns).sum() <= best + 1e-12


def test_parameters_are_checked() -> None:
    refuse(
        ("epsilon", lambda: channels.report_squares(0.0)),
        ("number of symbols is 17", lambda: channels.staircase_columns(1.0, 17)),
    )
    assert channels.report_squares(1.0) == pytest.approx(response_gain(1.0) ** -2)


def test_the_constant_is_a_product_over_doublings() -> None:
    """K_n = 1, 2, 8/3, 64/21 for 1, 2, 4, 8 clients, the next power of two's between them, and
    3.4627 without end."""
    exact = [
        math.prod(
            (Fraction(2**level, 2**level - 1) for level in range(1, doublings + 1)),
            start=Fraction(1),
        )
        for doublings in range(4)
    ]
    assert exact == [1, 2, Fraction(8, 3), Fraction(64, 21)]
    assert [channels.pasting_constant(n) for n in (1, 2, 4, 8)] == pytest.approx(
        [float(value) for value in exact]
    )
    assert channels.pasting_constant(5) == channels.pasting_constant(8)
    assert (
        channels.pasting_constant(10**9)
        < channels.pasting_constant()
        == pytest.approx(3.46274661945506)
    )
    refuse(("0 clients", lambda: channels.pasting_constant(0)))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_curvature_is_the_largest(epsilon: float) -> None:
    """(1 + t/2 - sqrt(1 + t)) / t^2 is nowhere larger for |t| <= 1/C, and as large at t = -1/C."""
    shrink = 1 / response_gain(epsilon)
    t = np.linspace(-shrink, shrink, 1000)
    values = (1 + t / 2 - np.sqrt(1 + t)) / t**2
    assert values.max() <= channels.affinity_curvature(epsilon) * (1 + 1e-9)
    assert values[0] == pytest.approx(channels.affinity_curvature(epsilon))


def test_total_variation_needs_so_much_distance() -> None:
    """No pair of laws drawn at random has less squared Hellinger distance than its total variation
    needs; the symmetric pair of two symbols has no more."""
    generator = np.random.default_rng(2)
    for first, second in generator.dirichlet(np.full(4, 0.5), size=(500, 2)):
        assert (
            1 - np.sqrt(first * second).sum()
            >= channels.distance_needed(float(abs(first - second).sum() / 2)) - 1e-12
        )
    assert 1 - 2 * math.sqrt(0.9 * 0.1) == pytest.approx(channels.distance_needed(0.8))
    assert channels.distance_needed(1.0) == 1.0
    refuse(("total variation", lambda: channels.distance_needed(1.1)))


@pytest.mark.parametrize(
    ("epsilon", "units", "at_d"),
    [(0.5, 3.836, None), (1.0, 3.112, (2.957, 3.066, 3.099)), (2.0, 1.443, None)],
)
def test_parity_whatever_is_asked(
    epsilon: float, units: float, at_d: tuple[float, ...] | None
) -> None:
    """n >= units C^2 2^d at 90 %, less at d = 6, 8 and 10, below halving. At any success it is more
    than Bretagnolle and Huber's inequality gives."""
    square = response_gain(epsilon) ** 2
    assert channels.parity_interactive_bound(30, epsilon, 0.9) / square / 2**30 == pytest.approx(
        units, abs=0.0005
    )
    if at_d:
        assert [
            channels.parity_interactive_bound(d, epsilon, 0.9) / square / 2**d for d in (6, 8, 10)
        ] == pytest.approx(at_d, abs=0.0005)
    for success in (0.1, 0.5, 0.9, 0.99):
        huber = (
            -math.log1p(-((success - 1 / 64) ** 2))
            * 64
            / (channels.divergence_curvature(epsilon) * channels.report_squares(epsilon))
        )
        assert channels.parity_interactive_bound(6, epsilon, success) > huber
    assert channels.parity_interactive_bound(6, epsilon, 0.9) < parity_halving_clients(
        6, epsilon, 0.1
    )


def test_at_a_large_epsilon_pasting_bounds_more() -> None:
    """The two routes cross between epsilon 8 and 9: beyond, the bound is that of squared distances,
    64 (1 - sqrt(1 - a^2)) / (K c G)."""
    for epsilon in (8.0, 9.0, 12.0):
        pasted = (
            64
            * channels.distance_needed(0.9 - 1 / 64)
            / (
                channels.pasting_constant()
                * channels.affinity_curvature(epsilon)
                * channels.report_squares(epsilon)
            )
        )
        assert (channels.parity_interactive_bound(6, epsilon, 0.9) == pytest.approx(pasted)) is (
            epsilon > 8.5
        )


def test_what_is_no_success_takes_nobody_and_certainty_is_never_reached() -> None:
    """0 clients where a guess does as well, infinitely many where success is certain; an impossible
    dimension or chance is refused."""
    assert channels.interactive_bound(64, 1.0, 0.2, 0.5) == 0
    assert channels.interactive_bound(64, 1.0, 1.0, 0.0) == math.inf
    refuse(
        ("dimension", lambda: channels.interactive_bound(0, 1.0, 0.9, 0.1)),
        ("success", lambda: channels.interactive_bound(64, 1.0, 1.1, 0.1)),
        ("epsilon", lambda: channels.interactive_bound(64, 0.0, 0.9, 0.1)),
    )


@pytest.mark.parametrize(
    ("epsilon", "turn", "again", "carried"),
    [(0.5, 0.972, 0.833, 1.051), (1.0, 0.755, 0.650, 1.351), (2.0, 0.353, 0.303, 2.879)],
)
def test_two_laws(epsilon: float, turn: float, again: float, carried: float) -> None:
    """The bounds in units of C^2 / t^2, below yes-or-no's 1.64, and what the best report carries
    beside it."""
    unit = response_gain(epsilon) ** 2 * 100
    assert channels.two_laws_in_turn_bound(epsilon, 0.1, 0.9) / unit == pytest.approx(
        turn, abs=0.0005
    )
    assert channels.two_laws_asked_again_bound(epsilon, 0.1, 0.9) / unit == pytest.approx(
        again, abs=0.0005
    )
    assert channels.two_laws_clients(epsilon, 0.1, 0.1) / unit == pytest.approx(1.645, abs=0.003)
    yes = 1 - math.sqrt(1 - (0.1 / response_gain(epsilon)) ** 2)
    assert channels.best_two_laws(epsilon, 0.1).value / yes == pytest.approx(carried, abs=0.0005)


def test_no_pair_of_laws_is_easier() -> None:
    """Random pairs of laws at a total variation of .3 are no easier, for any channel, than the best
    pair on three symbols."""
    generator, best = np.random.default_rng(3), channels.best_two_laws(1.0, 0.3).value
    for _ in range(300):
        shared, first, second = generator.dirichlet(np.full(4, 0.4), size=3)
        told = (
            (math.e - 1) / (math.e + 4)
            # the share of any channel of five reports that keeps the ratio at E beside a uniform
            # report
        )
        channel = told * generator.dirichlet(np.full(5, 0.1), size=4).T + (1 - told) / 5
        assert (channel.max(axis=1) <= math.e * channel.min(axis=1) * (1 + 1e-12)).all()
        reports = [channel @ (0.7 * shared + 0.3 * own) for own in (first, second)]
        assert 1 - np.sqrt(reports[0] * reports[1]).sum() <= best + 1e-12
    first, second = channels.easiest_laws(0.3)
    assert abs(first - second).sum() / 2 == pytest.approx(0.3)
    refuse(("total variation", lambda: channels.easiest_laws(1.0)))


def test_the_figures_that_are_cited() -> None:
    """At epsilon 1: capacity .1233 nats, 2.985 k 2^(k-1) clients, 1,565,038 at k = 16."""
    assert channels.report_capacity(1.0) == pytest.approx(0.1233, abs=5e-5)
    assert interaction.ladder_one_round_least(1, 1.0, 0.1) == pytest.approx(2.985, abs=5e-4)
    assert interaction.ladder_one_round_least(16, 1.0, 0.1) == pytest.approx(1_565_038, abs=1)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_no_channel_tells_more_than_the_capacity(epsilon: float) -> None:
    """The best channel of all on a uniform record of 2 to 12 values, by its linear program, stays
    below, and the best of them is near."""

    def told(columns: Floats) -> Floats:
        mean = columns.mean(axis=1, keepdims=True)
        return np.asarray((columns * np.log(columns / mean)).mean(axis=1))

    values = [channels.best_channel(epsilon, symbols, told).value for symbols in (2, 3, 5, 8, 12)]
    assert max(values) <= channels.report_capacity(epsilon) * (1 + 1e-9)
    assert max(values) >= 0.97 * channels.report_capacity(epsilon)


def test_randomized_response_is_below_the_capacity() -> None:
    """ln 2 - h(1 / (E + 1)) of a bit: .1109 at epsilon 1."""
    q = 1 / (math.e + 1)
    told = math.log(2) + q * math.log(q) + (1 - q) * math.log(1 - q)
    assert told == pytest.approx(0.1109, abs=5e-5)
    assert told < channels.report_capacity(1.0)


def test_groups_are_as_equal_as_they_can_be() -> None:
    """k levels in so many groups, the longer ones first; none is empty."""
    assert interaction.group_lengths(12, 5) == (3, 3, 2, 2, 2)
    assert interaction.group_lengths(4, 1) == (4,)
    for wrong in (0, 5, 2.0, True):
        with pytest.raises(InputError, match="rounds"):
            interaction.group_lengths(4, wrong)  # type: ignore[arg-type]


def test_one_level_is_randomized_response() -> None:
    """k = 1: a single majority of answers at gain C."""
    lean = math.tanh(0.5)
    assert interaction.ladder_success(1, 1.0, 1, 100) == pytest.approx(
        0.5 * math.erfc(-lean * 10 / math.sqrt(2 * (1 - lean**2)))
    )


EPSILONS = (0.25, 0.5, 1.0, 2.0, 5.0)


def steps(channel: Floats, law: Floats, f: Floats) -> tuple[float, float, float]:
    """-ln of the affinity of one report under f and -f, sum b^2/A, and the greatest |psi(x)|^2; the
    channel has shape (points, labels, reports)."""
    half, mean = (channel[:, 0] - channel[:, 1]) / 2, channel.mean(axis=1)
    told, likely = (law * f) @ half, law @ mean
    affinity = np.sqrt((likely + told) * (likely - told)).sum()
    return (
        -math.log(affinity),
        float((told**2 / likely).sum()),
        float((half**2 / channel.min(axis=(0, 1))).sum(axis=1).max()),
    )


def factors(epsilon: float) -> tuple[float, float]:
    """What the proof allows: -ln affinity over sum b^2/A, and |psi|^2."""
    return math.log(math.cosh(epsilon / 2)) * response_gain(epsilon) ** 2, math.expm1(
        epsilon
    ) ** 2 / (2 * (math.exp(epsilon) + 1))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_randomized_response_has_equality(epsilon: float) -> None:
    """To a known f both steps are equalities, so neither constant can be smaller; and the bound's
    constant is L over the product of the two."""
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    lost, told, length = steps(
        np.array([[[keep, 1 - keep], [1 - keep, keep]]]), np.ones(1), np.ones(1)
    )
    most, longest = factors(epsilon)
    assert lost == pytest.approx(most * told, rel=1e-12)
    assert length == pytest.approx(longest, rel=1e-12)
    for success in (0.6, 0.9, 0.99):
        assert interaction.margin_constant(epsilon, success) == pytest.approx(
            -math.log(2 * math.sqrt(success * (1 - success))) / (most * longest), rel=1e-9
        )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_channel_exceeds_the_steps(epsilon: float) -> None:
    """400 channels with entries of ratio e^eps or less, half of them with extreme entries only,
    random f and D: no step of the proof is exceeded."""
    generator, (most, longest) = np.random.default_rng(12), factors(epsilon)
    tried = 0
    while tried < 400:
        points, reports = generator.integers(1, 5), 2 * generator.integers(1, 5)
        part = (
            generator.random((points, 2, reports))
            if tried % 2
            else generator.integers(2, size=(points, 2, reports))
        )
        weights = generator.dirichlet(np.ones(reports)) * np.exp(epsilon * 0.5 * part)
        # dividing may add as much again: a ratio of e^eps at most
        channel = weights / weights.sum(axis=2, keepdims=True)
        assert (channel.max(axis=(0, 1)) / channel.min(axis=(0, 1))).max() <= math.exp(epsilon) * (
            1 + 1e-9
        )
        lost, told, length = steps(
            channel, generator.dirichlet(np.ones(points)), generator.choice([-1.0, 1.0], points)
        )
        assert lost <= most * told * (1 + 1e-9) + 1e-12
        assert length <= longest
        tried += 1


def test_the_constants() -> None:
    """2.2875 at epsilon 1 and 12.471 at .5, 9 in 10; in two steps through squared Hellinger
    distances .4813 and .5300; small epsilons do not cancel."""
    assert interaction.margin_constant(1.0) == pytest.approx(2.28752, abs=1e-5)
    assert interaction.margin_constant(0.5) == pytest.approx(12.47065, abs=1e-5)
    distance, shrink = 1 - 1 / math.cosh(0.5), math.tanh(0.5) ** 2
    least = math.log(5 / 3) * distance / math.log(math.cosh(0.5))
    assert (round(least, 4), round(distance / shrink, 4)) == (0.4813, 0.53)
    assert interaction.margin_constant(1e-6) * 1e-12 == pytest.approx(8 * math.log(5 / 3), rel=1e-5)


def test_two_laws_with_an_event_of_nine_tenths() -> None:
    """Where an event has probability p under one law and 1 - p under another, the affinity is 2
    sqrt(p (1 - p)) at most: equality for two outcomes."""
    for p in (0.6, 0.9, 0.99):
        grid = np.linspace(p, 1, 200)
        affinities = np.sqrt(grid[:, None] * (1 - grid)) + np.sqrt((1 - grid)[:, None] * grid)
        assert affinities.max() == pytest.approx(2 * math.sqrt(p * (1 - p)), rel=1e-12)
        assert affinities.argmax() == 0


def test_counts_are_whole_and_not_rounded_up() -> None:
    """At MC^2 = k / K the bound is k and not k + 1, for fractions and floats; the vote's count is
    C^2 MC^2 p / (1 - p)."""
    for k in (1, 7, 18_110):
        squared = Fraction(k) / Fraction(interaction.margin_constant(1.0))
        assert interaction.margin_clients(squared, 1.0) == k
        assert interaction.margin_clients(squared * (1 + Fraction(1, 10**9)), 1.0) == k + 1
    assert interaction.margin_clients(88.975**2, 1.0) == 18_110
    assert interaction.vote_clients(100.0, 1.0) == math.ceil(900 * response_gain(1.0) ** 2) == 4215
    assert interaction.direction_clients(100.0, 1.0) == math.ceil(
        450 * math.pi * response_gain(1.0) ** 2
    )
    assert interaction.vote_clients(100.0, 1.0, 0.75) == math.ceil(300 * response_gain(1.0) ** 2)


@pytest.mark.parametrize("success", [0.5, 1.0, 0.1, math.nan])
def test_what_the_proof_does_not_cover_is_refused(success: float) -> None:
    """A success that a coin has, or certainty, is refused; so are an epsilon of 0 and a margin
    complexity that is no number."""
    for call in (
        lambda: interaction.margin_constant(1.0, success),
        lambda: interaction.vote_clients(4.0, 1.0, success),
        lambda: interaction.direction_clients(4.0, 1.0, success),
    ):
        with pytest.raises(InputError, match="success"):
            call()
    refuse(
        ("epsilon", lambda: interaction.margin_clients(4.0, 0.0)),
        ("margin complexity", lambda: interaction.margin_clients(math.nan, 1.0)),
    )


CUBE = np.array(list(product((0, 1), repeat=2)))  # the points of one block of two
# its concepts, and MC^2 = 2
DICTATORS = [sign * (1 - 2 * CUBE[:, j]) for j in (0, 1) for sign in (1, -1)]
LAWS = np.array([parts for parts in product(range(11), repeat=4) if sum(parts) == 10]) / 10


def hardest(channel: Floats) -> float:
    """The least of sum b^2/A over the concepts and a grid of laws."""
    half, mean = (channel[:, 0] - channel[:, 1]) / 2, channel.mean(axis=1)
    return min(float(((LAWS * f @ half) ** 2 / (LAWS @ mean)).sum(axis=1).min()) for f in DICTATORS)


def test_some_concept_and_law_are_hard_for_every_channel() -> None:
    """For some concept and law of one block sum b^2/A <= |psi|^2 / MC^2, on 300 random channels;
    the vote's channel has (E + 1) / 2 times less."""
    generator, longest = np.random.default_rng(7), factors(1.0)[1]
    for _ in range(300):
        weights = generator.dirichlet(np.ones(6)) * np.exp(
            0.5 * generator.integers(2, size=(4, 2, 6))
        )
        assert hardest(weights / weights.sum(axis=2, keepdims=True)) <= longest / 2
    keep = math.e / (1 + math.e)
    agrees = (
        np.array(
            [
                [
                    [
                        keep if y * (1 - 2 * x[j]) == word else 1 - keep
                        for j in (0, 1)
                        for word in (1, -1)
                    ]
                    for y in (1, -1)
                ]
                for x in CUBE
            ]
        )
        / 2
    )
    assert hardest(agrees) == pytest.approx(1 / (2 * response_gain(1.0) ** 2), rel=1e-9)
    assert hardest(agrees) * (math.e + 1) / 2 == pytest.approx(longest / 2, rel=1e-9)


def test_four_clients_do_not_learn_a_dictator_barely() -> None:
    """The bound asks for five. With four clients, any four bits and any server are right more often
    than wrong with probability .776 at most, below .9."""
    assert interaction.margin_clients(2.0, 1.0) == 5
    keep = math.e / (1 + math.e)
    tables = np.array(list(product((keep, 1 - keep), repeat=8))).reshape(-1, 4, 2)
    # of the bit under each concept
    chances = np.array(
        [[table[np.arange(4), (1 - f) // 2].mean() for f in DICTATORS] for table in tables]
    ).round(12)
    kinds = np.array(sorted({min(tuple(each), tuple((1 - each).round(12))) for each in chances}))
    reports = np.stack([kinds, 1 - kinds], axis=1)
    pairs = np.array(
        [
            (one[:, None] * other).reshape(4, 4)
            for one, other in combinations_with_replacement(reports, 2)
        ]
    )
    best = 0.0
    for pair in pairs:
        laws = pair[None, :, None] * pairs[:, None]  # of all four replies: any two pairs
        # an h may serve both variables
        best = max(
            best,
            float(
                (laws[..., :2].max(axis=-1) + laws[..., 2:].max(axis=-1)).sum(axis=(1, 2)).max() / 4
            ),
        )
    assert best == pytest.approx(0.776487, abs=1e-6)
