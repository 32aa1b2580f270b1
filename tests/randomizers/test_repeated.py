"""Memoised answers: all reports of a life enumerated, words that last and words that do not, and closed-form variances."""

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from local_dp.bounds.longitudinal import first_flip, rappor_variance
from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, respond
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.local.sessions import Spoken
from local_dp.populations.table import Rows
from local_dp.queries.tables import Question
from local_dp.randomizers.evidence import exact_epsilon, exact_ratio
from local_dp.randomizers.repeated.memoised import MemoisedGRR, MemoisedRAPPOR, memoised_variance
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.long import short

ALPHA = 1e-6  # failure probability of each statistical check
Memoised = MemoisedGRR | MemoisedRAPPOR
Law = dict[tuple[int, ...], Fraction]
LIVES: list[tuple[Memoised, int]] = [
    *((MemoisedGRR(1.0, k=k, first=0.6), rounds) for k in (2, 4) for rounds in (1, 4)),
    *((MemoisedRAPPOR(1.0, k=k, first=0.6, permanent=kind), rounds) for kind in ("oue", "sue") for k, rounds in ((2, 1), (2, 4), (3, 2))),
]


def life(randomizer: Memoised, value: int, rounds: int) -> Law:
    """The law of so many reports under one label, in fractions: the first step is made once."""
    k, part, law = randomizer.k, randomizer.part, Law()
    if isinstance(randomizer, MemoisedGRR):
        steps = [[Fraction(part - (k - 1) * other, part), Fraction(other, part)] for other in randomizer.others]
        for reports in itertools.product(range(k), repeat=rounds):
            each = [math.prod((steps[1][report != lasting] for report in reports), start=Fraction(1)) for lasting in range(k)]
            law[reports] = sum((steps[0][lasting != value] * chance for lasting, chance in enumerate(each)), Fraction(0))
        return law
    law, flip = {(): Fraction(1)}, Fraction(randomizer.flip, part)
    for place in range(k):
        one, chances = Fraction(randomizer.lasting.ones[place == value], part), Law()
        for bits in itertools.product((0, 1), repeat=rounds):
            each = [math.prod((flip if bit != lasting else 1 - flip for bit in bits), start=Fraction(1)) for lasting in (0, 1)]
            chances[bits] = (1 - one) * each[0] + one * each[1]
        law = {before + bits: share * chance for before, share in law.items() for bits, chance in chances.items()}
    return law


@pytest.mark.parametrize(("randomizer", "rounds"), LIVES, ids=lambda each: repr(each)[:70])
def test_the_loss_of_a_life_is_exact(randomizer: Memoised, rounds: int) -> None:
    """Over all sequences of reports the worst ratio is `loss_after`; it never exceeds epsilon, and one report alone keeps its share of it."""
    laws = [life(randomizer, value, rounds) for value in range(randomizer.k)]
    assert all(sum(law.values()) == 1 for law in laws)
    worst = max(max(law[reports] for law in laws) / min(law[reports] for law in laws) for reports in laws[0])
    assert worst <= exp_epsilon(1_000_000_000)
    assert math.log(worst) == pytest.approx(randomizer.loss_after(rounds), abs=1e-9)
    assert exact_epsilon(randomizer) == pytest.approx(0.6, abs=1e-6) == randomizer.loss_after(1)


@pytest.mark.parametrize("randomizer", [MemoisedGRR(2.0, k=5, first=0.3), MemoisedRAPPOR(2.0, k=5, first=0.3), MemoisedRAPPOR(2.0, first=0.3, permanent="sue")])
def test_a_life_comes_to_epsilon(randomizer: Memoised) -> None:
    """The loss of m reports rises with m up to that of the lasting answer, which is epsilon."""
    losses = [randomizer.loss_after(rounds) for rounds in (1, 2, 5, 20, 100, 1000)]
    assert losses == sorted(losses)
    assert losses[0] == pytest.approx(0.6, abs=1e-6)
    assert losses[-1] == pytest.approx(2.0, abs=1e-6)
    if isinstance(randomizer, MemoisedRAPPOR):
        assert exact_ratio(randomizer.lasting) <= exp_epsilon(2_000_000_000)
    else:
        assert max(losses) <= 2.0


@pytest.mark.parametrize("first", [0.3, 0.5, 0.9])
def test_the_second_step_is_the_closed_form(first: float) -> None:
    """With two symmetric steps on two places the flips are those of half of both losses, by hyperbolic tangents."""
    (kept, _), (again, flip) = MemoisedRAPPOR(2.0, first=first, permanent="sue").odds
    assert (1 - kept, flip) == pytest.approx(first_flip(1.0, first), abs=1e-8)
    assert kept * again + (1 - kept) * flip == pytest.approx(1 / (1 + math.exp(-first)), abs=1e-8)


@pytest.mark.parametrize("noise", [KeyedNoise(4), SystemNoise()], ids=["keyed", "system"])
@pytest.mark.parametrize("randomizer", [MemoisedGRR(1.0, k=3), MemoisedGRR(1.0, k=3, word_bits=12), MemoisedRAPPOR(1.0, k=3)], ids=repr)
def test_half_of_a_word_lasts_under_a_label(noise: Noise, randomizer: Memoised) -> None:
    """Asked again under a label, the first step has the same words and the second others, in any range; without one, all are fresh."""
    n, half = 4000, randomizer.word_bits // 2
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


def test_labels_do_not_share_a_first_step() -> None:
    """Two labels are two questions: their first steps have words of their own, in one round and in another."""
    randomizer = MemoisedGRR(1.0, k=3)
    one, other = (randomizer.draw(KeyedNoise(4), Draw(1, 0, label), 0, 1000) >> 32 for label in ("diary", "survey"))
    assert (one != other).mean() > 0.99


@pytest.mark.parametrize("randomizer", [MemoisedGRR(1.0, first=0.9), MemoisedRAPPOR(1.0)], ids=lambda each: each.name)
def test_a_client_pays_once_for_fresh_reports(randomizer: Memoised) -> None:
    """In the population, and so on every client, asks under one label cost epsilon together, and their reports differ; another label costs more."""
    n = 4000
    ask = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n), "diary")
    oracle = PopulationOracle(Rows(Records({"yes": np.arange(n) % 2})), KeyedNoise(6), 6, 1.0)
    first, second = oracle.answer((ask, ask))
    (later,) = oracle.answer((ask,))
    assert len({str(tally.counts.tolist()) for tally in (first, second, later)}) == 3
    assert oracle.ledger.max_spent == 1.0
    with pytest.raises(RefusedError, match="budget"):
        oracle.answer((replace(ask, memo="other"),))


def test_reports_of_a_life_agree_as_one_first_step_makes_them() -> None:
    """Two reports of a client agree as often as given one first step, and far more often than given two."""
    n, randomizer = 4000, MemoisedGRR(1.0, first=0.9)
    ask, records = LocalQuery(Question("yes == 1"), randomizer, Cohort(0, n), "diary"), Records({"yes": np.arange(n) % 2})
    reports = [respond(ask, records, 0, KeyedNoise(6), Draw(round, 0, "diary"), b"", Spoken(), 0) for round in (1, 2)]
    (p1, q1), (p2, q2) = randomizer.odds
    agree, reach = p2**2 + q2**2, math.sqrt(n * math.log(2 / ALPHA) / 2)  # Hoeffding
    assert abs((reports[0] == reports[1]).sum() - n * agree) < reach
    seen = p1 * p2 + q1 * q2
    assert n * (agree - seen**2 - (1 - seen) ** 2) > reach


@dataclass(frozen=True, kw_only=True)
class Forgetful(MemoisedGRR):
    """Makes both steps anew each time: no more than one report in all could be paid with epsilon."""

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> np.ndarray:
        return super().draw(noise, Draw(which.round, which.ask), start, stop)


def check_rounds(randomizer: Memoised, rounds: int, closed: float) -> None:
    """The variance over clients of the average over rounds is the closed form within 3 %, and the mean the share, for symbol 0, which half
    hold. By Bernstein's inequality the number of clients is enough except with probability ALPHA: squared errors lie in [0, reach^2]."""
    (p1, q1), (p2, q2) = randomizer.odds
    reach = 1 / ((p1 - q1) * (p2 - q2)) ** 2
    n = math.ceil(math.log(2 / ALPHA) * (2 * reach * closed + 2 * reach * 0.03 * closed / 3) / (0.03 * closed) ** 2)
    values, sums = (np.arange(n) % 2).astype(np.int64), np.zeros(n)
    for round in range(rounds):
        words = randomizer.draw(KeyedNoise(12), Draw(round + 1, 0, "diary"), 0, n)
        reports = randomizer.respond(values, words, np.zeros(1, dtype=np.uint8))
        sums += reports == 0 if isinstance(randomizer, MemoisedGRR) else reports[:, 0] & 1
    estimates = (sums / rounds - q2 - q1 * (p2 - q2)) / ((p1 - q1) * (p2 - q2))
    assert abs(estimates.mean() - 0.5) < 6 * math.sqrt(closed / n)
    assert abs(estimates.var() / closed - 1) < 0.03, f"variance {estimates.var()} for {closed}"


@pytest.mark.parametrize("randomizer", [MemoisedGRR(1.0, k=3), MemoisedRAPPOR(2.0, k=3), MemoisedRAPPOR(2.0, k=3, permanent="sue")], ids=repr)
@pytest.mark.parametrize("rounds", short([1, 2, 5], lambda rounds: rounds == 2))
def test_rounds_have_the_closed_form_variance(randomizer: Memoised, rounds: int) -> None:
    """Simulated clients who answer in several rounds have the variance of two steps, of which the first does not average out."""
    check_rounds(randomizer, rounds, memoised_variance(randomizer.odds, 0.5, rounds))


def test_a_forgetful_twin_shows() -> None:
    """A sampler that does not memoise has a variance that falls with the rounds, and fails the comparison."""
    twin = Forgetful(1.0, k=3)
    with pytest.raises(AssertionError, match="variance"):
        check_rounds(twin, 5, memoised_variance(twin.odds, 0.5, 5))


@pytest.mark.parametrize("randomizer", [MemoisedGRR(1.0, k=4), MemoisedRAPPOR(1.0, k=4), MemoisedRAPPOR(1.0, k=4, permanent="sue")], ids=repr)
def test_the_standard_error_is_the_closed_form(randomizer: Memoised) -> None:
    """n standard_error^2 from a tally in proportion is `memoised_variance` of one round, that of RAPPOR too, at every share."""
    law, n = np.array([0.6, 0.3, 0.1, 0.0]), 1 << 50
    (p1, q1), (p2, q2) = randomizer.odds
    counts = np.rint((q2 + (q1 + law * (p1 - q1)) * (p2 - q2)) * n).astype(np.int64)
    tally = Tally(counts[None, :]) if isinstance(randomizer, MemoisedGRR) else Tally(counts, n)
    estimate, closed = randomizer.estimate(tally), [memoised_variance(randomizer.odds, share) for share in law]
    np.testing.assert_allclose(estimate.value, law, atol=1e-9)
    np.testing.assert_allclose(estimate.standard_error**2 * tally.n, closed, rtol=1e-9)
    np.testing.assert_allclose(closed, [rappor_variance(randomizer.odds, share) for share in law], rtol=1e-9)
