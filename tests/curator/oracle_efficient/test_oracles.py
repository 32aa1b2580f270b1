"""Oracles of optimisation: branch and bound against all totals, and proofs that do not hold."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from local_dp.curator.oracle_efficient.branching import LEAF, BranchAndBound, FullSearch, Proof, check
from local_dp.curator.oracle_efficient.separated import FAIL, Certified, Claimed, Conjunctions, Exhaustive, Verified, Weighted, labelled
from tests.support.inputs.refusals import refuse


def some(d: int, n: int, seed: int) -> Weighted:
    """Random points and weights, with many ties."""
    rng = np.random.default_rng(seed)
    return Weighted(rng.integers(0, 1 << d, n), rng.integers(-3, 4, n))


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_branch_and_bound_finds_the_first_of_the_least(d: int) -> None:
    """On 20 random weightings, ties included, the same query and value as by going through all."""
    for seed in range(20):
        data = some(d, 3 * seed, seed)
        assert BranchAndBound(d).minimise(data) == FullSearch(d).minimise(data) == Exhaustive(Conjunctions(d)).minimise(data)


def planted(d: int, n: int) -> Weighted:
    """A conjunction of three literals, 10 % of its labels flipped, and noise on the separators as RSPM adds at epsilon 1."""
    rng = np.random.default_rng(d)
    x = rng.integers(0, 1 << d, n)
    y = (x & 7 == 7) ^ (rng.random(n) < 0.1)
    return labelled(x, y.astype(np.int64)).with_points(Conjunctions(d).separators, np.rint(rng.laplace(0, 2 * d, d)).astype(np.int64))


@pytest.mark.parametrize(("d", "n"), [(30, 1000), (60, 2000)])
def test_branch_and_bound_certifies_large_dimensions(d: int, n: int) -> None:
    """What cannot be gone through is certified by trees of fewer than 1,000 nodes."""
    proof = BranchAndBound(d).prove(planted(d, n))
    assert proof is not None
    assert len(proof.splits) < 1000
    assert check(proof, planted(d, n), d) == Certified(proof.choice, proof.value)


def test_wrong_proofs_fail() -> None:
    """Every other query with its own total, a wrong total, a cut or a lengthened tree, and other data: none is certified."""
    d, data = 5, some(5, 60, 7)
    proof = BranchAndBound(d).prove(data)
    assert proof is not None
    assert len(proof.splits) > 3
    assert check(proof, data, d) == Certified(proof.choice, proof.value)
    totals = Conjunctions(d).totals(data)
    wrong = [replace(proof, choice=q, value=int(totals[q])) for q in range(1 << d) if q != proof.choice]
    wrong += [replace(proof, value=proof.value + 1), replace(proof, choice=-1), replace(proof, choice=1 << d)]
    wrong += [replace(proof, splits=splits) for splits in ((), (LEAF,), proof.splits[:-1], (*proof.splits, LEAF), (d, *proof.splits[1:]), (-2,))]
    assert all(check(one, data, d) == FAIL for one in wrong)
    assert check(proof, some(5, 60, 8), d) == FAIL
    assert BranchAndBound(9, nodes=2).minimise(some(9, 60, 1)) == FAIL, "a search that is cut short reports it"


def test_a_tie_is_no_proof() -> None:
    """Of two equal queries the second is refused, though no total is less."""
    nothing = Weighted(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    assert check(Proof(0, 0, (LEAF,)), nothing, 2) == Certified(0, 0)
    assert check(Proof(1, 0, (LEAF,)), nothing, 2) == FAIL


@dataclass(frozen=True)
class Constant:
    """Claims one query, come what may."""

    choice: int

    def minimise(self, data: Weighted) -> Claimed:
        return Claimed(self.choice)


def test_a_checked_liar_only_fails() -> None:
    """Of a plain oracle's claims the true ones are left."""
    data, exact = some(3, 30, 3), Exhaustive(Conjunctions(3))
    truth = exact.minimise(data)
    assert [Verified(Constant(q), exact).minimise(data) for q in range(8)] == [truth if q == truth.choice else FAIL for q in range(8)]


def test_bad_input() -> None:
    refuse(("d is 0", lambda: BranchAndBound(0)), ("d is 63", lambda: BranchAndBound(63)), ("nodes is 0", lambda: BranchAndBound(5, 0)))
