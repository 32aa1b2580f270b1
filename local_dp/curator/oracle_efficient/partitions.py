"""All ways to cut a small database into random pieces, with their probabilities."""

import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import product
from typing import TypeAlias

from local_dp.curator.selection.occam import Labelled
from local_dp.errors import InputError

MAX_WAYS = 1 << 14
Piece: TypeAlias = tuple[tuple[int, int], ...]
_Counts: TypeAlias = tuple[int, ...]


def cuts(database: Labelled, pieces: int, records: int) -> Iterator[tuple[tuple[Piece, ...], Fraction]]:
    """Each unordered choice of `pieces` disjoint pieces of `records` records (x, y), as sorted tuples, with its probability when the order is uniform.

    Raises InputError where there are more than 2^14.
    """
    held = sorted(Counter(zip(database.x.tolist(), database.y.tolist(), strict=True)).items())
    ways: dict[tuple[tuple[_Counts, ...], _Counts], int] = {((), tuple(count for _, count in held)): 1}
    for _ in range(pieces):
        ways = _one_more(ways, records)
        if len(ways) > MAX_WAYS:
            raise InputError(f"there are more than {MAX_WAYS} ways to cut {len(database.x)} records into {pieces} pieces; give fewer")
    total = sum(ways.values())
    for (taken, _), share in ways.items():
        yield tuple(tuple(record for (record, _), count in zip(held, piece, strict=True) for _ in range(count)) for piece in taken), Fraction(share, total)


def _one_more(ways: dict[tuple[tuple[_Counts, ...], _Counts], int], records: int) -> dict[tuple[tuple[_Counts, ...], _Counts], int]:
    """One more piece of the records that are left, in each way."""
    more: dict[tuple[tuple[_Counts, ...], _Counts], int] = {}
    for (taken, left), share in ways.items():
        for piece in _pieces(left, records):
            after = tuple(sorted((*taken, piece))), tuple(have - take for have, take in zip(left, piece, strict=True))
            more[after] = more.get(after, 0) + share * math.prod(map(math.comb, left, piece))
    return more


@cache
def _pieces(left: _Counts, records: int) -> tuple[_Counts, ...]:
    """How many of each kind a piece may have."""
    return tuple(piece for piece in product(*(range(min(count, records) + 1) for count in left)) if sum(piece) == records)
