"""Masked parity without interaction: one round, exponentially many clients."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.masked_parity import masked_parity_one_round_clients
from local_dp.cube import bent_dual
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.masked.base import MaskedParityProtocol, vector_of
from local_dp.masked.concept import Concept
from local_dp.masked.decoding import listing_likelihood
from local_dp.masked.queries import MaskedBent, MaskedList
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.protocols.base import BETA, parameter
from local_dp.randomizers.frequencies.hadamard import SignedHadamard
from local_dp.tallies import Tally

MAX_MASKED = 11  # bits of a random mask: 2^11 masks and d positions fill the largest alphabet


@dataclass(frozen=True)
class MaskedParityOneRound(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d exactly in one round, r by hashing as with two rounds, a as well as can be without knowing r beforehand.

    A client with b = 1 reports a hashed bit of r. One with b = 0 reports y q(x), and there are two `form`s: "masks", q a public random parity, which serves
    only the 2^-d of the clients whose mask turns out to be r (d <= 11); "bent", the same bent function for all, whose correlation with every parity is
    +-2^(-d/2), the same information spread evenly (any d). Privacy: each client answers once, epsilon-locally private.
    Utility: exact with probability 90 % for about 30 * 2^d clients at epsilon 1, within 2.2 of the proven least for any non-interactive protocol.
    Cost: one bit a client, one round.
    """

    name: ClassVar[str] = "masked-parity-one-round"
    source: ClassVar[str] = "non-interactive masked parity, KLNRS 2008, Section 5 corrected (limits 3.3)"
    form: str = parameter("bent", "what a client with b = 0 is asked: bent, one function for all, or masks, a random parity each")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in ("bent", "masks"):
            raise InputError(f"form is {self.form!r}; give bent or masks")
        if self.form == "masks" and self.d > MAX_MASKED:
            raise InputError(f"d is {self.d}; random masks go up to d = {MAX_MASKED}, set form=bent beyond")

    @property
    def query(self) -> MaskedBent | MaskedList:
        """What every client is asked."""
        return MaskedBent(self.d) if self.form == "bent" else MaskedList(self.d, 0, (1 << self.d) - 1)

    def clients(self, epsilon: float) -> int:
        return masked_parity_one_round_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Nonadaptive[LocalQuery, Tally, Concept]:
        query = self.query
        randomizer = SignedHadamard(epsilon, k=query.listed + self.d)

        def decode(answers: tuple[Tally, ...]) -> Concept:
            (tally,) = answers
            r = vector_of(randomizer.estimate(tally).value[query.listed :])
            correlations = self._correlations(np.arange(randomizer.cells // 2), r)
            unmasked, masked = listing_likelihood(tally, randomizer, self.d, query.listed, [r], correlations[:, None])
            return Concept(self.d, r, int(masked[0] > unmasked[0]))

        return Nonadaptive((LocalQuery(query, randomizer, Cohort(0, clients)),), decode)

    def _correlations(self, rows: Counts, r: int) -> Floats:
        """The mean of (-1)^<r, x> q_l(x) for each row l: 1 for the mask r; the bent function's coefficient at r, where the row suits the last bit of r."""
        if self.form == "masks":
            coefficient, suited = 1.0, rows % (1 << self.d) == r
        else:
            coefficient = math.ldexp(1 - 2 * bent_dual(self.d, r), -(self.d // 2))
            suited = (rows % 2 == r >> self.d - 1) | (self.d % 2 == 0)
        correlations: Floats = np.where(suited, coefficient, 0.0)
        return correlations
