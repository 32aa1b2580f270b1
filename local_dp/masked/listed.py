"""Masked parity by list decoding: round one need not be sure of every bit of r."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.bounds.masked_parity import masked_parity_list_clients
from local_dp.bounds.response import check_positive_epsilon
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.masked.base import MaskedParityProtocol, vector_of
from local_dp.masked.concept import NULL_SHARE, Concept
from local_dp.masked.decoding import index_law, index_oracle, list_law, list_question
from local_dp.masked.queries import MaskedIndex
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA, parameter

MOST_OPEN = 8  # bits of r that round one may leave undecided


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
    one_bit: ClassVar[bool] = False  # whether every report is one hashed bit, whatever tells most: to compare with
    bits: int = parameter(0, "how many bits of r round one leaves undecided; 0 picks the best known", unit="bits")
    share: float = parameter(0.0, "round two's share of the clients; 0 picks the best known")

    def check(self) -> None:
        super().check()
        if not 0 <= self.bits <= min(self.d, MOST_OPEN):
            raise InputError(f"bits is {self.bits}; give the number of undecided bits, 1 to {min(self.d, MOST_OPEN)}, or 0 for the default")
        if not 0 <= self.share < 1:
            raise InputError(f"share is {self.share}; give round two's share of the clients, below 1, or 0 for the default")

    def clients(self, epsilon: float) -> int:
        return masked_parity_list_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Concept]:
        if clients < 2:
            raise InputError(f"masked parity has two rounds; {clients} client is too few")
        undecided = self.bits or default_bits(self.d, epsilon)
        share = self.share or default_share(self.d, undecided)
        first = min(max(round(clients * (1 - share)), 1), clients - 1)

        def play() -> LocalPlay[Concept]:
            index = index_oracle(epsilon, self.d, self.one_bit)
            (hashed,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            means = index.estimate(hashed, NULL_SHARE).value
            free = sum(1 << place for place in np.argsort(np.abs(means), kind="stable")[:undecided].tolist())
            query, listed = list_question(epsilon, self.d, vector_of(means) & ~free, free, self.one_bit)
            (tally,) = yield (LocalQuery(query, listed, Cohort(first, clients)),)
            candidates = query.vectors()
            prior = index.log_likelihood(hashed, *index_law(self.d, candidates))
            likelihood = listed.log_likelihood(tally, *list_law(query))
            a, place = divmod(int(np.argmax(np.tile(prior, 2) + likelihood)), len(candidates))
            return Concept(self.d, candidates[place], a)

        return Adaptive(play)


def default_bits(d: int, epsilon: float) -> int:
    """t, the bits that round one leaves undecided: log2 d - 1 but at least 2, so that the candidates grow like d; more where 2^(t + 5) stays below e^eps.

    Tuned by simulation at epsilon .5 to 8: from 4 up round two's reports name the open bits of x outright.
    """
    check_positive_epsilon(epsilon)
    return min(d, MOST_OPEN, max(_few(d), math.floor(epsilon / math.log(2)) - 4))


def default_share(d: int, undecided: int) -> float:
    """Round two's share of the clients: .45 (4/d)^.93, that is .45, .24, .12, .07, .03 for d = 4, 8, 16, 32, 64; half as much again for each further open bit.

    Tuned by simulation; a flat optimum.
    """
    return min(0.6, 0.45 * math.pow(min(1.0, 4 / d), 0.93) * (1 + max(0, undecided - _few(d)) / 2))


def _few(d: int) -> int:
    return max(2, round(math.log2(d)) - 1)
