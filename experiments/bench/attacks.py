"""The attacks' speeds, each beside numpy's product of the same matrix with itself."""

from collections.abc import Callable

import numpy as np

from local_dp.attacks.reconstruction import Decoder, least_largest, least_squares, random_subsets
from local_dp.attacks.tracing import traced
from local_dp.experiments.bench.speeds import Speed, best_of
from local_dp.experiments.text.screen import SCREEN

PROGRAM, SQUARES, BITS, SUSPECTS = 200, 1000, 10_000, 200  # rows of the linear program, of least squares; bits and rows of a trace


def attack_speeds() -> list[Speed]:
    """Decoding 4 n counts with noise within sqrt(n) / 2, and p-values of 200 suspects, on one core."""
    generator = np.random.default_rng(0)
    speeds = [_decoding("linear program", least_largest, PROGRAM, generator), _decoding("least squares", least_squares, SQUARES, generator)]
    shares = generator.uniform(0.01, 0.99, BITS)
    rows = generator.random((SUSPECTS, BITS)) < shares
    means = rows[: SUSPECTS // 2].mean(axis=0)
    numbers = rows.astype(np.float64)
    speeds.append(_speed(f"tracing, {SUSPECTS} rows of {BITS:,} bits", lambda: traced(shares, means, rows), lambda: numbers @ numbers.T, 0.5))
    return speeds


def _decoding(name: str, decoder: Decoder, n: int, generator: np.random.Generator) -> Speed:
    """Of n bits."""
    matrix = random_subsets(4 * n, n, generator).astype(np.float64)
    sums = matrix @ (generator.random(n) < 0.5) + generator.uniform(-0.5, 0.5, 4 * n) * np.sqrt(n)
    return _speed(f"reconstruction by {name}, n = {n:,}", lambda: decoder(matrix, sums), lambda: matrix.T @ matrix, 2.0)


def _speed(what: str, work: Callable[[], object], bare: Callable[[], object], asked: float) -> Speed:
    SCREEN.working(f"measuring {what}")
    seconds = best_of(work)
    return Speed(what, seconds, "s", best_of(bare), asked, seconds <= asked)
