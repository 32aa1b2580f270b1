"""Populations of finitely many kinds: how often each is drawn."""

import math

import numpy as np
import pytest

from local_dp.populations.finite import Finite
from local_dp.records import Records

ALPHA = 1e-6  # failure probability


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.25, 0.25, 0.5), (1 / 256, 255 / 256), (0.3, 0.7), (0.0, 1.0), (1 / 512, 511 / 512)])
def test_each_kind_has_its_share(shares: tuple[float, ...]) -> None:
    """Also where a sum of shares is a multiple of 1/256, which the first byte of a word alone decides: a byte too few or too many would show."""
    n = 4_000_000
    kinds = Finite(Records({"kind": np.arange(len(shares))}), shares, n, 1)
    drawn = np.bincount(kinds.batch(0, n)["kind"], minlength=len(shares)) / n
    for seen, share in zip(drawn, shares, strict=True):  # Bernstein's inequality
        reach = math.log(2 * len(shares) / ALPHA)
        assert abs(seen - share) <= math.sqrt(2 * share * (1 - share) * reach / n) + 2 * reach / (3 * n)
    assert math.sqrt(0.5 * math.log(4 / ALPHA) / n) < 1 / 256  # what a byte's kinds would be off by
