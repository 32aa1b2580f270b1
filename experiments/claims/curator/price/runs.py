"""What `price` measures: what many answers come to by every rule, what small cases lose by enumeration, and the largest errors of k counts."""

from itertools import product

import numpy as np

from local_dp.accounting.gaussian import DiscreteGaussian
from local_dp.accounting.rules import RULES, delta, epsilon
from local_dp.curator.counts.gaussian import GaussianCounts
from local_dp.curator.counts.k_norm import KNormCounts
from local_dp.curator.counts.laplace import ColumnCounts, ComposedLaplaceCounts, CountsMechanism, LaplaceCounts, NoCounts
from local_dp.curator.laws import SmallDatabases
from local_dp.draws import Draws
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.loss import ATTO, Loss, Pure, nano_epsilon
from local_dp.noise import KeyedNoise

EPSILON, DELTA, RECORDS = 1.0, 1e-6, 1000
EACH = 0.01  # what one of many answers may lose
K_NORM, LAPLACE, COMPOSED, GAUSSIAN, NOTHING = "K-norm, pure", "Laplace, pure", "Laplace, with delta", "Gaussian, with delta", "nothing, 1,000 records"
NOISES = (K_NORM, LAPLACE, COMPOSED, GAUSSIAN)


def mechanism(name: str, k: int) -> CountsMechanism[Loss]:
    """The mechanism of a curve."""
    if name == K_NORM:
        return KNormCounts(k, EPSILON)
    if name == LAPLACE:
        return LaplaceCounts(k, EPSILON)
    return ComposedLaplaceCounts(k, EPSILON, DELTA) if name == COMPOSED else GaussianCounts(k, EPSILON, DELTA)


def measure_rules(point: Point) -> Measurement:
    """What k answers of pure loss `EACH` come to beside delta, by every rule."""
    return {rule: epsilon({Pure(nano_epsilon(EACH)): point["k"]}, DELTA, rule) for rule in RULES}


def _small(k: int, n: int) -> SmallDatabases[tuple[int, ...], ColumnCounts]:
    return SmallDatabases(list(product((0, 1), repeat=k)), n, lambda rows: ColumnCounts.of(np.array(rows)))


def measure_transcripts(point: Point) -> Measurement:
    """The delta that k counts with Laplace noise of half a nat each lose beside 1 nat, enumerated over all neighbours; and by the exact rule."""
    k = point["k"]
    counts = LaplaceCounts(k, k / 2)
    return {
        "enumerated": float(_small(k, 1).worst_delta(counts, Pure(nano_epsilon(EPSILON)))),
        "exact": delta({Pure(nano_epsilon(0.5)): k}, EPSILON),
    }


def measure_privacy(point: Point) -> Measurement:
    """The worst delta over all pairs of small databases, less what is allowed, at epsilon; and at a thousandth less than it."""
    counts, databases = mechanism(point["name"], point["k"]), _small(point["k"], point["n"])
    spent = [float(databases.worst_delta(counts, Pure(counts.loss.nano * part // 1000)) - counts.loss.atto / ATTO) for part in (1000, 999)]
    return dict(zip(("at", "below"), spent, strict=True))


def measure_normal(point: Point) -> Measurement:
    """The delta of the Gaussian noise on k counts beside epsilon, by the exact rule, as if it were discrete; and of a tenth less of its variance."""
    variance = GaussianCounts(point["k"], EPSILON, DELTA).variance
    found = [delta({DiscreteGaussian(-(-ATTO * 10 // (variance * part))): point["k"]}, EPSILON) for part in (10, 9)]
    return dict(zip(("at", "below"), found, strict=True))


def measure_errors(point: Point, seed: int) -> Measurement:
    """The largest error of each run; its rank in the stated law, made uniform; and the stated median."""
    k = point["k"]
    draws, generator = Draws(KeyedNoise(seed), k), np.random.default_rng([seed, k])
    table = ColumnCounts(RECORDS, np.linspace(0, RECORDS, k).astype(np.int64))
    if point["name"] == NOTHING:
        return {"errors": [NoCounts().release(table, draws).largest_error(table)]}
    counts = mechanism(point["name"], k)
    errors = [counts.release(table, draws).largest_error(table) for _ in range(point["runs"])]
    ends = [(counts.within(error - 1) if error else 0.0, counts.within(error)) for error in errors]
    return {"errors": errors, "ranks": [low + (high - low) * generator.random() for low, high in ends], "stated": counts.median_error}
