"""Masked parity as the paper writes it: the baseline."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

from local_dp.bounds.masked_parity import masked_parity_literal_clients, masked_parity_literal_success
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.masked.base import MaskedParityProtocol
from local_dp.masked.concept import Concept
from local_dp.masked.queries import LATTICE, MaskedDisagreement, MaskedIndicator
from local_dp.optimise import best_split
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA
from local_dp.randomizers.numbers.discrete_laplace import DiscreteLaplace
from local_dp.tallies import Tally


def fresh_cohorts(d: int, first: int) -> list[Cohort]:
    """Clients 0..first cut into d cohorts of nearly equal size."""
    if first < d:
        raise InputError(f"round one has {first} clients for {d} queries; give every query fresh ones")
    ends = [first * place // d for place in range(d + 1)]
    return [Cohort(start, stop) for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class MaskedParityLiteral(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d by the paper's two rounds: d queries g_j with values 0 and 1, fresh clients and Laplace noise each, then g_d.

    r_j = 1 if the answer to g_j exceeds 1 / (4 d), a = 1 if that to g_d exceeds 1/4. Every value is released as Claim 4.1 with b = 1 has it, noise of
    scale 2 / epsilon, here discrete Laplace on 64 steps of [-1, 1], clamped: clamping is post-processing, so this needs no more clients than Lap(2 / epsilon).
    Privacy: each client answers once, epsilon-locally private. Utility: `bounds.masked_parity.masked_parity_literal_clients`, about 128 d^3 z^2 / epsilon^2.
    Cost: 7 bits a client, two rounds. One-round hashing needs 27 d / 4 times fewer clients.
    """

    name: ClassVar[str] = "masked-parity-literal"
    source: ClassVar[str] = "KLNRS 2008, Section 5.1 and Claim 4.1, as printed (limits 3.2, P0)"

    def clients(self, epsilon: float) -> int:
        return masked_parity_literal_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Concept]:
        laplace = DiscreteLaplace(epsilon, steps=LATTICE)
        success = partial(masked_parity_literal_success, self.d, epsilon)
        first = best_split(success, clients)
        cohorts = fresh_cohorts(self.d, first)

        def expectation(tally: Tally) -> float:
            return 2 * float(laplace.estimate(tally).value) - 1

        def play() -> LocalPlay[Concept]:
            tallies = yield tuple(LocalQuery(MaskedIndicator(self.d, j), laplace, cohort) for j, cohort in enumerate(cohorts))
            r = sum(1 << j for j, tally in enumerate(tallies) if expectation(tally) > 1 / (4 * self.d))
            (tally,) = yield (LocalQuery(MaskedDisagreement(self.d, r), laplace, Cohort(first, clients)),)
            return Concept(self.d, r, int(expectation(tally) > 1 / 4))

        return Adaptive(play)
