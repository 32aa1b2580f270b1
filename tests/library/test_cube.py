"""The Walsh-Hadamard transform of long arrays: whole numbers by matrix products, others by
butterflies, both as defined."""

import numpy as np
import pytest

from local_dp import cube
from local_dp.cube import character, walsh_hadamard


@pytest.mark.parametrize("bits", [16, 17, 18, 19])
def test_long_transforms_are_exact(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways give the same whole numbers, which are the sums of the definition; a transform
    without one of its steps does not."""
    values = np.random.default_rng(bits).integers(-100, 100, 1 << bits)
    whole = walsh_hadamard(values)
    np.testing.assert_array_equal(whole, walsh_hadamard(values.astype(np.float64)))
    places = np.arange(1 << bits, dtype=np.uint64)
    for j in (0, 1, 12_345, (1 << bits) - 1):
        assert whole[j] == int((character(j, places) * values).sum())
    # a step is left out
    monkeypatch.setattr(cube, "_factors", lambda bits: [4] * (bits // 4 - 1) + [bits % 4])
    assert not np.array_equal(walsh_hadamard(values), whole)
