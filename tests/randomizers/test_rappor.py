"""Memoised RAPPOR: all reports of a life enumerated, bits that last and flips that do not, and the closed-form variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from local_dp.bounds.longitudinal import first_flip, rappor_variance
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.table import Rows
from local_dp.queries.tables import Question
from local_dp.randomizers.evidence import exact_epsilon, exact_ratio
from local_dp.randomizers.repeated.memoised import MemoisedRAPPOR, memoised_variance
from local_dp.records import Records

KINDS = ("oue", "sue")
ALPHA = 1e-6  # failure probability of each statistical check


def life(randomizer: MemoisedRAPPOR, value: int, rounds: int) -> dict[tuple[int, ...], Fraction]:
    """The law of the bits of so many reports under one label, in fractions: every lasting bit is made once."""
    part = randomizer.part
    flip = Fraction(randomizer.flip, part)
    law: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for place in range(randomizer.k):
        lasting = Fraction(randomizer.lasting.ones[place == value], part)
        told = {}
        for bits in itertools.product((0, 1), repeat=rounds):
            given = [math.prod((flip if bit != kept else 1 - flip for bit in bits), start=Fraction(1)) for kept in (0, 1)]
            told[bits] = (1 - lasting) * given[0] + lasting * given[1]
        law = {before + bits: share * each for before, share in law.items() for bits, each in told.items()}
    return law


@pytest.mark.parametrize("permanent", KINDS)
@pytest.mark.parametrize(("k", "rounds"), [(2, 1), (2, 4), (3, 1), (3, 2)])
def test_the_loss_of_a_life_is_exact(permanent: str, k: int, rounds: int) -> None:
    """Over all sequences of reports the worst ratio is `loss_after`; it never exceeds epsilon, and one report alone keeps its share of it."""
    randomizer = MemoisedRAPPOR(1.0, k=k, first=0.6, permanent=permanent)
    laws = [life(randomizer, value, rounds) for value in range(k)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(max(law[reports] for law in laws) / min(law[reports] for law in laws) for reports in laws[0])
    assert worst <= exp_epsilon(1_000_000_000)
    assert math.log(worst) == pytest.approx(randomizer.loss_after(rounds), abs=1e-9)
    assert exact_epsilon(randomizer) == pytest.approx(0.6, abs=1e-6) == randomizer.loss_after(1)


@pytest.mark.parametrize("permanent", KINDS)
def test_a_life_comes_to_epsilon(permanent: str) -> None:
    """What m reports tell rises with m, and comes to what the lasting bits tell, which is epsilon and no more, as a fraction."""
    randomizer = MemoisedRAPPOR(2.0, k=5, first=0.3, permanent=permanent)
    losses = [randomizer.loss_after(rounds) for rounds in (1, 2, 5, 20, 100, 1000)]
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(0.6, abs=1e-6)
    assert losses[-1] == pytest.approx(2.0, abs=1e-6)
    assert exact_ratio(randomizer.lasting) <= exp_epsilon(2_000_000_000)


@pytest.mark.parametrize("first", [0.3, 0.5, 0.9])
def test_the_second_step_is_the_closed_form(first: float) -> None:
    """With two symmetric steps on two places the flips are those of half of both losses, by hyperbolic tangents."""
    randomizer = MemoisedRAPPOR(2.0, first=first, permanent="sue")
    (kept, _), (again, flip) = randomizer.odds
    assert (1 - kept, flip) == pytest.approx(first_flip(1.0, first), abs=1e-8)
    assert kept * again + (1 - kept) * flip == pytest.approx(1 / (1 + math.exp(-first)), abs=1e-8)


@pytest.mark.parametrize("noise", [KeyedNoise(4), SystemNoise()], ids=["keyed", "system"])
def test_half_of_a_word_lasts_under_a_label(noise: Noise) -> None:
    """Asked again under a label, the lasting bits have the same words and the flips others, whoever is asked with whom; without a label, all are fresh."""
    randomizer, n = MemoisedRAPPOR(1.0, k=3), 1000
    half = randomizer.word_bits // 2
    one, two = (randomizer.draw(noise, Draw(round, 0, "diary"), 0, n) for round in (1, 2))
    assert one.shape == (n, 3)
    assert (one >> half == two >> half).all()
    assert (one % (1 << half) != two % (1 << half)).mean() > 0.9
    later = randomizer.draw(noise, Draw(3, 0, "diary"), n // 2, n)
    assert (later >> half == (one >> half)[n // 2 :]).all()
    alone = [randomizer.draw(noise, Draw(round), 0, n) for round in (1, 2)]
    assert (alone[0] >> half != alone[1] >> half).mean() > 0.9


def test_a_client_pays_once_for_fresh_reports() -> None:
    """Two asks of one round under one label cost epsilon together, and their reports differ."""
    n, randomizer = 1000, MemoisedRAPPOR(1.0, k=2)
    ask = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n), "diary")
    oracle = PopulationOracle(Rows(Records({"yes": np.arange(n) % 2})), KeyedNoise(6), 6, 1.0)
    one, two = oracle.answer((ask, ask))
    assert one.counts.tolist() != two.counts.tolist()
    assert oracle.ledger.max_spent == 1.0


def seen(randomizer: MemoisedRAPPOR, rounds: int, n: int) -> tuple[float, float]:
    """The mean and the variance of what a client's reports stand for on average over the rounds, for symbol 0, which half hold."""
    (p1, q1), (p2, q2) = randomizer.odds
    values, stands = (np.arange(n) % 2).astype(np.int64), np.zeros(n)
    for round in range(rounds):
        words = randomizer.draw(KeyedNoise(12), Draw(round + 1, 0, "diary"), 0, n)
        stands += (randomizer.respond(values, words, np.zeros(1, dtype=np.uint8))[:, 0] & 1) / rounds
    stands = (stands - q2 - q1 * (p2 - q2)) / ((p1 - q1) * (p2 - q2))
    return float(stands.mean()), float(stands.var())


def check_rounds(randomizer: MemoisedRAPPOR, rounds: int, closed: float) -> None:
    """The variance over clients is the closed form within 3 %: by Bernstein's inequality, for squared errors lie in [0, reach^2]."""
    (p1, q1), (p2, q2) = randomizer.odds
    reach = 1 / ((p1 - q1) * (p2 - q2)) ** 2
    n = math.ceil(math.log(2 / ALPHA) * (2 * reach * closed + 2 * reach * 0.03 * closed / 3) / (0.03 * closed) ** 2)
    mean, variance = seen(randomizer, rounds, n)
    assert abs(mean - 0.5) < 6 * math.sqrt(closed / n)
    assert abs(variance / closed - 1) < 0.03, f"variance {variance} for {closed}"


@pytest.mark.parametrize("permanent", KINDS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_rounds_have_the_closed_form_variance(permanent: str, rounds: int) -> None:
    """Simulated clients who answer in several rounds have the variance of two steps, of which the first does not average out; a twin that forgets fails."""
    randomizer = MemoisedRAPPOR(2.0, k=3, permanent=permanent)
    closed = memoised_variance(randomizer.odds, 0.5, rounds)
    check_rounds(randomizer, rounds, closed)
    if rounds == 1:
        assert closed == pytest.approx(rappor_variance(randomizer.odds, 0.5), rel=1e-12)
    else:
        with pytest.raises(AssertionError, match="variance"):
            check_rounds(randomizer, rounds, rappor_variance(randomizer.odds, 0.5) / rounds)


@pytest.mark.parametrize("permanent", KINDS)
def test_the_standard_error_is_the_closed_form(permanent: str) -> None:
    """n standard_error^2 from a tally in proportion is `rappor_variance`, at every share."""
    randomizer = MemoisedRAPPOR(1.0, k=4, permanent=permanent)
    law, n = np.array([0.6, 0.3, 0.1, 0.0]), 1 << 50
    (p1, q1), (p2, q2) = randomizer.odds
    counts = np.rint((q2 + (q1 + law * (p1 - q1)) * (p2 - q2)) * n).astype(np.int64)
    estimate = randomizer.estimate(type(randomizer.empty())(counts, n))
    np.testing.assert_allclose(estimate.value, law, atol=1e-9)
    np.testing.assert_allclose(estimate.standard_error**2 * n, [rappor_variance(randomizer.odds, share) for share in law], rtol=1e-9)
