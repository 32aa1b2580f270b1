"""Are two categories independent? A chi-square statistic of estimated shares, and its p-value under sampling and privacy noise together."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.postprocessing.shapes import onto_simplex
from local_dp.protocols.surveys.shares import Conditional
from local_dp.randomizers.finite import report_law
from local_dp.randomizers.frequencies.base import FiniteOracle
from local_dp.tallies import Tally

REPETITIONS = 999
_LEAST = 0.1  # of a uniform share: what an estimated margin is taken for at least, as a divisor


@dataclass(frozen=True)
class Independence:
    """`chi_square` of the estimated table; what independence would give with this noise, on average; and Pr[at least as much | independent]."""

    chi_square: float
    if_independent: float
    degrees_of_freedom: int
    p_value: float


def independence(oracle: FiniteOracle, tally: Tally, shape: tuple[int, int] | tuple[int, ...], conditional: Conditional) -> Independence:
    """The test by parametric bootstrap: 999 whole tallies drawn from independent columns with the estimated margins, through the same channel.

    n sum (p_ij - p_i p_j)^2 / (p_i p_j) of noisy shares is many times what the textbook's law expects, so its law is simulated. The margins are the
    estimated ones moved to the nearest distribution; p is at least 1/1000, and for independent columns uniform up to their error.
    Source: Gaboardi, Rogers 2018 (Monte Carlo tests under local privacy).
    """
    n = tally.answered
    shares = _shares(oracle, tally.counts, conditional)
    seen = float(_chi_square(shares.reshape(shape), n))
    table = onto_simplex(shares).reshape(shape)
    law = np.zeros(conditional.parts.shape[1])
    law[: table.size] = np.outer(table.sum(axis=1), table.sum(axis=0)).ravel()
    if len(law) > table.size:  # the symbols left out keep their share
        lost = np.clip(1 - oracle.joint(tally, conditional.wholes[:1]).value[0], 0.0, 0.99)
        law = law * (1 - lost)
        law[table.size :] = lost / (len(law) - table.size)
    reports = sum(share * report_law(oracle, value) for value, share in enumerate(law.tolist()) if share)
    generator = np.random.default_rng(0)  # fixed: the p-value is a function of the tally
    drawn = generator.multinomial(n, reports / np.sum(reports), size=REPETITIONS).reshape(REPETITIONS, *tally.counts.shape)
    chance = _chi_square(_shares(oracle, drawn, conditional).reshape(REPETITIONS, *shape), n)
    beyond = int(np.count_nonzero(chance >= seen))
    degrees = (shape[0] - 1) * (shape[1] - 1)
    return Independence(seen, float(chance.mean()), degrees, (1 + beyond) / (1 + REPETITIONS))


def _shares(oracle: FiniteOracle, counts: Counts, conditional: Conditional) -> Floats:
    """The estimated shares among those who have a place, shape (..., shown); where nobody is seen to, as if all had."""
    estimated = oracle.values(counts)
    whole = estimated @ conditional.wholes.T
    shares: Floats = estimated @ conditional.parts.T / np.where(whole > 0, whole, 1.0)
    return shares


def _chi_square(table: Floats, n: int) -> Floats:
    """The statistic of each table, shape (..., rows, columns) to (...)."""
    rows, columns = table.sum(axis=-1, keepdims=True), table.sum(axis=-2, keepdims=True)
    expected = np.maximum(rows, _LEAST / table.shape[-2]) * np.maximum(columns, _LEAST / table.shape[-1])
    statistic: Floats = n * ((table - rows * columns) ** 2 / expected).sum(axis=(-2, -1))
    return statistic
