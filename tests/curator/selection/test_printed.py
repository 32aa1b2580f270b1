"""The choosing mechanism as printed, and the number of records that its privacy hangs on."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from local_dp.curator.laws import hockey_stick
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.groups import Listed
from local_dp.curator.selection.sparse import Goals, PrintedChoice, PrintedChoosing
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.noise import KeyedNoise
from tests.support.theory.fits import p_value

WASTED = 3  # a point that is no candidate: large databases of low scores


def frequent(points: Multiset) -> Listed:
    """The points 0, 1 and 2 that occur, by how often."""
    left = points.values < WASTED
    return Listed(points.counts[left], points.values[left])


@dataclass(frozen=True)
class Unchecked(PrintedChoice):
    """A wrong twin: it answers at every number of records."""

    @property
    def least(self) -> int:
        return 0


def counted(counts: tuple[int, ...], m: int) -> Multiset:
    """So many records of each of the points 0, 1 and 2, and of the wasted one to make m."""
    every = np.array([*counts, m - sum(counts)])
    return Multiset(2, np.flatnonzero(every).astype(np.uint64), every[every > 0])


SMALL = PrintedChoosing(frequent, Unchecked(1.0, 1e-3, Goals(1.0, 0.3)))


def worst(m: int) -> float:
    """The largest hockey stick over all counts of two candidates whose sum is at most m, wasted records making up the rest, and all replacements."""
    growth = exp_epsilon(SMALL.loss.nano)
    near = [*range(4), *range(m // 2 - 4, m // 2 + 6), *range(m - 3, m + 1)]  # the test's threshold, and the ends
    pairs = [(a, b) for a in near for b in (0, 1, 2, 5) if a + b <= m]
    laws = {(a, b): SMALL.law(counted((a, b, 0), m)) for x, y in pairs for a, b in _moved(x, y, m)}
    return max(float(hockey_stick(laws[pair], laws[other], growth)) for pair in pairs for other in _moved(*pair, m))


def _moved(a: int, b: int, m: int) -> list[tuple[int, int]]:
    """The counts after a replacement, and before it."""
    steps = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, -1), (-1, 1)]
    return [(a + x, b + y) for x, y in steps if min(a + x, b + y) >= 0 and a + b + x + y <= m]


@pytest.mark.parametrize(
    ("counts", "golden"),
    [
        ((30, 25, 1), {0: 0.767735886503, 1: 0.219960014205, 2: 0.00054522636399, None: 0.011758872928}),
        ((6, 5, 1), {0: 0.0255166173921, 1: 0.0198723616063, 2: 0.00731063328249, None: 0.947300387719}),
    ],
)
def test_golden_law(counts: tuple[int, ...], golden: dict[int | None, float]) -> None:
    """60 records, alpha 1/2, epsilon 1: to nine digits (its base is a fraction of 40 bits)."""
    law = Unchecked(1.0, 1e-3, Goals(0.5, 0.3)).law(frequent(counted(counts, 60)), 60)
    assert {outcome: weight / sum(law.values()) for outcome, weight in law.items()} == pytest.approx(golden, rel=1e-9)


def test_its_size_is_a_condition_of_privacy() -> None:
    """From the 175 records it asks for 2.0e-10 where delta is 1e-3; at a quarter of them 3.0e-3, which is not private."""
    assert PrintedChoosing(frequent, PrintedChoice(1.0, 1e-3, Goals(1.0, 0.3))).choice.least == 175
    assert worst(175) == pytest.approx(2.0e-10, rel=0.05)
    assert worst(43) == pytest.approx(3.0e-3, rel=0.02)


def test_fewer_records_are_refused() -> None:
    """With the number that would do, whatever they hold; release and law alike."""
    choice = PrintedChoosing(frequent, PrintedChoice(1.0, 1e-3, Goals(1.0, 0.3)))
    for refused in (lambda: choice.law(counted((9, 9, 9), 174)), lambda: choice.release(counted((9, 9, 9), 174), Draws(KeyedNoise(0)))):
        with pytest.raises(InputError, match=r"174 records.*private only from 175"):
            refused()
    assert PrintedChoosing(frequent, PrintedChoice(1.0, 1e-6, Goals(0.1, 0.1))).choice.least == 3391


def test_releases_fit_the_law() -> None:
    """1,500 draws at 175 records fit (chi-squared, failure 1e-6); not the law of two records less."""
    choice, draws = PrintedChoosing(frequent, PrintedChoice(1.0, 1e-3, Goals(1.0, 0.3))), Draws(KeyedNoise(7))
    points, other = (counted((best, 84, 0), 175) for best in (88, 86))
    drawn = Counter(choice.release(points, draws) for _ in range(1500))
    assert p_value(drawn, choice.law(points)) > 1e-6 > p_value(drawn, choice.law(other))


def test_nothing_to_choose_is_no_answer() -> None:
    """Erratum E14: whatever the noise."""
    choice = PrintedChoosing(frequent, PrintedChoice(1.0, 1e-3, Goals(1.0, 0.3)))
    assert choice.law(counted((0, 0, 0), 200)) == {None: 1}
    assert choice.release(counted((0, 0, 0), 200), Draws(KeyedNoise(0))) is None
