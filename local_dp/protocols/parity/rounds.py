"""Parity in a few rounds: the first by naming suspects, the others by parities of a list that shrinks (limits 12.2)."""

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import ClassVar

import numpy as np

from local_dp.bounds.interaction import check_rounds, few_rounds_clients, few_rounds_plan
from local_dp.bounds.parity import named_score
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import BETA, parameter
from local_dp.protocols.parity.one_round_and_halving import ParityProtocol, log_likelihoods
from local_dp.queries.parity import ParityExample
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.randomizers.signs.deny import Deny


@dataclass(frozen=True)
class ParityRounds(ParityProtocol):
    """Learns the parity r over {0,1}^d in a few rounds: suspects named in the first, one-bit parities over the likeliest 2^k in the later ones.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 90 % for 7 C^2 2^d clients in two rounds at d = 8 and epsilon
    1, and 5.5 in three, fewer than any protocol of one round (limits 12.2). Cost: d bits or one a client. 2 <= rounds <= d <= 12.
    """

    name: ClassVar[str] = "parity-rounds"
    source: ClassVar[str] = "KLNRS 2008, Section 4.4 and Corollary 4.6; shrinking lists (limits 12.2)"
    rounds: int = parameter(2, "in how many rounds, from 2 to d")

    def check(self) -> None:
        super().check()
        check_rounds(self.d, self.rounds)

    def clients(self, epsilon: float) -> int:
        return few_rounds_clients(self.d, epsilon, self.rounds, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[int]:
        plan = few_rounds_plan(self.d, self.rounds)
        cohorts = [Cohort(start, stop) for start, stop in pairwise(accumulate(plan.sizes(clients), initial=0))]
        example = ParityExample(self.d)

        def play() -> LocalPlay[int]:
            (named,) = yield (LocalQuery(example, Deny(epsilon, d=self.d), cohorts[0]),)
            masks, scores = np.arange(1 << self.d), named_score(self.d, epsilon) * named.weights[0]
            for cohort, keep in zip(cohorts[1:], plan.kept, strict=False):
                likely = np.sort(np.argsort(-scores, kind="stable")[:keep])  # ascending, as the randomizer lists them
                masks, scores = masks[likely], scores[likely]
                randomizer = Characters(epsilon, d=self.d, masks=mask_set(masks, self.d))
                (tally,) = yield (LocalQuery(example, randomizer, cohort),)
                scores = scores + log_likelihoods(randomizer, tally)
            return int(masks[np.argmax(scores)])

        return Adaptive(play)
