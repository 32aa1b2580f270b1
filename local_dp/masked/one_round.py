"""Masked parity without interaction: one round, exponentially many clients."""

from dataclasses import dataclass
from typing import ClassVar

from local_dp.bounds.masked_parity import OneRound, best_one_round
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.masked.base import MaskedParityProtocol, vector_of
from local_dp.masked.concept import Concept
from local_dp.masked.decoding import mask_law, signed_oracle
from local_dp.masked.queries import MaskedBent
from local_dp.oracles.local.asked import Cohort, Local, LocalQuery
from local_dp.protocols.local_protocol import BETA, parameter
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

    def check(self) -> None:
        super().check()
        if self.form not in ("bent", "masks"):
            raise InputError(f"form is {self.form!r}; give bent or masks")
        if self.form == "masks" and self.d > MAX_MASKED:
            raise InputError(f"d is {self.d}; random masks go up to d = {MAX_MASKED}, set form=bent beyond")

    def question(self, epsilon: float) -> OneRound:
        """How much of x every client tells, and in blocks of how many symbols."""
        return best_one_round(self.d, epsilon, BETA, self.d if self.form == "masks" else None)

    def clients(self, epsilon: float) -> int:
        return self.question(epsilon).clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Concept]:
        question = self.question(epsilon)
        query = MaskedBent(self.d, question.told)
        randomizer = signed_oracle(epsilon, query.domain.high, question.size)

        def decode(answers: tuple[Tally, ...]) -> Concept:
            (tally,) = answers
            r = vector_of(randomizer.estimate(tally).value[query.listed :])
            unmasked, masked = randomizer.log_likelihood(tally, *mask_law(query, r)).tolist()
            return Concept(self.d, r, int(masked > unmasked))

        return Nonadaptive((LocalQuery(query, randomizer, Cohort(0, clients)),), decode)
