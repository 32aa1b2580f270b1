"""What every masked-parity learner shares."""

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.masked_parity import (
    OneRound,
    best_one_round,
    masked_parity_clients,
    masked_parity_fresh_clients,
    masked_parity_fresh_success,
    masked_parity_list_clients,
    masked_parity_literal_clients,
    masked_parity_literal_success,
    masked_parity_split,
)
from local_dp.bounds.response import check_positive_epsilon
from local_dp.cube import places_of
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive
from local_dp.masked.decoding import index_law, index_oracle, list_law, list_question, mask_law, mask_oracle, signed_oracle
from local_dp.masked.population import NULL_SHARE, Concept, MaskedParityPopulation
from local_dp.masked.queries import LATTICE, MaskedBent, MaskedBit, MaskedCoset, MaskedDisagreement, MaskedIndex, MaskedIndicator, MaskedParity
from local_dp.noise import philox_words, stream_key
from local_dp.optimise import best_split
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.protocols.parity.parity import listed
from local_dp.randomizers.numbers.discrete_laplace import DiscreteLaplace
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Tally


@dataclass(frozen=True)
class MaskedParityProtocol(LocalProtocol[Concept]):
    """What every masked-parity learner shares: the concept class over {0,1}^d, its examples and its error. Without `r` and `a` they are drawn at random."""

    d: int = parameter(4, "the dimension: x is a vector of so many bits", unit="bits")
    r: int | None = parameter(None, "the hidden vector, a whole number below 2^d; without it, drawn at random")
    a: int | None = parameter(None, "whether the label is masked, 0 or 1; without it, drawn at random")

    def check(self) -> None:
        MaskedIndex(self.d)
        if self.r is not None:
            MaskedParity(self.d, self.r)
        if self.a not in (None, 0, 1):
            raise InputError(f"a is {self.a!r}; give 0 or 1")

    def synthetic(self, clients: int, seed: int) -> MaskedParityPopulation:
        drawn = philox_words(stream_key("concept", seed), 0, 2)
        r = int(drawn[0]) >> (64 - self.d) if self.r is None else self.r
        a = int(drawn[1]) & 1 if self.a is None else self.a
        return MaskedParityPopulation(Concept(self.d, r, a), clients, seed)

    def describe(self, result: Concept) -> PlainData:
        return {"hypothesis": {"d": result.d, "r": f"{result.r:#x}", "a": result.a}}

    def truth(self, population: Population) -> Concept:
        assert isinstance(population, MaskedParityPopulation)
        return population.concept

    def explain(self, result: Concept) -> str:
        places = places_of(result.r)
        named = listed(places, "bit ", "bits ")
        if not places:
            return f"The learned rule: no bit matters; a record (x, i, b) has the label +1{' if b = 1, and -1 if b = 0' * result.a}."
        if len(places) == 1:
            asked, counted = f"i = {places[0]}", f"it is {1 - result.a}"
        else:
            asked, counted = "i is one of them", f"an {'even' if result.a else 'odd'} number of them are 1"
        return (
            f"The learned rule: of the {result.d} bits of x only {named} {'matter' if len(places) > 1 else 'matters'}; a record (x, i, b) has the label -1 "
            f"if b = 1 and {asked}, or if b = 0 and {counted}, and else the label +1."
        )

    def true_error(self, result: Concept, population: Population) -> float:
        assert isinstance(population, MaskedParityPopulation)
        return result.error(population.concept)


def vector_of(signs: Floats) -> int:
    """The number whose bit j is 1 where signs[j] is negative."""
    return sum(1 << place for place, sign in enumerate(signs.tolist()) if sign < 0)


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
