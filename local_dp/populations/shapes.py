"""Five shapes of data in an ordered domain of any size: what a release of all thresholds is tried on."""

from collections.abc import Callable, Mapping

import numpy as np

from local_dp.arrays import Naturals
from local_dp.errors import InputError


def _whole(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """m uniform whole numbers below 2^bits."""
    size = -(-bits // 8)
    drawn = generator.bytes(size * m)
    return [int.from_bytes(drawn[at : at + size], "little") >> (8 * size - bits) for at in range(0, size * m, size)]


def uniform(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """Over the whole domain."""
    return _whole(generator, m, bits)


def clustered(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """In eight places, each 2^(bits / 4) wide."""
    width = bits // 4
    places = [place >> width << width for place in _whole(generator, 8, bits)]
    return [places[place] + at for place, at in zip(generator.integers(8, size=m).tolist(), _whole(generator, m, max(width, 1)), strict=True)]


def log_uniform(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """As many of each length in bits: every scale near 0 matters."""
    lengths = generator.integers(bits + 1, size=m).tolist()
    return [(1 << length >> 1) + (at & ((1 << length >> 1) - 1)) if length else 0 for length, at in zip(lengths, _whole(generator, m, bits), strict=True)]


def nested(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """As many at each distance 2^i, on both sides, from a point that no cut of the domain is near."""
    centre, sides = _whole(generator, 1, bits)[0], (2 * generator.integers(2, size=m) - 1).tolist()
    away = [side << scale for side, scale in zip(sides, generator.integers(bits, size=m).tolist(), strict=True)]
    return [(centre + step) % (1 << bits) for step in away]


def five_points(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """A fifth on each of five points: most thresholds have a fifth of all records beside them."""
    places = _whole(generator, 5, bits)
    return [places[record % 5] for record in range(m)]


SHAPES: Mapping[str, Callable[[np.random.Generator, int, int], list[int]]] = {
    "uniform": uniform,
    "clustered": clustered,
    "log-uniform": log_uniform,
    "nested": nested,
    "five points": five_points,
}


def shaped(name: str, m: int, bits: int, seed: int) -> Naturals:
    """m points of 0..2^bits - 1 of the shape: uint64 up to 64 bits, Python's whole numbers beyond. Raises InputError for an unknown shape."""
    if name not in SHAPES:
        raise InputError(f"there is no shape {name!r}; give one of {', '.join(SHAPES)}")
    points = SHAPES[name](np.random.default_rng(seed), m, bits)
    return np.array(points, dtype=np.uint64 if bits <= 64 else object)
