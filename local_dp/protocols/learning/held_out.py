"""The score of a hypothesis on the clients held out, with an interval, beside that of the trivial hypothesis."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from local_dp.bounds.response import binomial_interval, levelled_clients
from local_dp.bounds.tails import normal_quantile
from local_dp.errors import InputError
from local_dp.learners.moments import Centres, LinearModel
from local_dp.learners.rules import AllOf
from local_dp.learners.tabular import Verdict, verdict
from local_dp.oracles.local.asked import Cohort, LocalPlay
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.population import Population
from local_dp.queries.encoded import Encoding, encoded
from local_dp.tallies import Estimate
from local_dp.theorems.local_from_sq import local_query
from local_dp.theorems.on_table import LEAST, completeness

TAIL = 0.05  # of a 95 % interval


@dataclass(frozen=True)
class Score:
    """The mean of a hypothesis's verdicts over the complete records: its accuracy, or a square error or distance as a share of the largest possible.

    The value is not clipped; the 95 % interval [low, high] is, to [0, 1]. It comes from n reports.
    """

    value: float
    standard_error: float
    low: float
    high: float
    n: int

    def opposite(self) -> "Score":
        """The score of the opposite classifier."""
        return Score(1 - self.value, self.standard_error, 1 - self.high, 1 - self.low, self.n)


def trivial(hypothesis: Any) -> Any:
    """The baseline of a hypothesis: the label yes for all (the judge also considers no), the middle of the label's bounds, one centre in the middle."""
    if isinstance(hypothesis, LinearModel):
        return LinearModel((0.0,) * len(hypothesis.weights))
    return Centres(((0.0,) * len(hypothesis.points[0]),)) if isinstance(hypothesis, Centres) else AllOf(())


def judge(hypothesis: Any, encoding: Encoding, epsilon: float, clients: Cohort, exclude: bool) -> LocalPlay[tuple[Score, Score]]:
    """The scores of the hypothesis and of the trivial one, from fresh clients, in one round.

    Three quarters of the clients judge the hypothesis and one quarter the trivial one; with rows to leave out, half, a quarter, and a quarter for the share of
    complete rows. Privacy: each answers once. The interval of a ratio combines those of its two parts at half the error each.
    """
    shares = (0, 2, 3, 4) if exclude else (0, 3, 4)
    ends = [clients.start + len(clients) * share // 4 for share in shares]
    if min(end - start for start, end in pairwise(ends)) < 1:
        raise InputError(f"{len(clients)} clients are held out, too few to judge a hypothesis; use more clients")
    questions = [StatisticalQuery(encoded(encoding, verdict(each)), 0.5) for each in (hypothesis, trivial(hypothesis))]
    questions += [completeness(encoding, 0.5)] if exclude else []
    queries = tuple(local_query(query, epsilon, Cohort(ends[place], ends[place + 1])) for place, query in enumerate(questions))
    tallies = yield queries
    own, plain, *whole = (query.randomizer.estimate(tally).on_scale(-1.0, 1.0) for query, tally in zip(queries, tallies, strict=True))
    share = whole[0] if whole else None
    few = levelled_clients(epsilon)
    other = _score(plain, share, few)
    return _score(own, share, few), other.opposite() if verdict(hypothesis).classifies and other.value < 0.5 else other


def _score(answer: Estimate, share: Estimate | None, few: int) -> Score:
    """(1 + a / m) / 2 for the answer a on the [-1, 1] scale and the share m of complete rows."""
    a = float(answer.value)
    if share is None:
        low, high = _interval(answer, TAIL, few)
        value, error = a, float(answer.standard_error)
    else:
        m = max(float(share.value), LEAST)
        ends = [(float(end), float(whole)) for end in _interval(answer, TAIL / 2, few) for whole in np.clip(_interval(share, TAIL / 2, few), LEAST, 1.0)]
        ratios = [end / whole for end, whole in ends]
        value, low, high = a / m, min(ratios), max(ratios)
        error = math.hypot(float(answer.standard_error), value * float(share.standard_error)) / m
    return Score((1 + value) / 2, error / 2, (1 + max(-1.0, low)) / 2, (1 + min(1.0, high)) / 2, answer.n)


def _interval(answer: Estimate, beta: float, few: int) -> tuple[float, float]:
    """Wilson's interval; of fewer than `few` reports the exact one: Wilson's misses in 7.2 % of runs with 5 reports and 63 % yes."""
    if answer.n >= few or answer.ends is None:
        least, most = answer.interval(normal_quantile(beta / 2))
        return float(least), float(most)
    low, high = (float(end) for end in answer.ends)
    least_share, most_share = binomial_interval(answer.n, round((float(answer.value) - low) / (high - low) * answer.n), beta)
    return low + (high - low) * least_share, low + (high - low) * most_share


def true_score(hypothesis: Any, encoding: Encoding, population: Population) -> float:
    """The score of the hypothesis in the distribution that the clients are drawn from."""
    return _true(verdict(hypothesis), encoding, population)


def true_baseline(hypothesis: Any, encoding: Encoding, population: Population) -> float:
    """The same for the trivial hypothesis, with the better label."""
    score = _true(verdict(trivial(hypothesis)), encoding, population)
    return max(score, 1 - score) if verdict(hypothesis).classifies else score


def _true(judged: Verdict, encoding: Encoding, population: Population) -> float:
    queries = StatisticalQuery(encoded(encoding, judged), 0.5), completeness(encoding, 0.5)
    score, complete = (query.expectation(population.law(query.query)) for query in queries)
    return (1 + score / complete) / 2
