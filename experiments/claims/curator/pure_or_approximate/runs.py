"""The least number of records for 90 % success: exact sums where there is one, else exact chances given a sample, averaged over samples; and runs there."""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.bounds.packing import least_records, plain_success, point_records, pure_success, stable_success, threshold_records
from local_dp.draws import Draws
from local_dp.experiments.claims.curator.pure_or_approximate.cases import ALPHA, EPSILON, SUCCESS, Case, Cases, point_cases, threshold_cases
from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.loss import approximate
from local_dp.noise import KeyedNoise

BEYOND = 1 << 14
MOST: dict[tuple[str, str], int] = {  # where a search ends, at first: more than any of them needs
    ("points", "buckets"): 300,
    ("points", "labels"): 300,
    ("thresholds", "dyadic"): 1000,
    ("thresholds", "RecConcave"): 2600,
    ("thresholds", "labels"): 250,
    ("thresholds", "semi-private"): 250,
}
SEEN = 1.96  # standard errors of the mean chance that its interval reaches to


def measure_learner(point: Point, seed: int) -> Measurement:
    """The least number of records of one learner on one domain, its loss, and how often runs with so many are right."""
    of, kind, bits, delta = point["of"], point["kind"], point["bits"], point["delta"]
    generator = np.random.default_rng([seed, bits, len(of), len(kind), round(-math.log10(delta or 1))])
    made = point_cases if of == "points" else threshold_cases
    banks = [made(kind, bits, delta, generator) for _ in range(point["samples"])]
    if (of, kind) in MOST:
        found = _least_sampled(banks, MOST[of, kind], generator)
    else:
        success = _exact(of, kind, bits, delta)
        n = least_records(success, SUCCESS)
        found = {"n": n, "low": n, "high": n, "law": next(iter(banks[0])), "success": success(n), "others": min(_means(banks, n, generator).values())}
    loss = banks[0][found["law"]].learner.loss
    return found | {"nano": loss.nano, "atto": getattr(loss, "atto", 0)} | _runs(banks, found, point["runs"], generator)


def measure_proven(point: Point, seed: int) -> Measurement:
    """What no pure proper learner does with fewer than, and what is enough without privacy: the least threshold without an error errs to one side only."""
    bound = point_records if point["of"] == "points" else threshold_records
    return {"n": bound(point["bits"], EPSILON, ALPHA, 1 - SUCCESS), "plain": least_records(lambda m: plain_success(m, ALPHA), SUCCESS)}


def _exact(of: str, kind: str, bits: int, delta: float) -> Callable[[int], float]:
    """The success by exact sums over the worst distribution."""
    if of == "thresholds":
        return lambda m: needle_success(bits, m)
    if kind == "pure":
        return lambda m: pure_success(bits, EPSILON, m, ALPHA)
    return lambda m: stable_success(approximate(EPSILON, delta), m, ALPHA)


def needle_success(bits: int, m: int) -> float:
    """Pr[the exponential mechanism over all thresholds tells the target]: against all those below and above, J and K examples next to it, alpha m expected.

    J + K ~ Bin(m, 2 alpha), and J ~ Bin(J + K, 1/2).
    """
    around = m * ALPHA + np.arange(-1, 2, 2) * (9 * math.sqrt(m * ALPHA) + 30)
    held = np.arange(max(0, math.floor(around[0])), min(m, math.ceil(around[1])) + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, m + 1)))])
    j, k = held[:, None], held[None, :]
    rest = m - j - k
    ways = factorials[m] - factorials[j] - factorials[k] - factorials[np.maximum(rest, 0)]
    logs = np.where(rest >= 0, ways + (j + k) * math.log(ALPHA) + rest * math.log(1 - 2 * ALPHA), -np.inf)
    others = (bits - 1) * math.log(2) + np.logaddexp(-EPSILON * j / 2, -EPSILON * k / 2)
    return float((np.exp(logs) / (1 + np.exp(np.minimum(others, 700.0)))).sum())


def _least_sampled(banks: list[Cases], most: int, generator: np.random.Generator) -> Measurement:
    """The largest of the least numbers that the distributions ask for, with two standard errors on both sides."""
    found: Measurement = {"n": 1}
    for law in banks[0]:
        chances = _chances([(bank[law], bank[law].order(most, generator)) for bank in banks])
        while chances(most).mean() < SUCCESS and most < BEYOND:
            most *= 2
            chances = _chances([(bank[law], bank[law].order(most, generator)) for bank in banks])
        if chances(found["n"]).mean() < SUCCESS:
            n = _least(chances, most)
            off = SEEN * _standard_error(chances, n)
            found = {"n": n, "low": round(n - off, 1), "high": round(n + off, 1), "law": law}
    return found


def _chances(held: list[tuple[Case, Ints]]) -> Callable[[int], Floats]:
    """The chances of all samples with n records each; computed once for each n."""
    return cache(lambda n: np.array([case.chance(case.sample(order[:n])) for case, order in held]))


def _least(chances: Callable[[int], Floats], most: int) -> int:
    """The least number, to 1/2 % of it, for a mean chance that grows with the number of records."""
    low, high = 0, most
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if chances(middle).mean() >= SUCCESS else (middle, high)
    return high


def _standard_error(chances: Callable[[int], Floats], n: int) -> float:
    """Of the least number: that of the mean chance, by what a record changes, over a tenth of the records on both sides."""
    step = max(1, n // 10)
    slope = float(chances(n + step).mean() - chances(n - step).mean()) / (2 * step)
    return float(chances(n).std(ddof=1)) / math.sqrt(len(chances(n))) / max(slope, 1e-9)


def _means(banks: list[Cases], n: int, generator: np.random.Generator) -> dict[str, float]:
    """The mean chance in each distribution; plus three standard errors, which is how far it may be from the truth."""
    found = {}
    for law in banks[0]:
        values = np.array([bank[law].chance(bank[law].sample(bank[law].order(n, generator))) for bank in banks])
        found[law] = float(values.mean() + 3 * values.std(ddof=1) / math.sqrt(len(values)))
    return found


def _runs(banks: list[Cases], found: Measurement, runs: int, generator: np.random.Generator) -> Measurement:
    """Releases at the least number, each on a fresh sample: how often they are right; expected: by exact sums, or by the chances on the samples."""
    draws, right, expected = Draws(KeyedNoise(int(generator.integers(1 << 32)))), 0, 0.0
    for number in range(runs):
        case = banks[number % len(banks)][found["law"]]
        sample = case.sample(case.order(found["n"], generator))
        expected += found["success"] if "success" in found else case.chance(sample)
        right += case.right(case.learner.release(sample, draws))
    return {"right": right, "expected": expected}
