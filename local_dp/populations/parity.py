"""Populations of parity: uniform examples, masked or not, and the ladder's."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from local_dp.arrays import Floats, Ints, Naturals
from local_dp.cube import parity
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.populations.finite import Population
from local_dp.queries.examples import ParityExample, PathStep, bit_of, column, columns
from local_dp.queries.query import Query
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.characters import Characters, Deny
from local_dp.randomizers.signs.suspects import Suspects
from local_dp.records import Records


def uniform(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """m uniform whole numbers below 2^bits: over the whole domain."""
    size = -(-bits // 8)
    octets = generator.bytes(size * m)
    return [
        int.from_bytes(octets[at : at + size], "little") >> (8 * size - bits)
        for at in range(0, size * m, size)
    ]


def clustered(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """In eight places, each 2^(bits / 4) wide."""
    width = bits // 4
    places = [place >> width << width for place in uniform(generator, 8, bits)]
    centres = generator.integers(8, size=m).tolist()
    offsets = uniform(generator, m, max(width, 1))
    return [places[place] + offset for place, offset in zip(centres, offsets, strict=True)]


def log_uniform(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """As many of each length in bits: every scale near 0 matters."""
    lengths = generator.integers(bits + 1, size=m).tolist()
    return [
        (1 << length >> 1) + (at & ((1 << length >> 1) - 1)) if length else 0
        for length, at in zip(lengths, uniform(generator, m, bits), strict=True)
    ]


def nested(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """As many at each distance 2^i, on both sides, from a point that no cut of the domain is
    near."""
    centre = uniform(generator, 1, bits)[0]
    sides = (2 * generator.integers(2, size=m) - 1).tolist()
    scales = generator.integers(bits, size=m).tolist()
    away = [side << scale for side, scale in zip(sides, scales, strict=True)]
    return [(centre + step) % (1 << bits) for step in away]


def five_points(generator: np.random.Generator, m: int, bits: int) -> list[int]:
    """A fifth on each of five points: most thresholds have a fifth of all records beside them."""
    places = uniform(generator, 5, bits)
    return [places[record % 5] for record in range(m)]


SHAPES: Mapping[str, Callable[[np.random.Generator, int, int], list[int]]] = {
    "uniform": uniform,
    "clustered": clustered,
    "log-uniform": log_uniform,
    "nested": nested,
    "five points": five_points,
}


def shaped(name: str, m: int, bits: int, seed: int) -> Naturals:
    """m points of 0..2^bits - 1 of the shape: uint64 up to 64 bits, Python's whole numbers beyond.
    Raises InputError for an unknown shape."""
    if name not in SHAPES:
        raise InputError(f"there is no shape {name!r}; give one of {', '.join(SHAPES)}")
    points = SHAPES[name](np.random.default_rng(seed), m, bits)
    return np.array(points, dtype=np.uint64 if bits <= 64 else object)


class ParityPopulation(Population):
    """Examples (x, (-1)^<r, x>), x uniform over {0,1}^d."""

    def __init__(self, d: int, r: int, size: int, seed: int) -> None:
        super().__init__(size)
        self.d, self.r = d, r
        self._key = stream_key("population", seed)

    def batch(self, start: int, stop: int) -> Records:
        x = philox_words(self._key, start, stop) >> np.uint64(64 - self.d)
        # signed before 1 - 2 * odd, which would wrap in uint8
        odd = parity(x & np.uint64(self.r)).astype(np.int8)
        return Records({"x": x, "y": np.int8(1) - np.int8(2) * odd})

    def law(self, query: Query) -> Floats:
        """The law of the whole example, the one query that parity learners ask."""
        if query != ParityExample(self.d):
            raise InputError(
                f"the law of {query.name!r} over parity examples is not known; ask parity-example "
                f"with d = {self.d}"
            )
        x = np.arange(1 << self.d, dtype=np.uint32)
        law = np.zeros((1 << self.d, 2))
        law[x, parity(x & np.uint32(self.r))] = 2.0**-self.d
        return law.ravel()

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        """Every mask but r leaves a uniform bit, and the mask r randomized response to +1; of named
        parities, r is named least."""
        if query != ParityExample(self.d):
            return None
        if isinstance(randomizer, (Deny, Suspects)):
            return randomizer.law(self.r)[None, :]
        if not isinstance(randomizer, Characters):
            return None
        lean = (randomizer.listed == self.r) / randomizer.gain
        return (1 + np.outer(lean, (1, -1))) / (2 * randomizer.cells)


class LadderPopulation(Population):
    """Each client has a uniform one of k levels and its table of 2^level random bits, in columns of
    64, made where a query reads them."""

    def __init__(self, k: int, size: int, seed: int) -> None:
        super().__init__(size)
        self.k = k
        words = philox_words(stream_key("concept", seed), 0, k * columns(k)).reshape(k, columns(k))
        mask = np.array([(1 << min(64, 1 << level)) - 1 for level in range(k)], dtype=np.uint64)
        inside = np.arange(columns(k)) < [[columns(level + 1)] for level in range(k)]
        self.tables = np.where(inside, words & mask[:, None], np.uint64(0))
        self._key = stream_key("population", seed)

    @property
    def path(self) -> str:
        """The bits that are met from the root on."""
        path = ""
        for table in self.tables:
            path += str(bit_of(table, int("0" + path, 2)))
        return path

    def batch(self, start: int, stop: int) -> Records:
        return self._batch(start, stop, range(columns(self.k)))

    def values(self, query: Query, start: int, stop: int) -> Ints:
        read = (
            {node // 64 for node in query.nodes.values()}
            if isinstance(query, PathStep)
            else range(columns(self.k))
        )
        return query.values(self._batch(start, stop, read))

    def _batch(self, start: int, stop: int, read: Iterable[int]) -> Records:
        levels = (philox_words(self._key, start, stop) >> np.uint64(32)) * np.uint64(
            self.k
        ) >> np.uint64(32)
        level = levels.astype(np.uint8)
        return Records(
            {"level": level, **{column(64 * place): self.tables[level, place] for place in read}}
        )

    def law(self, query: Query) -> Floats:
        """Each level has a k-th of the clients."""
        if not isinstance(query, PathStep) or len(query.path) > self.k:
            raise InputError(
                f"the law of {query.name!r} over {self.k} levels is not known; ask path-step with "
                f"a path of at most {self.k} steps"
            )
        law = np.zeros(3)
        for level, node in query.nodes.items():
            law[int(bit_of(self.tables[level], node) == int(query.path[level]))] += 1 / self.k
        law[2] = 1 - law.sum()
        return law
