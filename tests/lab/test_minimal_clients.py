"""The search for the least number of clients, on success curves that are known."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from experiments.lab.minimal_clients import exact_recovery, minimal_clients
from local_dp.bounds.normal import normal_quantile, normal_tail
from local_dp.errors import InputError
from local_dp.masked_parity.two_rounds import MaskedParityLearner


def threshold_decoder(scale: float, seed: int) -> Callable[[int, int], int]:
    """Success with probability Phi(sqrt(n / scale)), n90 = 1.2816^2 scale."""
    generator = np.random.default_rng(seed)
    return lambda n, runs: int(generator.binomial(runs, 1 - normal_tail(math.sqrt(n / scale))))


def twenty_bits(scale: float, seed: int) -> Callable[[int, int], int]:
    """Success when twenty such decoders all succeed: a steep curve that is not a probit curve."""
    generator = np.random.default_rng(seed)
    return lambda n, runs: int(generator.binomial(runs, (1 - normal_tail(math.sqrt(n / scale))) ** 20))


def n90(scale: float, bits: int) -> float:
    return float(scale * normal_quantile(1 - 0.9 ** (1 / bits)) ** 2)


@pytest.mark.parametrize("guess", [20, 1_640, 300_000])
def test_search_finds_a_known_count_from_any_guess(guess: int) -> None:
    """From guesses 80 times too low and 180 times too high the answer is within 12 % of the truth: 4.9 standard errors, failure probability 1e-6 each."""
    found = minimal_clients(threshold_decoder(1000.0, 1), guess, trials=20_000)
    assert found.n == pytest.approx(n90(1000.0, 1), rel=0.12)


@pytest.mark.parametrize(("bits", "curve"), [(1, threshold_decoder), (20, twenty_bits)])
def test_intervals_cover(bits: int, curve: Callable[[float, int], Callable[[int, int], int]]) -> None:
    """Of sixty 95 % intervals at least 47 cover the truth (Pr[Binomial(60, .95) < 47] < 1e-5); shifted by a quarter, a wrong twin, fewer do."""
    truth = n90(500.0, bits)
    runs = [minimal_clients(curve(500.0, seed), round(0.7 * truth), trials=2500) for seed in range(60)]
    assert sum(found.low <= truth <= found.high for found in runs) >= 47
    assert sum(found.low <= 1.25 * truth <= found.high for found in runs) < 47


def test_interval_shrinks_with_the_runs() -> None:
    """Sixteen times the runs give about a quarter of the interval."""
    few, many = (minimal_clients(threshold_decoder(1000.0, 3), 1600, trials=trials) for trials in (2_000, 32_000))
    assert (many.high - many.low) < 0.4 * (few.high - few.low)
    assert many.trials >= 32_000


def test_flat_success_is_refused() -> None:
    """A curve that clients do not improve has no least count, and the search says so."""
    with pytest.raises(InputError, match="does not reach"):
        minimal_clients(lambda n, runs: runs // 2, 100, trials=200)
    with pytest.raises(InputError, match="guess"):
        minimal_clients(lambda n, runs: runs, 1)


def test_recovery_counts_exact_concepts() -> None:
    """`exact_recovery` counts runs that find the concept: all with plenty of clients, about 2^-5 with hardly any, reproducibly."""
    protocol = MaskedParityLearner(d=4)
    assert exact_recovery(protocol, 1.0, 5)(20_000, 40) == 40
    assert exact_recovery(protocol, 1.0, 5)(4, 200) < 40
    assert exact_recovery(protocol, 1.0, 6)(1000, 100) == exact_recovery(protocol, 1.0, 6)(1000, 100)
