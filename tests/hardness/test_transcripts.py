"""Interactive protocols written out: their transcripts factor, exactly, and cutting and pasting them costs at most the constant."""

from itertools import product

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.channels import pasting_constant
from local_dp.hardness.transcripts import Turn, WorstProtocols, cut_distances, cut_inputs, random_protocol, transcript_laws
from tests.support.inputs.refusals import refuse

SCALE = 2**40  # laws of ten turns in sixteenths are whole numbers of this


def affinity(first: Floats, second: Floats) -> list[int]:
    """The products of the two laws' probabilities, transcript by transcript, in exact whole numbers."""
    return [int(p * SCALE) * int(q * SCALE) for p, q in zip(first, second, strict=True)]


@pytest.mark.parametrize(("clients", "turns"), [(2, 6), (3, 8)])
def test_transcripts_factor(clients: int, turns: int) -> None:
    """Of inputs a and b the products of the two laws depend on the pairs {a_i, b_i} only: exactly, for every pair of inputs of 20 protocols."""
    generator = np.random.default_rng(4)
    inputs = np.array(list(product((0, 1), repeat=clients)))
    for _ in range(20):
        laws = transcript_laws(random_protocol(clients, turns, generator), inputs)
        assert laws.sum(axis=1).tolist() == [1.0] * len(inputs)
        seen: dict[tuple[int, ...], list[int]] = {}
        for (a, first), (b, second) in product(zip(inputs, laws, strict=True), repeat=2):
            assert seen.setdefault(tuple((a + b).tolist()), affinity(first, second)) == affinity(first, second)


@pytest.mark.parametrize(("clients", "turns"), [(2, 6), (8, 10)])
def test_random_protocols_are_below_the_constant(clients: int, turns: int) -> None:
    """h^2 of everybody is at most K_n times the sum of those of each client alone."""
    generator = np.random.default_rng(5)
    for _ in range(20):
        whole, parts = cut_distances(transcript_laws(random_protocol(clients, turns, generator), cut_inputs(clients)))
        assert whole <= pasting_constant(clients) * parts


@pytest.mark.long
def test_the_worst_protocols_come_near_the_constant_and_not_beyond() -> None:
    """For two clients 1.85 of 2, so that no constant below that is true; and the search's ratio is that of the protocol it returns."""
    protocol, ratio = WorstProtocols(2, 8, 20, 400.0).find()
    laws = transcript_laws(protocol, cut_inputs(2))
    whole, parts = cut_distances(laws)
    assert 1.85 < ratio <= pasting_constant(2)
    assert whole == pytest.approx(ratio * parts)
    assert laws.sum(axis=1) == pytest.approx(np.ones(4))
    assert laws.min() >= 0


def test_one_truthful_person_and_a_curator() -> None:
    """A protocol of one honest turn separates its speaker wholly, and everybody by no more. A curator's AND separates all together and nobody alone."""
    assert cut_distances(transcript_laws(Turn(0, (0.0, 1.0)), cut_inputs(2))) == (1.0, 1.0)
    ones = np.where(cut_inputs(3).all(axis=1), 0.75, 0.25)
    whole, parts = cut_distances(np.stack([ones, 1 - ones], axis=1))
    assert whole > 0.1
    assert parts == 0
    refuse(("clients is 5", lambda: WorstProtocols(5, 4, 4, 10.0)))
