"""Private minimisation as online learning: a perturbed minimum of each prefix of a sequence of
losses is follow the perturbed leader."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.checks import check_dimension
from local_dp.curator.inversion import discrete_laplaces
from local_dp.curator.oracle_efficient.separated import Separated
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, nano_epsilon

MAX_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class LossSequence:
    """The loss, 0 or 1, of each of N experts in each of T rounds, shape (T, N): fixed before the
    first round."""

    losses: Counts

    def __post_init__(self) -> None:
        matrix = self.losses.ndim == 2 and 1 <= self.losses.size <= MAX_CELLS
        if not matrix or np.any((self.losses != 0) & (self.losses != 1)):
            raise InputError(
                f"the losses have shape {self.losses.shape}; give 0 or 1 for T rounds and N "
                "experts, at most 2^24 in all"
            )

    @cached_property
    def before(self) -> Counts:
        """The totals of each expert before each round, shape (T, N)."""
        return np.cumsum(self.losses, axis=0) - self.losses

    @property
    def best(self) -> int:
        """The total of the best expert."""
        return int(self.losses.sum(axis=0).min())

    def regret(self, noise: Floats) -> int:
        """Of the leader under the noise of the experts in each round, shape (T, N), above the best
        expert."""
        leaders = np.argmin(self.before + noise, axis=1)
        return int(self.losses[np.arange(len(leaders)), leaders].sum()) - self.best

    def gumbel_regret(self, epsilon: float) -> float:
        """Of the exponential mechanism at epsilon, exactly: the leader under Gumbel noise of scale
        2 / eps has weight e^(-eps total / 2)."""
        before = self.before
        weights = np.exp(-epsilon / 2 * (before - before.min(axis=1, keepdims=True)))
        return float(((weights * self.losses).sum(axis=1) / weights.sum(axis=1)).sum()) - self.best


def separator_noise(queries: Separated, epsilon: float, count: int, draws: Draws) -> Floats:
    """What RSPM at epsilon adds to the total of each query, `count` times, shape (count, N): sums
    of whole noise on m separators, exact in floats."""
    m, each = len(queries.separators), Fraction(nano_epsilon(epsilon), queries.shift) / NANO
    weights = discrete_laplaces(draws, each, count * m).reshape(count, m).astype(np.float64)
    return np.asarray(weights @ queries.values(queries.separators).astype(np.float64).T)


def leader_attack(values: Ints, rounds: int) -> LossSequence:
    """Losses against the leader without noise: in each round the point and label, among all, that
    the leader gets wrong and most other queries right.

    `values`, shape (N, points), are the queries' values of 0 or 1; the loss of a query is whether
    it differs from the label.
    """
    # of labels 0 and 1, shape (2 points, N)
    errors = np.concatenate([values, 1 - values], axis=1).T.astype(np.int64)
    totals = np.zeros(errors.shape[1], dtype=np.int64)
    losses = np.empty((rounds, len(totals)), dtype=np.int64)
    for place in range(rounds):
        wrong = errors[errors[:, int(np.argmin(totals))] == 1]
        losses[place] = wrong[int(np.argmin(wrong.sum(axis=1)))]
        totals += losses[place]
    return LossSequence(losses)


def path_game(
    d: int, rounds: int, likeliest: Callable[[Counts], int], generator: np.random.Generator
) -> LossSequence:
    """A game after Hazan and Koren 2016: experts are the vertices of a cube, and only the next
    vertex on the way to a hidden end has no loss.

    The way is a random walk of 2^(d/2) steps, cut to its first visits; other vertices lead to its
    start. In each round the adversary plays the `likeliest` expert of the totals so far, which
    loses, as all do but the next one. At the end there is no next one, and the end does not lose.
    """
    check_dimension(d, 12)
    following = _ways(d, generator)
    losses = np.ones((rounds, 1 << d), dtype=np.int64)
    totals = np.zeros(1 << d, dtype=np.int64)
    for place in range(rounds):
        losses[place, following[likeliest(totals)]] = 0
        totals += losses[place]
    return LossSequence(losses)


def _ways(d: int, generator: np.random.Generator) -> Ints:
    """The next vertex of each vertex."""
    walk = [int(generator.integers(1 << d))]
    for bit in generator.integers(0, d, round(2 ** (d / 2))).tolist():
        walk.append(walk[-1] ^ 1 << bit)
    visits = {vertex: place for place, vertex in reversed(list(enumerate(walk)))}
    vertices = np.arange(1 << d)
    ranks = [visits.get(vertex, -(vertex ^ walk[0]).bit_count()) for vertex in vertices.tolist()]
    neighbours = vertices[:, None] ^ np.append(0, 1 << np.arange(d))  # with itself, first
    return np.asarray(neighbours[vertices, np.array(ranks)[neighbours].argmax(axis=1)])
