"""Boosting and MWEM query by query: whole transcripts enumerated, exact prices, and what boosting
gets right where the condition of its theorem holds."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from local_dp.accounting.rules import epsilon, optimal_part
from local_dp.arrays import Counts
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.mechanism import (
    SmallDatabases,
    epsilon_of,
    hockey_stick,
    transcripts,
    whole_weights,
    worst_transcripts,
)
from local_dp.curator.query_release.boosting import (
    BadlyAnswered,
    Boosted,
    Boosting,
    BoostingTerms,
    CountedBase,
)
from local_dp.curator.query_release.counting import CountingQueries, table
from local_dp.curator.query_release.mwem import CountingMwem
from local_dp.interaction import Adaptive
from local_dp.loss import Loss, Pure, approximate, exp_epsilon
from tests.support.inputs.refusals import refuse
from tests.support.mechanisms.case import share
from tests.support.runs.scripted import seeded
from tests.support.wrong import wrong

# a record from point 1 to 0: one count rises, three fall
ONE_UP = CountingQueries(np.array([(True, False, False)] + [(False, True, False)] * 3))
TERMS = BoostingTerms(3, 1, 0, 1, 0.25, CountedBase(1.0))


def databases(n: int) -> SmallDatabases[tuple[int], Counts]:
    return SmallDatabases(
        [(0,), (1,), (2,)], n, lambda records: table(np.array([point for (point,) in records]), 3)
    )


def delta(algorithm: Adaptive[Any, Any, Any], loss: Loss) -> Fraction:
    """Of whole transcripts on one record, at the epsilon of the loss."""
    laws = [
        whole_weights(transcripts(algorithm, databases(1).build(((point,),)))) for point in range(3)
    ]
    return max(hockey_stick(*pair, exp_epsilon(loss.nano)) for pair in permutations(laws, 2))


def test_whole_transcripts_are_private() -> None:
    """Three rounds lose less than the sum of all losses, and more than it without the factor t of
    the samples; in delta less than by the exact price."""
    worst = epsilon_of(
        max(worst_transcripts(Boosting(ONE_UP, TERMS, 0.1).algorithm(1, 1), databases(1)).values())
    )
    assert sum(loss.epsilon * count for loss, count in TERMS.losses.items()) == 6
    assert 0.7 * 6 < worst <= 6
    two = Boosting(ONE_UP, replace(TERMS, rounds=2), 0.1)
    assert delta(two.algorithm(1, 1), two.loss) <= two.loss.delta == 0.1
    assert two.loss.epsilon >= epsilon(two.terms.losses, 0.1)


@wrong(
    "local_dp.curator.query_release.mwem:CountingMwem.part",
    "2 * self.rounds",
    "self.rounds",
    "each round's choice is not paid for",
)
def test_mwem_is_private_and_not_at_the_price_of_its_counts() -> None:
    """Whole transcripts of two rounds, against the delta of both choices and both counts; parts for
    the counts alone lose more."""
    mwem = CountingMwem(ONE_UP, 2, 2.0, 0.01)
    assert delta(mwem.algorithm(1), mwem.loss) <= 0.01
    object.__setattr__(mwem, "part", optimal_part(mwem.loss, 2))
    assert delta(mwem.algorithm(1), mwem.loss) > 0.01


def test_one_wild_synopsis_moves_no_answer() -> None:
    assert Boosted(np.array([[3, 90], [4, 5], [-900, 6]])).counts.tolist() == [3, 6]


def test_samples_follow_the_errors() -> None:
    """Weights e^(each times sum min(width, max(0, |answer - count| - margin)) / 2), against the
    formula in floats."""
    database, answers = np.array([3, 1, 0]), np.array([[0, 4, 1, 2], [3, 9, 2, 1]])
    law = share(BadlyAnswered(ONE_UP, answers, 1, 2, 1, 0.5).law(database))
    off = np.abs(answers - ONE_UP.counts(database)) - 1
    weights = np.exp(0.25 * np.clip(off, 0, 2).sum(axis=0))
    assert [float(law[(query,)]) for query in range(4)] == pytest.approx(weights / weights.sum())


def test_the_price_is_exact() -> None:
    """That of k T counts and k (T - 1) samples, which lose t times as much after t synopses: less
    than their sum, and kept to by `within`, just."""
    terms, budget = BoostingTerms(4, 5, 10, 500, 0.5, CountedBase(0.02)), approximate(1.0, 1e-6)
    assert terms.losses == {Pure(20 * 10**6): 20, **{Pure(4 * t * 10**6): 5 for t in (1, 2, 3)}}
    scale = terms.within(budget)
    assert scale.width < terms.width
    assert scale.base.epsilon > terms.base.epsilon
    narrower = replace(scale, width=int(0.98 * scale.width))
    assert 0.99 < epsilon(scale.losses, 1e-6) <= 1 < epsilon(narrower.losses, 1e-6)
    account = Account(budget)
    oracle = TrustedOracle(np.array([50, 40, 10]), account, seeded(1))
    oracle.answer((Boosting(ONE_UP, scale, 1e-6),))
    assert 0.99 < account.spent.epsilon <= 1


def test_bad_input() -> None:
    refuse(
        (
            "number of queries is 10001",
            lambda: Boosting(CountingQueries(np.ones((10_001, 1), dtype=bool)), TERMS, 1e-6),
        ),
        ("delta is 0", lambda: Boosting(ONE_UP, TERMS, 0.0)),
        ("epsilon is 0", lambda: CountedBase(0.0)),
    )
