"""The suite's trusted curator: what a noisy sum loses, enumerated; how it is drawn, beside a closed form worked out here; and what its account pays."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.laws import SmallDatabases, epsilon_of
from local_dp.curator.sums import NoisySum
from local_dp.domains import Domain, levels
from local_dp.draws import Draws
from local_dp.experiments.claims.local.local_to_sq.laws import compared
from local_dp.experiments.lab.claim import Check, Measurement
from local_dp.noise import KeyedNoise
from local_dp.queries.query import Query
from local_dp.records import Records

MOST, RECORDS = 4, 2  # values 0..4 of two records
DRAWS = 4000


@dataclass(frozen=True)
class _Level(Query):
    """A column of whole numbers 0..MOST."""

    name: ClassVar[str] = "level"

    @property
    def domain(self) -> Domain:
        return levels(MOST)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


def _database(rows: Sequence[tuple[int]]) -> Records:
    return Records({"v": np.array([value for (value,) in rows], dtype=np.int64)})


def measure_curator(epsilon: float, seed: int) -> Measurement:
    """The largest loss of a noisy sum over all neighbouring databases of RECORDS values, and how often it released which total of one of them."""
    mechanism, draws = NoisySum(_Level(), epsilon), Draws(KeyedNoise(seed))
    small = SmallDatabases([(value,) for value in range(MOST + 1)], RECORDS, _database)
    drawn = Counter(mechanism.release(_database([(MOST,), (1,)]), draws) for _ in range(DRAWS))
    return {
        "epsilon": epsilon,
        "loss": epsilon_of(max(small.worst_ratios(mechanism).values())),
        "drawn": [drawn[total] for total in range(MOST * RECORDS + 1)],
    }


def noisy_sum_law(epsilon: float) -> list[float]:
    """The sum of the values MOST and 1 plus two-sided geometric noise of ratio q = e^(-eps / MOST), (1 - q) / (1 + q) q^|z|, clipped to 0..MOST RECORDS."""
    q, total, most = math.exp(-epsilon / MOST), MOST + 1, MOST * RECORDS
    inside = [(1 - q) / (1 + q) * q ** abs(y - total) for y in range(1, most)]
    return [q**total / (1 + q), *inside, q ** (most - total) / (1 + q)]


def curator_check(found: Measurement, runs: list[dict[str, Any]]) -> Check:
    """Whether a noisy sum loses epsilon and follows its law, and every run's account was charged what its sums lose together, no more than epsilon."""
    law = noisy_sum_law(found["epsilon"])
    worst = compared("noisy sum", found["drawn"], law, len(law))
    met = found["epsilon"] - 1e-9 <= found["loss"] <= found["epsilon"]
    paid = bool(runs) and all("refused" not in run and run["charged"] == run["lost"] <= found["epsilon"] for run in runs)
    charged, lost = (max((run.get(key, math.nan) for run in runs), default=math.nan) for key in ("charged", "lost"))
    return Check(
        "A trusted curator's noisy sum loses epsilon, follows its law, and all of a learner's sums together are paid for, within epsilon",
        met and worst["off"] <= 1 and paid,
        f"largest loss {found['loss']:.9f} of {found['epsilon']:g}; furthest: total {worst['outcome']} drawn {worst['drawn']:.4f} of {worst['draws']:,}, "
        f"predicted {worst['predicted']:.4f}, {worst['off']:.2f} of what chance allows; at most {charged:.9f} charged of {lost:.9f} lost, {len(runs)} learners",
    )
