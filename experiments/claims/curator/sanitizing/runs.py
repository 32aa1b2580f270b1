"""Both releases: the least number of records for which all counts, or all thresholds, are within alpha; and runs there."""

from typing import Any

import numpy as np

from local_dp.bounds.packing import cell_failures, histogram_success, least_multiple, per_cell_success, sanitizer_records
from local_dp.curator.multisets import Multiset
from local_dp.curator.reductions.learners import MediansByLabel, Processed, best_threshold
from local_dp.curator.sanitizers.medians import Medians, TreeOfMedians
from local_dp.curator.sanitizers.point_counts import PerCellHistogram, ThresholdedHistogram
from local_dp.curator.sanitizers.san_points import PrintedSanPoints
from local_dp.curator.sanitizers.san_thresholds import PrintedSanThresholds
from local_dp.curator.sanitizers.sparse_medians import SparseMedians
from local_dp.curator.selection.printed import Goals
from local_dp.curator.thresholds.hard import hard_thresholds, random_target
from local_dp.curator.thresholds.learner import PureThresholds
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.experiments.lab.minimal_clients import measured_clients
from local_dp.experiments.lab.store import as_data
from local_dp.loss import Loss
from local_dp.noise import KeyedNoise
from local_dp.populations.shapes import shaped

ALPHA, EPSILON, SUCCESS, LEVELS = 0.1, 1.0, 0.9, 4
DEARER = 7  # how many times dearer learning from a release is than learning
WORST = {"pure": "clustered", "sparse": "nested"}  # the shape that asks for the most records


def loss_of(loss: Loss) -> Measurement:
    """As plain data."""
    return {"nano": loss.nano, "atto": getattr(loss, "atto", 0)}


def measure_counts(point: Point, seed: int) -> Measurement:
    """Of noisy counts: the least number by exact sums, and how often a release is within alpha on a database of as many heavy points as there can be."""
    bits, delta = point["bits"], point["delta"]
    mechanism = ThresholdedHistogram(EPSILON, delta) if delta else PerCellHistogram(bits, EPSILON)
    if delta:
        n = least_multiple(lambda m: histogram_success(mechanism.noise, m, ALPHA), ALPHA)
        success = histogram_success(mechanism.noise, n, ALPHA)
    else:
        n = least_multiple(lambda m: per_cell_success(bits, EPSILON, m, ALPHA), ALPHA)
        success = per_cell_success(bits, EPSILON, n, ALPHA)
    heavy = heavy_points(n, bits)
    failures = cell_failures(mechanism.noise, n, n // 10)
    chance = float(np.prod(1 - failures[heavy.counts]))  # of the points with records: the worst database of a thresholded histogram, and part of the other's
    draws = Draws(KeyedNoise(seed))
    right = sum(mechanism.release(heavy, draws).worst_error(heavy) <= n // 10 for _ in range(point["runs"]))
    return {"n": n, "success": success, "chance": chance, "right": right, **loss_of(mechanism.loss)}


def heavy_points(n: int, bits: int) -> Multiset:
    """As many points as there can be of one record more than may be left out, spread over the domain; the rest at one point more."""
    size = n // 10 + 1
    points = n // size
    counts = [size] * points + ([n - size * points] if n % size else [])
    values = [(1 << bits) // (len(counts) + 1) * (place + 1) for place in range(len(counts))]
    return Multiset(bits, np.array(values, dtype=np.uint64 if bits <= 64 else object), np.array(counts, dtype=np.int64))


def tree_of(kind: str, delta: float) -> TreeOfMedians[Any]:
    """Four levels: an error of 1/32 without noise."""
    return Medians(EPSILON, LEVELS) if kind == "pure" else SparseMedians(EPSILON, LEVELS, delta=delta)


def within(kind: str, delta: float, shape: str, bits: int, seeds: np.random.Generator) -> Any:
    """For `measured_clients`: in how many of some runs all thresholds are within alpha, each on fresh data."""
    tree = tree_of(kind, delta)

    def successes(n: int, runs: int) -> int:
        kept = 0
        for seed in seeds.integers(1 << 62, size=runs).tolist():
            points = Multiset.of(shaped(shape, n, bits, seed), bits)
            kept += tree.release(points, Draws(KeyedNoise(seed))).error(points) <= ALPHA
        return kept

    return successes


def measure_thresholds(point: Point, seed: int) -> Measurement:
    """Of trees of medians: the least number on the shape that asks for the most, measured."""
    kind, bits, delta = point["tree"], point["bits"], point["delta"]
    success = within(kind, delta, WORST[kind], bits, np.random.default_rng([seed, bits, len(kind)]))
    guess = 60 * bits + 500 if kind == "pure" else 4000
    return {**as_data(measured_clients(success, guess, target=SUCCESS, trials=point["trials"])), **loss_of(tree_of(kind, delta).loss)}


def measure_shape(point: Point, seed: int) -> Measurement:
    """How often all thresholds are within alpha of data of one shape."""
    success = within(point["tree"], point["delta"], point["shape"], point["bits"], np.random.default_rng([seed, point["bits"], len(point["shape"])]))
    return {"right": success(point["n"], point["runs"])}


def measure_learned(point: Point, seed: int) -> Measurement:
    """Of a threshold learned from all thresholds of each label's points: how often it is right of the needle, and with half the records.

    And the exact chance, averaged over samples of one part in `DEARER` of the records, of learning it without releasing anything.
    """
    bits, n, runs = point["bits"], point["n"], point["runs"]
    learner, direct = Processed(MediansByLabel(EPSILON, 3), best_threshold), PureThresholds(EPSILON)
    generator, draws = np.random.default_rng([seed, bits, n]), Draws(KeyedNoise(seed))
    right, chance = {n: 0, n // 2: 0}, 0.0
    for _ in range(runs):
        law = hard_thresholds(bits, ALPHA, random_target(bits, generator))["needle"]
        low, high = law.good(ALPHA)
        for size in right:
            right[size] += low <= learner.release(law.sample(size, generator), draws) <= high
        chance += direct.chance(law.sample(n // DEARER, generator), low, high)
    return {"right": right[n], "half": right[n // 2], "direct": chance / runs, **loss_of(learner.loss)}


def measure_proven(point: Point, seed: int) -> Measurement:
    """What no pure sanitizer of either class does with fewer than; and below which numbers the printed ones refuse, being private only from there on."""
    bits = point["bits"]
    points = PrintedSanPoints(EPSILON, 1e-6, Goals(ALPHA, 1 - SUCCESS))
    thresholds = PrintedSanThresholds(EPSILON, 1e-6, Goals(0.25, 1 - SUCCESS))
    return {"n": sanitizer_records(bits, EPSILON, ALPHA, 1 - SUCCESS), "SanPoints": points.least, "SanThresholds": thresholds.least}
