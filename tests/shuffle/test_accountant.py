"""Shuffled reports: the accountant against enumerated laws and the literature; the shuffler, and
what a run behind it loses."""

import json
import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

from local_dp.draws import Draws
from local_dp.errors import QuorumError
from local_dp.interaction import Nonadaptive
from local_dp.noise import Draw, KeyedNoise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import repeat_of
from local_dp.protocols.surveys.frequency import Frequency
from local_dp.protocols.surveys.survey import Survey
from local_dp.queries.tables import Question
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard, HadamardResponse
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.with_coin import WithCoin
from local_dp.shuffle.accountant import (
    Amplified,
    Laws,
    Row,
    accounted,
    amplified,
    blanket_epsilon,
    closed_form,
    holds,
    largest_local,
    rows_of,
    variation_ratio,
    worst_delta,
)
from local_dp.shuffle.binary import Bits, worst
from local_dp.shuffle.central import (
    Batch,
    Behind,
    Crowds,
    Shuffler,
    central,
    check_shufflable,
    with_coins,
)
from local_dp.shuffle.histogram import BlanketHistogram, Target, multi_message, single_message
from local_dp.shuffle.pair import Pair, delta_at_most
from local_dp.tallies import Tally
from tests.support.inputs.builders import survey_query
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.theory.shuffled_laws import Law, extremal_rows, shuffled, stick, with_one_more
from tests.support.wrong import wrong

DELTA = 1e-6
CHANNELS: list[tuple[FiniteChannel, tuple[int, ...]]] = [
    (BinaryRR(1.0), (2, 3, 5, 12)), (OneBitMean(1.0, steps=2), (2, 6)),
    (GRR(1.0, k=3), (2, 8)),
    (GRR(2.0, k=4), (2, 5)), (Hadamard(1.0, k=2), (2, 3, 8)),
    (HadamardResponse(1.0, k=3), (2, 6)),
    (PGR(1.0, k=3), (2, 6)),
]  # fmt: skip


def enclosed(rows: list[Row], bounds: Amplified, clients: int, delta: float) -> None:
    """No bound is on the wrong side of the enumerated law; an exact one is close to it from
    both."""
    ends = [*bounds.uppers.values(), bounds.lower, bounds.upper]
    deltas = worst_delta(rows, clients, [Fraction(math.exp(end)) for end in ends])
    assert all(each <= delta * (1 + 1e-9) for each in deltas[: len(bounds.uppers)])
    assert bounds.lower == 0 or deltas[-2] >= delta * (1 - 1e-9)
    if bounds.exact:
        assert bounds.upper <= bounds.lower * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize("delta", short([0.2, 0.01, 1e-5], lambda delta: delta == 0.01))
@pytest.mark.parametrize(
    ("randomizer", "sizes"),
    short(CHANNELS, lambda each: each[1] != (2, 6), several=True),
    ids=lambda each: each.name if isinstance(each, Randomizer) else "",
)
def test_bounds_enclose_the_enumerated_law(
    randomizer: FiniteChannel, sizes: tuple[int, ...], delta: float
) -> None:
    """Over all data sets of so many clients, of channels that are shipped."""
    for clients in sizes:
        enclosed(rows_of(randomizer), amplified(randomizer, clients, delta), clients, delta)


@pytest.mark.parametrize(
    ("rows", "clients"), [(rows_of(GRR(1.0, k=3)), 4), (rows_of(BinaryRR(2.0)), 6)]
)
def test_multisets_give_what_fractions_give(rows: list[Row], clients: int) -> None:
    """The enumeration in whole numbers, over multisets, is that in fractions, law by law and pair
    by pair."""
    growths = [Fraction(1), Fraction(3, 2), Fraction(math.e)]
    worst = dict.fromkeys(growths, Fraction(0))
    for others in combinations_with_replacement(range(len(rows)), clients - 1):
        laws = [shuffled(rows, (*others, value)) for value in range(len(rows))]
        for growth, (first, other) in product(growths, permutations(laws, 2)):
            worst[growth] = max(worst[growth], stick(first, other, growth))
    assert worst_delta(rows, clients, growths) == list(worst.values())


@pytest.mark.parametrize(
    ("values", "reports", "clients"),
    [(2, 2, 10), (3, 2, 12), (3, 3, 5), pytest.param(4, 4, 3, marks=pytest.mark.long)],
)
def test_bounds_enclose_random_extremal_channels(values: int, reports: int, clients: int) -> None:
    """The same of channels whose entries lie at the two ends of what a local loss allows, or
    beyond."""
    generator = np.random.default_rng(values + 10 * reports)
    for _ in range(2):
        rows = extremal_rows(generator, values, reports, Fraction(int(generator.integers(2, 9))))
        laws = Laws(np.array(rows, dtype=np.float64))
        if laws.epsilon > 1e-9:
            delta = float(generator.choice([0.1, 1e-3]))
            enclosed(rows, accounted(laws, laws.epsilon, clients, delta), clients, delta)


@wrong(
    "local_dp.shuffle.pair:delta_at_most",
    "gains / mesh - places",
    "0.0",
    "what lies between two points of the mesh counts as the lower one: upper bounds fall "
    "below what is lost",
    at="1.0-10000-figures1",
)
@pytest.mark.parametrize(("local", "clients", "figures"), [
    (1.0, 1000, (0.566, 0.182, 0.149, 0.127)), (1.0, 10_000, (0.214, 0.053, 0.0432, 0.0357)),
    pytest.param(1.0, 100_000, (0.073, 0.0153, 0.0124, 0.0101), marks=pytest.mark.long),
    pytest.param(2.0, 10_000, (0.501, 0.155, 0.114, 0.087), marks=pytest.mark.long),
])  # fmt: skip
def test_randomized_response_has_the_figures_of_the_field(
    local: float, clients: int, figures: tuple[float, ...]
) -> None:
    """Closed form, clones, variation ratio and the exact epsilon, to the digits that were computed
    independently."""
    bounds = amplified(BinaryRR(local), clients, DELTA)
    for rule, figure in zip(
        ("closed form", "clones", "variation ratio", "all data sets"), figures, strict=True
    ):
        digits = len(f"{figure:g}") - 2
        assert round(bounds.uppers[rule], digits) == pytest.approx(figure)
    assert bounds.exact
    assert bounds.upper <= bounds.lower * (1 + 2e-6)


@wrong(
    "local_dp.shuffle.binary:_search",
    "(0, clients - 1)",
    "(0, 0)",
    "the worst data set is assumed, not found",
    at="2.0-12-0.2",
)
@pytest.mark.parametrize(
    ("local", "clients", "delta"), [(2.0, 12, 0.2), (2.0, 20, 0.2), (1.0, 40, 1e-3)]
)
def test_the_worst_data_set_is_not_always_that_of_equal_values(
    local: float, clients: int, delta: float
) -> None:
    """Among all numbers of ones the search finds the worst, which is another than all or none, by
    more than a hundredth of epsilon."""
    truth = 1 / (1 + math.exp(-local))
    bits = Bits(truth, 1 - truth)
    every = [bits.others(ones, clients - 1 - ones).epsilon(delta)[1] for ones in range(clients)]
    bounds = worst(bits, clients, delta)
    assert bounds.least <= max(every) * (1 + 1e-8)
    assert bounds.most >= max(every) * (1 - 1e-8)
    assert every[bounds.ones] == pytest.approx(max(every), rel=2e-6)
    assert max(every) > 1.01 * max(every[0], every[-1])


def test_rounding_is_within_the_stated_errors() -> None:
    """A probability in fractions, 7.6 standard deviations below the mean of 10,000 bits; and the
    delta of one client alone."""
    share = Fraction(0.3)
    exact = math.comb(10**4, 2650) * share**2650 * (1 - share) ** 7350
    for others in (Bits(0.3, 0.2).others(10**4, 0), Bits(0.4, 0.3).others(0, 10**4)):
        assert abs(Fraction(others.at(2650)) / exact - 1) < others.error
    for epsilon in np.linspace(0.6, 0.693, 50).tolist():
        least, most = Bits(0.5, 0.25).others(0, 0).deltas(epsilon)
        assert least <= (2 - Decimal(epsilon).exp()) / 4 <= most


@wrong(
    "local_dp.shuffle.binary:worst_directed",
    "worst.most * (1 + close)",
    "worst.most",
    "data sets within the search's tolerance lose more than what is called proven",
)
def test_a_search_that_stops_early_still_bounds_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every data set within half of the first epsilon counts as no worse, the proven end has
    that half."""
    monkeypatch.setattr("local_dp.shuffle.binary._CLOSE", (0.5,))
    for bits, clients, delta in (
        (Bits(0.6, 0.05), 5, 0.1),
        (Bits(0.6, 0.12), 8, 0.01),
        (Bits(0.88, 0.12), 12, 0.2),
    ):
        sides = (bits, bits.mirrored)
        each = [
            one.others(ones, clients - 1 - ones).epsilon(delta)[0]
            for one in sides
            for ones in range(clients)
        ]
        assert worst(bits, clients, delta).most >= max(each)


def test_hidden_third_reports_would_be_a_wrong_bound() -> None:
    """Below the largest total variation a pair with hidden third reports promises too little: its
    delta at e^eps = 2 is .0432, others (0, 2, 2) have .0528."""
    third = Fraction(1, 5)
    pair: list[Row] = [
        (3 * third, third, third),
        (third, 3 * third, third),
        (third, third, 3 * third),
    ]
    law = shuffled(pair, (2, 2, 2))
    assert stick(with_one_more(pair, law, 0), with_one_more(pair, law, 1), Fraction(2)) == Fraction(
        "0.0432"
    )
    assert worst_delta(pair, 4, [Fraction(2)]) == [Fraction("0.0528")]


def test_what_nobody_else_sends_counts_whole() -> None:
    """Half of the first law; and both clients send the second report every fourth time."""
    pair = Pair(*np.array([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [0.0, 0.5, 0.5]]))
    assert delta_at_most(pair, 2, 0.0) == pytest.approx(0.6, rel=1e-3)


def test_the_worst_pair_is_not_always_the_most_different() -> None:
    laws = Laws(np.array([[3, 3, 4], [1, 3, 6], [2, 5, 3]]) / 10)
    each = [pair.epsilon_at_most(9, 0.05, 1.0) for pair in laws.against_blanket]
    assert blanket_epsilon(laws, 9, 0.05, 1.0) == max(each) > each[0]


def test_others_and_large_domains_are_bounded() -> None:
    """Vectors of bits and large domains have bounds for any randomizer from above and data sets
    from below; with a tiny delta the local epsilon."""
    for randomizer in (OUE(1.0, k=16), GRR(1.0, k=256)):
        bounds = amplified(randomizer, 500, DELTA)
        assert 0 < bounds.lower < bounds.upper < 0.4
        assert (bounds.exact, "blanket" in bounds.uppers) == (False, False)
    assert amplified(BinaryRR(1.0), 2, 1e-12).upper <= 1.0
    assert closed_form(5.0, 100, DELTA) == 5.0
    most = math.log(10**6 / (16 * math.log(2 / DELTA)))  # where the theorem ends
    assert (
        closed_form(most * 1.01, 10**6, DELTA) == most * 1.01 > 5 * closed_form(most, 10**6, DELTA)
    )


def test_the_inverse_is_the_inverse() -> None:
    """At the largest local epsilon the shuffled reports lose theirs; of two clients they are not
    known to."""
    local = largest_local(BinaryRR, 2000, 0.5, DELTA)
    assert 0.4998 < amplified(BinaryRR(local), 2000, DELTA).upper <= 0.5
    assert not holds(BinaryRR(0.9), 2, 0.5, DELTA)


def rows(text: bytes, width: int = 1) -> np.ndarray:
    return np.frombuffer(text, dtype=np.uint8).reshape(-1, width)


def shuffler(crowd: int, seed: int = 1) -> Shuffler:
    return Shuffler(Draws(KeyedNoise(seed)), crowd)


@wrong(
    "local_dp.shuffle.central:Shuffler.passed", "self.crowd", "1", "a batch of a few is passed on"
)
def test_below_the_crowd_nothing_is_passed_on() -> None:
    assert shuffler(3).passed(rows(b"aabb", 2)).shape == (0, 2)
    assert sorted(map(bytes, shuffler(3).passed(rows(b"aabbcc", 2)))) == [b"aa", b"bb", b"cc"]


@wrong(
    "local_dp.shuffle.central:Shuffler.passed",
    "self.draws.order(len(reports))",
    ":",
    "the order of the reports is that of their arrival",
)
def test_every_order_is_as_likely() -> None:
    """The six orders of three reports over 6,000 batches: chi-square of 5 degrees below 30.9, which
    a uniform order exceeds once in 100,000."""
    role = shuffler(3, seed=3)
    orders = Counter(role.passed(rows(b"abc")).tobytes() for _ in range(6000))
    assert set(orders) == {bytes(order) for order in permutations(b"abc")}
    assert sum((count - 1000) ** 2 / 1000 for count in orders.values()) < 30.9


def test_where_the_order_comes_from() -> None:
    """From the seed in a simulation, by words that no client's noise holds; from the system's
    entropy without one."""
    many = rows(bytes(range(200)))
    system = Shuffler.of(None, 2)
    first, again, other = (Shuffler.of(seed, 2).passed(many).tobytes() for seed in (5, 5, 6))
    assert first == again != other
    assert isinstance(system.draws._noise, SystemNoise)
    assert system.passed(many).tobytes() != Shuffler.of(None, 2).passed(many).tobytes()
    own = Shuffler.of(5, 2).draws.words(200).tolist()
    of_clients = KeyedNoise(5).words(Draw(1), 0, 200, 64).tolist()
    assert not set(own) & set(of_clients)


def asked(randomizer: Randomizer, label: str = "") -> LocalQuery:
    repeat = repeat_of(label, randomizer)
    return LocalQuery(Question("yes == 1"), randomizer, Cohort(0, 200), repeat)


def test_bad_input() -> None:
    """Numbers out of range, what is no finite channel, and what cannot be shuffled: before anybody
    answers."""
    numbers = [(1, DELTA), (10**7 + 1, DELTA), (100, 0.0), (100, 1.0), (100, math.nan)]
    crowds = Crowds(Behind(100))
    crowds.check((survey_query(100),))
    with pytest.raises(
        QuorumError, match="99 clients is less than the shuffler's minimum crowd of 100"
    ):
        crowds.check((survey_query(100), survey_query(99)))
    refuse(
        *(
            (r"clients|delta", partial(amplified, BinaryRR(1.0), clients, delta))
            for clients, delta in numbers
        ),
        (
            "wide-hashing is no finite channel",
            lambda: amplified(WideHashing(1.0, length=3), 100, DELTA),
        ),
        ("hadamard uses a public coin", lambda: check_shufflable(asked(Hadamard(1.0, k=2)))),
        ("memoised answers of binary-rr", lambda: crowds.check((asked(BinaryRR(1.0), "daily"),))),
        *(("crowd", partial(kind, 1)) for kind in (shuffler, Behind)),
        ("estimates no frequencies", lambda: single_message("binary-rr", 2, TARGET)),
        ("too few for 4096 symbols", lambda: multi_message(4096, Target(2, 0.01, 1e-6))),
    )
    few = local_dp("run", "survey", "--clients", "50", "--seed", "1", "--shuffle")
    assert (few.returncode, "minimum crowd of 100" in few.stderr) == (3, True)


def test_coins_are_drawn_by_whom_they_are_of() -> None:
    """An algorithm that is asked with coins asks for them where there is a public one, and leaves
    all else as it is."""
    algorithm = Frequency().algorithm(1.0, 9)
    mixed = with_coins(algorithm)
    assert isinstance(algorithm, Nonadaptive)
    assert isinstance(mixed, Nonadaptive)
    first = algorithm.queries[0]
    assert mixed.queries == (LocalQuery(first.query, WithCoin.of(first.randomizer), Cohort(0, 9)),)
    assert all(not query.randomizer.uses_coins for query in mixed.queries)
    plain = with_coins(Survey().algorithm(1.0, 9))
    assert isinstance(plain, Nonadaptive)
    assert plain.queries == Survey().algorithm(1.0, 9).queries


TARGET = Target(500, 1.0, 1e-5)


def counts_law(histogram: BlanketHistogram, values: tuple[int, ...]) -> Law:
    """The law of the counts of all messages of clients that hold `values`, in fractions."""
    share = Fraction(histogram.weight, 1 << 32)
    turns = [(None, 1 - histogram.k * share), *((symbol, share) for symbol in range(histogram.k))]
    law: Law = {tuple(values.count(symbol) for symbol in range(histogram.k)): Fraction(1)}
    for _ in range(histogram.tries * len(values)):
        further: Law = {}
        for (counts, chance), (symbol, part) in product(law.items(), turns):
            if symbol is None:
                sums = counts
            else:
                sums = (*counts[:symbol], counts[symbol] + 1, *counts[symbol + 1 :])
            further[sums] = further.get(sums, Fraction(0)) + chance * part
        law = further
    return law


@pytest.mark.parametrize(
    ("k", "tries", "clients", "delta"), [(2, 1, 6, 0.2), (3, 1, 4, 0.4), (3, 2, 3, 0.2)]
)
def test_blanket_accounting_is_exact_for_every_data_set(
    k: int, tries: int, clients: int, delta: float
) -> None:
    """The bounds are close, and delta at them is what was asked, whatever the others hold."""
    histogram = BlanketHistogram(k, (1 << 32) // (k + 1), tries)
    least, most = histogram.epsilon(clients, delta)
    assert least <= most <= least * 1.02
    for others in ((0,) * (clients - 1), tuple(place % k for place in range(clients - 1))):
        law, other = (counts_law(histogram, (value, *others)) for value in (0, 1))
        assert float(stick(law, other, Fraction(np.exp(most)))) <= delta * (1 + 1e-9)
        assert float(stick(law, other, Fraction(np.exp(least)))) >= delta * (1 - 1e-9)


def test_messages_keep_to_their_target() -> None:
    """One message, which randomizes much less than it would alone; and several, to a hundredth of
    epsilon."""
    oracle = single_message("grr", 4, TARGET)
    assert 0.99 < amplified(oracle, TARGET.clients, TARGET.delta).upper <= 1.0 + 1e-4
    assert oracle.epsilon > 2
    least, most = multi_message(16, TARGET).epsilon(TARGET.clients, TARGET.delta)
    assert 0.99 < least < most <= 1.0 + 1e-4


def test_blanket_estimates_are_unbiased_with_the_stated_variance() -> None:
    """Over 4,000 runs of 50 clients: each mean within 4.5 standard errors, and the variance within
    10 %: 4.5 standard errors of it are 9.2 %."""
    histogram = BlanketHistogram(4, 1 << 28, 3)
    values = np.array([0, 0, 1, 3, 3] * 10)
    runs = 4000
    stop = runs * len(values) * 3
    words = KeyedNoise(7).words(Draw(1), 0, stop, 32).reshape(runs, len(values), 3)
    estimates = np.array(
        [
            histogram.estimate(histogram.tally(histogram.respond(values, each), len(values))).value
            for each in words
        ]
    )
    variance = histogram.variance(len(values))
    away = estimates.mean(axis=0) - np.array([0.4, 0.2, 0, 0.4])
    assert np.abs(away).max() < 4.5 * np.sqrt(variance / runs)
    assert np.abs(estimates.var(axis=0) / variance - 1).max() < 0.1
    half = histogram.estimate(Tally(np.full(4, 11), 16)).standard_error  # 11/16 - 3/16: 1/2
    assert half == pytest.approx(math.sqrt((1 / 4 + histogram.variance(1)) / 16))


def batch(start: int, stop: int, reports: int, randomizer: Randomizer | None = None) -> Batch:
    return Batch(survey_query(stop, start, randomizer), reports)


def test_one_batch_is_what_the_accountant_says_of_those_that_answered() -> None:
    """Of 900 of the 1,000 that were asked, and from both sides."""
    loss = central([batch(0, 1000, 900)], DELTA)
    direct = amplified(BinaryRR(1.0), 900, DELTA)
    assert loss.upper == pytest.approx(direct.upper, abs=2e-9)
    assert loss.upper >= direct.upper
    assert loss.lower == direct.lower
    assert (loss.local, loss.times, loss.exact) == (1.0, 1, True)
    assert central([batch(0, 1000, 900), batch(1000, 1300, 300)], DELTA).upper > 1.5 * loss.upper, (
        "of fresh clients the smallest crowd counts"
    )
    assert central([batch(0, 9, 1)], DELTA).upper == 1.0


@wrong(
    "local_dp.shuffle.central:central",
    "delta / most",
    "delta",
    "whoever answers three times has three deltas",
)
def test_several_reports_of_one_client_add_up() -> None:
    """By basic composition: half of delta for each of two, and the sum of their epsilons, at most
    that of the reports themselves."""
    each = BinaryRR(0.5)
    loss = central([batch(0, 1000, 1000, each), batch(0, 1000, 1000, each)], DELTA)
    assert loss.upper == pytest.approx(2 * amplified(each, 1000, DELTA / 2).upper, abs=4e-9)
    assert (loss.local, loss.times) == (1.0, 2)
    assert central([batch(0, 9, 3), batch(0, 9, 3)], DELTA).upper <= 2.0


def test_of_many_kinds_the_general_bound_is_taken() -> None:
    batches = [batch(1000 * at, 1000 * at + 500 + at, 500 + at) for at in range(5)]
    loss = central(batches, DELTA)
    assert loss.upper == pytest.approx(
        variation_ratio(1.0).epsilon_at_most(500, DELTA, 1.0), rel=1e-4
    )
    assert loss.lower == 0.0


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("tier", short(["hosts", "aggregate"], lambda tier: tier == "aggregate"))
def test_a_run_says_both_epsilons(tier: str) -> None:
    """Local and central, on every tier, with the same estimate where clients are simulated."""
    arguments = ("run", "survey", "--clients", "1000", "--seed", "1", "--tier", tier)
    result = local_dp(*arguments, "--shuffle")
    assert result.returncode == 0, result.stderr
    assert "epsilon 0.126" in result.stdout.replace("\n", " ")
    mixed, plain = (
        json.loads(local_dp(*arguments, *more, "--json").stdout) for more in (("--shuffle",), ())
    )
    assert mixed["result"] == plain["result"]
    assert mixed["shuffled"]["local"] == 1.0
    assert mixed["shuffled"]["upper"] == pytest.approx(
        amplified(BinaryRR(1.0), 1000, DELTA).upper, abs=2e-9
    )
    assert "shuffled" not in plain
