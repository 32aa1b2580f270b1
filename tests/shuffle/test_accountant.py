"""The accountant of shuffled reports, against the law enumerated in fractions and against the figures of the literature."""

import math
from fractions import Fraction
from functools import partial
from itertools import combinations_with_replacement, permutations

import numpy as np
import pytest

from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard, HadamardResponse
from local_dp.randomizers.frequencies.projective import PGR
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import Amplified, Laws, Row, accounted, amplified, closed_form, holds, largest_local, rows_of, worst_delta
from local_dp.shuffle.binary import Bits, worst
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.theory.shuffled_laws import extremal_rows, shuffled, stick, with_one_more

DELTA = 1e-6
CHANNELS: list[tuple[FiniteChannel, tuple[int, ...]]] = [
    (BinaryRR(1.0), (2, 3, 5, 12)), (BinaryRR(3.0), (2, 7, 12)), (OneBitMean(1.0, steps=2), (2, 6)), (GRR(1.0, k=3), (2, 8)),
    (GRR(3.0, k=3), (3, 9)), (GRR(2.0, k=4), (2, 5)), (Hadamard(1.0, k=2), (2, 3, 8)), (HadamardResponse(1.0, k=3), (2, 6)),
    (PGR(1.0, k=3), (2, 6)),
]  # fmt: skip


def enclosed(rows: list[Row], bounds: Amplified, clients: int, delta: float) -> None:
    """No bound is on the wrong side of the enumerated law; an exact one is close to it from both."""
    ends = [*bounds.uppers.values(), bounds.lower, bounds.upper]
    deltas = worst_delta(rows, clients, [Fraction(math.exp(end)) for end in ends])
    assert all(each <= delta * (1 + 1e-9) for each in deltas[: len(bounds.uppers)])
    assert bounds.lower == 0 or deltas[-2] >= delta * (1 - 1e-9)
    if bounds.exact:
        assert bounds.upper <= bounds.lower * (1 + 1e-5) + 1e-9


@pytest.mark.parametrize("delta", short([0.2, 0.01, 1e-5], lambda delta: delta == 0.01))
@pytest.mark.parametrize(("randomizer", "sizes"), CHANNELS, ids=lambda each: each.name if isinstance(each, Randomizer) else "")
def test_bounds_enclose_the_enumerated_law(randomizer: FiniteChannel, sizes: tuple[int, ...], delta: float) -> None:
    """Over all data sets of so many clients, of channels that are shipped."""
    for clients in sizes:
        enclosed(rows_of(randomizer), amplified(randomizer, clients, delta), clients, delta)


@pytest.mark.parametrize(("rows", "clients"), [(rows_of(GRR(1.0, k=3)), 4), (rows_of(BinaryRR(2.0)), 6), (rows_of(OneBitMean(1.0, steps=2)), 4)])
def test_multisets_give_what_fractions_give(rows: list[Row], clients: int) -> None:
    """The enumeration in whole numbers, over multisets, is that in fractions, law by law and pair by pair."""
    growths = [Fraction(1), Fraction(3, 2), Fraction(math.e)]
    worst = [Fraction(0)] * len(growths)
    for others in combinations_with_replacement(range(len(rows)), clients - 1):
        law = shuffled(rows, others)
        for first, other in permutations([with_one_more(rows, law, value) for value in range(len(rows))], 2):
            worst = [max(bounds, stick(first, other, growth)) for bounds, growth in zip(worst, growths, strict=True)]
    assert worst_delta(rows, clients, growths) == worst


@pytest.mark.parametrize(
    ("values", "reports", "clients"),
    [(2, 2, 10), (3, 2, 12), (2, 3, 8), (3, 3, 5), pytest.param(2, 4, 5, marks=pytest.mark.long), pytest.param(4, 4, 3, marks=pytest.mark.long)],
)
def test_bounds_enclose_random_extremal_channels(values: int, reports: int, clients: int) -> None:
    """The same of channels whose entries lie at the two ends of what a local loss allows, or beyond."""
    generator = np.random.default_rng(values + 10 * reports)
    for _ in range(2):
        rows = extremal_rows(generator, values, reports, Fraction(int(generator.integers(2, 9))))
        laws = Laws(np.array(rows, dtype=np.float64))
        if laws.epsilon > 1e-9:
            delta = float(generator.choice([0.1, 1e-3]))
            enclosed(rows, accounted(laws, laws.epsilon, clients, delta), clients, delta)


@pytest.mark.parametrize(("local", "clients", "figures"), [
    (1.0, 1000, (0.566, 0.182, 0.149, 0.127)), (1.0, 10_000, (0.214, 0.053, 0.0432, 0.0357)),
    pytest.param(1.0, 100_000, (0.073, 0.0153, 0.0124, 0.0101), marks=pytest.mark.long),
    pytest.param(2.0, 10_000, (0.501, 0.155, 0.114, 0.087), marks=pytest.mark.long),
])  # fmt: skip
def test_randomized_response_has_the_figures_of_the_field(local: float, clients: int, figures: tuple[float, ...]) -> None:
    """Closed form, clones, variation ratio and the exact epsilon, to the digits that were computed independently."""
    bounds = amplified(BinaryRR(local), clients, DELTA)
    for rule, figure in zip(("closed form", "clones", "variation ratio", "all data sets"), figures, strict=True):
        digits = len(f"{figure:g}") - 2
        assert round(bounds.uppers[rule], digits) == pytest.approx(figure)
    assert bounds.exact
    assert bounds.upper <= bounds.lower * (1 + 2e-6)


@pytest.mark.parametrize(("local", "clients", "delta"), [(2.0, 12, 0.2), (2.0, 20, 0.2), (1.0, 40, 1e-3)])
def test_the_worst_data_set_is_not_always_that_of_equal_values(local: float, clients: int, delta: float) -> None:
    """Among all numbers of ones the search finds the worst, which is another than all or none, by more than a hundredth of epsilon."""
    truth = 1 / (1 + math.exp(-local))
    bits = Bits(truth, 1 - truth)
    every = [bits.others(ones, clients - 1 - ones).epsilon(delta)[1] for ones in range(clients)]
    bounds = worst(bits, clients, delta)
    assert bounds.least <= max(every) * (1 + 1e-8)
    assert bounds.most >= max(every) * (1 - 1e-8)
    assert every[bounds.ones] == pytest.approx(max(every), rel=2e-6)
    assert max(every) > 1.01 * max(every[0], every[-1])


def test_a_search_that_stops_early_still_bounds_the_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where every data set within half of the first epsilon counts as no worse, the proven end has that half."""
    monkeypatch.setattr("local_dp.shuffle.binary._CLOSE", (0.5,))
    truth = 1 / (1 + math.exp(-2.0))
    bits = Bits(truth, 1 - truth)
    assert worst(bits, 12, 0.2).most >= max(bits.others(ones, 11 - ones).epsilon(0.2)[0] for ones in range(12))


@pytest.mark.long
def test_upper_is_lower_for_sixteen_symbols() -> None:
    """.01859, though the two are different theorems."""
    bounds = amplified(GRR(1.0, k=16), 10_000, DELTA)
    assert f"{bounds.lower:.5f}" == f"{bounds.upper:.5f}" == "0.01859"


def test_hidden_third_reports_would_be_a_wrong_bound() -> None:
    """Below the largest total variation a pair with hidden third reports promises too little: its delta at e^eps = 2 is .0432, others (0, 2, 2) have .0528."""
    third = Fraction(1, 5)
    pair: list[Row] = [(3 * third, third, third), (third, 3 * third, third), (third, third, 3 * third)]
    law = shuffled(pair, (2, 2, 2))
    assert stick(with_one_more(pair, law, 0), with_one_more(pair, law, 1), Fraction(2)) == Fraction("0.0432")
    assert worst_delta(pair, 4, [Fraction(2)]) == [Fraction("0.0528")]


def test_others_and_large_domains_are_bounded() -> None:
    """Vectors of bits and large domains have bounds for any randomizer from above and data sets from below."""
    for randomizer in (OUE(1.0, k=16), GRR(1.0, k=256)):
        bounds = amplified(randomizer, 500, DELTA)
        assert 0 < bounds.lower < bounds.upper < 0.4
        assert "blanket" not in bounds.uppers
        assert not bounds.exact


def test_the_inverse_is_the_inverse() -> None:
    """At the largest local epsilon the shuffled reports keep to theirs, and a little above they are not known to."""
    local = largest_local(BinaryRR, 200, 0.5, DELTA)
    assert local > 0.7
    assert holds(BinaryRR(local), 200, 0.5, DELTA)
    assert not holds(BinaryRR(local * 1.001), 200, 0.5, DELTA)
    assert amplified(BinaryRR(local), 200, DELTA).upper <= 0.5


def test_bad_input() -> None:
    """Numbers out of range, and what is no finite channel; with two clients, or a tiny delta, the bound is the local epsilon."""
    assert amplified(BinaryRR(1.0), 2, 1e-12).upper <= 1.0
    assert closed_form(5.0, 100, DELTA) == 5.0
    numbers = [(1, DELTA), (10**7 + 1, DELTA), (100, 0.0), (100, 1.0), (100, math.nan)]
    refuse(
        *((r"clients|delta", partial(amplified, BinaryRR(1.0), clients, delta)) for clients, delta in numbers),
        ("wide-hashing is no finite channel", lambda: amplified(WideHashing(1.0, length=3), 100, DELTA)),
    )
