"""Stable choice, and the tests of the gap that it could be made of."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.acceptance import UNIT, best_acceptance, enough_gap, laplace_acceptance, printed_acceptance
from local_dp.curator.selection.stable import Lead, StableChoice
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, approximate, exp_epsilon
from local_dp.noise import KeyedNoise

LOSSES = [approximate(0.5, 1e-2), approximate(1.0, 1e-3), approximate(2.0, 1e-6), approximate(0.1, 0.05)]


def most_frequent(points: Multiset) -> Lead[int]:
    """Of the points 0, 1 and 2; the lowest of those that tie."""
    counts = np.zeros(3, dtype=np.int64)
    counts[points.values.astype(np.int64)] = points.counts
    best = int(np.argmax(counts))
    return Lead(best, int(counts[best] - np.delete(counts, best).max()))


def multisets(n: int) -> SmallDatabases[tuple[int], Multiset]:
    """All of n records of three values."""
    return SmallDatabases([(0,), (1,), (2,)], n, lambda records: Multiset.of([value for (value,) in records], 2))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_private_on_all_multisets(loss: Approximate) -> None:
    """Over all multisets of three values, m <= 12 and m = 60, and all replacements, the worst delta is at most the one it has, and reached."""
    choice = StableChoice(most_frequent, loss.epsilon, loss.delta)
    worst = [multisets(n).worst_delta(choice) for n in (*range(1, 13), 60)]
    assert Fraction(99, 100) * Fraction(loss.atto, ATTO) < max(worst) <= Fraction(loss.atto, ATTO)


def worst_of(accepted: Callable[[int], float], epsilon: float) -> float:
    """The largest hockey stick over the pairs of gaps that one replacement can make, other leaders included."""
    growth = float(exp_epsilon(round(epsilon * 1e9)))
    pairs = [(accepted(gap), accepted(gap + step)) for gap in range(400) for step in (-2, -1, 0, 1, 2) if gap + step >= 0]
    same = max(max(here - growth * there, (1 - here) - growth * (1 - there)) for here, there in pairs)
    return max(same, *(accepted(gap) for gap in (0, 1, 2)))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_repaired_test_is_tight_and_the_printed_one_is_wrong(loss: Approximate) -> None:
    """Laplace noise of scale 2 / eps has exactly delta; the printed test has more than .2 at eps >= .5, and delta e^(2 eps) / 2 at 2 eps (erratum E1)."""
    assert worst_of(lambda gap: laplace_acceptance(gap, loss), loss.epsilon) == pytest.approx(loss.delta, abs=1e-12)
    if loss.epsilon >= 0.5:
        assert worst_of(lambda gap: printed_acceptance(gap, loss), loss.epsilon) > 0.2
    twice = loss.delta * np.exp(2 * loss.epsilon) / 2
    assert worst_of(lambda gap: printed_acceptance(gap, loss), 2 * loss.epsilon) == pytest.approx(twice, rel=1e-6)


def test_golden_acceptances() -> None:
    """Of the printed and of the repaired test, at (gap, epsilon, delta)."""
    golden = {(0, 1, 0.01): (0.005, 0.00367879441171), (5, 1, 0.01): (0.663102650046, 0.0448168907034), (30, 0.5, 0.001): (0.99984704884, 0.772029508611)}
    for (gap, epsilon, delta), (printed, repaired) in golden.items():
        loss = approximate(epsilon, delta)
        assert printed_acceptance(gap, loss) == pytest.approx(printed, abs=1e-12)
        assert laplace_acceptance(gap, loss) == pytest.approx(repaired, abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_no_test_of_the_gap_answers_more(loss: Approximate) -> None:
    """One unit more at any gap, and some pair of gaps that are two apart has more than delta; the repaired Laplace test answers less at every gap."""
    accepted, growth, spare = best_acceptance(loss), exp_epsilon(loss.nano), Fraction(loss.atto * UNIT, ATTO)
    assert accepted[-1] == UNIT
    for gap in range(3, len(accepted)):
        before, more = accepted[gap - 2], min(accepted[gap] + 1, UNIT)
        assert more == accepted[gap] or more > growth * before + spare or UNIT - before > growth * (UNIT - more) + spare
    assert all(share / UNIT >= laplace_acceptance(gap, loss) - 1e-12 for gap, share in enumerate(accepted))


def least_records(accepted: Callable[[int], float]) -> int:
    """The least m with which a point of probability .1 is told 9 times of 10, its lead being its count."""
    for m in range(1, 1000):
        counts = np.arange(m + 1)
        if float(binom.pmf(counts, m, 0.1) @ np.array([accepted(int(count)) for count in counts])) >= 0.9:
            return m
    raise AssertionError("no m below 1,000 is enough")


@pytest.mark.parametrize(("delta", "best", "repaired"), [(1e-6, 345, 363), (1e-3, 192, 209)])
def test_records_for_a_point(delta: float, best: int, repaired: int) -> None:
    """Exact sums: 345 and 192 records at epsilon 1, in a domain of any size; by Laplace noise 363 and 209."""
    choice, loss = StableChoice(most_frequent, 1.0, delta), approximate(1.0, delta)
    assert least_records(lambda gap: choice.answered(gap) / UNIT) == pytest.approx(best, abs=1)
    assert least_records(lambda gap: laplace_acceptance(gap, loss)) == pytest.approx(repaired, abs=1)


def test_the_code_draws_from_its_law() -> None:
    """2,000 draws at a gap that is answered half the time; the number of answers is within 4.9 standard errors (failure 1e-6)."""
    choice, draws = StableChoice(most_frequent, 1.0, 1e-2), Draws(KeyedNoise(3))
    points = Multiset.of([0] * 10 + [1] * 3, 2)
    law = choice.law(points)
    share = law[0] / sum(law.values())
    assert 0.2 < share < 0.8
    drawn = Counter(choice.release(points, draws) for _ in range(2000))
    assert set(drawn) == {0, None}
    assert abs(drawn[0] - 2000 * share) < 4.9 * (2000 * share * (1 - share)) ** 0.5


def test_the_only_candidate_is_told() -> None:
    choice: StableChoice[int, str] = StableChoice(lambda database: Lead("only", None), 1.0, 1e-6)
    assert choice.release(0, Draws(KeyedNoise(0))) == "only"


def test_bad_input_gets_a_line() -> None:
    for epsilon, delta, said in ((0.0, 1e-6, "epsilon is 0"), (1.0, 0.0, "delta is 0"), (1.0, 1.0, "delta is 1")):
        with pytest.raises(InputError, match=said):
            StableChoice(most_frequent, epsilon, delta)
    with pytest.raises(InputError, match="whole numbers"):
        Lead(0, -1)
    assert enough_gap(approximate(1, 1e-6), 0.9) == 31


@pytest.mark.long
def test_a_test_without_an_end_gets_a_line() -> None:
    """Found out after seconds: at the least epsilon and delta no gap of a size that can be listed is answered for certain."""
    with pytest.raises(InputError, match=r"too|larger"):
        StableChoice(most_frequent, 1e-9, 1e-18)
