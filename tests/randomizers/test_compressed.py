"""Compressed channels: their laws against enumerations, pure where the channel is not, and what fewer bits cost in variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from local_dp.conformance import conform
from local_dp.errors import RefusedError
from local_dp.loss import Approximate, Pure, exp_epsilon
from local_dp.randomizers.compressed.genprot import Compressed, GenProt, SeededRejection, chosen, inner_channel, largest_limit, private_weights, worst_ratio
from local_dp.randomizers.evidence import check_evidence, exact_epsilon, exact_ratio, keeps_loss
from local_dp.randomizers.frequencies.grr import GRR

KINDS: list[type[Compressed]] = [SeededRejection, GenProt]


def of_length(kind: type[Compressed], bits: int, epsilon: float, inner: str, *setting: str, streams: int = 64) -> Compressed:
    """One whose reports have so many bits."""
    if kind is SeededRejection:
        return SeededRejection(epsilon, inner=inner, setting=setting, streams=streams, seed_bits=bits)
    return GenProt(epsilon, inner=inner, setting=setting, streams=streams, samples=1 << bits)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("inner", "setting", "bits"), [("grr", ("k=2",), 1), ("hadamard-response", ("k=3",), 3), ("discrete-laplace", ("steps=5",), 3), ("binary-rr", (), 2)]
)
def test_any_channel_conforms(kind: type[Compressed], inner: str, setting: tuple[str, ...], bits: int) -> None:
    """Whatever is compressed, symbols or numbers, loses epsilon exactly, is sampled as declared and estimated without bias."""
    conform(of_length(kind, bits, 1.0, inner, *setting, streams=16))


@pytest.mark.parametrize("samples", [2, 3, 5, 8])
def test_the_choice_is_that_of_all_patterns_of_marks(samples: int) -> None:
    """Over all 2^T patterns of marks, in fractions, each sample is named as often as `chosen` says."""
    marked = [Fraction(1 + (7 * place) % 11, 13) for place in range(samples)]
    law = [Fraction(0)] * samples
    for pattern in itertools.product((0, 1), repeat=samples):
        chance = math.prod((p if mark else 1 - p for p, mark in zip(marked, pattern, strict=True)), start=Fraction(1))
        named = [place for place, mark in enumerate(pattern) if mark] or list(range(samples))
        for place in named:
            law[place] += chance / len(named)
    np.testing.assert_allclose(chosen(np.array([float(p) for p in marked])), [float(share) for share in law], rtol=1e-12)


@pytest.mark.parametrize("samples", [2, 3, 8, 20])
def test_the_proven_ratio_holds_and_is_reached(samples: int) -> None:
    """No chances of marks within the limits make a sample likelier by more than `worst_ratio`, which two of their corners reach."""
    low, high = 0.3, 0.7
    marked = np.random.default_rng(samples).choice([low, high, 0.5, 0.61], (400, samples))
    law = chosen(marked)
    assert law.max() / law.min() <= worst_ratio(samples, low, high) * (1 + 1e-12)
    corners = chosen(np.array([[high] + [low] * (samples - 1), [low] + [high] * (samples - 1)]))
    assert corners[0, 0] / corners[1, 0] == pytest.approx(worst_ratio(samples, low, high), rel=1e-12)


@pytest.mark.parametrize("samples", [2, 8, 64])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
def test_the_limit_is_the_largest_that_is_proven(samples: int, epsilon: float) -> None:
    """At L the proven ratio is at most e^epsilon, and a little beyond it more; for many samples L is e^(epsilon / 4)."""

    def ratio(limit: float) -> float:
        return worst_ratio(samples, min(0.5, 1 / limit) / limit, min(0.5, 1 / limit) * limit)

    limit = largest_limit(round(epsilon * 1e9), samples)
    assert ratio(limit) <= math.exp(epsilon) < ratio(limit * (1 + 1e-6))
    if samples == 64 and epsilon < 2:
        assert limit == pytest.approx(math.exp(epsilon / 4), rel=1e-3)


def test_seeds_are_chosen_as_by_rejection() -> None:
    """Trying seeds in turn, as often as the least lucky value needs, and then taking any gives the held law, before the common part."""
    ratios = np.array([[[3, 1, 1, 2], [1, 1, 2, 1]]])
    parts = SeededRejection(1.0).parts(ratios)[0]
    assert (parts.sum(axis=1) == parts[0].sum()).all()
    for row, likelier in zip(parts, ratios[0], strict=True):
        budget = Fraction(int(ratios.sum(axis=2).max()), 4)  # c: a seed is accepted with a chance of its ratio's share of it, in the whole
        law = [(Fraction(int(each)) + (budget - Fraction(int(likelier.sum()), 4))) / (4 * budget) for each in likelier]
        assert [Fraction(int(part), int(row.sum())) for part in row] == law


@pytest.mark.parametrize("bits", [6, 9, 12, 64])
def test_the_common_part_is_the_least(bits: int) -> None:
    """Weights keep the ratio, as fractions, and at full width reach it within 1e-9; where words are too narrow there are none."""
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
    """The discrete Gaussian, which a client refuses, is pure once it is transformed, with the loss that is declared."""
    setting = f"delta={delta}", "steps=3"
    channel = inner_channel("discrete-gaussian", setting, 1.0)
    assert isinstance(channel.loss, Approximate)
    with pytest.raises(RefusedError, match="delta"):
        check_evidence(channel)
    with pytest.raises(RefusedError, match="never sends"):
        exact_ratio(channel)
    made = of_length(GenProt, bits, 1.0, "discrete-gaussian", *setting)
    check_evidence(made)
    assert isinstance(made.loss, Pure)
    assert keeps_loss(made)
    assert exact_epsilon(made) == pytest.approx(1.0, abs=1e-9)
    assert made.bits == bits


def test_fewer_bits_cost_variance() -> None:
    """Of randomized response on 16 symbols, 4 bits: the mean variance of a share falls with each bit of the seed, and ten bits have it within 12 %."""
    plain = GRR(1.0, k=16)
    p, q = plain.truth / plain.total, plain.other / plain.total
    whole = (p * (1 - p) + 15 * q * (1 - q)) / 16 / (p - q) ** 2
    kept = [whole / of_length(SeededRejection, bits, 1.0, "grr", "k=16", streams=16).variances().mean() for bits in (2, 3, 4, 6, 8, 10)]
    assert kept == sorted(kept), kept
    assert kept[0] < 0.5, kept
    assert 0.88 < kept[-1] <= 1.0, kept
