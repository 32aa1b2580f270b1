"""The suite's trusted curator: what a noisy sum loses, enumerated; how it is drawn, beside a closed
form worked out here; and what its account pays."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.clipped import NoisySum
from local_dp.curator.mechanism import SmallDatabases, epsilon_of
from local_dp.domains import Domain, levels
from local_dp.experiments.claims.local.suite.runs import Outcome
from local_dp.experiments.lab.parts import Check, Claimed, Rate, Row, holds, seeded
from local_dp.queries.query import Query
from local_dp.records import Records

MOST, RECORDS = 4, 2  # values 0..4 of two records
DRAWS = 20_000


@dataclass(frozen=True)
class _Level(Query):
    """A column of whole numbers 0..MOST."""

    name = "level"

    @property
    def domain(self) -> Domain:
        return levels(MOST)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


def _database(rows: Sequence[tuple[int]]) -> Records:
    return Records({"v": np.array([value for (value,) in rows], dtype=np.int64)})


class SumLoss(Row):
    loss: float  # over all neighbouring databases of RECORDS values
    drawn: list[int]  # how often one of them released each total


class Curator(Row):
    """A noisy sum of this loss."""

    epsilon: float

    def measure(self, seed: int) -> SumLoss:
        mechanism, draws = NoisySum(_Level(), self.epsilon), seeded(seed)
        small = SmallDatabases([(value,) for value in range(MOST + 1)], RECORDS, _database)
        loss = epsilon_of(max(small.worst_ratios(mechanism).values()))
        database = _database([(MOST,), (1,)])
        totals = Counter(mechanism.release(database, draws) for _ in range(DRAWS))
        return SumLoss(loss, [totals[total] for total in range(MOST * RECORDS + 1)])


def noisy_sum_law(epsilon: float) -> list[float]:
    """The sum of the values MOST and 1 plus two-sided geometric noise of ratio q = e^(-eps / MOST),
    (1 - q) / (1 + q) q^|z|, clipped to 0..MOST RECORDS."""
    q, total, most = math.exp(-epsilon / MOST), MOST + 1, MOST * RECORDS
    centre = (1 - q) / (1 + q)
    inside = [centre * q ** abs(y - total) for y in range(1, most)]
    return [q**total / (1 + q), *inside, q ** (most - total) / (1 + q)]


def curator_check(epsilon: float, sum_loss: SumLoss, runs: list[Outcome]) -> Check:
    """Whether a noisy sum loses epsilon and follows its law, and every run's account was charged
    what its sums lose together, no more than epsilon."""
    exact = epsilon - 1e-9 <= sum_loss.loss <= epsilon
    charges = [run.charged for run in runs if run.charged is not None]
    losses = [run.lost for run in runs if run.lost is not None]
    books = len(charges) == len(runs) and charges == losses
    budget = all(charge <= epsilon for charge in charges)
    draws = sum(sum_loss.drawn)
    totals = {}
    for total, law in enumerate(noisy_sum_law(epsilon)):
        rate = Rate(sum_loss.drawn[total], draws)
        totals[f"total {total}, {law:.4f} predicted"] = Claimed(rate, law, law)
    charge, loss = max(charges, default=math.nan), max(losses, default=math.nan)
    figures = (
        f"largest loss {sum_loss.loss:.9f} of {epsilon:g}; at most {charge:.9f} charged of "
        f"{loss:.9f} lost, {len(runs)} learners"
    )
    return holds(
        "A trusted curator's noisy sum loses epsilon, follows its law, and all of a learner's "
        "sums together are paid for, within epsilon",
        totals,
        figures,
        also=exact and books and budget,
    )
