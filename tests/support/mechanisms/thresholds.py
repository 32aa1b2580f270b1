"""Cases of `local_dp/curator/thresholds` and `local_dp/curator/parity`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.parity.learner import Examples, ParityLearner
from local_dp.curator.thresholds.dyadic import DyadicThresholds, Middles
from local_dp.curator.thresholds.learner import PureThresholds, tuned
from local_dp.curator.thresholds.rectangles import RankQuery
from tests.support.mechanisms.case import PAIRS, Case, Judged, Twin, labelled, points, twin_of


@dataclass(frozen=True)
class Lowered(DyadicThresholds):
    """The mechanism at another H, as an agnostic learner has it: so low that constants weigh
    nothing, and nothing hides what candidates lose."""

    by: int = 10

    def candidates(self, sample: LabelledMultiset, optimum: int) -> Middles:
        return super().candidates(sample, optimum - self.by)


def higher(
    _: object, candidates: Callable[[LabelledMultiset, int], Middles]
) -> Callable[[LabelledMultiset, int], Middles]:
    """A candidate that is about to leave may have any score."""
    return lambda sample, optimum: replace(
        result := candidates(sample, optimum), scores=result.scores + 2
    )


AnyScore = twin_of(Lowered, candidates=higher)
OneInterval = twin_of(Lowered, choice=lambda own, right: replace(right, growth=1))
"""As if a record lay in one interval, not in one of each height."""
OneRankInterval = twin_of(RankQuery, choice=lambda own, right: replace(right, growth=1))
"""As if a point were in one candidate."""


def examples(bits: int) -> list[Any]:
    return [(point, label) for point in range(1 << bits) for label in (0, 1)]


def values(bits: int) -> list[Any]:
    return [(point,) for point in range(1 << bits)]


DYADIC = Twin(OneInterval(3, 0.1, 1.0, 1e-3), 1.3e-3), Twin(AnyScore(3, 0.1, 1.0, 1e-3), 2e-3)


def ranks(bits: int, rank: int, *n: int) -> tuple[Case, Case]:
    """Against a replaced point, and against one more or less."""
    query = RankQuery(bits, rank, 1.0, 0.01)
    add_remove = Judged(query, "add-remove", query.loss)
    steep = replace(query, epsilon=8.0)
    twins = Twin(steep, n=(4,)), Twin(replace(add_remove, of=steep), n=(4,))
    first = Case(query, values(bits), points(bits), n, twins[:1], factor=0)
    return first, Case(add_remove, values(bits), points(bits), n, twins[1:])


RANK = RankQuery(4, 9, 1.0, 1e-3)
ALONE = Judged(RANK, "add-remove", RANK.loss)
QUARTER = Fraction(1, 4)
TWINS = Twin(ParityLearner(2 * QUARTER, 2 * QUARTER)), Twin(ParityLearner(QUARTER, QUARTER / 2))
CASES = (
    Case(
        PureThresholds(0.7), examples(1), labelled(1), (4,), tight=0.45, sample=((0, 0), (1, 1)) * 4
    ),
    Case(PureThresholds(0.7), examples(2), labelled(2), (3,), tight=0.45),
    Case(
        tuned(0.5, 1.0, 0.05),
        examples(1),
        labelled(1),
        (4,),
        (Twin(tuned(0.5, 16.0, 0.05)),),
        sample=((0, 0), (1, 1)) * 15,
    ),
    Case(tuned(0.5, 1.0, 0.05), examples(2), labelled(2), (3,), (Twin(tuned(0.5, 16.0, 0.05)),)),
    Case(DyadicThresholds(2, 0.3, 1.0, 1e-2), PAIRS, labelled(2), sample=((0, 0), (3, 1)) * 8),
    Case(Lowered(1, 0.1, 1.0, 1e-3, by=0), examples(1), labelled(1), (4,)),
    Case(
        Lowered(2, 0.1, 1.0, 1e-3),
        examples(2),
        labelled(2),
        (2, 5),
        (Twin(AnyScore(2, 0.1, 1.0, 1e-3)),),
        tight=0.99,
        factor=0,
    ),
    Case(Lowered(3, 0.1, 1.0, 1e-3), examples(3), labelled(3), (2,), DYADIC, tight=0.99, factor=0),
    *ranks(1, 3, 6),
    *ranks(2, 1, 4),
    *ranks(3, 3, 2),
    Case(
        ALONE,
        values(4),
        points(4),
        (1,),
        (Twin(replace(ALONE, of=OneRankInterval(4, 9, 1.0, 1e-3)), 1.3e-3),),
    ),
    Case(
        ParityLearner(QUARTER, 2 * QUARTER),
        PAIRS,
        lambda pairs: Examples.of(2, pairs),
        (1, 2),
        TWINS,
    ),
    Case(
        ParityLearner(2 * QUARTER, 2 * QUARTER, 2),
        PAIRS,
        lambda pairs: Examples.of(2, pairs),
        (1, 2),
        (Twin(ParityLearner(3 * QUARTER, 2 * QUARTER, 2)),),
    ),
)
