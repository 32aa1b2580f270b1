"""Boosting and MWEM query by query: whole transcripts enumerated, exact prices, and what boosting
gets right where the condition of its theorem holds."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np

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
    Boosting,
    BoostingTerms,
    CountedBase,
)
from local_dp.curator.query_release.counting import CountingQueries, table
from local_dp.curator.query_release.mwem import CountingMwem
from local_dp.loss import Pure, approximate, exp_epsilon
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import seeded

# a record from point 1 to 0: one count rises, three fall
ONE_UP = CountingQueries(np.array([(True, False, False)] + [(False, True, False)] * 3))
TERMS = BoostingTerms(3, 1, 0, 1, 0.25, CountedBase(1.0))


def databases(n: int) -> SmallDatabases[tuple[int], Counts]:
    return SmallDatabases(
        [(0,), (1,), (2,)], n, lambda records: table(np.array([point for (point,) in records]), 3)
    )


def test_whole_transcripts_are_private() -> None:
    """Three rounds lose less than the sum of all losses, and more than it without the factor t of
    the samples; in delta less than by the exact price."""
    boosting = Boosting(ONE_UP, TERMS, 0.1)
    lost = epsilon_of(max(worst_transcripts(boosting.algorithm(1, 1), databases(1)).values()))
    assert sum(loss.epsilon * count for loss, count in TERMS.losses.items()) == 6
    assert 0.7 * 6 < lost <= 6
    priced = Boosting(ONE_UP, replace(TERMS, rounds=2), 0.1)
    laws = [
        whole_weights(transcripts(priced.algorithm(1, 1), databases(1).build(((point,),))))
        for point in range(3)
    ]
    growth = exp_epsilon(priced.loss.nano)
    assert max(hockey_stick(*pair, growth) for pair in permutations(laws, 2)) <= 0.1


def test_the_price_is_exact() -> None:
    """That of k T counts and k (T - 1) samples, which lose t times as much after t synopses: less
    than their sum, and kept to by `within`, just."""
    terms, budget = BoostingTerms(4, 5, 10, 500, 0.5, CountedBase(0.02)), approximate(1.0, 1e-6)
    assert terms.losses == {
        Pure(20_000_000): 20,
        Pure(4_000_000): 5,
        Pure(8_000_000): 5,
        Pure(12_000_000): 5,
    }
    kept = terms.within(budget)
    assert kept.width < terms.width
    assert kept.base.epsilon > terms.base.epsilon
    assert (
        0.99
        < epsilon(kept.losses, 1e-6)
        <= 1
        < epsilon(replace(kept, width=int(0.98 * kept.width)).losses, 1e-6)
    )
    account = Account(budget)
    TrustedOracle(np.array([50, 40, 10]), account, seeded(1)).answer(
        (Boosting(ONE_UP, kept, 1e-6),)
    )
    assert 0.99 < account.spent.epsilon <= 1


def test_mwem_is_private_and_not_at_the_price_of_its_counts() -> None:
    """Whole transcripts of two rounds, against the delta of both choices and both counts; parts for
    the counts alone lose more."""
    mwem = CountingMwem(ONE_UP, 2, 2.0, 0.01)

    def delta() -> Fraction:
        laws = [
            whole_weights(transcripts(mwem.algorithm(1), databases(1).build(((point,),))))
            for point in range(3)
        ]
        return max(
            hockey_stick(*pair, exp_epsilon(mwem.loss.nano)) for pair in permutations(laws, 2)
        )

    assert delta() <= 0.01
    object.__setattr__(mwem, "part", optimal_part(mwem.loss, 2))
    assert delta() > 0.01


def test_mwem_learns_the_counts() -> None:
    """27 conjunctions, little noise: 5 rounds halve the largest error of no data, and 40 divide it
    by three again."""
    queries, database = CountingQueries.conjunctions(3), 10_000 * np.arange(1, 9)
    truth, n = queries.counts(database), int(database.sum())
    none, few, many = (
        np.abs(n * queries.shares(weights) - truth).max()
        for weights in (
            np.full(8, 1 / 8),
            *(
                CountingMwem(queries, rounds, 10.0, 1e-6).release(database, seeded(1))
                for rounds in (5, 40)
            ),
        )
    )
    assert many < few / 3 < none / 6, (none, few, many)


def test_samples_follow_the_errors() -> None:
    """Weights e^(each times sum min(width, max(0, |answer - count| - margin)) / 2), against the
    formula in floats."""
    database, answers = np.array([3, 1, 0]), np.array([[0, 4, 1, 2], [3, 9, 2, 1]])
    law = BadlyAnswered(ONE_UP, answers, 1, 2, 1, 0.5).law(database)
    weights = np.exp(
        0.25 * np.clip(np.abs(answers - ONE_UP.counts(database)) - 1, 0, 2).sum(axis=0)
    )
    shares = np.array([law[(query,)] for query in range(4)], dtype=float)
    assert np.allclose(shares / shares.sum(), weights / weights.sum(), atol=1e-9)


def test_weak_synopses_make_a_strong_median() -> None:
    """27 conjunctions, 12 counts a round: some synopsis errs too much; each is right on 3/4 of its
    round's weight, so after 27 rounds the median is."""
    queries, n, eta = CountingQueries.conjunctions(3), 36_000, 0.25
    database = n * np.arange(1, 9) // 36
    terms = BoostingTerms(
        27,
        12,
        int(0.06 * n),
        int(0.02 * n),
        math.log((1 + 2 * eta) / (1 - 2 * eta)) / 2,
        CountedBase(1.0),
    )
    assert terms.rounds > math.log(27) / (2 * eta**2)
    boosted, truth = (
        Boosting(queries, terms, 1e-6).release(database, seeded(1)),
        queries.counts(database),
    )
    assert np.abs(boosted.answers - truth).max() > terms.margin + terms.width
    assert boosted.right_shares(truth, terms).min() > 0.5 + eta
    assert np.abs(boosted.counts - truth).max() <= terms.margin + terms.width


def test_bad_input() -> None:
    refuse(
        ("rounds is 0", lambda: replace(TERMS, rounds=0)),
        ("samples is 0", lambda: replace(TERMS, samples=0)),
        ("width is 0", lambda: replace(TERMS, width=0)),
        ("step is 0", lambda: replace(TERMS, step=0.0)),
        (
            "number of queries is 10001",
            lambda: Boosting(CountingQueries(np.ones((10_001, 1), dtype=bool)), TERMS, 1e-6),
        ),
        ("delta is 0", lambda: Boosting(ONE_UP, TERMS, 0.0)),
        ("epsilon is 0", lambda: CountedBase(0.0)),
        ("rounds is 0", lambda: CountingMwem(ONE_UP, 0, 1.0, 1e-6)),
    )
