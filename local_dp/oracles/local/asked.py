"""What a local oracle is asked, and how a client answers: record -> value -> report."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from local_dp.arrays import Bools, Words
from local_dp.errors import InputError
from local_dp.loss import NANO
from local_dp.noise import Noise, public_coins
from local_dp.queries.base import Query
from local_dp.randomizers.base import Randomizer
from local_dp.records import Records

CHUNK = 1 << 16  # clients at a time: the arrays of a chunk stay in cache, and a digest is over chunks of this size


@dataclass(frozen=True, order=True)
class Cohort:
    """The clients start..stop by index."""

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start < self.stop:
            raise InputError(f"the cohort {self.start}..{self.stop} is empty; give 0 <= start < stop")

    def __len__(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class LocalQuery:
    """LR_z(i, R) for every client i of a cohort: evaluate `query` on the record, randomize the value with `randomizer`."""

    query: Query
    randomizer: Randomizer
    cohort: Cohort

    def __post_init__(self) -> None:
        if self.query.domain != self.randomizer.domain:
            raise InputError(
                f"query {self.query.name!r} has values in {self.query.domain}, but randomizer {self.randomizer.name!r} takes {self.randomizer.domain}"
            )


@dataclass(frozen=True)
class RoundSummary:
    """What happened in one round, however it was run."""

    n: int
    epsilon: float
    bits_per_client: int
    digest: str | None


def round_summary(queries: tuple[LocalQuery, ...], n: int, digest: str | None) -> RoundSummary:
    """The summary of a round of these queries in which n clients were counted."""
    dearest = max(query.randomizer.nano for query in queries) / NANO
    return RoundSummary(n, dearest, max(query.randomizer.bits for query in queries), digest)


def check_disjoint(queries: tuple[LocalQuery, ...]) -> None:
    """A client answers one question a round: raises InputError where two cohorts of the round meet."""
    cohorts = sorted(query.cohort for query in queries)
    for first, second in pairwise(cohorts):
        if second.start < first.stop:
            raise InputError(f"two queries of one round ask client {second.start}; give them disjoint cohorts or two rounds")


def charges_of(queries: Sequence[LocalQuery]) -> list[tuple[int, int, int]]:
    """What a round of these queries costs whom: (start, stop, nano-nats) each."""
    return [(query.cohort.start, query.cohort.stop, query.randomizer.nano) for query in queries]


def respond(query: LocalQuery, records: Records, start: int, noise: Noise, round: int, coin_key: bytes) -> Words:
    """The reports of the clients start..start + len(records): record -> value -> report. Every tier's clients answer through this function."""
    randomizer, stop = query.randomizer, start + len(records)
    values = query.query.values(records)
    width = 64 if randomizer.word_bits > 32 else 32
    words = noise.words(round, start, stop, width)
    if randomizer.word_bits < width:  # a narrow randomizer reads its word's leading bits: a longer word would never fall below its thresholds
        words = words >> words.dtype.type(width - randomizer.word_bits)
    return randomizer.respond(values, words, cells_of(randomizer, coin_key, start, stop))


def cells_of(randomizer: Randomizer, coin_key: bytes, start: int, stop: int) -> Words:
    """The public-coin cells of the clients start..stop; no coin is drawn for a randomizer that uses none."""
    if randomizer.cells == 1:
        return np.zeros(1, dtype=np.uint8)
    return randomizer.cells_of(public_coins(coin_key, start, stop))


def chunk_digest(reports: Words, answered: Bools | None = None) -> bytes:
    """A digest of one chunk of reports; of those that came, and of who sent them, where some are missing."""
    if answered is None or bool(answered.all()):
        return blake2b(reports.tobytes(), digest_size=16).digest()
    return blake2b(np.packbits(answered).tobytes() + reports[answered].tobytes(), digest_size=16).digest()


def round_digest(parts: list[bytes]) -> str:
    """The digest of a round: equal for two runs if and only if every report of every client is (up to a collision)."""
    return blake2b(b"".join(parts), digest_size=16).hexdigest()
