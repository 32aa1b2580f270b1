"""How hard a class is for statistical queries, and so for the local model: SQ dimension, spectral
dimension, the lower bound on clients (limits 5.2).

With a greedy search for cliques of a small graph, and an exact one by branch and bound.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.bounds.channels import interactive_bound
from local_dp.errors import InputError
from local_dp.populations.concepts import ConceptClass


def greedy_clique(adjacent: Bools, generator: np.random.Generator) -> list[int]:
    """A maximal clique of a symmetric graph, shape (N, N): the vertex with the most neighbours
    first, ties at random. Cost: O(N^2) a vertex."""
    candidates: Bools = np.ones(len(adjacent), dtype=np.bool_)
    weights = adjacent.astype(np.float32)
    clique: list[int] = []
    while candidates.any():
        degrees: Floats = np.where(candidates, weights @ candidates.astype(np.float32), -1.0)
        best: Counts = np.flatnonzero(degrees == degrees.max())
        vertex = int(generator.choice(best))
        clique.append(vertex)
        candidates &= adjacent[vertex]
    return clique


class CliqueSearch:
    """Exact search for a clique by branch and bound (Tomita, Seki 2003), exponential in general;
    `finished` unless it used up its `steps`."""

    def __init__(self, adjacent: Bools, steps: int) -> None:
        # few neighbours first: coloured first, branched on last
        self._order = np.argsort(adjacent.sum(axis=1), kind="stable")
        self._masks = [
            sum(1 << int(place) for place in np.flatnonzero(adjacent[vertex][self._order]))
            for vertex in self._order
        ]
        self._steps = steps

    @property
    def finished(self) -> bool:
        return self._steps > 0

    def find(self, size: int) -> list[int] | None:
        """A clique of `size` vertices, or None if there is none or the steps ran out."""
        clique = self._extend((1 << len(self._masks)) - 1, size, [])
        return None if clique is None else [int(self._order[place]) for place in clique]

    def _extend(self, candidates: int, missing: int, clique: list[int]) -> list[int] | None:
        if missing <= 0:
            return clique
        for vertex, colours in reversed(_colour(self._masks, candidates)):
            # a clique takes one vertex of a colour, and colours only fall from here
            if colours < missing or self._steps <= 0:
                return None
            self._steps -= 1
            larger = self._extend(candidates & self._masks[vertex], missing - 1, [*clique, vertex])
            if larger is not None:
                return larger
            candidates &= ~(1 << vertex)
        return None


def _colour(masks: list[int], candidates: int) -> list[tuple[int, int]]:
    """The candidates, each with the number of colours used up to it, so that no two adjacent ones
    share a colour."""
    order, colour = [], 0
    while candidates:
        colour += 1
        free = candidates
        while free:
            vertex = (free & -free).bit_length() - 1
            order.append((vertex, colour))
            candidates &= ~(1 << vertex)
            free &= ~(1 << vertex) & ~masks[vertex]
    return order


MAX_EXACT = 200  # concepts, up to negation, for which the SQ dimension is searched exactly
MAX_STEPS = 300_000  # of the exact search for one size: some seconds
MAX_GRAPH = 6000  # concepts, up to negation, of which all pairs are kept
MAX_RANK = 1024
RESTARTS = 4
CHECK_EVERY = 20
GAP = 0.005  # of the optimised dimension
OPERATIONS = 2e11  # of its search


@dataclass(frozen=True)
class SQDimension:
    """`concepts` are m different concepts with correlations of at most 1/m; no m + 1 exist if
    `exact`, else the search found none."""

    concepts: tuple[int, ...]
    exact: bool

    @property
    def value(self) -> int:
        """m."""
        return len(self.concepts)


@dataclass(frozen=True)
class SpectralDimension:
    """`value` = 1 / lambda_max of the correlations weighted by `prior`, shape (concepts,); no prior
    gives more than `at_most`."""

    value: float
    at_most: float
    prior: Floats

    def __post_init__(self) -> None:
        # they may cross by a rounding error where they meet
        object.__setattr__(self, "at_most", max(self.value, self.at_most))


def sq_dimension(
    concepts: ConceptClass, generator: np.random.Generator, steps: int = MAX_STEPS
) -> SQDimension:
    """The largest m with m concepts of pairwise |correlation| <= 1/m (Szorenyi's form of Blum et
    al. 1994).

    Exact up to 200 concepts (a concept and its negation count once) if the search for m + 1 ends
    within `steps`, else a greedy lower bound. Learning with advantage tau then takes (m tau^2 - 1)
    / 2 queries of tolerance tau. Cost: O(|C|^2 (|X| + m)) for the greedy bound.
    """
    representatives, correlations = _up_to_negation(concepts)
    clique, exact = [0], len(representatives) <= MAX_EXACT
    while len(clique) < len(representatives):
        size = len(clique) + 1
        adjacent: Bools = correlations * size <= concepts.total
        np.fill_diagonal(adjacent, False)
        tries = (greedy_clique(adjacent, generator) for _ in range(RESTARTS))
        larger = next((each for each in tries if len(each) >= size), None)
        if larger is None and exact:
            search = CliqueSearch(adjacent, steps)
            larger, exact = search.find(size), search.finished
        if larger is None:
            break
        inside = correlations[np.ix_(larger, larger)] - np.diag(np.diag(correlations)[larger])
        closest = int(inside.max())
        clique = larger[
            : max(size, min(len(larger), concepts.total // closest if closest else len(larger)))
        ]
    return SQDimension(tuple(sorted(int(representatives[place]) for place in clique)), exact)


def _up_to_negation(concepts: ConceptClass) -> tuple[Counts, Counts]:
    """One concept of each pair {c, -c}, and total |E[c c']| of all pairs of them."""
    labels = concepts.labels[:, concepts.weights > 0]
    _, representatives = np.unique(labels * labels[:, :1], axis=0, return_index=True)
    if len(representatives) > MAX_GRAPH:
        raise InputError(
            f"{concepts.name} has {len(representatives)} concepts up to negation; the SQ "
            f"dimension is searched up to {MAX_GRAPH}"
        )
    signs = concepts.labels[np.sort(representatives)].astype(np.float64)
    products = (signs * concepts.weights) @ signs.T
    return np.sort(representatives), np.abs(np.rint(products)).astype(np.int64)


def uniform_dimension(concepts: ConceptClass) -> SpectralDimension:
    """|C| / lambda_max(K), K the correlation matrix: the spectral dimension with the uniform prior,
    against random labels. Cost: one eigenproblem."""
    vectors = _coordinates(concepts)
    prior = np.full(len(vectors), 1 / len(vectors))
    value = 1 / _largest(vectors, prior)
    return SpectralDimension(
        value, optimistic_bound(vectors, np.eye(vectors.shape[1]) / vectors.shape[1]), prior
    )


def optimised_dimension(concepts: ConceptClass) -> SpectralDimension:
    """The largest spectral dimension over all priors, within a relative gap of .005; `at_most`
    gives the remaining one.

    A zero-sum game between a prior and a density matrix, solved by optimistic multiplicative
    weights on both sides; every prior gives a lower bound and every density matrix an upper one.
    Cost: one eigenproblem of size min(|C|, |X|) and O(|C| |X|^2) a step; from 100 steps to 2,000 as
    `OPERATIONS` allow.
    """
    vectors = _coordinates(concepts)
    best = uniform_dimension(concepts)
    rank = vectors.shape[1]
    cost = 3 * len(vectors)
    steps = int(min(2000, max(100, OPERATIONS / (cost * rank**2 + 10 * rank**3))))
    losses = np.zeros(len(vectors))
    previous_loss = np.zeros(len(vectors))
    gains = np.zeros((rank, rank))
    previous_gain = np.zeros((rank, rank))
    prior_sum = np.zeros(len(vectors))
    density_sum = np.zeros((rank, rank))
    for step in range(1, steps + 1):
        # losses near the equilibrium are about 1 / at_most, which falls towards the value
        rate = best.at_most / 2
        values, axes = np.linalg.eigh(rate * (gains + previous_gain))
        weights = np.exp(values - values[-1])
        density = (axes * (weights / weights.sum())) @ axes.T
        prior = np.exp(-rate * (losses + previous_loss - (losses + previous_loss).min()))
        prior /= prior.sum()
        previous_loss = np.einsum("cj,cj->c", vectors @ density, vectors)
        previous_gain = (vectors * prior[:, None]).T @ vectors
        losses, gains = losses + previous_loss, gains + previous_gain
        prior_sum, density_sum = prior_sum + prior, density_sum + density
        if step % CHECK_EVERY == 0:
            value, best_prior = max(
                (
                    (1 / _largest(vectors, each), each)
                    for each in (prior, prior_sum / prior_sum.sum())
                ),
                key=lambda pair: pair[0],
            )
            at_most = min(
                best.at_most,
                optimistic_bound(vectors, density),
                optimistic_bound(vectors, density_sum / step),
            )
            best = (
                SpectralDimension(value, at_most, best_prior)
                if value > best.value
                else SpectralDimension(best.value, at_most, best.prior)
            )
            if best.at_most <= best.value * (1 + GAP):
                break
    return best


def _coordinates(concepts: ConceptClass) -> Floats:
    """The unit vectors sqrt(D(x)) c(x), one a row, in an orthonormal basis of their span."""
    vectors: Floats = concepts.labels.astype(np.float64) * np.sqrt(concepts.shares)
    if min(vectors.shape) > MAX_RANK:
        raise InputError(
            f"{concepts.name}: {vectors.shape[0]} concepts on {vectors.shape[1]} points; one of "
            f"the two may be at most {MAX_RANK}"
        )
    if vectors.shape[0] >= vectors.shape[1]:
        return vectors
    return np.asarray(np.linalg.qr(vectors.T).R.T)


def _largest(vectors: Floats, prior: Floats) -> float:
    return float(np.linalg.eigvalsh((vectors * prior[:, None]).T @ vectors)[-1])


def optimistic_bound(vectors: Floats, density: Floats) -> float:
    """1 / min_c <v_c, density v_c>: by minimax duality no prior has a larger spectral dimension.
    Infinite where some concept is not met."""
    least = float(np.einsum("cj,cj->c", vectors @ density, vectors).min())
    return 1 / least if least > 0 else math.inf


def guessable(concepts: ConceptClass, prior: Floats, alpha: float) -> float:
    """An upper bound on rho, the prior of the concepts for which one hypothesis has error at most
    alpha: they lie within 2 alpha of each other."""
    # total E[c c'] >= total (1 - 2 * 2 alpha)
    limit = math.floor((1 - 4 * Fraction(alpha)) * concepts.total)
    signs = concepts.labels.astype(np.float64)
    heaviest = 0.0
    for start in range(0, concepts.size, 256):
        near = np.rint((signs[start : start + 256] * concepts.weights) @ signs.T) >= limit
        heaviest = max(heaviest, float((near @ prior).max()))
    return min(1.0, heaviest)


@dataclass(frozen=True)
class Dimensions:
    name: str
    concepts: int
    points: int
    sq: SQDimension
    uniform: SpectralDimension
    optimised: SpectralDimension

    def describe(self) -> dict[str, Any]:
        """Plain data, without the priors."""
        return {
            "class": self.name,
            "concepts": self.concepts,
            "points": self.points,
            "sq_dimension": self.sq.value,
            "sq_dimension_is_exact": self.sq.exact,
            "spectral_uniform": self.uniform.value,
            "spectral_optimised": self.optimised.value,
            "spectral_at_most": self.optimised.at_most,
        }


def dimensions(concepts: ConceptClass, generator: np.random.Generator) -> Dimensions:
    """All dimensions of a class. Seconds for some thousand concepts on 64 points."""
    sq = sq_dimension(concepts, generator)
    uniform = uniform_dimension(concepts)
    best = optimised_dimension(concepts)
    return Dimensions(concepts.name, concepts.size, len(concepts.points), sq, uniform, best)


def local_clients(
    concepts: ConceptClass, dims: Dimensions, epsilon: float, success: float, alpha: float
) -> float:
    """The least n of EVERY protocol for error alpha, however it asks, by the better of both priors
    (limits 5.2, 12.3)."""
    return max(
        interactive_bound(
            spectral.value, epsilon, success, guessable(concepts, spectral.prior, alpha)
        )
        for spectral in (dims.uniform, dims.optimised)
    )
