"""Parity by sequential elimination: it comes near the bound for every protocol (limits 12.3)."""

import math
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.parity import parity_elimination_clients
from local_dp.checks import check_positive
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.protocols.local_protocol import parameter
from local_dp.protocols.parity.parity import ParityProtocol, log_likelihoods
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.randomizers.signs.suspects import Suspects
from local_dp.tallies import Tally

FEW = 40  # survivors from which on suspects are named; for fewer, bits about masks carry more


@dataclass(frozen=True)
class ParityElimination(ParityProtocol):
    """Learns the parity r over {0,1}^d by elimination: clients name suspects among the survivors,
    and each survivor is dropped once it is unlikely enough.

    It is dropped when its likelihood, against random labels, has fallen by the factor e^-fall. The
    last `FEW` survivors are asked about by one-bit parities. Privacy: each client answers once,
    epsilon-locally private. Utility: r is dropped with probability at most e^-fall, whatever d
    (limits 12.3). At epsilon 1 a fall of 2.1 gives 90 % with 3.8 C^2 2^d clients in the mean at d =
    8 and 3.6 at d = 10, where no protocol takes fewer than 3.1. The number is random; a run that
    has no more clients names the likeliest survivor. Cost: log2 of the survivors bits a client,
    some 100 rounds and more. 1 <= d <= 12.
    """

    name = "parity-elimination"
    asks = ("suspects", "characters")
    summary = "Learns a parity by dropping unlikely candidates"
    source = "sequential tests (Wald 1945) over named suspects (limits 12.3)"
    fall: float = parameter(
        3.0,
        "Fall of the log likelihood at which a parity is dropped",
        help="The hidden one is dropped with probability e^-fall",
        unit="nats",
    )
    step: float = parameter(
        0.5,
        "Clients of a round for each surviving parity",
        help="At least one for each of the last few",
    )

    def check(self) -> None:
        super().check()
        check_positive("fall", self.fall)
        check_positive("step", self.step)

    def clients(self, epsilon: float) -> int:
        """More than a run asks in 97 % of the cases."""
        return math.ceil(
            parity_elimination_clients(self.d, epsilon, self.fall, self.step)
            * (1 + 5 / 2 ** (self.d / 2))
        )

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[int]:
        def play() -> LocalPlay[int]:
            masks, scores, start = np.arange(1 << self.d), np.zeros(1 << self.d), 0
            while len(masks) > 1 and start < clients:
                queries = self._queries(epsilon, masks, start, clients)
                start = queries[-1].cohort.stop
                scores = scores + changes(queries, (yield queries), len(masks))
                likely = scores > -self.fall
                if not likely.any():
                    break
                masks, scores = masks[likely], scores[likely]
            return int(masks[np.argmax(scores)])

        return Adaptive(play)

    def _queries(
        self, epsilon: float, masks: Counts, start: int, clients: int
    ) -> tuple[LocalQuery, ...]:
        """A round about these survivors: one question about all of them, or one about each part of
        2^k, as many as there are bits in their number."""
        size, example = len(masks), ParityExample(self.d)
        if size >= FEW:
            suspects = Suspects(epsilon, d=self.d, masks=mask_set(masks, self.d))
            stop = min(clients, start + math.ceil(self.step * size))
            return (LocalQuery(example, suspects, Cohort(start, stop)),)
        queries, first = [], 0
        for part in (1 << bit for bit in range(size.bit_length()) if size >> bit & 1):
            stop = min(clients, start + math.ceil(max(1.0, self.step) * part))
            if start < stop:
                randomizer = Characters(
                    epsilon, d=self.d, masks=mask_set(masks[first : first + part], self.d)
                )
                queries.append(LocalQuery(example, randomizer, Cohort(start, stop)))
            start, first = stop, first + part
        return tuple(queries)


def changes(queries: tuple[LocalQuery, ...], tallies: tuple[Tally, ...], survivors: int) -> Floats:
    """What a round adds to ln Pr[replies | r = w] / Pr[replies | random labels] of each survivor w;
    of named suspects, by whether w itself is named."""
    change, first = np.zeros(survivors), 0
    for query, tally in zip(queries, tallies, strict=True):
        if isinstance(randomizer := query.randomizer, Suspects):
            votes = tally.weights[0]
            others = tally.answered - votes
            own, blind = randomizer.hidden, randomizer.blind
            gain = votes * np.log(own / blind)
            return np.asarray(gain + others * np.log((1 - own) / (1 - blind)))
        assert isinstance(randomizer, Characters)
        change[first : first + randomizer.cells] = log_likelihoods(randomizer, tally)
        first += randomizer.cells
    return change
