"""The vote: who is asked what, the chance that it is right more often than wrong for any concept and law, and one run."""

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.interaction import vote_clients
from local_dp.cube import walsh_hadamard
from local_dp.errors import InputError
from local_dp.hardness.margins import Margin, margin, vectors
from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.populations.concepts import FUNCTIONS, BlockClass
from local_dp.protocols.learning.learned import advantage, hard_examples, shares_of_clients, vote


def asked(found: Margin) -> Floats:
    """The probability with which a client is asked about each mask of t b bits."""
    concepts = found.concepts
    masks = np.zeros(1 << concepts.variables)
    for S, share in enumerate(shares_of_clients(found)):
        kept = np.unique(concepts.masks(S))
        masks[kept] += share / len(kept)
    return masks


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("t", "b"), [(2, 2), (3, 2), (2, 4)])
def test_squared_correlations_are_large_for_every_concept_and_law(function: str, t: int, b: int) -> None:
    """V >= 1 / MC^2, which is all that the proof needs: for every concept under random laws of x, and with equality under the hardest."""
    found, generator = margin(BlockClass(function, t, b)), np.random.default_rng(4)
    told, shares = found.concepts.signs()[found.concepts.told()].astype(np.float64), asked(found)
    assert shares.sum() == pytest.approx(1)
    for concentration in (0.02, 0.2, 2.0):
        law = generator.dirichlet(np.full(told.shape[1], concentration))
        assert ((walsh_hadamard((told * law).T).T ** 2) @ shares).min() >= (1 - 1e-9) / found.at_least**2
    hard = hard_examples(found, 1, 0)
    correlations = walsh_hadamard(hard.kinds["y"] * hard.shares)
    assert correlations**2 @ shares == pytest.approx(1 / found.at_least**2, rel=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_random_halfspaces_do_for_every_class(function: str) -> None:
    """The mean square of how a random halfspace of the vectors correlates with a concept is at least (2 / pi) / MC^2, by the arcsine of their products; and
    it is that mean square, within 5 standard errors over 20,000 directions."""
    found, generator = margin(BlockClass(function, 2, 3)), np.random.default_rng(8)
    told, points = found.concepts.signs()[found.concepts.told()].astype(np.float64), vectors(found)[1]
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    kernel = 2 / np.pi * np.arcsin(np.clip(points @ points.T, -1, 1))
    for concentration in (0.05, 1.0):
        signed = told * generator.dirichlet(np.full(told.shape[1], concentration))
        assert ((signed @ kernel) * signed).sum(axis=1).min() >= 2 / np.pi / found.at_least**2
    squares = (np.sign(generator.normal(size=(20_000, points.shape[1])) @ points.T) @ signed[0]) ** 2
    assert abs(squares.mean() - signed[0] @ kernel @ signed[0]) <= 5 * squares.std() / 20_000**0.5


@pytest.mark.parametrize("function", ["odd-max-bit", "parity"])
def test_it_is_right_more_often_than_wrong(function: str) -> None:
    """With the proven number of clients, under the hardest law, in 54 of 60 runs: it fails in about one of 500, so a right program fails here less than once
    in 10^9. Words turned round are not."""
    found = margin(BlockClass(function, 3, 2))
    clients = vote_clients(found.at_most**2, 1.0)
    runs = [run(vote(found, 1.0, clients), AggregateOracle(hard_examples(found, clients, 0), np.random.default_rng(seed), 1.0)) for seed in range(60)]
    assert sum(advantage(found, words) > 0 for words in runs) >= 54
    assert sum(advantage(found, -words) > 0 for words in runs) <= 6
    assert np.abs(np.array(runs)).sum(axis=1).max() <= 1  # so that every prediction is in [-1, 1]


def test_lists_of_masks_that_no_coin_can_choose_from_are_refused() -> None:
    """A client verifies channels of a power of two of masks, of 12 bits at most."""
    for t, b in ((2, 3), (4, 4)):
        with pytest.raises(InputError):
            vote(margin(BlockClass("parity", t, b)), 1.0, 1000)
