"""Likelihoods of masked-parity concepts given the tallies of one-bit Hadamard reports."""

from collections.abc import Sequence

import numpy as np

from local_dp.arrays import Floats
from local_dp.cube import parity
from local_dp.randomizers.frequencies.hadamard import SignedHadamard
from local_dp.tallies import Tally


def signs_of(d: int, vectors: Sequence[int]) -> Floats:
    """(-1)^(r_j) for each bit j of each vector r, shape (d, number of vectors)."""
    return np.array([[1.0 - 2.0 * (r >> place & 1) for r in vectors] for place in range(d)])


def position_means(rows: int, listed: int, d: int, vectors: Sequence[int]) -> Floats:
    """The mean of y H[l, listed + i] over examples with b = 1, for each row l and vector r, shape (rows, number of vectors)."""
    symbols = np.arange(listed, listed + d, dtype=np.uint32)
    odd = parity(np.arange(rows, dtype=np.uint32)[:, None] & symbols[None, :])
    means: Floats = (1.0 - 2.0 * odd.astype(np.float64)) @ signs_of(d, vectors) / d
    return means


def log_likelihood(signs: Floats, means: Floats, randomizer: SignedHadamard) -> Floats:
    """ln Pr[reports] up to a constant, for sign counts of shape (cells, 2) and true signs of mean `means`, shape (cells, hypotheses)."""
    lean = means / randomizer.gain
    scores: Floats = signs[:, 0] @ np.log1p(lean) + signs[:, 1] @ np.log1p(-lean)
    return scores


def hashing_likelihood(tally: Tally, randomizer: SignedHadamard, d: int, vectors: Sequence[int]) -> Floats:
    """ln Pr[one-round hashing's tally | r] up to a constant, for each vector r: half of the clients hash their bit, half send the public coin.

    Raises InputError if nobody answered.
    """
    rows = randomizer.cells // 2
    coin = np.array([1.0, -1.0])
    means = (position_means(rows, 0, d, vectors)[:, None, :] + coin[None, :, None]) / 2
    return log_likelihood(tally.weights, means.reshape(2 * rows, -1), randomizer)


def listing_likelihood(tally: Tally, randomizer: SignedHadamard, d: int, listed: int, vectors: Sequence[int], correlations: Floats) -> tuple[Floats, Floats]:
    """ln Pr[a list query's tally | r, a] up to a constant, for a = 0 and a = 1 and each vector r.

    `correlations` holds the mean of (-1)^a y q_l(x) over examples with b = 0, q_l being the function row l asks for; shape (rows, number of vectors).
    Raises InputError if nobody answered.
    """
    signs = tally.weights.reshape(-1, 2, 2).sum(axis=1)  # of both coins
    positions = position_means(randomizer.cells // 2, listed, d, vectors)
    plus, minus = ((positions + sign * correlations) / 2 for sign in (1, -1))
    return log_likelihood(signs, plus, randomizer), log_likelihood(signs, minus, randomizer)
