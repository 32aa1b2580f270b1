"""The cross-check of a law with the thing itself, and the search for the least number of clients; each with the ways in which it fails."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints
from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.errors import InputError
from local_dp.experiments.lab.checks import alike
from local_dp.experiments.lab.claim import ALPHA
from local_dp.experiments.lab.coverage.cases import SuccessCurve, all_right
from local_dp.experiments.lab.cross_check import Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.minimal_clients import exact_recovery, minimal_clients
from local_dp.experiments.lab.statistics import Rate
from local_dp.interaction import Nonadaptive
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.finite import Finite, Population, bernoulli
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Tally

N = 400


def majority(start: int = 0, stop: int = N, epsilon: float = 1.0) -> Nonadaptive[LocalQuery, Tally, bool]:
    """Whether most clients would say yes."""
    randomizer = BinaryRR(epsilon)
    return Nonadaptive((LocalQuery(Question("yes == 1"), randomizer, Cohort(start, stop)),), lambda tallies: bool(randomizer.estimate(tallies[0]).value > 0.5))


def people(seed: int) -> Finite:
    return bernoulli("yes", 0.56, N, seed)


def right(result: bool, population: Population) -> bool:
    return result


def shown(algorithm: Nonadaptive[LocalQuery, Tally, bool], population: object = people, least: float = 0.8) -> tuple[bool, str]:
    trial = Trial(algorithm, population, right, N, 1.0)  # type: ignore[arg-type]
    check = cross_check_shown("majority", cross_check(lambda: trial, 1), least)
    return check.shown, check.evidence


def test_a_right_program_is_shown_with_both_figures() -> None:
    """Both rates, whom it asked and its exact loss are the evidence, and one seed gives one measurement."""
    good, evidence = shown(majority())
    assert good
    assert all(words in evidence for words in ("client by client", "from the law", "asked 400 of 400", "loss 1.000000"))
    trial = Trial(majority(), people, right, N, 1.0)
    assert cross_check(lambda: trial, 5, users=50, laws=50) == cross_check(lambda: trial, 5, users=50, laws=50)


class _Doubled(BinaryRR):
    """Twin: answers at twice the epsilon that it is charged."""

    def respond(self, values: Ints, words: Ints, cells: Ints) -> Ints:  # type: ignore[override]
        return BinaryRR(2 * self.epsilon).respond(values, words, cells)  # type: ignore[arg-type]


def test_wrong_programs_are_not_shown() -> None:
    """A decoder that always says no, cohorts one short or one beyond, a cohort asked twice, and twice the epsilon each fail."""
    assert not shown(Nonadaptive(majority().queries, lambda tallies: False))[0]
    assert "asked 399 of 400" in shown(majority(stop=N - 1))[1]
    assert not shown(majority(stop=N - 1))[0]
    assert not shown(majority(1, N + 1))[0]
    assert shown(majority(epsilon=2.0))[1].startswith("refused: ")
    assert not shown(majority(epsilon=2.0))[0]


def test_a_channel_or_a_law_that_differs_is_not_shown() -> None:
    """Reports at twice the epsilon charged, or records that do not follow the law, part the two rates."""

    def doubled() -> Nonadaptive[LocalQuery, Tally, bool]:
        (query,) = majority().queries
        return Nonadaptive((LocalQuery(query.query, _Doubled(1.0), query.cohort),), majority().decode)

    class Lying(Finite):
        def law(self, query: Query) -> Floats:
            return super().law(query)[::-1]

    assert not shown(doubled(), least=0.0)[0]
    assert not shown(majority(), lambda seed: Lying(people(seed).kinds, [0.44, 0.56], N, seed), least=0.0)[0]


@pytest.mark.parametrize(("first", "second", "same"), [((360, 400), (1440, 1600), True), ((360, 400), (1250, 1600), False), ((0, 400), (0, 1600), True)])
def test_rates_are_compared(first: tuple[int, int], second: tuple[int, int], same: bool) -> None:
    """Equal rates agree, ones 12 points apart do not, and rates of 0 are no trouble."""
    assert alike(Rate(*first), Rate(*second), ALPHA)[0] == same


@pytest.mark.parametrize("guess", [20, 1_640, 300_000])
def test_search_finds_a_known_count_from_any_guess(guess: int) -> None:
    """From guesses 80 times too low and 180 times too high the answer is within 12 % of the truth: 4.9 standard errors, failure probability 1e-6 each."""
    curve = all_right(1)
    found = minimal_clients(curve.drawn(np.random.default_rng(1)), guess, trials=20_000)
    assert found.n == pytest.approx(curve.truth, rel=0.12)


def coverage(curve: SuccessCurve, truth: float, trials: int, repetitions: int) -> tuple[int, float]:
    """How many of the intervals hold the truth, and the mean of n / truth - 1."""
    drawn = [curve.drawn(np.random.default_rng(seed)) for seed in range(repetitions)]
    runs = [minimal_clients(successes, round(0.7 * truth), trials=trials) for successes in drawn]
    return sum(found.low <= truth <= found.high for found in runs), float(np.mean([found.n / truth for found in runs])) - 1


@pytest.mark.parametrize("decisions", [1, pytest.param(20, marks=pytest.mark.long), pytest.param(65, marks=pytest.mark.long)])
def test_intervals_cover(decisions: int) -> None:
    """Of 400 intervals at least 355 cover the truth (Pr[Binomial(400, .95) < 355] < 1e-6) and the bias is below 2 %; nine tenths of them, wrong twins, fail."""
    curve = all_right(decisions)
    covered, bias = coverage(curve, curve.truth, 2500, 400)
    assert covered >= 355
    assert abs(bias) < 0.02
    shifted, _ = coverage(curve, 1.1 * curve.truth if decisions > 1 else 1.35 * curve.truth, 2500, 100)
    assert shifted < 89


def test_ends_follow_the_count_and_the_runs() -> None:
    """Of about 20 clients the ends are given to a tenth; sixteen times the runs give about a quarter of the interval."""
    generator = np.random.default_rng(6)
    found = minimal_clients(lambda n, runs: int(generator.binomial(runs, 1 - normal_tail(math.sqrt(n / 12)))), 20, trials=40_000)
    assert found.low < 12 * normal_quantile(0.1) ** 2 < found.high
    assert {found.low, found.high} != {round(found.low), round(found.high)}
    assert found.high - found.low < 2
    few, many = (minimal_clients(all_right(1).drawn(np.random.default_rng(3)), 1600, trials=trials) for trials in (2_000, 32_000))
    assert (many.high - many.low) < 0.4 * (few.high - few.low)
    assert many.trials >= 32_000


def test_flat_success_is_refused() -> None:
    with pytest.raises(InputError, match="does not reach"):
        minimal_clients(lambda n, runs: runs // 2, 100, trials=200)
    with pytest.raises(InputError, match="guess"):
        minimal_clients(lambda n, runs: runs, 1)


def test_recovery_counts_exact_concepts() -> None:
    """`exact_recovery` counts runs that find the concept: all with plenty of clients, about 2^-5 with hardly any, reproducibly."""
    protocol = MaskedParityLearner(d=4)
    assert exact_recovery(protocol, 1.0, 5)(20_000, 40) == 40
    assert exact_recovery(protocol, 1.0, 5)(4, 200) < 40
    assert exact_recovery(protocol, 1.0, 6)(1000, 100) == exact_recovery(protocol, 1.0, 6)(1000, 100)
