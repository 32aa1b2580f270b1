"""The masked-parity learners (KLNRS Section 5): as printed, in two rounds by hashing, by list
decoding, and in one round."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.masked_parity import (
    NamedMasks,
    OneRound,
    best_one_round,
    best_size,
    masked_parity_clients,
    masked_parity_fresh_clients,
    masked_parity_fresh_success,
    masked_parity_list_clients,
    masked_parity_literal_clients,
    masked_parity_literal_success,
    masked_parity_split,
)
from local_dp.bounds.response import check_positive_epsilon
from local_dp.cube import bent_dual, parity, places_of
from local_dp.errors import InputError
from local_dp.interaction import Adaptive
from local_dp.masked.pairs import MaskPairs
from local_dp.masked.population import NULL_SHARE, Concept, MaskedParityPopulation
from local_dp.masked.queries import (
    LATTICE,
    MaskedBent,
    MaskedBit,
    MaskedCoset,
    MaskedDisagreement,
    MaskedExample,
    MaskedIndex,
    MaskedIndicator,
    MaskedList,
    MaskedParity,
)
from local_dp.noise import philox_words, stream_key
from local_dp.optimise import best_split
from local_dp.oracles.local.asked import Cohort, Local, LocalPlay, LocalQuery, LocalRounds, ask_all
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter
from local_dp.protocols.parity.parity import listed
from local_dp.randomizers.frequencies.hadamard import SignedHadamard
from local_dp.randomizers.frequencies.signed import SignedBlocks, SignedOracle
from local_dp.randomizers.numbers.noise import DiscreteLaplace
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Tally

# Pr[symbol] and E[sign 1(symbol)], shape (symbols, hypotheses)
Law: TypeAlias = tuple[Floats, Floats]


def signed_oracle(epsilon: float, k: int, size: int) -> SignedOracle:
    """Blocks of `size` of k signed symbols, or one hashed bit where it is 0."""
    return SignedBlocks(epsilon, k=k, size=size) if size else SignedHadamard(epsilon, k=k)


def best_signed_oracle(epsilon: float, k: int, share: float, null: float) -> SignedOracle:
    """The oracle of least variance, for symbols of probability `share` each and no symbol with
    probability `null`."""
    return signed_oracle(epsilon, k, best_size(epsilon, k, share, null)[0])


def index_oracle(epsilon: float, d: int, one_bit: bool = False) -> SignedOracle:
    """For a masked index: each of d positions in the half of the examples with b = 1; `one_bit`
    forces one hashed bit."""
    return (
        signed_oracle(epsilon, d, 0)
        if one_bit
        else best_signed_oracle(epsilon, d, (1 - NULL_SHARE) / d, NULL_SHARE)
    )


def list_question(
    epsilon: float, d: int, r: int, free: int, one_bit: bool = False
) -> tuple[MaskedList, SignedOracle]:
    """The query of a list of parities and the open positions; of all positions where one hashed bit
    is best, for it has room for all."""
    query = MaskedList(d, r, free, free)
    k = query.domain.high
    open_share = query.positions / d
    size, _ = best_size(epsilon, k, NULL_SHARE / query.listed, (1 - NULL_SHARE) * (1 - open_share))
    if size and not one_bit:
        return query, signed_oracle(epsilon, k, size)
    query = MaskedList(d, r, free, (1 << d) - 1)
    return query, signed_oracle(epsilon, query.domain.high, 0)


def signs_of(bits: int, vectors: Sequence[int]) -> Floats:
    """(-1)^(r_j) for each bit j of each vector r, shape (bits, number of vectors)."""
    return np.array(
        [[1.0 - 2.0 * (r >> place & 1) for r in vectors] for place in range(bits)]
    ).reshape(bits, len(vectors))


def index_law(d: int, vectors: Sequence[int]) -> Law:
    """Of `MaskedIndex`, for each vector r."""
    return _law(np.zeros((0, len(vectors))), signs_of(d, vectors), d)


def list_law(query: MaskedList) -> Law:
    """Of `MaskedList`: for a = 0 under each of its vectors, then for a = 1."""
    symbols = np.arange(query.listed, dtype=np.uint32)
    signs = 1.0 - 2.0 * parity(symbols[:, None] & symbols[None, :])
    positions = signs_of(query.d, query.vectors())[list(places_of(query.asked))]
    return _law(np.concatenate([signs, -signs], axis=1), np.tile(positions, 2), query.d)


def mask_law(query: MaskedBent, r: int) -> Law:
    """Of the one question that serves every parity, for a = 0 and a = 1 under one vector r."""
    bent = query.d - query.told
    dual = np.uint8(bent_dual(bent, r))
    odd = parity(np.arange(query.listed, dtype=np.uint64) & np.uint64(r >> bent)) ^ dual
    signs = 2.0 ** -(bent // 2) * (1.0 - 2.0 * odd.astype(np.float64))
    positions = signs_of(query.d, [r])
    return _law(np.stack([signs, -signs], axis=1), np.tile(positions, 2), query.d)


def _law(parities: Floats, positions: Floats, d: int) -> Law:
    """The half with b = 0 is spread over the listed symbols, the half with b = 1 over d positions,
    some of which are asked for."""
    each = [NULL_SHARE / max(len(parities), 1), (1 - NULL_SHARE) / d]
    shares = np.repeat(each, [len(parities), len(positions)])[:, None]
    signs = np.concatenate([parities, positions])
    return np.broadcast_to(shares, signs.shape), shares * signs


@dataclass(frozen=True)
class MaskedParityProtocol(LocalProtocol[Concept]):
    """The common part of the masked-parity learners: the concept class over {0,1}^d and its
    examples. Without `r` and `a` they are drawn at random."""

    asks: ClassVar[tuple[str, ...]] = ("signed-hadamard", "signed-blocks")
    figureless: ClassVar[str] = "a hypothesis"
    error_unit: ClassVar[str] = "share of records labelled wrongly"
    d: int = parameter(4, "Dimension: the bits of an example", unit="bits")
    r: int | None = parameter(
        None, "Hidden vector, as a whole number; default: random", help="Below 2^d"
    )
    a: int | None = parameter(None, "Whether the label is masked, 0 or 1; default: random")

    def check(self) -> None:
        MaskedIndex(self.d)
        if self.r is not None:
            MaskedParity(self.d, self.r)
        if self.a not in (None, 0, 1):
            raise InputError(f"a is {self.a!r}; give 0 or 1")

    def synthetic(self, clients: int, seed: int) -> MaskedParityPopulation:
        words = philox_words(stream_key("concept", seed), 0, 2)
        r = int(words[0]) >> (64 - self.d) if self.r is None else self.r
        a = int(words[1]) & 1 if self.a is None else self.a
        return MaskedParityPopulation(Concept(self.d, r, a), clients, seed)

    def describe(self, result: Concept) -> PlainData:
        return {"hypothesis": {"d": result.d, "r": f"{result.r:#x}", "a": result.a}}

    def truth(self, population: Population) -> Concept:
        assert isinstance(population, MaskedParityPopulation)
        return population.concept

    def true_error(self, result: Concept, population: Population) -> float:
        return result.error(self.truth(population))

    def explain(self, result: Concept) -> str:
        places = places_of(result.r)
        names = listed(places, "bit ", "bits ")
        if not places:
            return (
                "The learned rule: no bit matters; a record (x, i, b) has the label "
                f"+1{' if b = 1, and -1 if b = 0' * result.a}."
            )
        if len(places) == 1:
            index = f"i = {places[0]}"
            count = f"it is {1 - result.a}"
        else:
            index = "i is one of them"
            count = f"an {'even' if result.a else 'odd'} number of them are 1"
        return (
            f"The learned rule: of the {result.d} bits of x only {names} "
            f"{'matter' if len(places) > 1 else 'matters'}; a record (x, i, b) has the label -1 "
            f"if b = 1 and {index}, or if b = 0 and {count}, and else the label +1."
        )


def vector_of(signs: Floats) -> int:
    """The number whose bit j is 1 where signs[j] is negative."""
    return sum(1 << place for place, sign in enumerate(signs.tolist()) if sign < 0)


def fresh_cohorts(d: int, first: int) -> list[Cohort]:
    """Clients 0..first cut into d cohorts of nearly equal size."""
    if first < d:
        raise InputError(
            f"round one has {first} clients for {d} queries; give every query fresh ones"
        )
    ends = [first * place // d for place in range(d + 1)]
    return [Cohort(start, stop) for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class MaskedParityLiteral(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d by the paper's two rounds: d queries g_j with values 0 and 1,
    fresh clients and Laplace noise each, then g_d.

    r_j = 1 if the answer to g_j exceeds 1 / (4 d), a = 1 if that to g_d exceeds 1/4. The noise is
    that of Claim 4.1 with b = 1, of scale 2 / epsilon: here discrete Laplace on 64 steps of [-1,
    1], clamped, which needs no more clients. Privacy: each client answers once, epsilon-locally
    private. Utility: about 128 d^3 z^2 / epsilon^2 clients, 27 d / 4 times more than one-round
    hashing. Cost: 7 bits a client, two rounds.
    """

    name = "masked-parity-literal"
    summary = "Learns a masked parity by the two rounds of the paper"
    source = "KLNRS 2008, Section 5.1 and Claim 4.1, as printed (limits 3.2, P0)"

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
            tallies = yield tuple(
                LocalQuery(MaskedIndicator(self.d, j), laplace, cohort)
                for j, cohort in enumerate(cohorts)
            )
            limit = 1 / (4 * self.d)
            r = sum(1 << j for j, tally in enumerate(tallies) if expectation(tally) > limit)
            (tally,) = yield (
                LocalQuery(MaskedDisagreement(self.d, r), laplace, Cohort(first, clients)),
            )
            return Concept(self.d, r, int(expectation(tally) > 1 / 4))

        return Adaptive(play)


@dataclass(frozen=True)
class MaskedParityLearner(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d exactly in two rounds: all of r by one-round hashing, then the
    mask a by the parity query of r.

    Privacy: each client answers once, epsilon-locally private. Utility: with
    `bounds.masked_parity_clients`, about (4 d^2 z_{beta/d}^2 + 4 z_beta^2) / I, exact with
    probability 1 - beta; one round would need about 23 * 2^d at epsilon 1. For the uniform
    distribution over examples only: learning under every distribution would contain parity. Cost:
    one bit a client, two rounds.
    """

    name = "masked-parity"
    summary = "Learns a masked parity in two rounds: the vector, the mask"
    source = "KLNRS 2008, Section 5.1, by one-round hashing (limits 3.2, P2)"

    def clients(self, epsilon: float) -> int:
        return masked_parity_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Concept]:
        first = masked_parity_split(self.d, epsilon, clients)

        def play() -> LocalPlay[Concept]:
            index = index_oracle(epsilon, self.d)
            (tally,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            r = vector_of(index.estimate(tally, NULL_SHARE).value)
            # of the half of the examples that have b = 0
            mask = best_signed_oracle(epsilon, 1, NULL_SHARE, 1 - NULL_SHARE)
            (tally,) = yield (LocalQuery(MaskedParity(self.d, r), mask, Cohort(first, clients)),)
            return Concept(self.d, r, int(mask.estimate(tally, NULL_SHARE).value[0] < 0))

        return Adaptive(play)


@dataclass(frozen=True)
class MaskedParityFresh(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d in two rounds: d signed queries and then the parity query of r,
    fresh clients and randomized response for each.

    Privacy: each client answers once, epsilon-locally private. Utility: exact with probability 1 -
    beta for 4 d^3 C^2 z_{beta/d}^2 + 4 C^2 z_beta^2 clients, 6.8 times fewer than the literal
    protocol at epsilon 1. Cost: one bit a client, two rounds.
    """

    name = "masked-parity-fresh"
    summary = "Learns a masked parity in two rounds of fresh clients"
    source = "KLNRS 2008, Section 5.1, signed queries and randomized response (limits 3.2, P1)"

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
            tallies = yield tuple(
                LocalQuery(MaskedBit(self.d, j), response, cohort)
                for j, cohort in enumerate(cohorts)
            )
            r = sum(1 << j for j, tally in enumerate(tallies) if negative(tally))
            (tally,) = yield (
                LocalQuery(MaskedCoset(self.d, 0, r), response, Cohort(first, clients)),
            )
            return Concept(self.d, r, int(negative(tally)))

        return Adaptive(play)


MOST_OPEN = 8  # bits of r that round one may leave undecided


@dataclass(frozen=True)
class MaskedParityList(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d in two rounds: r except its t least reliable bits by hashing,
    then the likeliest of all 2^t candidates and masks.

    In round two a client's public coin picks one candidate parity (for b = 0) and one hashed bit of
    r (for b = 1), so every report serves both. `bits` is t and `share` is round two's share of the
    clients; 0 picks `default_bits` and `default_share`. Privacy: each client answers once,
    epsilon-locally private. Utility: exact with probability 95 % for a measured .55 + .5 / d of
    one-round hashing's clients. Cost: one bit a client, two rounds, 2^t likelihoods.
    """

    name = "masked-parity-list"
    summary = "Learns a masked parity from a list of likely candidates"
    source = "KLNRS 2008, Section 5.1, by list decoding (limits 3.2, P4)"
    one_bit: ClassVar[bool] = False  # whether every report is one hashed bit, for comparisons
    bits: int = parameter(0, "Bits that round one leaves open; 0: the best known", unit="bits")
    share: float = parameter(0.0, "Share of clients in round two; 0: the best known")

    def check(self) -> None:
        super().check()
        if not 0 <= self.bits <= min(self.d, MOST_OPEN):
            raise InputError(
                f"bits is {self.bits}; give the number of undecided bits, 1 to "
                f"{min(self.d, MOST_OPEN)}, or 0 for the default"
            )
        if not 0 <= self.share < 1:
            raise InputError(
                f"share is {self.share}; give round two's share of the clients, below 1, or 0 for "
                "the default"
            )

    def clients(self, epsilon: float) -> int:
        return masked_parity_list_clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Concept]:
        if clients < 2:
            raise InputError(f"masked parity has two rounds; {clients} client is too few")
        bits = self.bits or default_bits(self.d, epsilon)
        share = self.share or default_share(self.d, bits)
        first = min(max(round(clients * (1 - share)), 1), clients - 1)

        def play() -> LocalPlay[Concept]:
            index = index_oracle(epsilon, self.d, self.one_bit)
            (hashed,) = yield (LocalQuery(MaskedIndex(self.d), index, Cohort(0, first)),)
            means = index.estimate(hashed, NULL_SHARE).value
            free = sum(
                1 << place for place in np.argsort(np.abs(means), kind="stable")[:bits].tolist()
            )
            query, oracle = list_question(
                epsilon, self.d, vector_of(means) & ~free, free, self.one_bit
            )
            (tally,) = yield (LocalQuery(query, oracle, Cohort(first, clients)),)
            candidates = query.vectors()
            prior = index.log_likelihood(hashed, *index_law(self.d, candidates))
            likelihood = oracle.log_likelihood(tally, *list_law(query))
            a, place = divmod(int(np.argmax(np.tile(prior, 2) + likelihood)), len(candidates))
            return Concept(self.d, candidates[place], a)

        return Adaptive(play)


def default_bits(d: int, epsilon: float) -> int:
    """t, the undecided bits of round one: log2 d - 1, at least 2; more while 2^(t + 5) < e^eps.
    Tuned by simulation at epsilon .5 to 8."""
    check_positive_epsilon(epsilon)
    return min(d, MOST_OPEN, max(_few(d), math.floor(epsilon / math.log(2)) - 4))


def default_share(d: int, bits: int) -> float:
    """Round two's share of the clients: .45 (4/d)^.93, half as much again for each further open
    bit. Tuned by simulation; a flat optimum."""
    more = max(0, bits - _few(d))
    return min(0.6, 0.45 * math.pow(min(1.0, 4 / d), 0.93) * (1 + more / 2))


def _few(d: int) -> int:
    return max(2, round(math.log2(d)) - 1)


@dataclass(frozen=True)
class MaskedParityOneRound(MaskedParityProtocol):
    """Learns c_{r,a} over {0,1}^d exactly in one round: r by hashing, a without knowledge of r.

    Every client names one of two complementary public masks, with a sign (`MaskPairs`); a is the
    sign by which most name r. From epsilon 2.3 or d = 21 on it reports a hashed bit of r where b =
    1, y q(x) where b = 0; the bent function q has correlation +-2^(-d/2) with every parity.
    Privacy: each client answers once, epsilon-locally private. Utility: exact in 90 % of runs for
    about 23.5 * 2^d clients at epsilon 1, within 1.15 of the proven least. Cost: two bits.
    """

    name = "masked-parity-one-round"
    summary = "Learns a masked parity in one round"
    source = "non-interactive masked parity, KLNRS 2008, Section 5 corrected (limits 3.3)"
    asks = (*MaskedParityProtocol.asks, "mask-pairs")

    def question(self, epsilon: float) -> OneRound:
        """Named masks; or how many bits of x every client reports, and the size of the blocks."""
        return best_one_round(self.d, epsilon, BETA)

    def clients(self, epsilon: float) -> int:
        return self.question(epsilon).clients(self.d, epsilon, BETA)

    def algorithm(self, epsilon: float, clients: int) -> Local[Concept]:
        question = self.question(epsilon)
        if isinstance(question, NamedMasks):
            pairs = MaskPairs(epsilon, d=self.d)

            def read_named(tally: Tally) -> Concept:
                r = vector_of(pairs.estimate(tally).value)
                return Concept(self.d, r, int(np.argmax(tally.counts[r])))

            return ask_all(MaskedExample(self.d), pairs, clients, read_named)
        query = MaskedBent(self.d, question.bits)
        randomizer = signed_oracle(epsilon, query.domain.high, question.size)

        def read(tally: Tally) -> Concept:
            r = vector_of(randomizer.estimate(tally).value[query.listed :])
            plain, masked = randomizer.log_likelihood(tally, *mask_law(query, r)).tolist()
            return Concept(self.d, r, int(masked > plain))

        return ask_all(query, randomizer, clients, read)
