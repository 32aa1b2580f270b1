"""Private multiplicative weights: whole transcripts enumerated, wrong twins that lose more, and
hypotheses that come nearer with every change."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Counts
from local_dp.curator.account import Account, ConcentratedAccount, TrustedOracle
from local_dp.curator.clipped import laplace_tail
from local_dp.curator.mechanism import (
    Law,
    SmallDatabases,
    Transcript,
    epsilon_of,
    transcripts,
    whole_weights,
    worst_transcripts,
)
from local_dp.curator.query_release import pmw
from local_dp.curator.query_release.counting import CountingQueries, table
from local_dp.curator.query_release.pmw import (
    Asked,
    FirstFar,
    MultiplicativeWeights,
    NoisyCount,
    Stream,
    Terms,
    moved,
)
from local_dp.draws import Draws
from local_dp.errors import RefusedError
from local_dp.interaction import run
from local_dp.loss import Loss, Pure, approximate
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.mechanisms.case import share
from tests.support.mechanisms.paths import follows, settled
from tests.support.runs.scripted import seeded
from tests.support.wrong import wrong

NANO = 10**9  # epsilon 1 for every noise
STREAMS = [
    CountingQueries(np.array(rows)) for rows in product(((True, False), (False, True)), repeat=3)
]
SAME = STREAMS[0]  # the first point, three times


def databases(n: int) -> SmallDatabases[tuple[int], Counts]:
    return SmallDatabases(
        [(0,), (1,)], n, lambda records: table(np.array([point for (point,) in records]), 2)
    )


def weights(stream: CountingQueries, n: int, updates: int = 3) -> MultiplicativeWeights:
    """With a threshold of one record."""
    return MultiplicativeWeights(stream, n, Terms(min(0.9, 1 / n), updates, 1.0, 0.5))


def claimed(transcript: Transcript[int | None]) -> int:
    """In epsilons: an epoch that ends with a change costs 1 for its threshold, 2 for its firing and
    1 for its count; one that does not, 1."""
    return 4 * (len(transcript) // 2) + len(transcript) % 2


def excess(stream: CountingQueries, n: int) -> float:
    """By how much a transcript's loss is above its claim, at most."""
    ratios = worst_transcripts(weights(stream, n).algorithm(), databases(n))
    return max(epsilon_of(ratio) - claimed(transcript) for transcript, ratio in ratios.items())


@pytest.mark.parametrize("n", short([1, 2], lambda n: n == 1))
def test_whole_transcripts_are_private(n: int) -> None:
    """N = 2, k = 3, all streams of queries that tell the points apart: no transcript loses more
    than its epochs cost, and some lose nearly half of it."""
    assert max(excess(stream, n) for stream in STREAMS) <= 0
    ratios = worst_transcripts(weights(SAME, n, 1).algorithm(), databases(n))
    assert (
        max(epsilon_of(ratio) / claimed(transcript) for transcript, ratio in ratios.items()) > 0.45
    )


@dataclass(frozen=True, eq=False)
class OnAlpha(FirstFar):
    """A wrong twin: noisy counts are compared with alpha itself, without noise."""

    def law(self, database: Counts) -> Law[int | None]:
        shares, left = dict[int | None, Fraction](), Fraction(1)
        for first, gaps in self.questions.blocks(database):
            for place, gap in enumerate(gaps.tolist(), first):
                far = sum(laplace_tail(NANO, self.threshold - off) for off in (gap, -gap))
                shares[place] = left * far
                left *= 1 - far
        return whole_weights({**shares, None: left})


def test_a_test_on_alpha_loses_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three queries of which none fires cost three epsilons in place of one."""
    monkeypatch.setattr(pmw, "FirstFar", OnAlpha)
    assert excess(SAME, 2) == pytest.approx(2, abs=1e-6)


@wrong(
    "local_dp.curator.query_release.pmw:FirstFar.loss",
    "3 * self._nano",
    "2 * self._nano",
    "firing is charged once",
)
def test_firing_costs_twice() -> None:
    """Of a record that moves the last of four counts towards firing and the others away."""
    queries = CountingQueries(np.array([(True, False, False)] * 3 + [(False, True, False)]))
    first = FirstFar(Asked(queries, 0, np.array([0.0, 0, 1])), 1, 1.0)
    one, two = (share(first.law(np.array(counts))) for counts in ((1, 1, 6), (2, 0, 6)))
    loss = max(abs(math.log(one[place] / two[place])) for place in one)
    assert 2.16 < loss <= first.loss.epsilon


class Told(TrustedOracle[Counts]):
    """Keeps its answers."""

    answers: tuple[Any, ...] = ()

    def answer(self, mechanisms: Any) -> Any:
        answers = settled(super().answer(mechanisms))
        self.answers = (*self.answers, answers)
        return answers


@pytest.mark.long
def test_the_code_draws_from_its_transcripts() -> None:
    """All paths of all answers add up to their chances; not to those of a threshold that is one
    larger."""
    database = np.array([2, 0])
    exact, other = (
        MultiplicativeWeights(STREAMS[2], 2, Terms(alpha, 3, 8.0, 0.5)).algorithm
        for alpha in (0.5, 0.99)
    )

    def answers(draws: Draws) -> Any:
        oracle = Told(database, Account(Pure(10**15)), draws)
        run(exact(), oracle)
        return oracle.answers

    assert follows(answers, transcripts(exact(), database), 5)
    assert not follows(answers, transcripts(other(), database), 5)


def test_each_change_brings_the_hypothesis_nearer() -> None:
    """The relative entropy falls by step gap - step^2 / 8 at least, so that 2 ln N / alpha^2
    changes are enough."""
    generator, step = np.random.default_rng(0), 0.1
    for _ in range(50):
        truth, weights = generator.dirichlet(np.full(16, 0.3), 2) + 1e-9
        marks = generator.random(16) < 0.5
        share, gap = truth[marks].sum(), truth[marks].sum() - weights[marks].sum()
        fall = float((truth * np.log(moved(weights, marks, share, step) / weights)).sum())
        assert fall >= step * abs(gap) - step**2 / 8 - 1e-6


def account_of(budget: Loss) -> Account:
    return Account(budget) if isinstance(budget, Pure) else ConcentratedAccount(budget)


@pytest.mark.parametrize("budget", [Pure(NANO), approximate(1.0, 1e-6)])
def test_terms_that_see_no_data_keep_their_word(budget: Loss) -> None:
    """All queries answered within 3/2 alpha, within the budget; all changes together just fit
    it."""
    generator, n = np.random.default_rng(2), 10**5
    account, whole = account_of(budget), account_of(budget)
    database = generator.multinomial(n, generator.dirichlet(np.full(16, 0.05)))
    stream = CountingQueries.random(200, 16, generator)
    terms = Terms.for_stream(Stream(n, 16, 200), budget)
    algorithm = MultiplicativeWeights(stream, n, terms).algorithm()
    result = run(algorithm, TrustedOracle(database, account, seeded(3)))
    assert (result.halted, result.answered) == (False, 1.0)
    assert 0 < result.updates <= terms.updates
    assert result.largest_error(stream.counts(database), n) <= 1.5 * terms.alpha
    assert account.spent.epsilon <= budget.epsilon
    whole.charge(*terms.losses)
    with pytest.raises(RefusedError, match="exceeds"):
        whole.charge(terms.losses[0])


def test_a_halted_run_says_so() -> None:
    """With too few changes for the data at hand: what it answered is right, and only that; the rest
    is not a number."""
    generator, budget, n = np.random.default_rng(2), approximate(1.0, 1e-6), 10**6
    database = generator.multinomial(n, generator.dirichlet(np.full(64, 0.05)))
    stream = CountingQueries.random(3000, 64, generator)
    algorithm = MultiplicativeWeights(stream, n, Terms.of(0.05, 5, budget)).algorithm()
    result = run(algorithm, TrustedOracle(database, account_of(budget), seeded(3)))
    assert (result.halted, result.updates) == (True, 5)
    assert 0 < result.answered < 0.1
    assert np.flatnonzero(np.isnan(result.shares)).tolist() == list(range(result.done, 3000))
    assert result.largest_error(stream.counts(database), n) < 0.1


def test_bad_input() -> None:
    many = Asked(CountingQueries.random(13, 2, np.random.default_rng(0)), 0, np.array([0.5, 0.5]))
    refuse(
        ("alpha is 1.5", lambda: Terms(1.5, 1, 1.0, 1.0)),
        ("10 records are too few", lambda: Terms.for_stream(Stream(10, 2, 2), Pure(NANO))),
        ("query is 3", lambda: NoisyCount(SAME, 3, 1.0)),
        ("leaves less than", lambda: Terms.of(0.1, 100, Pure(99))),
        ("13 queries", lambda: FirstFar(many, 1, 1.0).law(np.array([1, 1]))),
    )
