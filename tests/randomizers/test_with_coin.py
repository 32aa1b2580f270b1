"""Deny, compressed channels, and a coin sent along: channels in fractions, laws against
enumerations, and a coin independent of the value."""

import itertools
import math
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest

from local_dp.bounds.parity import deny_information, parity_information
from local_dp.conformance import conform
from local_dp.errors import InputError, RefusedError
from local_dp.loss import Approximate, Pure, exp_epsilon
from local_dp.noise import Draw, KeyedNoise
from local_dp.populations.parity import ParityPopulation
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.compressed.genprot import (
    Compressed,
    GenProt,
    SeededRejection,
    chosen,
    inner_channel,
    largest_limit,
    private_weights,
    worst_ratio,
)
from local_dp.randomizers.evidence import check_evidence, exact_epsilon, exact_ratio
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.repeated.memoised import LOLOHA
from local_dp.randomizers.signs.characters import Deny, mask_set
from local_dp.randomizers.signs.prefix_signs import SignRows
from local_dp.randomizers.signs.suspects import Suspects
from local_dp.randomizers.vectors.privunit import ProjUnit
from local_dp.randomizers.with_coin import WithCoin, without_coin
from local_dp.shuffle.accountant import amplified
from local_dp.verification.audit import verify
from tests.support.inputs.randomizers import with_coins
from tests.support.long import short
from tests.support.wrong import wrong

NO_COIN = np.zeros(1, dtype=np.uint8)


@wrong(
    "local_dp.randomizers.with_coin:WithCoin.respond",
    "self.coins(words)",
    "self.coins(words) ^ (values & 1).astype(reports['coin'].dtype)",
    "the lowest bit of the coin that is sent along depends on the value",
    at="1.0",
)
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize(
    "epsilon",
    short([0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 5.0, 10.0, 20.0], lambda epsilon: epsilon == 1.0),
)
def test_coins_sent_along_conform(epsilon: float) -> None:
    """Of every kind of randomizer with a public coin: exactly as private, the same estimate, and a
    coin that is the words' alone."""
    for randomizer in with_coins(epsilon):
        conform(randomizer)


def test_the_accountant_knows_it() -> None:
    assert amplified(WithCoin.of(Hadamard(1.0, k=8)), 1000, 1e-6) == amplified(
        Hadamard(1.0, k=8), 1000, 1e-6
    )


class Derived(WithCoin):
    name: ClassVar[str] = "with-coin"


def test_a_derived_class_has_no_evidence() -> None:
    """The gate lets no class pass that is derived from this one."""
    randomizer = Derived(1.0)
    assert without_coin(randomizer) is randomizer
    with pytest.raises(RefusedError, match="nothing to enumerate"):
        verify(randomizer)


@pytest.mark.parametrize(
    ("randomizer", "why"),
    [
        (GRR(1.0, k=4), "no public coin"),
        (LOLOHA(1.0, k=4), "cannot be sent along"),
        (ProjUnit(1.0, d=4), "cannot be sent|no public coin"),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_what_has_no_coin_to_send(randomizer: Randomizer, why: str) -> None:
    with pytest.raises(InputError, match=why):
        WithCoin.of(randomizer)


def test_parameters_of_any_kind_are_told() -> None:
    rows = SignRows(1.0, k=6, signs=("2a", "15", "33", "07"))
    assert WithCoin.of(rows).coined == rows
    with pytest.raises(InputError, match="write name=value"):
        WithCoin(1.0, setting=("k",))
    with pytest.raises(RefusedError, match="no randomizer named"):
        WithCoin(1.0, inner="hadamar")


def test_an_impossible_coin_is_refused() -> None:
    randomizer = WithCoin(1.0)
    reports = randomizer.respond(
        np.zeros(3, dtype=np.int64), randomizer.draw(KeyedNoise(1), Draw(1), 0, 3), NO_COIN
    )
    parts = reports.copy()
    parts["coin"][1] = 8  # type: ignore[call-overload]
    assert randomizer.possible(parts).tolist() == [True, False, True]


SOME = [
    Suspects(1.0, d=3, masks=mask_set(np.array(members), 3))
    for members in ([0, 2, 3, 5, 7], [1, 6], [0, 1, 2, 3])
]


@wrong(
    "local_dp.randomizers.signs.suspects:Suspects._parts",
    "np.uint64(self.held)",
    "np.uint64(self.held * self.w) // np.maximum(fixed, 1).astype(np.uint64)",
    (
        "where an example rules out fewer than half of the survivors, these alone share the "
        "weight of the half: it betrays how many they are"
    ),
    at="Suspects(epsilon=1.0, word_bits=32, d=3, masks='ad')",
)
@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("randomizer", [*SOME, Suspects(0.3, d=4)], ids=repr)
def test_suspects_among_any_survivors_conform(randomizer: Suspects) -> None:
    """So do the laws that the server computes: of a name under each r, of one that is hidden
    itself, and under random labels."""
    conform(randomizer)
    channel = randomizer.channel() / float(randomizer.total)
    d, labels = randomizer.d, range(1 << randomizer.d)
    examples = [ParityPopulation(d, r, 1, 0).law(ParityExample(d)) for r in labels]
    laws = np.array(examples) @ channel
    assert np.array([*map(randomizer.law, labels)]) == pytest.approx(laws, abs=1e-6)
    assert randomizer.hidden == pytest.approx(
        laws[randomizer.listed, np.arange(randomizer.alphabet)], abs=1e-6
    )
    assert randomizer.blind == pytest.approx(channel.mean(axis=0), abs=1e-6)


@pytest.mark.slow(only=("1",))
@pytest.mark.long(keep="97")
@pytest.mark.parametrize("stride", [1, 97])
def test_every_survivor_set_is_private(stride: int) -> None:
    """At d = 4, over every set of two parities or more, all examples and names: the worst ratio of
    whole weights is at most e^epsilon, and no row is short."""
    for number in range(3, 1 << 16, stride):
        if number.bit_count() > 1:
            randomizer = Suspects(1.0, d=4, masks=number.to_bytes(2, "little").hex())
            channel = randomizer.channel()
            low, high = channel.min(axis=0), channel.max(axis=0)
            place = int(np.argmax(high / low))
            assert Fraction(int(high[place]), int(low[place])) <= exp_epsilon(randomizer.nano), (
                number
            )
            assert channel.sum(axis=1).tolist() == 32 * [randomizer.total]


@pytest.mark.parametrize("r", [0, 3, 7])
def test_its_law_over_examples(r: int) -> None:
    """The closed law of a name equals the sum over all examples of the channel; the hidden parity
    is named least."""
    randomizer, population = Deny(1.0, d=3), ParityPopulation(3, r, 1, 0)
    total = population.law(ParityExample(3)) @ (randomizer.channel() / float(randomizer.total))
    assert randomizer.law(r) == pytest.approx(total, abs=1e-15)
    assert population.tally_law(ParityExample(3), randomizer) == pytest.approx(
        total[None, :], abs=1e-15
    )
    assert int(np.argmin(randomizer.law(r))) == r


def test_one_report_tells_what_its_formula_says() -> None:
    for d in (1, 2, 3, 5):
        randomizer = Deny(1.0, d=d)
        columns = randomizer.channel().T / float(randomizer.total)
        assert parity_information(d, columns).sum() == pytest.approx(
            deny_information(d, 1.0), rel=1e-6
        )


KINDS: list[type[Compressed]] = [SeededRejection, GenProt]


def of_length(
    kind: type[Compressed], bits: int, epsilon: float, inner: str, *setting: str, streams: int = 64
) -> Compressed:
    """One whose reports have so many bits."""
    if kind is SeededRejection:
        return SeededRejection(
            epsilon, inner=inner, setting=setting, streams=streams, seed_bits=bits
        )
    return GenProt(epsilon, inner=inner, setting=setting, streams=streams, samples=1 << bits)


@pytest.mark.usefixtures("narrow")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("inner", "setting", "bits"),
    [
        ("grr", ("k=2",), 1),
        ("hadamard-response", ("k=3",), 3),
        ("discrete-laplace", ("steps=5",), 3),
        ("binary-rr", (), 2),
    ],
)
def test_any_channel_conforms(
    kind: type[Compressed], inner: str, setting: tuple[str, ...], bits: int
) -> None:
    conform(of_length(kind, bits, 1.0, inner, *setting, streams=16))


@pytest.mark.parametrize("samples", [2, 3, 5, 8])
def test_the_choice_is_that_of_all_patterns_of_marks(samples: int) -> None:
    """Over all 2^T patterns of marks, in fractions, each sample is named as often as `chosen`
    says."""
    marks = [Fraction(1 + (7 * place) % 11, 13) for place in range(samples)]
    law = [Fraction(0)] * samples
    for pattern in itertools.product((0, 1), repeat=samples):
        chance = math.prod(
            (p if mark else 1 - p for p, mark in zip(marks, pattern, strict=True)),
            start=Fraction(1),
        )
        places = [place for place, mark in enumerate(pattern) if mark] or list(range(samples))
        for place in places:
            law[place] += chance / len(places)
    np.testing.assert_allclose(
        chosen(np.array([float(p) for p in marks])), [float(share) for share in law], rtol=1e-12
    )


@pytest.mark.parametrize("samples", [2, 3, 8, 20])
def test_the_proven_ratio_holds_and_is_reached(samples: int) -> None:
    """No chances of marks within the limits make a sample likelier by more than `worst_ratio`,
    which two of their corners reach."""
    low, high = 0.3, 0.7
    marks = np.random.default_rng(samples).choice([low, high, 0.5, 0.61], (400, samples))
    law = chosen(marks)
    assert law.max() / law.min() <= worst_ratio(samples, low, high) * (1 + 1e-12)
    corners = np.array([[low] * samples, [high] * samples])
    corners[:, 0] = high, low
    most, least = chosen(corners)[:, 0]
    assert most / least == pytest.approx(worst_ratio(samples, low, high), rel=1e-12)


@pytest.mark.parametrize("samples", [2, 8, 64])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_limit_is_the_largest_that_is_proven(samples: int, epsilon: float) -> None:
    """At L the proven ratio is at most e^epsilon, and a little beyond it more; for many samples L
    is e^(epsilon / 4)."""

    def ratio(limit: float) -> float:
        return worst_ratio(samples, min(0.5, 1 / limit) / limit, min(0.5, 1 / limit) * limit)

    limit = largest_limit(round(epsilon * 1e9), samples)
    assert ratio(limit) <= math.exp(epsilon) < ratio(limit * (1 + 1e-6))
    if samples == 64 and epsilon < 2:
        assert limit == pytest.approx(math.exp(epsilon / 4), rel=1e-3)


def test_seeds_are_chosen_as_by_rejection() -> None:
    """Trying seeds in turn, as often as the least lucky value needs, and then taking any gives the
    held law, before the common part."""
    ratios = np.array([[[3, 1, 1, 2], [1, 1, 2, 1]]])
    parts = SeededRejection(1.0).parts(ratios)[0]
    assert (parts.sum(axis=1) == parts[0].sum()).all()
    for row, likelier in zip(parts, ratios[0], strict=True):
        # c: a seed is accepted with a chance of its ratio's share of it, in the whole
        budget = Fraction(int(ratios.sum(axis=2).max()), 4)
        rest = budget - Fraction(int(likelier.sum()), 4)
        law = [(Fraction(each) + rest) / (4 * budget) for each in likelier.tolist()]
        assert [Fraction(int(part), int(row.sum())) for part in row] == law


@wrong(
    "local_dp.randomizers.compressed.genprot:private_weights",
    "0 if alike else -(-(over * total + (most + one) * sums) // slope)",
    "0 if choices else -(-(over * total + (most + one) * sums) // slope)",
    "seeds are few, and what rejection from them loses beyond epsilon is not taken back",
    at="6",
)
@pytest.mark.parametrize("bits", [6, 9, 12, 64])
def test_the_common_part_is_the_least(bits: int) -> None:
    """Weights keep the ratio, as fractions, and at full width reach it within 1e-9; where words are
    too narrow there are none."""
    parts = np.random.default_rng(3).integers(0, 1000, (5, 7))
    parts[:, 0] += 10_000 - parts.sum(axis=1)
    growth = exp_epsilon(800_000_000)
    weights = private_weights(parts, growth, bits)
    if bits == 6:
        assert private_weights(parts, exp_epsilon(10_000_000), bits) is None
    assert weights is not None
    rows = [[int(each) for each in row] for row in weights]
    assert {sum(row) for row in rows} == {1 << bits}
    worst = max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))
    assert worst <= growth
    assert bits < 64 or float(worst / growth) > 1 - 1e-9


@pytest.mark.parametrize("delta", [0.01, 1e-6])
@pytest.mark.parametrize("bits", [2, 3, 5])
def test_noise_with_a_delta_becomes_pure(delta: float, bits: int) -> None:
    """The discrete Gaussian, which a client refuses, is pure once it is transformed, with the loss
    that is declared."""
    setting = f"delta={delta}", "steps=3"
    channel = inner_channel("discrete-gaussian", setting, 1.0)
    assert isinstance(channel.loss, Approximate)
    with pytest.raises(RefusedError, match="delta"):
        check_evidence(channel)
    with pytest.raises(RefusedError, match="never sends"):
        exact_ratio(channel)
    randomizer = of_length(GenProt, bits, 1.0, "discrete-gaussian", *setting)
    check_evidence(randomizer)
    assert isinstance(randomizer.loss, Pure)
    assert exact_ratio(randomizer) <= exp_epsilon(randomizer.nano)
    assert exact_epsilon(randomizer) == pytest.approx(1.0, abs=1e-9)
    assert randomizer.bits == bits


@pytest.mark.long
def test_fewer_bits_cost_variance() -> None:
    """Of randomized response on 16 symbols, 4 bits: the mean variance of a share falls with each
    bit of the seed; eight bits have it within 18 %."""
    plain = GRR(1.0, k=16)
    p, q = plain.truth / plain.total, plain.other / plain.total
    whole = (p * (1 - p) + 15 * q * (1 - q)) / 16 / (p - q) ** 2
    shares = [
        whole
        / of_length(SeededRejection, bits, 1.0, "grr", "k=16", streams=16)
        .variance(np.arange(16), np.eye(16))
        .mean()
        for bits in (2, 3, 4, 6, 8)
    ]
    assert shares == sorted(shares), shares
    assert shares[0] < 0.5, shares
    assert 0.82 < shares[-1] <= 1.0, shares
