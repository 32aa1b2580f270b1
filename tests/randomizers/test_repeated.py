"""TwoSteps answers, LOLOHA and dBitFlip: all reports of a life enumerated, words that last, and the
true limits of a lifetime loss."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from local_dp.bounds.longitudinal import changing_loss, rappor_variance
from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, SystemNoise, public_coins
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.memory import Memoised
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Rows
from local_dp.queries.tables import Question
from local_dp.randomizers.evidence import exact_epsilon, exact_ratio
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.randomizers.repeated.change_tracking import BitFlip
from local_dp.randomizers.repeated.memoised import (
    LOLOHA,
    MemoisedGRR,
    MemoisedRAPPOR,
    memoised_variance,
)
from local_dp.records import Records
from tests.support.long import short
from tests.support.wrong import wrong

ALPHA = 1e-6  # failure probability of each statistical check
TwoSteps = MemoisedGRR | MemoisedRAPPOR
Law = dict[tuple[int, ...], Fraction]
LIVES: list[tuple[TwoSteps, int]] = [
    *((MemoisedGRR(1.0, k=k, first=0.6), rounds) for k in (2, 4) for rounds in (1, 4)),
    *(
        (MemoisedRAPPOR(1.0, k=k, first=0.6, permanent=kind), rounds)
        for kind in ("oue", "sue")
        for k, rounds in ((2, 1), (2, 4), (3, 2))
    ),
]


def chances_of(randomizer: MemoisedGRR) -> list[list[Fraction]]:
    """The chances of the true symbol and of another one, in the first step and in the second."""
    others = [Fraction(other, randomizer.part) for other in randomizer.others]
    return [[1 - (randomizer.k - 1) * other, other] for other in others]


def repeated(step: list[Fraction], lasting: int, reports: Iterable[int]) -> Fraction:
    """The chance of these reports of a lasting answer."""
    return math.prod((step[report != lasting] for report in reports), start=Fraction(1))


def life(randomizer: TwoSteps, value: int, rounds: int) -> Law:
    """The law of so many reports under one label, in fractions: the first step is made once."""
    k, part, law = randomizer.k, randomizer.part, Law()
    sequences = itertools.product(range(k), repeat=rounds)
    if isinstance(randomizer, MemoisedGRR):
        first, second = chances_of(randomizer)
        for reports in sequences:
            terms = (
                first[symbol != value] * repeated(second, symbol, reports) for symbol in range(k)
            )
            law[reports] = sum(terms, Fraction(0))
        return law
    law, flip = {(): Fraction(1)}, Fraction(randomizer.flip, part)
    for place in range(k):
        one, chances = Fraction(randomizer.permanent_step.ones[place == value], part), Law()
        for bits in itertools.product((0, 1), repeat=rounds):
            zeros, ones = (repeated([1 - flip, flip], lasting, bits) for lasting in (0, 1))
            chances[bits] = (1 - one) * zeros + one * ones
        pairs = itertools.product(law.items(), chances.items())
        law = {before + bits: share * chance for (before, share), (bits, chance) in pairs}
    return law


@pytest.mark.parametrize(("randomizer", "rounds"), LIVES, ids=lambda each: repr(each)[:70])
def test_the_loss_of_a_life_is_exact(randomizer: TwoSteps, rounds: int) -> None:
    """Over all sequences of reports the worst ratio is `loss_after`; it never exceeds epsilon, and
    one report alone keeps its share of it."""
    laws = [life(randomizer, value, rounds) for value in range(randomizer.k)]
    assert all(sum(law.values()) == 1 for law in laws)
    columns = [[law[reports] for law in laws] for reports in laws[0]]
    worst = max(max(column) / min(column) for column in columns)
    assert worst <= exp_epsilon(1_000_000_000)
    assert math.log(worst) == pytest.approx(randomizer.loss_after(rounds), abs=1e-9)
    assert exact_epsilon(randomizer) == pytest.approx(0.6, abs=1e-6) == randomizer.loss_after(1)


@pytest.mark.parametrize(
    "randomizer",
    [
        MemoisedGRR(2.0, k=5, first=0.3),
        MemoisedRAPPOR(2.0, k=5, first=0.3),
        MemoisedRAPPOR(2.0, first=0.3, permanent="sue"),
    ],
)
def test_a_life_comes_to_epsilon(randomizer: TwoSteps) -> None:
    """The loss of m reports rises with m up to that of the lasting answer, which is epsilon."""
    losses = [randomizer.loss_after(rounds) for rounds in (1, 2, 5, 20, 100, 1000)]
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(0.6, abs=1e-6)
    assert losses[-1] == pytest.approx(2.0, abs=1e-6)
    if isinstance(randomizer, MemoisedRAPPOR):
        assert exact_ratio(randomizer.permanent_step) <= exp_epsilon(2_000_000_000)
    else:
        assert max(losses) <= 2.0


@wrong(
    "local_dp.randomizers.repeated.memoised:TwoSteps.draw",
    "(which, Draw(which.round, which.ask))",
    "(Draw(which.round, which.ask, '1'), Draw(which.round, which.ask))",
    (
        "the label that the client was asked under is not that of its words: all labels share a "
        "first step"
    ),
    at="MemoisedGRR(epsilon=1.0, word_bits=64, k=3, first=0.5)",
)
@wrong(
    "local_dp.randomizers.repeated.memoised:TwoSteps.draw",
    "not which.label",
    "which.label",
    "under a label nothing lasts, and the reports of a life tell more with every one",
    at="MemoisedGRR(epsilon=1.0, word_bits=64, k=3, first=0.5)",
)
@pytest.mark.parametrize(
    "randomizer",
    [MemoisedGRR(1.0, k=3), MemoisedGRR(1.0, k=3, word_bits=12), MemoisedRAPPOR(1.0, k=3)],
    ids=repr,
)
def test_half_of_a_word_lasts_under_a_label(randomizer: TwoSteps) -> None:
    """Simulated again under a label, the first step has the same words and the second others, in
    any range; without one, or under another one, all are fresh."""
    n, half, noise = 4000, randomizer.word_bits // 2, KeyedNoise(4)
    one, two = (randomizer.draw(noise, Draw(round, 0, "diary"), 0, n) for round in (1, 2))
    assert one.shape == ((n,) if randomizer.words == 1 else (n, randomizer.words))
    assert one.dtype == f"u{randomizer.width // 8}"
    assert (one >> half == two >> half).all()
    assert (one % (1 << half) != two % (1 << half)).mean() > 0.9
    assert len(np.unique(one >> half)) >= min(n, 1 << half) * 0.9
    later = randomizer.draw(noise, Draw(3, 0, "diary"), n // 2, n)
    assert (later >> half == (one >> half)[n // 2 :]).all()
    alone = [randomizer.draw(noise, Draw(round), 0, n) for round in (1, 2)]
    assert (alone[0] >> half != alone[1] >> half).mean() > 0.9
    assert (alone[0] >> half != one >> half).mean() > 0.9
    other = randomizer.draw(noise, Draw(1, 0, "survey"), 0, n)
    assert (other >> half != one >> half).mean() > 0.9


@pytest.mark.parametrize(
    "randomizer",
    [GRR(1.0, k=2), MemoisedGRR(1.0, first=0.9), LOLOHA(1.0, k=2)],
    ids=lambda each: each.name,
)
def test_a_private_population_keeps_its_outcomes(randomizer: Randomizer) -> None:
    """Private words of a label do not exist: the simulated clients keep their outcomes in memory,
    on any number of threads, and pay once."""
    n = 300_000
    ask = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n), Memoised("diary"))
    oracle = PopulationOracle(
        Rows(Records({"yes": np.arange(n) % 2})), SystemNoise(), 6, 1.0, threads=2
    )
    tallies = [*oracle.answer((ask, ask)), *oracle.answer((ask,))]
    same = {str(tally.counts.tolist()) for tally in tallies}
    # three counts with deviations above 200 are equal with probability below 1e-5
    assert (len(same) > 1) == randomizer.has_second_step
    assert oracle.ledger.max_spent == 1.0
    assert oracle.memory.memo.known("diary", np.arange(n)).all()
    with pytest.raises(RefusedError, match="budget"):
        oracle.answer((replace(ask, repeat=Memoised("other")),))


def check_rounds(randomizer: TwoSteps, rounds: int, closed: float) -> None:
    """The variance over clients of the average over rounds is the closed form within 3 %, and the
    mean the share, for symbol 0, which half hold. By Bernstein's inequality the number of clients
    is enough except with probability ALPHA: squared errors lie in [0, reach^2]."""
    (p1, q1), (p2, q2) = randomizer.odds
    reach = 1 / ((p1 - q1) * (p2 - q2)) ** 2
    bound = 2 * reach * closed + 2 * reach * 0.03 * closed / 3
    n = math.ceil(math.log(2 / ALPHA) * bound / (0.03 * closed) ** 2)
    values, sums = (np.arange(n) % 2).astype(np.int64), np.zeros(n)
    for round in range(rounds):
        words = randomizer.draw(KeyedNoise(12), Draw(round + 1, 0, "diary"), 0, n)
        reports = randomizer.respond(values, words, NO_COIN)
        sums += reports == 0 if isinstance(randomizer, MemoisedGRR) else reports[:, 0] & 1
    estimates = (sums / rounds - q2 - q1 * (p2 - q2)) / ((p1 - q1) * (p2 - q2))
    assert abs(estimates.mean() - 0.5) < 6 * math.sqrt(closed / n)
    assert abs(estimates.var() / closed - 1) < 0.03, f"variance {estimates.var()} for {closed}"


@wrong(
    "local_dp.randomizers.repeated.memoised:TwoSteps.draw",
    "not which.label",
    "which.label",
    "both steps are made anew in each round: no more than one report could be paid with epsilon",
    at="2-MemoisedGRR(epsilon=1.0, word_bits=64, k=3, first=0.5)",
)
@pytest.mark.parametrize(
    "randomizer",
    [MemoisedGRR(1.0, k=3), MemoisedRAPPOR(2.0, k=3), MemoisedRAPPOR(2.0, k=3, permanent="sue")],
    ids=repr,
)
@pytest.mark.parametrize("rounds", short([1, 2, 5], lambda rounds: rounds == 2))
def test_rounds_have_the_closed_form_variance(randomizer: TwoSteps, rounds: int) -> None:
    """Simulated clients who answer in several rounds have the variance of two steps, of which the
    first does not average out."""
    assert memoised_variance(randomizer.odds, 0.1) == pytest.approx(
        rappor_variance(randomizer.odds, 0.1), rel=1e-9
    )
    check_rounds(randomizer, rounds, memoised_variance(randomizer.odds, 0.5, rounds))


Sequence = tuple[int, ...]


def told(randomizer: LOLOHA, codes: Sequence, reports: Sequence) -> Fraction:
    """The probability of these reports of a life that goes through these codes: each code has one
    lasting answer."""
    first, second = chances_of(randomizer.inner)
    chance = Fraction(1)
    for code in set(codes):
        own = [report for each, report in zip(codes, reports, strict=True) if each == code]
        answers = range(randomizer.hash.g)
        terms = (first[answer != code] * repeated(second, answer, own) for answer in answers)
        chance *= sum(terms, Fraction(0))
    return chance


def pattern(codes: Sequence) -> Sequence:
    """When a code changes, and to which earlier one it comes back."""
    return tuple(codes.index(code) for code in codes)


def worst(randomizer: LOLOHA, rounds: int, alike: bool) -> Fraction:
    """The worst ratio between any two sequences of codes, or between any two of one pattern, over
    all reports."""
    lives = list(itertools.product(range(randomizer.hash.g), repeat=rounds))
    largest = Fraction(1)
    for reports in lives:
        chances = {codes: told(randomizer, codes, reports) for codes in lives}
        for kind in {pattern(codes) if alike else () for codes in lives}:
            group = [chances[codes] for codes in lives if not alike or pattern(codes) == kind]
            largest = max(largest, max(group) / min(group))
    return largest


@wrong(
    "local_dp.randomizers.repeated.memoised:LOLOHA.inner",
    "split_epsilon(self.epsilon, self.hash.g)",
    "self.epsilon",
    "a life that goes through all codes loses g times what is paid",
    at="2-1",
)
@pytest.mark.parametrize(("g", "rounds"), [(2, 1), (2, 2), (2, 5), (3, 3)])
def test_lives_that_change_together_lose_epsilon_at_most(g: int, rounds: int) -> None:
    """Between sequences of codes that change at the same times the exact loss is at most epsilon;
    it comes to epsilon with the reports of each code."""
    randomizer = LOLOHA(1.0, k=g, g=g, first=0.6)
    ratio = worst(randomizer, rounds, alike=True)
    assert 1 < ratio <= exp_epsilon(1_000_000_000)
    if rounds == 1:
        assert math.log(ratio) == pytest.approx(0.6 / g, abs=1e-6) == exact_epsilon(randomizer)


@pytest.mark.parametrize("g", [2, 3])
def test_a_life_of_all_codes_comes_to_epsilon(g: int) -> None:
    """Seen so often that every lasting answer is known, a life through all codes, against one of
    the same pattern, loses epsilon up to rounding."""
    randomizer, often = LOLOHA(1.5, k=g, g=g), 400
    codes, others = (
        [(code + turn) % g for code in range(g) for _ in range(often)] for turn in (0, 1)
    )
    ratio = told(randomizer, tuple(codes), tuple(codes)) / told(
        randomizer, tuple(others), tuple(codes)
    )
    assert ratio <= exp_epsilon(1_500_000_000)
    (p, q), _ = randomizer.inner.odds
    assert math.log(ratio) == pytest.approx(g * math.log(p / q), abs=1e-9)
    # each weight is rounded by one of so many at most
    assert g * math.log(p / q) > 1.5 - 2 * g / (q * randomizer.inner.kinds)


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_the_loss_of_changing_values_is_exact(rounds: int) -> None:
    """Between any two sequences of two codes the exact loss is `changing_loss`: of one report the
    stated share, then more and more."""
    randomizer = LOLOHA(1.0, k=2, first=0.5)
    assert math.log(worst(randomizer, rounds, alike=False)) == pytest.approx(
        changing_loss(randomizer.inner.odds, rounds), abs=1e-9
    )


@pytest.mark.parametrize("g", [2, 3])
def test_the_lasting_answers_of_codes_are_independent(g: int) -> None:
    """Over all lasting halves of a word, every combination of the codes' lasting answers has the
    product of their chances, as whole numbers."""
    inner = LOLOHA(4.0, k=g, g=g, word_bits=20).inner
    halves = np.arange(inner.part, dtype=np.uint32)
    # of the last words the second step keeps the answer
    words = (halves << np.uint32(10)) | np.uint32(inner.part - 1)
    answers = [inner.respond(np.full(inner.part, code), words, NO_COIN) for code in range(g)]
    counts = Counter(map(tuple, np.transpose(answers).tolist()))
    (p, q), _ = inner.odds
    for answer in itertools.product(range(g), repeat=g):
        chances = (p if own == code else q for code, own in enumerate(answer))
        assert counts[answer] / inner.part == pytest.approx(math.prod(chances), abs=1e-12)


KEY = b"0123456789abcdef"


@wrong(
    "local_dp.randomizers.repeated.change_tracking:BitFlip.encode",
    "1",
    "0",
    (
        "the client finds its bucket at a place that is another bucket to the server, where a "
        "step is not its own inverse"
    ),
    at="7-3",
)
@pytest.mark.parametrize(("k", "d"), [(2, 1), (7, 3), (10, 4), (9, 9)])
def test_the_client_and_the_server_mean_the_same_buckets(k: int, d: int) -> None:
    """At epsilon 24, where bits of the own bucket alone are 1, it is its own bucket that is
    counted; every bucket is picked by d / k of the coins."""
    randomizer, n = BitFlip(24.0, k=k, d=d), 20_000
    coins, values = public_coins(KEY, 0, n), np.arange(n) % k
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(1), Draw(1), 0, n), coins)
    tally = randomizer.tally(reports, coins)
    assert tally.counts.sum() == n * d
    reach = math.sqrt(math.log(2 * k / 1e-6) / (2 * n))
    assert abs(tally.counts.sum(axis=1) / n - d / k).max() < reach
    for value in range(k):
        alone = randomizer.tally(reports[values == value], coins[values == value]).counts
        assert alone[np.arange(k) != value, 1].sum() == 0
        assert alone[value, 1] > 0
