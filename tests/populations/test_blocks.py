"""Functions of one variable of each block: as they are defined, entry by entry."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.populations.concepts import BlockClass

RULES: dict[str, Callable[[tuple[int, ...]], int]] = {
    "odd-max-bit": lambda u: next(((-1) ** (i + 1) for i in reversed(range(len(u))) if u[i]), 1),
    "and": lambda u: -1 if all(u) else 1,
    "majority": lambda u: -1 if sum(u) > len(u) / 2 else 1,
    "parity": lambda u: (-1) ** sum(u),
}


@pytest.mark.parametrize("function", RULES)
@pytest.mark.parametrize("t", [1, 2, 3, 6])
def test_signs_are_the_functions(function: str, t: int) -> None:
    """f of every string of t bits, the first block the lowest bit."""
    expected = [RULES[function](tuple(u >> i & 1 for i in range(t))) for u in range(1 << t)]
    assert BlockClass(function, t, 3).signs().tolist() == expected


@pytest.mark.parametrize(("t", "b"), [(1, 1), (2, 2), (2, 3), (3, 2)])
def test_concepts_read_one_variable_of_each_block(t: int, b: int) -> None:
    """Every concept (j, w) reads of every point the chosen bits, flipped by w; its masks hold the chosen variables of the blocks of S."""
    concepts = BlockClass("and", t, b)
    rows = [
        [sum((x >> (i * b + j[i]) & 1 ^ w >> i & 1) << i for i in range(t)) for x in range(1 << t * b)]
        for j in product(range(b), repeat=t)
        for w in range(1 << t)
    ]
    assert np.array_equal(concepts.told(), rows)
    for S in range(1 << t):
        assert concepts.masks(S).tolist() == [sum(1 << (i * b + j[i]) for i in range(t) if S >> i & 1) for j in product(range(b), repeat=t)]


def test_what_is_no_class_is_refused() -> None:
    """Unknown functions, sizes out of range, and matrices that would not fit."""
    for function, t, b in (("or", 2, 2), ("and", 0, 2), ("and", 13, 2), ("and", 2, 0)):
        with pytest.raises(InputError):
            BlockClass(function, t, b)
    with pytest.raises(InputError, match="2\\^28"):
        BlockClass("and", 4, 8).told()
