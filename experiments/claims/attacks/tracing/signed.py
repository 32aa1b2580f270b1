"""Signed rows: what private synthetic data cannot hold, unless it may be copied (part of `tracing`)."""

from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.attacks.tracing import Signer
from local_dp.curator.account import ConcentratedAccount
from local_dp.curator.marginals.base import BinaryTable, Errors, Marginals
from local_dp.curator.multisets import Multiset
from local_dp.curator.query_release.mwem import concentrated_mwem
from local_dp.curator.sanitizers.point_counts import ThresholdedHistogram
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Check, Measurement, Point, Scale, Table
from local_dp.interaction import run
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise

LOSS = approximate(1.0, 1e-6)
BITS: dict[Scale, tuple[int, int]] = {"quick": (7, 8), "full": (9, 8)}  # of a message, of its tag
COPIES = (1, 40)  # records to each message
TABLE, MWEM, HISTOGRAM, NOTHING = "the table itself", "MWEM on all 3-way marginals", "histogram of what may be told", "rows at random"
RARE = 0.05  # twice what MWEM's rows reached in 60 runs
Measured = list[tuple[Point, Measurement]]


def signed_points(scale: Scale) -> list[Point]:
    """Every message once, and every message by forty people."""
    message, tag = BITS[scale]
    return [{"kind": "signed", "message": message, "tag": tag, "copies": copies} for copies in COPIES]


def measure_signed(point: Point, seed: int) -> Measurement:
    """Of the rows that each way makes: the share that verifies, and the largest error of a 3-way marginal's cell."""
    signer = Signer(np.random.default_rng(seed).bytes(32), point["message"], point["tag"])
    table = signer.table(np.repeat(np.arange(1 << signer.message, dtype=np.uint64), point["copies"]))
    workload = Marginals.ways(signer.d, 3)
    truth, valid = workload.answers(table), signer.verifies(np.arange(1 << signer.d, dtype=np.uint64))

    def judged(weights: Floats) -> dict[str, Any]:
        total = float(weights.sum())
        if not total:
            return {"verifies": None, "largest": None}
        scaled = weights * (table.size / total)
        return {"verifies": float(weights[valid].sum()) / total, "largest": Errors.of(workload.of_histogram(scaled), truth, table.size).largest}

    ways = {TABLE: table.histogram.astype(np.float64), MWEM: _weighed(table, workload, seed), HISTOGRAM: _told(table, seed)}
    return {name: judged(weights) for name, weights in {**ways, NOTHING: np.ones(1 << signer.d)}.items()}


def _weighed(table: BinaryTable, workload: Marginals, seed: int) -> Floats:
    algorithm = concentrated_mwem(workload, table.size, LOSS).algorithm(table.size)
    return run(algorithm, TrustedOracle(table, ConcentratedAccount(LOSS), Draws(KeyedNoise(seed)))).weights


def _told(table: BinaryTable, seed: int) -> Floats:
    """The rows that so many share that they may be told, by their noisy counts."""
    released = ThresholdedHistogram(LOSS.epsilon, LOSS.delta).release(Multiset.of(table.rows, table.d), Draws(KeyedNoise(seed)))
    weights = np.zeros(1 << table.d)
    weights[released.values.astype(np.int64)] = np.maximum(released.counts, 0)
    return weights


def signed_table(signed: Measured) -> Table:
    """Each way's rows."""
    rows = [(point["copies"], name, each["verifies"], each["largest"]) for point, found in signed for name, each in found.items()]
    return Table("rows that verify", ("records to a message", "rows of", "share that verifies", "largest error of a 3-way marginal"), rows)


def check_signed(signed: Measured) -> Check:
    """A signed table's own rows all verify."""
    once, often = ({} if not signed else found for found in (_of(signed, COPIES[0]), _of(signed, COPIES[1])))
    return Check(
        "rows made from marginals hardly verify; a private release whose rows do has copied them, as it may where many share a row, and only there",
        bool(once and often)
        and once[TABLE]["verifies"] == often[TABLE]["verifies"] == 1
        and max(once[MWEM]["verifies"], often[MWEM]["verifies"]) < RARE
        and often[MWEM]["largest"] < 0.8 * often[NOTHING]["largest"]
        and once[HISTOGRAM]["verifies"] is None
        and often[HISTOGRAM]["verifies"] == 1,
        f"by MWEM {_shown(once, MWEM)} and {_shown(often, MWEM)}; by a histogram {_shown(once, HISTOGRAM)} and {_shown(often, HISTOGRAM)}",
    )


def _of(signed: Measured, copies: int) -> Measurement:
    return next((found for point, found in signed if point["copies"] == copies), {})


def _shown(found: Measurement, name: str) -> str:
    share = found[name]["verifies"] if found else None
    return "none told" if share is None else f"{share:.2%}"
