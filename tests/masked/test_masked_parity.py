"""The masked-parity learners: exact laws of their queries, user-level and aggregate runs alike,
client counts and bounds."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from local_dp.arrays import Floats
from local_dp.bounds import masked_parity
from local_dp.bounds.channels import best_channel
from local_dp.bounds.masked_parity import blocks_variance
from local_dp.experiments.lab.minimal_clients import exact_recovery
from local_dp.interaction import Watched, run
from local_dp.masked import protocols
from local_dp.masked.pairs import MaskPairs
from local_dp.masked.population import Concept, MaskedParityPopulation
from local_dp.masked.queries import (
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
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.signed import SignedOracle
from local_dp.randomizers.with_coin import without_coin
from local_dp.records import Records
from local_dp.tallies import Tally
from tests.support.long import short
from tests.support.theory.alike import check_alike
from tests.support.wrong import wrong

ASKED = [
    MaskedIndex(3), MaskedParity(3, 5), MaskedParity(3, 3), MaskedIndicator(3, 0),
    MaskedIndicator(3, 1), MaskedDisagreement(3, 5),
    MaskedDisagreement(3, 1), MaskedBit(3, 1), MaskedBit(3, 2), MaskedCoset(3, 0, 5),
    MaskedCoset(3, 0, 0), MaskedList(3, 1, 0b110, 0b110),
    MaskedList(3, 0, 0b111, 0b111), MaskedList(3, 3, 0b101, 0b111), MaskedList(3, 3, 0b001, 0b100),
    MaskedList(3, 5, 0), MaskedBent(3, 1),
    MaskedBent(3, 3), MaskedExample(3),
]  # fmt: skip


def everybody(concept: Concept) -> Records:
    """One record of each kind: 2 d 2^d of them, all equally likely."""
    d = concept.d
    rows = list(product(range(1 << d), range(d), (0, 1)))
    x, i, b = (np.array(column) for column in zip(*rows, strict=True))
    odd = [
        concept.r >> place & 1 if masked else ((concept.r & word).bit_count() + concept.a) & 1
        for word, place, masked in rows
    ]
    y = (1 - 2 * np.array(odd)).astype(np.int8)
    return Records(
        {"x": x.astype(np.uint64), "i": i.astype(np.uint8), "b": b.astype(np.uint8), "y": y}
    )


def enumerated(concept: Concept, query: Query) -> Floats:
    values = query(everybody(concept)).astype(np.int64) - query.domain.low
    return np.bincount(values, minlength=query.domain.size).astype(np.float64) / len(values)


def tally_law(concept: Concept, query: Query, randomizer: FiniteChannel) -> Floats:
    """Pr[cell, report] by enumeration of the records and of the channel."""
    law = enumerated(concept, query)
    cells = range(randomizer.cells)
    channel = np.array(
        [randomizer.channel(cell).astype(np.float64) / randomizer.total for cell in cells]
    )
    return np.asarray(np.einsum("v,cvw->cw", law, channel) / randomizer.cells)


@pytest.mark.parametrize("query", ASKED, ids=repr)
@pytest.mark.parametrize("a", [0, 1])
def test_laws_by_enumeration(query: Query, a: int) -> None:
    """The law of every masked-parity query equals an enumeration of all records; the law under
    another concept does not always."""
    concept = Concept(3, 5, a)
    law = MaskedParityPopulation(concept, 1, 0).law(query)
    assert law == pytest.approx(enumerated(concept, query), abs=1e-15)
    others = [enumerated(Concept(3, r, flip), query) for r in range(8) for flip in (0, 1)]
    assert any(np.abs(law - other).max() > 0.05 for other in others)


@wrong(
    "local_dp.masked.pairs:MaskPairs.encode",
    "examples + masked",
    "examples + 1",
    "clients with b = 1 name the masks that their label allows",
)
@wrong(
    "local_dp.masked.pairs:MaskPairs.law",
    "apart - 1 / 2",
    "apart",
    "the law of named masks adds up to more than 1",
)
def test_law_of_named_masks_and_what_it_reveals() -> None:
    """It equals an enumeration of records, coins and reports; and no report of 12 inputs has more
    information on the mask, 2^-d I_up, by a linear program over all channels."""
    pairs = MaskPairs(1.0, d=2)
    channel = pairs.inner.channel() / pairs.inner.total

    def information(plain: Floats, masked: Floats) -> Floats:
        return 2 * (plain - masked) ** 2 / (plain + masked)

    each, laws = 0.0, []
    for r in range(4):
        both = []
        for a in (0, 1):
            values = MaskedExample(2)(everybody(Concept(2, r, a)))
            law = np.zeros((4, 2))
            for coin, report in product(range(4), range(4)):
                coins = np.array([coin], dtype=np.uint64)
                chance = channel[pairs.encode(values, coins)][:, report].mean()
                law += pairs.tally(np.array([report]), coins).counts * chance / 4
            np.testing.assert_allclose(pairs.law(r, a), law, atol=1e-15)
            both.append(law)
            laws.append(np.bincount(values, minlength=14)[[0, 1, *range(4, 14)]] / 16)
        each += information(*both).sum() / 4

    def score(columns: Floats) -> Floats:
        chances = [columns @ law for law in laws]
        return np.asarray(np.mean([*map(information, chances[::2], chances[1::2])], axis=0))

    assert each == pytest.approx(best_channel(1.0, 12, score).value, rel=1e-6)


@pytest.mark.parametrize(
    ("d", "r", "bits"),
    [(2, 3, 0), (2, 3, 2), (4, 11, 0), (4, 11, 2), (5, 19, 1), (5, 7, 3), (5, 30, 5)],
)
def test_bent_law_by_enumeration(d: int, r: int, bits: int) -> None:
    """For any number t of bits in the symbol, the bent query's law equals an enumeration, and its
    coefficients given them are 2^-((d - t) / 2) in size."""
    query = MaskedBent(d, bits)
    for a in (0, 1):
        law = MaskedParityPopulation(Concept(d, r, a), 1, 0).law(query)
        assert law == pytest.approx(enumerated(Concept(d, r, a), query), abs=1e-15)
    plus = law[query.domain.high + 1 :]
    minus = law[: query.domain.high][::-1]
    lean = plus[: query.listed] - minus[: query.listed]
    size = 2.0 ** -((d - bits) // 2)
    assert np.abs(lean) == pytest.approx(0.5 / query.listed * size)


@pytest.mark.parametrize("size", [0, 1, 2, 4])
def test_likelihoods_are_those_of_the_enumerated_laws(size: int) -> None:
    """The decoders' log likelihoods of a tally equal those of the enumerated laws, up to a constant
    over the hypotheses."""
    d, generator = 3, np.random.default_rng(4)
    listing = MaskedList(d, 1, 0b110, 0b011)
    for query, law, concepts in [
        (
            MaskedIndex(d),
            protocols.index_law(d, list(range(8))),
            [Concept(d, r, 0) for r in range(8)],
        ),
        (
            listing,
            protocols.list_law(listing),
            [Concept(d, r, a) for a in (0, 1) for r in listing.vectors()],
        ),
        (
            MaskedBent(d, 1),
            protocols.mask_law(MaskedBent(d, 1), 6),
            [Concept(d, 6, a) for a in (0, 1)],
        ),
    ]:
        randomizer = protocols.signed_oracle(1.0, query.domain.high, size)
        tally = Tally(generator.integers(1, 50, size=(randomizer.cells, randomizer.alphabet)))
        laws = [tally_law(concept, query, randomizer) * randomizer.cells for concept in concepts]
        np.testing.assert_allclose(np.moveaxis(randomizer.mixture(*law), -1, 0), laws, atol=1e-12)
        expected = np.array([(tally.counts * np.log(each)).sum() for each in laws])
        likelihoods = randomizer.log_likelihood(tally, *law)
        assert np.ptp(likelihoods - expected) < 1e-6
        assert np.ptp(likelihoods) > 0.01


def square(oracle: SignedOracle, law: protocols.Law, block: int = 0) -> float:
    """n times the variance of the mean of a symbol of this block, by the law of a report."""
    chances = oracle.mixture(*law).mean(axis=(0, 2))[:-1].reshape(-1, 2).sum(axis=1)
    return float(chances[block]) * oracle.gain**2


def test_the_success_is_that_of_the_law_of_reports() -> None:
    """Bits and mask are right as often as normal sums of these variances: in one round in blocks of
    two symbols, in two rounds of single ones, which are best where a report is hardly noisy."""
    oracle, law = protocols.signed_oracle(1.0, 20, 2), protocols.mask_law(MaskedBent(4, 4), 5)
    bit, mask = (stats.norm.cdf(math.sqrt(500 / square(oracle, law, at)) / 8) for at in (-1, 0))
    success = masked_parity.OneRound(4, 2).success(4, 1.0, 500)
    assert success == pytest.approx(bit**4 * mask)
    hashed = masked_parity.OneRound(0, 0).variance(4, 1.0, 0.1)
    assert hashed == pytest.approx(1 / math.tanh(0.5) ** 2)
    index, last = protocols.index_oracle(6.0, 4), protocols.signed_oracle(6.0, 1, 1)
    bit = stats.norm.cdf(math.sqrt(20 / square(index, protocols.index_law(4, [5]))) / 8)
    mask = stats.norm.cdf(math.sqrt(3 / square(last, (np.full((1, 1), 0.5),) * 2)) / 2)
    success = masked_parity.masked_parity_success(4, 6.0, 20, 3)
    assert index.cells == 1
    assert success == pytest.approx(bit**4 * mask)
    gain = math.tanh(2) ** -2
    for right, *squares in (
        (masked_parity.masked_parity_literal_success, 2.25, 3.0),
        (masked_parity.masked_parity_fresh_success, gain, gain),
    ):
        bit, mask = stats.norm.cdf(np.sqrt(np.array([500 / 4, 3]) / squares) / [8, 2])
        assert right(4, 4.0, 500, 3) == pytest.approx(bit**4 * mask)


class BentOneRound(protocols.MaskedParityOneRound):
    """One that names no masks."""

    def question(self, epsilon: float) -> masked_parity.OneRound:
        return masked_parity.OneRound(0, 0)


ALIKE = [
    (protocols.MaskedParityFresh(d=3), 1_000), (protocols.MaskedParityLiteral(d=3), 4_500),
    (protocols.MaskedParityList(d=4), 500),
    (protocols.MaskedParityList(d=5, bits=3, share=0.4), 800),
    (protocols.MaskedParityOneRound(d=4), 800), (protocols.MaskedParityOneRound(d=5), 1_200),
    (BentOneRound(d=4), 800),
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize(
    ("protocol", "n"),
    short(ALIKE, lambda each: each in (ALIKE[3], ALIKE[4]), several=True),
    ids=repr,
)
def test_user_level_and_aggregate_runs_succeed_alike(
    protocol: protocols.MaskedParityProtocol, n: int
) -> None:
    """Success over 200 populations and 800 aggregate runs differ by less than 4.9 deviations
    (1e-6); with a third of the clients, by more."""
    check_alike(protocol, n, 200, 800)


@pytest.mark.parametrize("name", [name for name in PROTOCOLS if name.startswith("masked-parity")])
@pytest.mark.parametrize("d", short((1, 2, 3, 4, 7), lambda d: d in (1, 4, 7)))
def test_every_learner_finds_every_bit_with_enough_clients(name: str, d: int) -> None:
    """With six times the clients of `clients` every learner is exact for ten concepts, for every d
    including 1 and odd ones; and `clients` is that of its bound."""
    protocol = PROTOCOLS[name].from_settings({"d": str(d)})
    assert exact_recovery(protocol, 1.0, 1)(6 * protocol.clients(1.0), 10) == 10
    clients = vars(masked_parity)[name.replace("-", "_") + "_clients"]
    assert protocol.clients(2.0) == clients(d, 2.0, 0.05)


@wrong(
    "local_dp.masked.protocols:MaskedParityList.algorithm",
    "np.tile(prior, 2)",
    "0.5 * np.tile(prior, 2)",
    "masked parity by a list forgets half of what the first round says",
)
def test_the_list_is_decoded_by_both_rounds() -> None:
    """What is found has the largest likelihood of both rounds together; with half the weight of the
    first it would be another in some runs of 60."""
    d, n, differing = 6, 400, 0
    protocol, rounds = protocols.MaskedParityList(d=d), 60
    for seed in range(rounds):
        population = protocol.synthetic(n, seed)
        generator = np.random.default_rng(seed)
        oracle = AggregateOracle(population, generator, 1.0)
        log = list[tuple[tuple[LocalQuery, ...], tuple[Tally, ...]]]()
        concept = run(
            protocol.algorithm(1.0, n),
            Watched(oracle, after=lambda *both, log=log: log.append(both)),
        )
        (((first,), (hashed,)), ((second,), (tally,))) = log
        query = second.query
        assert isinstance(query, MaskedList)
        candidates = query.vectors()
        index, oracle_of_list = (without_coin(each.randomizer) for each in (first, second))
        parts = (
            np.tile(index.log_likelihood(hashed, *protocols.index_law(d, candidates)), 2),  # type: ignore[attr-defined]
            oracle_of_list.log_likelihood(tally, *protocols.list_law(query)),  # type: ignore[attr-defined]
        )
        count = len(candidates)
        best, other = (
            divmod(int(np.argmax(weight * parts[0] + parts[1])), count) for weight in (1, 0.5)
        )
        assert concept == Concept(d, candidates[best[1]], best[0])
        differing += best != other
    assert differing


def test_bounds_have_the_published_values() -> None:
    """Capacities, lower bounds at four epsilons, the information limit, and the counts of one
    round, of lists and of the curator are those of the limits."""
    assert [
        masked_parity.masked_parity_capacity(epsilon) for epsilon in (0.5, 1, 2, 4)
    ] == pytest.approx([0.0609, 0.2266, 1.005, 9.09], rel=1e-3)
    assert [
        masked_parity.masked_parity_one_round_bound(0, epsilon, 0.9)
        for epsilon in (0.1, 0.25, 0.5, 1)
    ] == pytest.approx([2505, 386.8, 90.77, 20.61], rel=1e-3)
    assert masked_parity.masked_parity_interactive_bound(16, 1.0) == pytest.approx(6263, rel=2e-3)
    counts = [
        masked_parity.masked_parity_one_round_clients(d, 1.0, 0.1) for d in (2, 4, 8, 12, 16, 20)
    ]
    assert counts == pytest.approx([230, 1_218, 8_220, 96_050, 1.537e6, 2.459e7], rel=0.03)
    assert [masked_parity.masked_parity_curator_clients(d, 1.0, 0.1) for d in (8, 16)] == [47, 75]
    shares = [
        masked_parity.masked_parity_list_clients(d, 0.5, 0.2)
        / masked_parity.masked_parity_clients(d, 0.5, 0.2)
        for d in (4, 8, 16, 32)
    ]
    assert shares == pytest.approx([0.675, 0.605, 0.575, 0.565], abs=0.025)


def test_blocks_have_the_variance_of_their_reports() -> None:
    """Four blocks of two symbols, two signs each, and a report of none: how often the own block is
    named, over the square of what a report tells."""
    chances = np.ones(9)
    chances[0] = math.e
    p, q = (chances / chances.sum())[:2]
    share = 0.2 * (p + q) + 0.8 * 2 * q
    assert blocks_variance(1.0, 8, 2, 0.1) == pytest.approx(share / (p - q) ** 2)
