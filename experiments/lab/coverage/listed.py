"""Frequent strings of hard tables: whether all intervals of a list that the same run chose hold their truths at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from local_dp.arrays import Floats
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, Case
from local_dp.experiments.lab.coverage.runs import Simulated
from local_dp.populations.finite import Finite
from local_dp.protocols.search.heavy_hitters import Found, FrequentStrings, HeavyHitters, HeavyHittersAsked
from local_dp.records import Records
from local_dp.tallies import Z95, Estimate

CLIENTS = 50_000
SYLLABLES = ("an", "ber", "co", "der", "el", "fi", "ga", "hol", "in", "ka", "lo", "mar", "ne", "os", "per", "ri", "son", "ta", "ul", "ver")
AIRPORTS = [f"{first}{second}{third}" for first in "LJS" for second in "AFN" for third in "ABDGKLMNRSTXYZ"]  # nine beginnings of two letters
SURNAMES = [f"{first}{second}{third}" for first in SYLLABLES for second in SYLLABLES[:10] for third in SYLLABLES[10:]]
MAKERS = {
    "BOEING": 0.49, "AIRBUS": 0.12, "AIRBUS INDUSTRIE": 0.12, "BOMBARDIER INC": 0.09, "EMBRAER": 0.07, "MCDONNELL DOUGLAS": 0.04,
    "MCDONNELL DOUGLAS AIRCRAFT CO": 0.03, "MCDONNELL DOUGLAS CORPORATION": 0.01, "CANADAIR": 0.01, "CESSNA": 0.01, "PIPER": 0.01,
}  # fmt: skip


@dataclass(frozen=True)
class Together(Estimate):
    """How far the intervals of all listed strings can be moved: 0 is in it if and only if each holds its truth."""

    listed: Estimate | None = None
    truths: Floats | float = 0.0

    def interval(self, z: float = Z95) -> tuple[Floats, Floats]:
        """The common part of all intervals, each less its truth."""
        assert self.listed is not None
        low, high = self.listed.interval(z)
        return np.max(low - self.truths, initial=-1.0, keepdims=True), np.min(high - self.truths, initial=1.0, keepdims=True)


def together(truths: dict[int, float], found: Found) -> Sequence[Estimate]:
    """All listed strings as one coordinate."""
    each = np.array([truths.get(string, 0.0) for string in found.strings])
    return (Together(np.zeros(1), np.full(1, np.nan), found.estimate.n, None, found.estimate, each),)


def _tables() -> dict[str, tuple[list[str], list[float], int]]:
    """Texts, their shares, and the length that they are cut to."""
    return {
        "airport codes, shares as 1/rank": (AIRPORTS, [1 / rank for rank in range(1, len(AIRPORTS) + 1)], 3),
        "surnames, shares as 1/rank": (SURNAMES, [1 / rank for rank in range(1, len(SURNAMES) + 1)], 5),
        "makers of aircraft": (list(MAKERS), list(MAKERS.values()), 7),
    }


def listed_cases(kind: type[FrequentStrings], epsilon: float) -> Iterator[Case]:
    """Each table: its texts are cut where they are longer, and those that are cut alike count together."""
    for what, (texts, shares, size) in _tables().items():
        protocol = kind(text=True, text_bytes=size)
        population = partial(Finite, Records({protocol.column: np.array(texts)}), shares, CLIENTS)
        draw = Simulated(protocol.algorithm(epsilon, CLIENTS), population, epsilon, partial(together, protocol.shares(population(0))))
        yield Case(kind.name, what, epsilon, CLIENTS, np.zeros(1), draw, binomial=False, band=AT_LEAST, dear=500)


LISTED: dict[str, Callable[[float], Iterator[Case]]] = {kind.name: partial(listed_cases, kind) for kind in (HeavyHitters, HeavyHittersAsked)}
