"""One run of each way to tell all pairs of columns, on planted tables whose truth is known."""

from itertools import product

import numpy as np

from local_dp.arrays import Floats
from local_dp.curator.marginals.pairs import NoisyPairs, PairGaussian, SignTable, onto_elliptope, onto_hull, pairs_of, rms_error
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.noise import Draw, KeyedNoise
from local_dp.randomizers.signs.binary_rr import BinaryRR

EPSILON, DELTA = 1.0, 1e-6
CENTRES, KEPT = 5, 0.85
SEARCHED = 1 + 1e-4  # what a search for a projection may leave
RAW, ZERO, LINEAR, PROJECTED, HULL = "raw", "zero", "best linear shrinkage", "projected", "hull"
LOCAL, LOCAL_PROJECTED = "local, raw", "local, projected"


def planted(d: int, n: int, generator: np.random.Generator) -> SignTable:
    """n records, each one of five random rows of d bits, every bit of it kept with probability .85."""
    centres = generator.integers(0, 2, (CENTRES, d), dtype=np.int8)
    return SignTable.of(centres[generator.integers(0, CENTRES, n)] ^ (generator.random((n, d)) >= KEPT))


def local_pairs(table: SignTable, generator: np.random.Generator, noise: KeyedNoise) -> NoisyPairs:
    """Each client tells by randomized response the product of the two signs that a public coin names: unbiased, of variance nearly C^2 k / n for k pairs."""
    one, other = np.triu_indices(table.d, 1)
    asked = generator.integers(0, len(one), table.size)
    clients, randomizer = np.arange(table.size), BinaryRR(epsilon=EPSILON)
    values = (table.signs[clients, one[asked]] != table.signs[clients, other[asked]]).astype(np.uint8)
    reports = randomizer.respond(values, randomizer.draw(noise, Draw(0), 0, table.size), np.zeros(table.size, dtype=np.uint64))
    sums = np.bincount(asked, weights=1.0 - 2.0 * reports, minlength=len(one)) * randomizer.gain * len(one)
    return pairs_of(np.asarray(sums, dtype=np.float64), table.size, randomizer.gain**2 * len(one) * table.size)


def measure_errors(point: Point, seed: int) -> Measurement:
    """The root mean square errors over all pairs, of each way and each run, and of noise in units of its stated deviation; and the projection's promise."""
    d, n = point["d"], point["d"] * point["times"]
    generator, mechanism = np.random.default_rng([seed, d, n]), PairGaussian(d, EPSILON, DELTA)
    errors: dict[str, list[float]] = {}
    scores, nearer = list[float](), True
    for run in range(point["runs"]):
        own = (d << 16 | point["times"]) << 16 | run  # sizes share no noise
        table = planted(d, n, generator)
        truth = table.sums / n
        released = mechanism.release(table, Draws(KeyedNoise(seed), own))
        told = _told(released.means, truth, point["hull"])
        scores.append((rms_error(released.means, truth) / released.deviation) ** 2)
        nearer &= all(rms_error(told[body], truth) <= rms_error(told[RAW], truth) * SEARCHED for body in (PROJECTED, HULL) if body in told)
        if point["local"]:
            local = local_pairs(table, generator, KeyedNoise(seed + own))
            told |= {LOCAL: local.means, LOCAL_PROJECTED: onto_elliptope(local.means)}
        for name, means in told.items():
            errors.setdefault(name, []).append(rms_error(means, truth))
    return {"errors": errors, "scores": scores, "nearer": bool(nearer)}


def _told(means: Floats, truth: Floats, hull: bool) -> dict[str, Floats]:
    """What is made of one release. The best linear shrinkage is the best for this very truth, which nobody knows."""
    above = np.triu_indices(len(means), 1)
    factor = float(truth[above] @ means[above]) / float(means[above] @ means[above])
    found = {RAW: means, ZERO: np.eye(len(means)), LINEAR: factor * means, PROJECTED: onto_elliptope(means)}
    return found | {HULL: onto_hull(means)} if hull else found


def measure_move(point: Point) -> Measurement:
    """The largest squared move of all pairs, over every row of d signs replaced by every other; and what is paid for."""
    rows = np.array(list(product((1, -1), repeat=point["d"])))
    one, other = np.triu_indices(point["d"], 1)
    moved = rows[:, one] * rows[:, other]
    return {"worst": max(int(((moved - each) ** 2).sum(axis=1).max()) for each in moved), "paid": PairGaussian(point["d"], EPSILON, DELTA).square}
