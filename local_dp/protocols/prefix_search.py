"""Frequent strings read off the estimates of their prefixes: level by level, the best string again and again, each subtracted from what it was mixed with."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.bounds.heavy_hitters import KEPT
from local_dp.queries.strings import HashedPrefix
from local_dp.tallies import Ends, Estimate


@dataclass(frozen=True)
class Level:
    """The estimates of one level: the shares of all prefixes of `length` bits, or of all hashes of one under each of some functions."""

    length: int
    hashes: tuple[HashedPrefix, ...]
    tables: tuple[Estimate, ...]

    @property
    def n(self) -> int:
        return sum(table.n for table in self.tables)

    def codes(self, prefixes: Words) -> list[Ints]:
        """What each part of the level's clients tells of each prefix: the prefix, or its hash."""
        return [query.of(prefixes) for query in self.hashes] or [prefixes.astype(np.int64)]

    def shares(self, codes: Sequence[Ints]) -> Floats:
        """The estimated share of prefixes with these codes; a hash's share is cleared of the part of all others that falls on it."""
        held: Floats = sum((table.n / self.n * table.value[code] for table, code in zip(self.tables, codes, strict=True)), np.zeros(1))
        size = len(self.tables[0].value)
        return (held * size - 1) / (size - 1) if self.hashes else held

    def alike(self, codes: Sequence[Ints], place: int) -> Floats:
        """What part of the level's clients cannot tell each prefix from the one at `place`: those for whom both have one code."""
        parts = (table.n / self.n * (code == code[place]) for table, code in zip(self.tables, codes, strict=True))
        alike: Floats = sum(parts, np.zeros(1))
        return alike


@dataclass(frozen=True)
class Beam:
    """The kept prefixes of a level and the mean of each one's estimated shares so far; `taken` of them, the first ones, stand out of the noise."""

    strings: Words
    scores: Floats
    taken: int


def found_in(levels: Sequence[Level], height: float) -> tuple[Words, Estimate]:
    """The strings whose score is `height` standard errors of noise or more, the most frequent first, and their shares.

    At each level every kept prefix is continued in all ways, and the score of a string is the mean over the clients so far. The best is taken, and its share
    subtracted from all others by the weight of those clients who could not tell them apart; the next best, and so on. Then the best of the rest are kept too.
    """
    ends = levels[0].tables[0].ends
    assert ends is not None
    beam = Beam(np.zeros(1, dtype=np.uint64), np.zeros(1), 0)
    for depth, level in enumerate(levels):
        n = sum(each.n for each in levels[: depth + 1])
        least = height * float(Estimate.between(ends, 0.0, n).standard_error)
        beam = _continued(beam, levels[:depth], level, least)
    return _most_frequent_first(beam.strings[: beam.taken], beam.scores[: beam.taken], sum(level.n for level in levels), ends)


def _continued(kept: Beam, before: Sequence[Level], level: Level, least: float) -> Beam:
    """The beam of one level more."""
    step = level.length - (before[-1].length if before else 0)
    strings = (kept.strings[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)).ravel()
    codes = level.codes(strings)
    earlier = [(each, each.codes(kept.strings >> np.uint64(before[-1].length - each.length))) for each in before]
    part = level.n / (level.n + sum(each.n for each in before))
    scores = (1 - part) * np.repeat(kept.scores, 1 << step) + part * level.shares(codes)
    first: list[int] = []
    shares: list[float] = []
    while len(first) < KEPT and scores[best := int(np.argmax(scores))] >= least:
        first.append(best)
        shares.append(float(scores[best]))
        parents = sum((each.n / level.n * each.alike(code, best >> step) for each, code in earlier), np.zeros(len(kept.strings)))
        scores -= part * shares[-1] * (level.alike(codes, best).reshape(len(kept.strings), -1) + parents[:, None]).ravel()
    rest = _best_of(np.delete(np.arange(len(scores)), first), scores, KEPT - len(first))
    places = np.concatenate([np.array(first, dtype=np.int64), rest])
    return Beam(strings[places], np.concatenate([shares, scores[rest]]), len(first))


def _best_of(places: Counts, scores: Floats, most: int) -> Counts:
    """Those of `places`, at most so many, where the scores are highest."""
    if len(places) <= most:
        return places
    kept: Counts = places[np.argpartition(-scores[places], most)[:most]]
    return kept


def _most_frequent_first(strings: Words, shares: Floats, n: int, ends: Ends) -> tuple[Words, Estimate]:
    order = np.argsort(-shares, kind="stable")
    return strings[order], Estimate.between(ends, shares[order], n)
