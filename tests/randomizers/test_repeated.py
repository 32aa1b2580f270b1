"""Memoised answers: all reports of a life enumerated, words that last and words that do not, and closed-form variances."""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, respond
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.local.sessions import Spoken
from local_dp.populations.table import Rows
from local_dp.queries.tables import Question
from local_dp.randomizers.evidence import exact_epsilon
from local_dp.randomizers.repeated.memoised import MemoisedGRR, memoised_variance
from local_dp.records import Records

ALPHA = 1e-6  # failure probability of each statistical check


def joint(randomizer: MemoisedGRR, value: int, rounds: int) -> dict[tuple[int, ...], Fraction]:
    """The law of so many reports under one label, in fractions: the first step is made once."""
    law: dict[tuple[int, ...], Fraction] = {}
    k, part = randomizer.k, randomizer.part
    steps = [[Fraction(part - (k - 1) * other, part), Fraction(other, part)] for other in randomizer.others]
    for reports in itertools.product(range(k), repeat=rounds):
        given = [math.prod((steps[1][report != lasting] for report in reports), start=Fraction(1)) for lasting in range(k)]
        law[reports] = sum((steps[0][lasting != value] * each for lasting, each in enumerate(given)), Fraction(0))
    return law


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_the_loss_of_a_life_is_exact(k: int, rounds: int) -> None:
    """Over all sequences of reports the worst ratio is `loss_after`; it never exceeds epsilon, and one report alone keeps its share of it."""
    randomizer = MemoisedGRR(1.0, k=k, first=0.6)
    laws = [joint(randomizer, value, rounds) for value in range(k)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(max(law[reports] for law in laws) / min(law[reports] for law in laws) for reports in laws[0])
    assert worst <= exp_epsilon(1_000_000_000)
    assert math.log(worst) == pytest.approx(randomizer.loss_after(rounds), abs=1e-9)
    assert exact_epsilon(randomizer) == pytest.approx(0.6, abs=1e-6) == randomizer.loss_after(1)


def test_a_life_comes_to_epsilon() -> None:
    """What m reports tell rises with m, and comes to epsilon, as much as is paid, and no further."""
    randomizer = MemoisedGRR(2.0, k=5, first=0.3)
    losses = [randomizer.loss_after(rounds) for rounds in (1, 2, 5, 20, 100, 1000)]
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(0.6, abs=1e-6)
    assert losses[-1] == pytest.approx(2.0, abs=1e-6)
    assert max(losses) <= 2.0


@pytest.mark.parametrize("noise", [KeyedNoise(4), SystemNoise()], ids=["keyed", "system"])
@pytest.mark.parametrize("bits", [0, 12])
def test_half_of_a_word_lasts_under_a_label(noise: Noise, bits: int) -> None:
    """Asked again under a label, the first step has the same words and the second others, whoever is asked with whom; without one, all are fresh."""
    randomizer, n = MemoisedGRR(1.0, k=3, word_bits=bits), 4000
    half = randomizer.word_bits // 2
    one, two = (randomizer.draw(noise, Draw(round, 0, "diary"), 0, n) for round in (1, 2))
    assert one.dtype == f"u{randomizer.width // 8}"
    assert (one >> half == two >> half).all()
    assert (one % (1 << half) != two % (1 << half)).mean() > 0.9
    assert len(np.unique(one >> half)) >= min(n, 1 << half) * 0.9
    later = randomizer.draw(noise, Draw(3, 0, "diary"), n // 2, n)
    assert (later >> half == (one >> half)[n // 2 :]).all()
    alone = [randomizer.draw(noise, Draw(round), 0, n) for round in (1, 2)]
    assert (alone[0] >> half != alone[1] >> half).mean() > 0.9
    assert (alone[0] >> half != one >> half).mean() > 0.9


def test_labels_do_not_share_a_first_step() -> None:
    """Two labels are two questions: their first steps have words of their own, in one round and in another."""
    randomizer = MemoisedGRR(1.0, k=3)
    one, other = (randomizer.draw(KeyedNoise(4), Draw(1, 0, label), 0, 1000) >> 32 for label in ("diary", "survey"))
    assert (one != other).mean() > 0.99


def test_a_client_pays_once_for_fresh_reports() -> None:
    """In the population, and so on every client, two rounds under one label cost epsilon together; the reports differ, and far less than two first steps."""
    n, randomizer = 4000, MemoisedGRR(1.0, first=0.9)
    population = Rows(Records({"yes": np.arange(n) % 2}))
    ask = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n), "diary")
    oracle = PopulationOracle(population, KeyedNoise(6), 6, 1.0)
    one, two = (oracle.answer((ask,))[0] for _ in range(2))
    assert one.counts.tolist() != two.counts.tolist()
    with pytest.raises(RefusedError, match="budget"):
        oracle.answer((replace(ask, memo="other"),))
    reports = [respond(ask, population.batch(0, n), 0, KeyedNoise(6), Draw(round, 0, "diary"), b"", Spoken(), 0) for round in (1, 2)]
    (p1, q1), (p2, q2) = randomizer.odds
    agree = p2**2 + q2**2  # given one first step; of two they would agree as often as l^2 + (1 - l)^2
    reach = math.sqrt(n * math.log(2 / ALPHA) / 2)  # Hoeffding
    assert abs((reports[0] == reports[1]).sum() - n * agree) < reach
    seen = p1 * p2 + q1 * q2
    assert n * (agree - seen**2 - (1 - seen) ** 2) > reach


@dataclass(frozen=True, kw_only=True)
class Forgetful(MemoisedGRR):
    """Makes both steps anew each time: no more than one report in all could be paid with epsilon."""

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        return super().draw(noise, Draw(which.round, which.ask), start, stop)


def average(randomizer: MemoisedGRR, values: Ints, rounds: int) -> tuple[float, float]:
    """The mean and the variance of what a client's reports stand for on average over the rounds, for symbol 0."""
    (p1, q1), (p2, q2) = randomizer.odds
    other = q2 + q1 * (p2 - q2)
    stands = np.zeros(len(values))
    for round in range(rounds):
        words = randomizer.draw(KeyedNoise(12), Draw(round + 1, 0, "diary"), 0, len(values))
        stands += (randomizer.respond(values, words, np.zeros(1, dtype=np.uint8)) == 0) / rounds
    stands = (stands - other) / ((p1 - q1) * (p2 - q2))
    return float(stands.mean()), float(stands.var())


def clients_for(randomizer: MemoisedGRR, share: float) -> int:
    """So many that the empirical variance is within 3 % but with probability ALPHA, by Bernstein's inequality: squared errors lie in [0, reach^2]."""
    (p1, q1), (p2, q2) = randomizer.odds
    reach, least = 1 / ((p1 - q1) * (p2 - q2)) ** 2, memoised_variance(randomizer.odds, share, 5)
    return math.ceil(math.log(2 / ALPHA) * (2 * reach * least + 2 * reach * 0.03 * least / 3) / (0.03 * least) ** 2)


def check_rounds(randomizer: MemoisedGRR, rounds: int) -> None:
    """The variance over clients of the average over rounds is the closed form within 3 %, and the mean the share."""
    n = max(400_000, clients_for(randomizer, 0.5))
    values = (np.arange(n) % 2).astype(np.int64)  # half hold symbol 0
    mean, variance = average(randomizer, values, rounds)
    closed = memoised_variance(randomizer.odds, 0.5, rounds)
    assert abs(mean - 0.5) < 6 * math.sqrt(closed / n)
    assert abs(variance / closed - 1) < 0.03, f"variance {variance} for {closed}"


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_rounds_have_the_closed_form_variance(rounds: int) -> None:
    """Simulated clients who answer in several rounds have the variance of two steps, of which the first does not average out."""
    check_rounds(MemoisedGRR(1.0, k=3), rounds)


def test_a_forgetful_twin_shows() -> None:
    """A sampler that does not memoise has a variance that falls with the rounds, and fails the comparison."""
    with pytest.raises(AssertionError, match="variance"):
        check_rounds(Forgetful(1.0, k=3), 5)


def test_the_standard_error_is_the_closed_form() -> None:
    """n standard_error^2 from a tally in proportion is `memoised_variance` of one round, at every share."""
    randomizer = MemoisedGRR(1.0, k=4)
    law = np.array([0.6, 0.3, 0.1, 0.0])
    (p1, q1), (p2, q2) = randomizer.odds
    seen = q2 + (q1 + law * (p1 - q1)) * (p2 - q2)
    counts = np.rint(seen * 2.0**50).astype(np.int64)[None, :]
    estimate = randomizer.estimate(type(randomizer.empty())(counts))
    np.testing.assert_allclose(estimate.value, law, atol=1e-9)
    np.testing.assert_allclose(estimate.standard_error**2 * counts.sum(), [memoised_variance(randomizer.odds, share) for share in law], rtol=1e-9)
