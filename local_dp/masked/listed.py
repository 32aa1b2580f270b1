"""Masked parity by list decoding: round one need not be sure of every bit of r."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.bounds.masked_parity import masked_parity_list_clients
from local_dp.cube import places_of
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.masked.base import MaskedParityProtocol, vector_of
from local_dp.masked.concept import NULL_SHARE, Concept
from local_dp.masked.decoding import hashing_likelihood, listing_likelihood
from local_dp.masked.queries import MaskedIndex, MaskedList
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.base import BETA, parameter
from local_dp.randomizers.frequencies.hadamard import SignedHadamard
from local_dp.tallies import Tally


@dataclass(frozen=True)
class MaskedParityList(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d in two rounds: r but for its t least reliable bits by hashing, then all 2^t candidates at once, and the likeliest concept.

    In round two a client's public coin picks one candidate parity (for b = 0) and one hashed bit of r (for b = 1), so every report serves both.
    `bits` is t and `share` is round two's share of the clients; 0 picks `default_bits` and `default_share`.
    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 95 % for a measured .55 + .5 / d of one-round hashing's clients.
    Cost: one bit a client, two rounds, 2^t likelihoods.
    """

    name: ClassVar[str] = "masked-parity-list"
    source: ClassVar[str] = "KLNRS 2008, Section 5.1, by list decoding (limits 3.2, P4)"
    bits: int = parameter(0, "how many bits of r round one leaves undecided; 0 picks the best known", unit="bits")
    share: float = parameter(0.0, "round two's share of the clients; 0 picks the best known")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.bits <= min(self.d, 8):
            raise InputError(f"bits is {self.bits}; give the number of undecided bits, 1 to {min(self.d, 8)}, or 0 for the default")
        if not 0 <= self.share < 1:
            raise InputError(f"share is {self.share}; give round two's share of the clients, below 1, or 0 for the default")

    def clients(self, epsilon: float) -> int:
        return masked_parity_list_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Adaptive[LocalQuery, Tally, Concept]:
        if clients < 2:
            raise InputError(f"masked parity has two rounds; {clients} client is too few")
        first = min(max(round(clients * (1 - (self.share or default_share(self.d)))), 1), clients - 1)
        undecided = self.bits or default_bits(self.d)

        def play() -> Play[LocalQuery, Tally, Concept]:
            index = SignedHadamard(epsilon, k=self.d)
            (hashed,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            means = index.estimate(hashed, NULL_SHARE).value
            free = sum(1 << place for place in np.argsort(np.abs(means), kind="stable")[:undecided].tolist())
            candidates = _candidates(vector_of(means) & ~free, free)
            listed = SignedHadamard(epsilon, k=len(candidates) + self.d)
            (tally,) = yield (LocalQuery(MaskedList(self.d, candidates[0], free), listed, Cohort(first, clients)),)
            prior = hashing_likelihood(hashed, index, self.d, candidates)
            asked = np.arange(listed.cells // 2) % len(candidates)  # row l asks for candidate l mod 2^t
            correlations = (asked[:, None] == np.arange(len(candidates))[None, :]).astype(np.float64)
            unmasked, masked = listing_likelihood(tally, listed, self.d, len(candidates), candidates, correlations)
            a, place = divmod(int(np.argmax(np.concatenate([prior + unmasked, prior + masked]))), len(candidates))
            return Concept(self.d, candidates[place], a)

        return Adaptive(play)


def default_bits(d: int) -> int:
    """t, the bits that round one leaves undecided: log2 d - 1 but at least 2, so that the candidates grow like d. Tuned by simulation at epsilon 1."""
    return min(d, max(2, round(math.log2(d)) - 1))


def default_share(d: int) -> float:
    """Round two's share of the clients, .45 (4/d)^.93: .45, .24, .12, .07, .03 for d = 4, 8, 16, 32, 64. Tuned by simulation at epsilon 1; a flat optimum."""
    return 0.45 * math.pow(min(1.0, 4 / d), 0.93)


def _candidates(fixed: int, free: int) -> list[int]:
    """The vectors that agree with `fixed` outside `free`: number s holds the bits of s at the places of `free`, in order."""
    places = places_of(free)
    return [fixed | sum(1 << place for bit, place in enumerate(places) if s >> bit & 1) for s in range(1 << len(places))]
