"""Reconstruction: what subset sums give away, exactly where it is possible."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from local_dp import attacks
from local_dp.arrays import Bools, Floats
from local_dp.bounds.attacks import wrong_bits
from local_dp.queries.query import QUERIES
from local_dp.queries.subsets import Subset, secret_bits
from local_dp.records import Records
from tests.support.inputs.refusals import refuse


def secret(n: int, seed: int) -> Bools:
    return np.random.default_rng(seed).random(n) < 0.5


def wrong(decoder: attacks.Decoder, bits: Bools, subsets: Bools, sums: Floats) -> int:
    return int(np.sum((decoder(subsets.astype(np.float64), sums) >= 0.5) != bits))


def test_a_subset_counts_its_rows() -> None:
    """The mean of the query over n rows is <q, x> / n for all x and q of 3 rows; rows beyond the
    subset are not in it, and it travels as data."""
    for bits, members in product(product((False, True), repeat=3), repeat=2):
        query = Subset.of(np.array(members))
        values = query.values(secret_bits(np.array(bits)))
        assert np.array_equal(values, np.logical_and(bits, members))
        assert QUERIES.build("subset", query.params()) == query
    far = Records({"row": np.array([2, 8, 1 << 40]), "secret": np.ones(3, dtype=np.uint8)})
    assert Subset.of(np.ones(3, dtype=np.bool_)).values(far).tolist() == [1, 0, 0]


@pytest.mark.parametrize("n", [1, 3])
def test_the_exponential_attack_has_at_most_four_errors_wrong(n: int) -> None:
    """Against the worst answers, half-way to another table: at most 4 E wrong bits, which some pair
    reaches. Wrong twin: asked for the whole alone."""
    everything, whole = attacks.every_subset(n), np.ones((1, n), dtype=np.bool_)
    assert len(everything) == 1 << n
    ratios, beyond = [], 0
    for bits, others in product(attacks.every_subset(n), repeat=2):
        for subsets in (everything, whole):
            sums = subsets @ (bits.astype(np.float64) + others) / 2
            error = float(np.abs(sums - subsets @ bits.astype(np.float64)).max())
            misses = wrong(attacks.exhaustive, bits, subsets, sums)
            if subsets is whole:
                beyond += misses > 4 * error
            else:
                assert misses <= 4 * error
                ratios.append(misses / error if error else 0.0)
    assert (max(ratios) == 4.0, beyond > 0) == (n > 1, n > 1)


@pytest.mark.parametrize(
    ("decoder", "norm"),
    [(attacks.least_largest, np.inf), (attacks.least_sum, 1), (attacks.least_squares, 2)],
)
def test_each_decoder_minimises_its_norm(decoder: attacks.Decoder, norm: float) -> None:
    """No further from the answers than the truth in its own norm; every other decoder is further
    from them than it in that norm."""
    bits, generator = secret(40, 1), np.random.default_rng(3)
    matrix = attacks.random_subsets(160, 40, np.random.default_rng(2)).astype(np.float64)
    sums = matrix @ bits + generator.uniform(-3, 3, 160)

    def away(table: Floats) -> float:
        return float(np.linalg.norm(matrix @ table - sums, norm))

    distance = away(decoder(matrix, sums))
    assert distance <= away(bits.astype(np.float64)) + 1e-6
    for other in {attacks.least_largest, attacks.least_sum, attacks.least_squares} - {decoder}:
        assert away(np.clip(other(matrix, sums), 0, 1)) > distance + 1e-3


@pytest.mark.parametrize(("n", "k"), [(50, 100), (100, 400)])
def test_wrong_bits_by_least_squares(n: int, k: int) -> None:
    """The mean of Phi(-1 / (2 s sqrt((Q'Q)^-1_ii))), exact, is the closed form's to 3 / n; wrong
    twin: k for the k - n + 1 dimensions that are left."""
    matrix = attacks.random_subsets(k, n, np.random.default_rng(n)).astype(np.float64)
    spread = np.sqrt(np.diagonal(np.linalg.inv(matrix.T @ matrix)))
    for a in (0.3, 0.5, 1.0):
        sd = a * np.sqrt(n)
        exact = float(np.mean(stats.norm.sf(1 / (2 * sd * spread))))
        assert abs(wrong_bits(n, k, sd) - exact) < 0.6 / n
        assert abs(stats.norm.sf(np.sqrt(k) / (4 * sd)) - exact) > 1.5 / n


@pytest.mark.parametrize(("k", "share"), [(7, 0.25), (28, 0.6)])
def test_partial_discrepancy_is_the_minimum(k: int, share: float) -> None:
    """By the integer program as by trying all 3^7 differences; and half of it hides that many rows:
    errors of half its witness do not tell two tables apart."""
    subsets = attacks.random_subsets(k, 7, np.random.default_rng(k))
    least, z = attacks.partial_discrepancy(subsets, share)
    every = np.array(list(product((-1, 0, 1), repeat=7)))
    changes = every[np.abs(every).sum(axis=1) > share * 7]
    assert least == np.abs(changes @ subsets.T.astype(int)).max(axis=1).min()
    assert np.abs(z).sum() > share * 7
    here, there = (z > 0).astype(np.float64), (z < 0).astype(np.float64)
    middle = subsets @ (here + there) / 2
    assert max(np.abs(middle - subsets @ table).max() for table in (here, there)) == least / 2


def test_hereditary_discrepancy_is_a_maximum() -> None:
    """Two equal columns hide a swap on the whole; a set without one of them does not (Theorem
    4.2.3). The printed minimum over sets is 0."""
    subsets = np.array([[1, 1, 0], [1, 1, 1]], dtype=np.bool_)
    sets = [list(each) for size in (1, 2, 3) for each in combinations(range(3), size)]
    values = [attacks.partial_discrepancy(subsets[:, each], 0.6)[0] for each in sets]
    assert (min(values), values[-1], max(values)) == (0, 0, 1)


def test_bad_input() -> None:
    refuse(
        ("do not determine", lambda: attacks.least_squares(np.ones((2, 3)), np.ones(2))),
        ("number of rows", lambda: attacks.every_subset(13)),
        (
            "strictly between",
            lambda: attacks.partial_discrepancy(np.ones((2, 3), dtype=np.bool_), 1.0),
        ),
        ("give k >= n", lambda: wrong_bits(10, 9, 1.0)),
        ("hexadecimal", lambda: Subset("xy")),
    )
