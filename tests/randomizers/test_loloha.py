"""LOLOHA and dBitFlip: all sequences of codes, buckets and reports enumerated, and the true limits of a lifetime loss."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from local_dp.bounds.frequencies import hashing_variance
from local_dp.bounds.longitudinal import bit_flip_variance, changing_loss, loloha_codes, paper_codes
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins
from local_dp.randomizers.evidence import exact_epsilon
from local_dp.randomizers.repeated.change_tracking import BitFlip
from local_dp.randomizers.repeated.memoised import LOLOHA

ALPHA = 1e-6  # failure probability of each statistical check
Sequence = tuple[int, ...]


def told(randomizer: LOLOHA, codes: Sequence, reports: Sequence) -> Fraction:
    """The probability of these reports of a life that goes through these codes: each code has one lasting answer."""
    inner, g = randomizer.inner, randomizer.hash.g
    steps = [[1 - (g - 1) * Fraction(other, inner.part), Fraction(other, inner.part)] for other in inner.others]
    chance = Fraction(1)
    for code in set(codes):
        said = [report for held, report in zip(codes, reports, strict=True) if held == code]
        chance *= sum((steps[0][answer != code] * math.prod(steps[1][report != answer] for report in said) for answer in range(g)), Fraction(0))
    return chance


def pattern(codes: Sequence) -> Sequence:
    """When a code changes, and to which earlier one it comes back."""
    return tuple(codes.index(code) for code in codes)


def worst(randomizer: LOLOHA, rounds: int, alike: bool) -> Fraction:
    """The worst ratio between any two sequences of codes, or between any two of one pattern, over all reports."""
    lives = list(itertools.product(range(randomizer.hash.g), repeat=rounds))
    found = Fraction(1)
    for reports in lives:
        chances = {codes: told(randomizer, codes, reports) for codes in lives}
        for kind in {pattern(codes) if alike else () for codes in lives}:
            group = [chances[codes] for codes in lives if not alike or pattern(codes) == kind]
            found = max(found, max(group) / min(group))
    return found


@pytest.mark.parametrize(("g", "rounds"), [(2, 1), (2, 2), (2, 5), (3, 3)])
def test_lives_that_change_together_lose_epsilon_at_most(g: int, rounds: int) -> None:
    """Between sequences of codes that change at the same times the exact loss is at most epsilon; it comes to epsilon with the reports of each code."""
    randomizer = LOLOHA(1.0, k=g, g=g, first=0.6)
    ratio = worst(randomizer, rounds, alike=True)
    assert 1 < ratio <= exp_epsilon(1_000_000_000)
    if rounds == 1:
        assert math.log(ratio) == pytest.approx(0.6 / g, abs=1e-6) == exact_epsilon(randomizer)


@pytest.mark.parametrize("g", [2, 3])
def test_a_life_of_all_codes_comes_to_epsilon(g: int) -> None:
    """Seen so often that every lasting answer is known, a life through all codes, against one of the same pattern, loses epsilon up to rounding."""
    randomizer, often = LOLOHA(1.5, k=g, g=g), 400
    codes, others = ([(code + turn) % g for code in range(g) for _ in range(often)] for turn in (0, 1))
    ratio = told(randomizer, tuple(codes), tuple(codes)) / told(randomizer, tuple(others), tuple(codes))
    assert ratio <= exp_epsilon(1_500_000_000)
    (p, q), _ = randomizer.inner.odds
    assert math.log(ratio) == pytest.approx(g * math.log(p / q), abs=1e-9)
    assert g * math.log(p / q) > 1.5 - 2 * g / (q * randomizer.inner.kinds)  # each weight is rounded by one of so many at most


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_the_loss_of_changing_values_is_exact(rounds: int) -> None:
    """Between any two sequences of two codes the exact loss is `changing_loss`: of one report the stated share, then more and more."""
    randomizer = LOLOHA(1.0, k=2, first=0.5)
    assert math.log(worst(randomizer, rounds, alike=False)) == pytest.approx(changing_loss(randomizer.inner.odds, rounds), abs=1e-9)


def test_memoised_answers_show_when_values_change() -> None:
    """The published lifetime loss of g epsilon holds between lives that change together, and no others: a value that stays, against one
    that alternates. Four reports of two codes lose more than is paid, and T at most T times what the second step alone does; fresh reports
    of that loss are louder."""
    randomizer = LOLOHA(1.0, k=2, first=0.5)
    odds = randomizer.inner.odds
    losses = {rounds: changing_loss(odds, rounds) for rounds in (1, 2, 3, 4, 16, 64)}
    assert losses[3] < 1 < losses[4] < 1.5
    assert losses[64] > 30
    step = math.log(odds[1][0] / odds[1][1])
    assert all(loss <= rounds * step for rounds, loss in losses.items())
    assert all(loss / rounds > exact_epsilon(randomizer) for rounds, loss in losses.items() if rounds > 1)


@pytest.mark.parametrize("g", [2, 3])
def test_the_lasting_answers_of_codes_are_independent(g: int) -> None:
    """Over all lasting halves of a word, every combination of the codes' lasting answers has the product of their chances, as whole numbers."""
    inner = LOLOHA(4.0, k=g, g=g, word_bits=20).inner
    halves = np.arange(inner.part, dtype=np.uint32)
    words = (halves << np.uint32(10)) | np.uint32(inner.part - 1)  # of the last words the second step keeps the answer
    answers = np.stack([inner.respond(np.full(inner.part, code), words, np.zeros(1, dtype=np.uint8)) for code in range(g)])
    met = Counter(map(tuple, answers.T.tolist()))
    (p, q), _ = inner.odds
    for answer in itertools.product(range(g), repeat=g):
        assert met[answer] / inner.part == pytest.approx(math.prod(p if said == code else q for code, said in enumerate(answer)), abs=1e-12)


def test_a_label_keeps_the_hash_and_the_answers() -> None:
    """Asked again under a label with another value, clients whose code is the same repeat their lasting answer, and others give one of its own."""
    randomizer, n = LOLOHA(8.0, k=5, first=0.9), 4000
    cells = randomizer.cells_of(public_coins(Draw(1, 0, "diary").key("coins", 3), 0, n))
    halves = [randomizer.draw(KeyedNoise(3), Draw(round, 0, "diary"), 0, n) >> np.uint64(32) for round in (1, 2)]
    assert (halves[0] == halves[1]).all()
    certain = (halves[0] << np.uint64(32)) | np.uint64(randomizer.inner.part - 1)
    one, two = (randomizer.respond(np.full(n, value), certain, cells) for value in (1, 3))
    codes = [randomizer.encode(np.full(n, value), cells) for value in (1, 3)]
    same = codes[0] == codes[1]
    assert 0.3 < same.mean() < 0.5
    assert (one[same] == two[same]).all()
    agree = (one[~same] == two[~same]).mean()
    assert abs(agree - 2 * (1 / (1 + math.exp(4.0))) * (1 - 1 / (1 + math.exp(4.0)))) < math.sqrt(math.log(2 / ALPHA) / (2 * (~same).sum()))


def test_the_best_number_of_codes() -> None:
    """The closed form is least next to e^loss + 1 codes, at the loss of one report; the published formula, for a louder second step, says fewer."""
    for lasting, first in ((1.0, 0.5), (2.0, 1.0), (4.0, 2.0)):
        real = loloha_codes(lasting, first)
        variances = {g: hashing_variance(first, g, 12, 0.0) for g in (2, 3, 4, 5, 7, 8, 9, 11, 13)}
        assert abs(min(variances, key=lambda g: variances[g]) - real) < 1.5
        assert 2 <= paper_codes(lasting, first) <= math.ceil(real)
    with pytest.raises(InputError):
        loloha_codes(1.0, 2.0)


KEY = b"0123456789abcdef"


@pytest.mark.parametrize(("k", "d"), [(3, 1), (5, 2), (4, 4)])
def test_the_loss_of_a_life_is_exact(k: int, d: int) -> None:
    """Under every coin tried, over all values and reports, which a label repeats for ever, the worst ratio is e^epsilon and no more."""
    randomizer, worst = BitFlip(1.0, k=k, d=d), Fraction(1)
    ones = [Fraction(weight, randomizer.inner.total) for weight in randomizer.inner.ones]
    for coin in public_coins(KEY, 0, 200):
        places = randomizer.encode(np.arange(k), np.full(k, coin)).tolist()
        for report in itertools.product((0, 1), repeat=d):
            laws = [math.prod((ones[at == place] if bit else 1 - ones[at == place] for at, bit in enumerate(report)), start=Fraction(1)) for place in places]
            worst = max(worst, max(laws) / min(laws))
    assert worst <= exp_epsilon(1_000_000_000)
    assert math.log(worst) == pytest.approx(1.0, abs=1e-6) == exact_epsilon(randomizer)


@pytest.mark.parametrize(("k", "d"), [(2, 1), (7, 3), (10, 4), (9, 9)])
def test_the_client_and_the_server_mean_the_same_buckets(k: int, d: int) -> None:
    """At epsilon 24, where bits of the own bucket alone are 1, it is its own bucket that is counted; every bucket is picked by d / k of the coins."""
    randomizer, n = BitFlip(24.0, k=k, d=d), 20_000
    coins, values = public_coins(KEY, 0, n), np.arange(n) % k
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(1), Draw(1), 0, n), coins)
    tally = randomizer.tally(reports, coins)
    assert tally.counts.sum() == n * d
    assert abs(tally.counts.sum(axis=1) / n - d / k).max() < math.sqrt(math.log(2 * k / 1e-6) / (2 * n))
    for value in range(k):
        alone = randomizer.tally(reports[values == value], coins[values == value]).counts
        assert alone[np.arange(k) != value, 1].sum() == 0
        assert alone[value, 1] > 0


def test_a_label_repeats_the_report() -> None:
    """Under a label the words are the same for ever, so all reports of a life are one report."""
    randomizer, coins = BitFlip(1.0, k=9, d=4), public_coins(KEY, 0, 500)
    one, two, other = (
        randomizer.respond(np.arange(500) % 9, randomizer.draw(KeyedNoise(3), Draw(round, 0, label), 0, 500), coins)
        for round, label in ((1, "diary"), (2, "diary"), (2, ""))
    )
    assert (one == two).all()
    assert (one != other).any()


def test_unary_bits_beat_the_published_ones() -> None:
    """At every epsilon the variance for a rare bucket is below that of symmetric bits of half of epsilon, the same buckets asked."""
    for epsilon in (0.1, 1.0, 4.0):
        flip = 1 / (math.exp(epsilon / 2) + 1)
        published = 10 / 4 * flip * (1 - flip) / (1 - 2 * flip) ** 2
        assert bit_flip_variance(epsilon, 10, 4, 0.0) < published
