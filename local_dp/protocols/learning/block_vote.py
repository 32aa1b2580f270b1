"""Weak learning of a class of blocks in one round, for every law of x: a random character for each client, and the prediction of one (limits 12.4)."""

from itertools import pairwise

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.cube import walsh_hadamard
from local_dp.hardness.margins import Margin
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.populations.finite import Finite
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.records import Records
from local_dp.tallies import Tally


def shares_of_clients(margin: Margin) -> Floats:
    """The share of the clients for each set S of blocks: |c_S| b^(|S|/2) / MC, shape (2^t,)."""
    sizes = np.bitwise_count(np.arange(1 << margin.concepts.t))
    prices: Floats = np.abs(margin.coefficients) * float(margin.concepts.b) ** (sizes / 2)
    return np.asarray(prices / prices.sum())


def cohorts(margin: Margin, clients: int) -> dict[int, Cohort]:
    """The clients of each set of blocks, by these shares, without empty cohorts."""
    ends = np.rint(np.cumsum(shares_of_clients(margin)) * clients).astype(int).tolist()
    return {S: Cohort(start, stop) for S, (start, stop) in enumerate(pairwise([0, *ends])) if start < stop}


def vote(margin: Margin, epsilon: float, clients: int) -> Local[Floats]:
    """For each mask s of t b bits, the share of clients who report that (-1)^<s, x> agrees with their label, less those who report the contrary.

    A prediction for x draws one client and uses its report: the mean prediction h(x) is the sum of these shares times (-1)^<s, x>.
    Privacy: each client answers once, by randomized response, epsilon-locally private. Utility: E_D[y h] > 0 with probability p, for every concept and every
    law D, with C^2 MC^2 p / (1 - p) clients (`bounds.margins.vote_clients`). Cost: one bit a client, one round. t b <= 12, and b a power of two.
    """
    concepts = margin.concepts
    masks = {S: np.unique(concepts.masks(S)) for S in cohorts(margin, clients)}
    queries = tuple(
        LocalQuery(ParityExample(concepts.variables), Characters(epsilon, d=concepts.variables, masks=mask_set(masks[S], concepts.variables)), cohort)
        for S, cohort in cohorts(margin, clients).items()
    )

    def decode(answers: tuple[Tally, ...]) -> Floats:
        words = np.zeros(1 << concepts.variables)
        for listed, tally in zip(masks.values(), answers, strict=True):
            words[listed] += tally.counts[:, 0] - tally.counts[:, 1]
        return words / clients

    return Nonadaptive(queries, decode)


def hard_examples(margin: Margin, clients: int, seed: int) -> Finite:
    """The hardest law for the class: u from mu, and x uniform among the points whose first variables of the blocks are u."""
    labels, shares = _hard_law(margin)
    x = np.arange(len(labels), dtype=np.uint64)
    return Finite(Records({"x": x, "y": labels.astype(np.int8)}), shares.tolist(), clients, seed)


def advantage(margin: Margin, words: Floats) -> float:
    """E[y h(x)] under that law: above 0 if the vote is right more often than wrong."""
    labels, shares = _hard_law(margin)
    return float((walsh_hadamard(words) * labels * shares).sum())


def _hard_law(margin: Margin) -> tuple[Counts, Floats]:
    """The label of every x, and its probability."""
    concepts = margin.concepts
    x = np.arange(1 << concepts.variables)
    read = (x >> np.arange(concepts.t)[:, None] * concepts.b & 1).T @ (1 << np.arange(concepts.t))
    shares: Floats = margin.law[read] / margin.law.sum() * 2.0 ** (concepts.t - concepts.variables)
    return concepts.signs()[read].astype(np.int64), shares
