"""Parity in the local model: every protocol needs exponentially many clients, and interaction saves
a factor d (limits 4.2, 12.2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise, starmap

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.interaction import check_rounds, few_rounds_clients, few_rounds_plan
from local_dp.bounds.parity import (
    named_score,
    parity_deny_clients,
    parity_halving_clients,
    parity_one_round_clients,
    parity_rounds,
)
from local_dp.checks import check_vector
from local_dp.cube import places_of
from local_dp.interaction import Adaptive
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds, ask_all
from local_dp.populations.finite import Population
from local_dp.populations.parity import ParityPopulation
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.signs.characters import Characters, Deny, mask_set
from local_dp.tallies import Tally


@dataclass(frozen=True)
class ParityProtocol(LocalProtocol[int]):
    """The common part of the parity learners. Without `r` it is drawn at random."""

    figureless = "a hypothesis"
    error_unit = "share of records whose parity differs"
    d: int = parameter(4, "Dimension: the bits of a record", unit="bits")
    r: int | None = parameter(
        None, "Hidden vector, as a whole number; default: random", help="Below 2^d"
    )

    def check(self) -> None:
        ParityExample(self.d)
        if self.r is not None:
            check_vector("r", self.r, self.d)

    def synthetic(self, clients: int, seed: int) -> ParityPopulation:
        r = self.r
        if r is None:
            r = int(philox_words(stream_key("concept", seed), 0, 1)[0]) >> (64 - self.d)
        return ParityPopulation(self.d, r, clients, seed)

    def describe(self, result: int) -> PlainData:
        return {"hypothesis": {"d": self.d, "r": f"{result:#x}"}}

    def truth(self, population: Population) -> int:
        assert isinstance(population, ParityPopulation)
        return population.r

    def explain(self, result: int) -> str:
        return f"The learned rule predicts the label of a record x: it is {in_words(result)}."

    def true_error(self, result: int, population: Population) -> float:
        """Pr[the two parities differ]: 1/2 unless they are the same."""
        assert isinstance(population, ParityPopulation)
        return 0.0 if result == population.r else 0.5


@dataclass(frozen=True)
class ParityHalving(ParityProtocol):
    """Learns the parity r over {0,1}^d exactly by adaptive halving: d rounds, each asking its
    clients about the surviving masks and keeping the likelier half.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 90 %
    for about 5.7 C^2 2^d clients, no factor d; every protocol needs 3.1 C^2 2^d at epsilon 1
    (limits 12.3). Cost: one bit a client, d rounds. 1 <= d <= 12.
    """

    name = "parity"
    asks = ("characters",)
    summary = "Learns a parity by halving the candidates round by round"
    source = "KLNRS 2008, Section 4.4 and Corollary 4.6; adaptive halving (limits 4.2)"

    def clients(self, epsilon: float) -> int:
        return parity_halving_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[int]:
        ends = tuple(accumulate(parity_rounds(self.d, clients), initial=0))

        def play() -> LocalPlay[int]:
            masks = np.arange(1 << self.d)
            scores = np.zeros(1 << self.d)
            for start, stop in pairwise(ends):
                randomizer = Characters(epsilon, d=self.d, masks=mask_set(masks, self.d))
                (tally,) = yield (
                    LocalQuery(ParityExample(self.d), randomizer, Cohort(start, stop)),
                )
                scores = scores + log_likelihoods(randomizer, tally)
                masks, scores = likeliest(masks, scores, len(masks) // 2)
            return int(masks[0])

        return Adaptive(play)


@dataclass(frozen=True)
class ParityOneRound(ParityProtocol):
    """Learns the parity r over {0,1}^d in one round: a public random mask s for each client,
    randomized response to y (-1)^<s, x>, the likeliest mask.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 1 -
    beta for about (sqrt(2 d ln 2) + z)^2 C^2 2^d clients, a factor d more than interaction needs
    (limits 4.2). Cost: one bit a client, one round. 1 <= d <= 12.
    """

    name = "parity-one-round"
    asks = ("characters",)
    summary = "Learns a parity in one round, by public random masks"
    source = "KLNRS 2008, Section 4.4 and Corollary 4.6; random Walsh coefficients (limits 4.2)"

    def clients(self, epsilon: float) -> int:
        return parity_one_round_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[int]:
        randomizer = Characters(epsilon, d=self.d)
        return ask_all(
            ParityExample(self.d),
            randomizer,
            clients,
            lambda tally: int(np.argmax(log_likelihoods(randomizer, tally))),
        )


def listed(places: Sequence[int], one: str = "", several: str = "") -> str:
    """Places in words: "bit 3", "bits 0, 1 and 3"."""
    *first, last = places or (0,)
    return f"{several}{', '.join(map(str, first))} and {last}" if first else f"{one}{last}"


def in_words(r: int) -> str:
    """(-1)^<r, x> in words."""
    places = places_of(r)
    if not places:
        return "always +1"
    if len(places) == 1:
        return f"-1 if bit {places[0]} of x is 1, else +1"
    return f"-1 if an odd number of the bits {listed(places)} of x are 1, else +1"


def likeliest(masks: Counts, scores: Floats, count: int) -> tuple[Counts, Floats]:
    """The masks of the highest scores, ascending, as a randomizer lists them; and their scores."""
    places = np.sort(np.argsort(-scores, kind="stable")[:count])
    return masks[places], scores[places]


def log_likelihoods(randomizer: Characters, tally: Tally) -> Floats:
    """ln Pr[tally | r = s] - ln Pr[tally | r not listed] of each listed s, whose reports are +1
    with probability (1 + 1/C) / 2. Raises InputError."""
    plus, minus = tally.weights.T
    return np.asarray(
        plus * math.log1p(1 / randomizer.gain) + minus * math.log1p(-1 / randomizer.gain)
    )


@dataclass(frozen=True)
class ParityDeny(ParityProtocol):
    """Learns the parity r over {0,1}^d in one round: each client names a parity, more often one
    that its example rules out; r is named least.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 90 %
    for 17 C^2 2^d clients at d = 8 and epsilon 1, 15 % fewer than with random masks; up to ln 3
    nearly the best of one round as d grows (limits 12.2). Cost: d bits, one round, no public coin.
    1 <= d <= 12.
    """

    name = "parity-deny"
    asks = ("deny",)
    summary = "Learns a parity in one round, by parities ruled out"
    source = (
        "KLNRS 2008, Section 4.4 and Corollary 4.6; the best randomizer of one round (limits 12.2)"
    )

    def clients(self, epsilon: float) -> int:
        return parity_deny_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[int]:
        return ask_all(
            ParityExample(self.d),
            Deny(epsilon, d=self.d),
            clients,
            lambda tally: int(np.argmin(tally.weights[0])),
        )


@dataclass(frozen=True)
class ParityRounds(ParityProtocol):
    """Learns the parity r over {0,1}^d in a few rounds: suspects named in the first, one-bit
    parities over the likeliest 2^k in the later ones.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 90 %
    for 7 C^2 2^d clients in two rounds at d = 8 and epsilon 1, and 5.5 in three, fewer than any
    protocol of one round (limits 12.2). Cost: d bits or one a client. 2 <= rounds <= d <= 12.
    """

    name = "parity-rounds"
    asks = ("deny", "characters")
    summary = "Learns a parity in a few rounds, by shrinking lists"
    source = "KLNRS 2008, Section 4.4 and Corollary 4.6; shrinking lists (limits 12.2)"
    rounds: int = parameter(2, "Number of rounds, from 2 to the dimension")

    def check(self) -> None:
        super().check()
        check_rounds(self.d, self.rounds)

    def clients(self, epsilon: float) -> int:
        return few_rounds_clients(self.d, epsilon, self.rounds, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[int]:
        plan = few_rounds_plan(self.d, self.rounds)
        cohorts = list(starmap(Cohort, pairwise(accumulate(plan.sizes(clients), initial=0))))
        example = ParityExample(self.d)

        def play() -> LocalPlay[int]:
            (first,) = yield (LocalQuery(example, Deny(epsilon, d=self.d), cohorts[0]),)
            masks = np.arange(1 << self.d)
            scores = named_score(self.d, epsilon) * first.weights[0]
            for cohort, count in zip(cohorts[1:], plan.kept, strict=False):
                masks, scores = likeliest(masks, scores, count)
                randomizer = Characters(epsilon, d=self.d, masks=mask_set(masks, self.d))
                (tally,) = yield (LocalQuery(example, randomizer, cohort),)
                scores = scores + log_likelihoods(randomizer, tally)
            return int(masks[np.argmax(scores)])

        return Adaptive(play)
