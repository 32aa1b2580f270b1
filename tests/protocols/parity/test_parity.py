"""Parity in the local model: the one-bit randomizer over lists of masks, exact laws, both learners, and what the experiment concludes."""

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound, parity_masks_bound, parity_one_round_clients
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.local.parity.local import HALVING, REFERENCE
from local_dp.populations.parity import ParityPopulation
from local_dp.protocols.parity.parity import ParityHalving, ParityOneRound, log_likelihoods
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.tallies import Tally
from tests.support.theory.alike import check_alike

LISTED = mask_set(np.array([1, 3, 5, 6]), 3)


def generic_law(population: ParityPopulation, randomizer: Characters) -> Floats:
    """Pr[cell, report] by summing the channel over the law of the examples."""
    law = population.law(ParityExample(population.d))
    channel = np.array([randomizer.channel(cell).astype(np.float64) / randomizer.total for cell in range(randomizer.cells)])
    joint: Floats = np.einsum("v,cvw->cw", law, channel) / randomizer.cells
    return joint


@pytest.mark.parametrize("r", [0, 3, 7])
def test_tally_law_by_enumeration(r: int) -> None:
    """The closed law of a tally equals the sum over all examples of the channel, whether or not r is listed."""
    population = ParityPopulation(3, r, 10, 0)
    for randomizer in (Characters(1.0, d=3), Characters(1.0, d=3, masks=LISTED)):
        law = population.tally_law(ParityExample(3), randomizer)
        assert law == pytest.approx(generic_law(population, randomizer), abs=1e-12)


def test_scores_are_log_likelihood_ratios() -> None:
    """The learners' scores equal the log likelihoods of the enumerated laws, up to a constant over r."""
    randomizer = Characters(1.0, d=3)
    tally = Tally(np.random.default_rng(1).integers(1, 40, size=(8, 2)))
    wanted = [float((tally.counts * np.log(generic_law(ParityPopulation(3, r, 1, 0), randomizer))).sum()) for r in range(8)]
    scores = log_likelihoods(randomizer, tally)
    assert np.ptp(scores - np.array(wanted)) < 1e-5
    assert np.ptp(scores) > 1


@pytest.mark.parametrize(
    ("protocol", "n"), [pytest.param(ParityHalving(d=5), 700, marks=pytest.mark.long), (ParityOneRound(d=5), 1_300)], ids=["halving", "one round"]
)
def test_user_level_and_aggregate_runs_succeed_alike(protocol: ParityHalving | ParityOneRound, n: int) -> None:
    """Success over 100 simulated populations and 500 aggregate runs differ by less than 4.9 deviations (1e-6), and with a third of the clients by more."""
    check_alike(protocol, n, 100, 500)


def test_bounds_have_the_published_values() -> None:
    """The proven limits and the formulas are those of the limits, in units of C^2 2^d: 2.25 and 1.335 d less the entropy term; counts within 10 %."""
    unit = response_gain(1.0) ** 2
    assert parity_interactive_bound(30, 1.0, 0.9) / unit / 2**30 == pytest.approx(2.25, rel=3e-3)
    assert parity_masks_bound(30, 1.0, 1 - 1e-12) / unit / 2**30 / 30 == pytest.approx(1.335, rel=1e-3)
    counts = [parity_one_round_clients(d, 1.0, 0.1) for d in (4, 6, 8, 10, 12)]
    assert counts == pytest.approx([740, 4_530, 2.05e4, 9.9e4, 4.4e5], rel=0.1)
    assert all(parity_halving_clients(d, 1.0, 0.1) < 1.02 * n for d, n in REFERENCE[HALVING].items())
