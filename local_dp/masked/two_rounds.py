"""Masked parity: what two rounds can learn from few clients and one round cannot (KLNRS Section 5)."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from local_dp.bounds.masked_parity import masked_parity_clients, masked_parity_fresh_clients, masked_parity_fresh_success, masked_parity_split
from local_dp.interaction import Adaptive
from local_dp.masked.base import MaskedParityProtocol, vector_of
from local_dp.masked.concept import NULL_SHARE, Concept
from local_dp.masked.decoding import index_oracle, mask_oracle
from local_dp.masked.literal import fresh_cohorts
from local_dp.masked.queries import MaskedIndex, MaskedParity
from local_dp.masked.signs import MaskedBit, MaskedCoset
from local_dp.optimise import best_split
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Tally


@dataclass(frozen=True)
class MaskedParityLearner(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d exactly in two rounds: all of r by one-round hashing, then the mask a by the parity query of r.

    Privacy: each client answers once, epsilon-locally private. Utility: with `bounds.masked_parity_clients`,
    about (4 d^2 z_{beta/d}^2 + 4 z_beta^2) / I, exact with probability 1 - beta; one round would need about 29 * 2^d at epsilon 1.
    For the uniform distribution over examples only: learning under every distribution would contain parity. Cost: one bit a client, two rounds.
    """

    name: ClassVar[str] = "masked-parity"
    source: ClassVar[str] = "KLNRS 2008, Section 5.1, by one-round hashing (limits 3.2, P2)"

    def clients(self, epsilon: float) -> int:
        return masked_parity_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Concept]:
        first = masked_parity_split(self.d, epsilon, clients)

        def play() -> LocalPlay[Concept]:
            index = index_oracle(epsilon, self.d)
            (tally,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            r = vector_of(index.estimate(tally, NULL_SHARE).value)
            mask = mask_oracle(epsilon)
            (tally,) = yield (LocalQuery(MaskedParity(self.d, r), mask, Cohort(first, clients)),)
            return Concept(self.d, r, int(mask.estimate(tally, NULL_SHARE).value[0] < 0))

        return Adaptive(play)


@dataclass(frozen=True)
class MaskedParityFresh(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d in two rounds: d signed queries and then the parity query of r, fresh clients and randomized response for each.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 1 - beta for 4 d^3 C^2 z_{beta/d}^2 + 4 C^2 z_beta^2 clients,
    6.8 times fewer than the literal protocol at epsilon 1. Cost: one bit a client, two rounds.
    """

    name: ClassVar[str] = "masked-parity-fresh"
    source: ClassVar[str] = "KLNRS 2008, Section 5.1, signed queries and randomized response (limits 3.2, P1)"

    def clients(self, epsilon: float) -> int:
        return masked_parity_fresh_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Concept]:
        success = partial(masked_parity_fresh_success, self.d, epsilon)
        first = best_split(success, clients)
        cohorts = fresh_cohorts(self.d, first)
        response = BinaryRR(epsilon)

        def negative(tally: Tally) -> bool:
            return float(response.estimate(tally).value) < 1 / 2

        def play() -> LocalPlay[Concept]:
            tallies = yield tuple(LocalQuery(MaskedBit(self.d, j), response, cohort) for j, cohort in enumerate(cohorts))
            r = sum(1 << j for j, tally in enumerate(tallies) if negative(tally))
            (tally,) = yield (LocalQuery(MaskedCoset(self.d, 0, r), response, Cohort(first, clients)),)
            return Concept(self.d, r, int(negative(tally)))

        return Adaptive(play)
