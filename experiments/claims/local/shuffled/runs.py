"""What the experiment `shuffled` measures at one point."""

import math
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.experiments.lab.claim import Measurement, Point
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.shuffle.accountant import amplified
from local_dp.shuffle.enumerated import rows_of, worst_delta
from local_dp.shuffle.histogram import Target, multi_message, single_message

LOCAL, DELTA, K = 1.0, 1e-6, 16
RR, KARY, HADAMARD = "randomized response", f"{K}-ary response", "one-bit Hadamard"
TARGET = Target(10_000, 1.0, DELTA)
ALONE, ONE, MANY, CURATOR = "local", "shuffled, one report", "shuffled, blanket messages", "curator"
MODELS = (ALONE, ONE, MANY, CURATOR)
SHARES = np.arange(K, 0, -1) / (K * (K + 1) / 2)  # of the symbols, none alike


def randomizer(name: str) -> FiniteChannel:
    """One of the three, at the local epsilon."""
    kinds: dict[str, Any] = {RR: lambda: BinaryRR(LOCAL), KARY: lambda: GRR(LOCAL, k=K), HADAMARD: lambda: Hadamard(LOCAL, k=K)}
    made: FiniteChannel = kinds[name]()
    return made


def measure_bounds(point: Point) -> Measurement:
    """Every bound of so many shuffled reports."""
    found = amplified(randomizer(point["name"]), point["n"], DELTA)
    return {"uppers": found.uppers, "lower": found.lower, "upper": found.upper, "exact": found.exact}


def measure_enumerated(point: Point) -> Measurement:
    """Delta over all data sets of a few clients, in fractions, at each bound on epsilon: no more than asked at the upper ones, no less at the lower."""
    small: FiniteChannel = BinaryRR(LOCAL) if point["k"] == 2 else GRR(LOCAL, k=point["k"])
    found = amplified(small, point["n"], point["delta"])
    ends = [*found.uppers.values(), found.lower]
    deltas = worst_delta(rows_of(small), point["n"], [Fraction(math.exp(end)) for end in ends])
    return {"uppers": {rule: float(each) for rule, each in zip(found.uppers, deltas, strict=False)}, "lower": float(deltas[-1]), "least": found.lower}


def measure_errors(point: Point, seed: int) -> Measurement:
    """Mean squares over the symbols of the errors of a histogram, run by run, and what theory says of them; the same people in every run."""
    generator, counts = np.random.default_rng(seed), np.round(SHARES * TARGET.clients).astype(np.int64)
    counts[0] += TARGET.clients - counts.sum()
    draw, expected = {CURATOR: _curator, MANY: _many}.get(point["model"], _reports)(point["model"], counts)
    errors = [draw(generator) - counts / TARGET.clients for _ in range(point["runs"])]
    return {"squares": [float((error**2).mean()) for error in errors], "bias": np.mean(errors, axis=0).tolist(), "expected": expected}


def _reports(model: str, counts: Any) -> Any:
    oracle = GRR(TARGET.epsilon, k=K) if model == ALONE else single_message("grr", K, TARGET)
    assert isinstance(oracle, GRR)
    held, n = dict(enumerate(counts.tolist())), TARGET.clients
    p, q = oracle.truth / oracle.total, oracle.other / oracle.total
    expected = (p * (1 - p) + (K - 1) * q * (1 - q)) / (K * n * (p - q) ** 2)
    return lambda generator: oracle.estimate(oracle.draw_tally(held, generator)).value, expected


def _many(model: str, counts: Any) -> Any:
    histogram, n = multi_message(K, TARGET), TARGET.clients
    law = np.append(np.full(K, histogram.share), 1 - K * histogram.share)

    def draw(generator: np.random.Generator) -> Any:
        blanket = generator.multinomial(n * histogram.tries, law)[:K]
        return histogram.estimate(type(histogram.tally(np.arange(K), n))(counts + blanket, n)).value

    return draw, histogram.variance(n)


def _curator(model: str, counts: Any) -> Any:
    """Discrete Laplace noise on each count, of which a replaced record moves two."""
    n, ratio = TARGET.clients, math.exp(-TARGET.epsilon / 2)

    def draw(generator: np.random.Generator) -> Any:
        return (counts + generator.geometric(1 - ratio, K) - generator.geometric(1 - ratio, K)) / n

    return draw, 2 * ratio / (1 - ratio) ** 2 / n**2
