"""Frequent strings from estimates of their prefixes: level by level, take the best string, subtract it where it was mixed in, and repeat."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.queries.strings import HashedPrefix, KeptPrefix
from local_dp.tallies import Ends, Estimate


@dataclass(frozen=True)
class Level:
    """The estimates of one level: the shares of all prefixes of `length` bits, or of their codes under each of some queries (hashes, or places kept)."""

    length: int
    codings: tuple[HashedPrefix | KeptPrefix, ...]
    tables: tuple[Estimate, ...]

    @property
    def n(self) -> int:
        return sum(table.n for table in self.tables)

    def codes(self, prefixes: Words) -> list[Ints]:
        """The report of each part of the level's clients for each prefix: the prefix, or its hash."""
        return [query.of(prefixes) for query in self.codings] or [prefixes.astype(np.int64)]

    def shares(self, codes: Sequence[Ints]) -> Floats:
        """The estimated share of prefixes with these codes; of a hash, less the expected part of all others."""
        shares: Floats = sum((table.n / self.n * table.value[code] for table, code in zip(self.tables, codes, strict=True)), np.zeros(1))
        size = len(self.tables[0].value)
        collide = any(isinstance(query, HashedPrefix) for query in self.codings)
        return (shares * size - 1) / (size - 1) if collide else shares

    def alike(self, codes: Sequence[Ints], place: int) -> Floats:
        """The part of the level's clients whose report is the same for each prefix as for the one at `place`."""
        parts = (table.n / self.n * (code == code[place]) for table, code in zip(self.tables, codes, strict=True))
        return sum(parts, np.zeros(1))


@dataclass(frozen=True)
class Beam:
    """The kept prefixes of a level and the mean of each one's estimated shares so far; the first `taken` stand out of the noise."""

    strings: Words
    scores: Floats
    taken: int


@dataclass(frozen=True)
class Search:
    """The search level by level: `kept` prefixes are followed, and those taken whose score reaches the height of noise.

    At each level every kept prefix is continued in all ways, and the score of a string is the mean over the clients so far. The best is taken, and its share
    subtracted from all others by the weight of the clients whose reports mix them; then the next best, and so on. The best of the rest are kept too.
    """

    kept: int
    floor: float = 0.0  # no share below it is taken: at a large epsilon a single client stands out of the noise
    levels: tuple[Level, ...] = ()
    beam: Beam = Beam(np.zeros(1, dtype=np.uint64), np.zeros(1), 0)

    @property
    def n(self) -> int:
        return sum(level.n for level in self.levels)

    def deeper(self, level: Level, height: float) -> "Search":
        """The search one level further; `height` in standard errors of noise."""
        least = max(self.floor, height * float(Estimate.between(_ends(level), 0.0, self.n + level.n).standard_error))
        return replace(self, levels=(*self.levels, level), beam=_continued(self.beam, self.levels, level, (least, self.kept)))

    def found(self) -> tuple[Words, Estimate]:
        """The strings taken, the most frequent first, and their shares."""
        strings, shares = self.beam.strings[: self.beam.taken], self.beam.scores[: self.beam.taken]
        order = np.argsort(-shares, kind="stable")
        return strings[order], Estimate.between(_ends(self.levels[0]), shares[order], self.n)


def _ends(level: Level) -> Ends:
    ends = level.tables[0].ends
    assert ends is not None
    return ends


def _continued(kept: Beam, before: Sequence[Level], level: Level, limits: tuple[float, int]) -> Beam:
    """The beam of one more level: `limits` are the least score taken and the most strings kept."""
    least, most = limits
    step = level.length - (before[-1].length if before else 0)
    strings = (kept.strings[:, None] << np.uint64(step) | np.arange(1 << step, dtype=np.uint64)).ravel()
    codes = level.codes(strings)
    earlier = [(each, each.codes(kept.strings >> np.uint64(before[-1].length - each.length))) for each in before]
    part = level.n / (level.n + sum(each.n for each in before))
    scores = (1 - part) * np.repeat(kept.scores, 1 << step) + part * level.shares(codes)
    first: list[int] = []
    shares: list[float] = []
    while len(first) < most and scores[best := int(np.argmax(scores))] >= least:
        first.append(best)
        shares.append(float(scores[best]))
        parents = sum((each.n / level.n * each.alike(code, best >> step) for each, code in earlier), np.zeros(len(kept.strings)))
        scores -= part * shares[-1] * (level.alike(codes, best).reshape(len(kept.strings), -1) + parents[:, None]).ravel()
    rest = np.delete(np.arange(len(scores)), first)
    if len(rest) > most - len(first):
        rest = rest[np.argpartition(-scores[rest], most - len(first))[: most - len(first)]]
    places = np.concatenate([np.array(first, dtype=np.int64), rest])
    return Beam(strings[places], np.concatenate([shares, scores[rest]]), len(first))
