"""Signed rows: what private synthetic data cannot hold, unless it may be copied (part of `tracing`)."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.attacks.tracing import Signer
from local_dp.curator.account import ConcentratedAccount, TrustedOracle
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.multisets import Multiset
from local_dp.curator.query_release.mwem import concentrated_mwem
from local_dp.curator.sanitizers.point_counts import ThresholdedHistogram
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Check, Scale, Table
from local_dp.experiments.lab.findings import Rows
from local_dp.interaction import run
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise

LOSS = approximate(1.0, 1e-6)
BITS: dict[Scale, tuple[int, int]] = {"quick": (7, 8), "full": (9, 8)}  # of a message, of its tag
COPIES = (1, 40)  # records to each message
TABLE, MWEM, HISTOGRAM, NOTHING = "the table itself", "MWEM on all 3-way marginals", "histogram of frequent rows", "rows at random"
RARE = 0.05  # twice the share that MWEM's rows reached in 60 runs
Judged: TypeAlias = tuple[float, float] | None


@dataclass(frozen=True)
class Verified:
    shares: dict[str, Judged]  # of each way's rows: the share that verifies, the largest error of a 3-way marginal's cell; None without rows


@dataclass(frozen=True)
class Signed:
    """A table of so many records to each signed message."""

    message: int
    tag: int
    copies: int

    def measure(self, seed: int) -> Verified:
        signer = Signer(np.random.default_rng(seed).bytes(32), self.message, self.tag)
        table = signer.table(np.repeat(np.arange(1 << signer.message, dtype=np.uint64), self.copies))
        workload = Marginals.ways(signer.d, 3)
        truth, valid = workload.answers(table), signer.verifies(np.arange(1 << signer.d, dtype=np.uint64))

        def judged(weights: Floats) -> Judged:
            total = float(weights.sum())
            if not total:
                return None
            scaled = weights * (table.size / total)
            return float(weights[valid].sum()) / total, Errors.of(workload.of_histogram(scaled), truth, table.size).largest

        ways = {TABLE: table.histogram.astype(np.float64), MWEM: _weighed(table, workload, seed), HISTOGRAM: _frequent(table, seed)}
        return Verified({name: judged(weights) for name, weights in {**ways, NOTHING: np.ones(1 << signer.d)}.items()})


def signed_points(scale: Scale) -> list[Signed]:
    """Every message once, and every message by forty people."""
    return [Signed(*BITS[scale], copies) for copies in COPIES]


def _weighed(table: BinaryTable, workload: Marginals, seed: int) -> Floats:
    algorithm = concentrated_mwem(workload, table.size, LOSS).algorithm(table.size)
    return run(algorithm, TrustedOracle(table, ConcentratedAccount(LOSS), Draws(KeyedNoise(seed)))).weights


def _frequent(table: BinaryTable, seed: int) -> Floats:
    """The rows of enough people to be released, by their noisy counts."""
    released = ThresholdedHistogram(LOSS.epsilon, LOSS.delta).release(Multiset.of(table.rows, table.d), Draws(KeyedNoise(seed)))
    weights = np.zeros(1 << table.d)
    weights[released.values.astype(np.int64)] = np.maximum(released.counts, 0)
    return weights


def signed_table(signed: Rows[Signed, Verified]) -> Table:
    """Each way's rows."""
    rows = [(p.copies, name, *(judged or (None, None))) for p, m in signed for name, judged in m.shares.items()]
    return Table("rows that verify", ("records to a message", "rows of", "share that verifies", "largest error of a 3-way marginal"), rows)


def check_signed(signed: Rows[Signed, Verified]) -> Check:
    """A signed table's own rows all verify."""
    by_copies = {p.copies: m.shares for p, m in signed}
    rows = {way: [by_copies.get(copies, {}).get(way) or (math.nan, math.nan) for copies in COPIES] for way in (TABLE, MWEM, HISTOGRAM, NOTHING)}
    once, often = (dict(zip(rows, columns, strict=True)) for columns in zip(*rows.values(), strict=True))
    texts = (f"by {name} {once[way][0]:.2%} and {often[way][0]:.2%}" for name, way in (("MWEM", MWEM), ("a histogram", HISTOGRAM)))
    return Check(
        "rows made from marginals hardly verify; a private release whose rows do has copied them, as it may where many share a row, and only there",
        once[TABLE][0] == often[TABLE][0] == often[HISTOGRAM][0] == 1
        and max(once[MWEM][0], often[MWEM][0]) < RARE
        and often[MWEM][1] < 0.8 * often[NOTHING][1]
        and math.isnan(once[HISTOGRAM][0]),
        "; ".join(texts).replace("nan%", "none"),
    )
