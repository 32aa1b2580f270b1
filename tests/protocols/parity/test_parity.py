"""Parity in the local model: the one-bit randomizer over lists of masks, exact laws, both learners, and what the experiment concludes."""

import numpy as np
import pytest
from scipy.stats import chi2

from local_dp.arrays import Floats
from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound, parity_masks_bound, parity_one_round_clients, parity_rounds
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError
from local_dp.experiments.claims.local.parity.local import HALVING, REFERENCE
from local_dp.experiments.lab.minimal_clients import exact_recovery
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.parity import ParityPopulation
from local_dp.protocols.parity.parity import ParityHalving, ParityOneRound, log_likelihoods
from local_dp.queries.examples import ParityExample
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.evidence import check_loss, exact_epsilon
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.characters import Characters, mask_set
from local_dp.tallies import Tally
from tests.support.theory.alike import Z_TAIL, check_alike

TAIL = 1e-6  # the probability that a statistical test of this file fails by chance
LISTED = mask_set(np.array([1, 3, 5, 6]), 3)


def generic_law(population: ParityPopulation, randomizer: Characters) -> Floats:
    """Pr[cell, report] by summing the channel over the law of the examples."""
    law = population.law(ParityExample(population.d))
    channel = np.array([randomizer.channel(cell).astype(np.float64) / randomizer.total for cell in range(randomizer.cells)])
    joint: Floats = np.einsum("v,cvw->cw", law, channel) / randomizer.cells
    return joint


@pytest.mark.parametrize(("d", "masks"), [(1, ""), (1, mask_set(np.array([1]), 1)), (3, ""), (3, LISTED), (6, mask_set(np.arange(0, 64, 8), 6))])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_characters_are_private_and_travel_as_data(d: int, masks: str, epsilon: float) -> None:
    """By enumeration of the whole channel the exact loss is at most epsilon and within 1e-6 of it; name and parameters rebuild the randomizer."""
    randomizer = Characters(epsilon, d=d, masks=masks)
    check_loss(randomizer)
    assert exact_epsilon(randomizer) == pytest.approx(epsilon, abs=1e-6)
    assert RANDOMIZERS.build(randomizer.name, randomizer.params()) == randomizer


def test_characters_report_the_parity_of_their_mask() -> None:
    """Before the flip, the report of example (x, y) under mask s is y (-1)^<s, x>, for every example and every mask of a list."""
    randomizer = Characters(1.0, d=3, masks=LISTED)
    assert randomizer.listed.tolist() == [1, 3, 5, 6]
    for cell, s in enumerate(randomizer.listed.tolist()):
        for x in range(8):
            for odd in (0, 1):
                (bit,) = randomizer.encode(np.array([2 * x + odd]), np.array([cell])).tolist()
                assert bit == ((s & x).bit_count() + odd) % 2


@pytest.mark.parametrize("r", [0, 3, 7])
def test_tally_law_by_enumeration(r: int) -> None:
    """The closed law of a tally equals the sum over all examples of the channel, whether or not r is listed."""
    population = ParityPopulation(3, r, 10, 0)
    for randomizer in (Characters(1.0, d=3), Characters(1.0, d=3, masks=LISTED)):
        law = population.tally_law(ParityExample(3), randomizer)
        assert law == pytest.approx(generic_law(population, randomizer), abs=1e-12)


def test_user_level_and_aggregate_tallies_have_the_exact_law() -> None:
    """Tallies of 60,000 simulated clients and drawn ones pass a chi-square test at 1e-6 against the enumerated law; the law of another r fails it."""
    n, randomizer, population = 60_000, Characters(1.0, d=3, masks=LISTED), ParityPopulation(3, 3, 60_000, 5)
    law, wrong = generic_law(population, randomizer), generic_law(ParityPopulation(3, 5, n, 5), randomizer)
    limit = chi2.isf(TAIL, law.size - 1)
    oracles: list[PopulationOracle | AggregateOracle] = [
        PopulationOracle(population, KeyedNoise(1), 2, 1.0),
        AggregateOracle(population, np.random.default_rng(3), 1.0),
    ]
    for oracle in oracles:
        (tally,) = oracle.answer((LocalQuery(ParityExample(3), randomizer, Cohort(0, n)),))
        assert ((tally.counts - n * law) ** 2 / (n * law)).sum() < limit
        assert ((tally.counts - n * wrong) ** 2 / (n * wrong)).sum() > limit
        estimate = randomizer.estimate(tally)
        assert np.all(np.abs(estimate.value - (randomizer.listed == 3)) < Z_TAIL * estimate.standard_error)


def test_scores_are_log_likelihood_ratios() -> None:
    """The learners' scores equal the log likelihoods of the enumerated laws, up to a constant over r."""
    randomizer = Characters(1.0, d=3)
    tally = Tally(np.random.default_rng(1).integers(1, 40, size=(8, 2)))
    wanted = [float((tally.counts * np.log(generic_law(ParityPopulation(3, r, 1, 0), randomizer))).sum()) for r in range(8)]
    scores = log_likelihoods(randomizer, tally)
    assert np.ptp(scores - np.array(wanted)) < 1e-5
    assert np.ptp(scores) > 1


@pytest.mark.parametrize(("protocol", "n"), [(ParityHalving(d=5), 700), (ParityOneRound(d=5), 1_300)], ids=["halving", "one round"])
def test_user_level_and_aggregate_runs_succeed_alike(protocol: ParityHalving | ParityOneRound, n: int) -> None:
    """Success over 100 simulated populations and 500 aggregate runs differ by less than 4.9 deviations (1e-6), and with a third of the clients by more."""
    check_alike(protocol, n, 100, 500)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 12])
def test_learners_find_r_with_the_default_clients(d: int) -> None:
    """With the default number of clients, at least 15 of 20 runs are right where 95 % are promised (failure probability below 1e-4), for d from 1 to 12."""
    for protocol in (ParityHalving(d=d), ParityOneRound(d=d)):
        assert exact_recovery(protocol, 1.0, 4)(protocol.clients(1.0), 20) >= 15


def test_models_rounds_and_budget() -> None:
    """Halving is interactive with d rounds, the other non-interactive; every client answers once with epsilon and every list is verified exactly."""
    assert (ParityHalving.model(), ParityOneRound.model()) == ("LI", "LNI")
    protocol = ParityHalving(d=4, r=11)
    algorithm = protocol.algorithm(1.0, 3000)
    for seed in (1, 2):  # the same algorithm may be played again
        oracle = PopulationOracle(protocol.synthetic(3000, seed), KeyedNoise(seed), seed, 1.0)
        assert run(algorithm, oracle) == 11
        assert [summary.n for summary in oracle.rounds] == parity_rounds(4, 3000)
        assert sum(summary.n for summary in oracle.rounds) == 3000
        assert oracle.ledger.max_spent == 1.0
    assert protocol.true_error(10, protocol.synthetic(1, 0)) == 0.5
    assert protocol.describe(11) == {"hypothesis": {"d": 4, "r": "0xb"}}


def test_bad_parameters_are_refused() -> None:
    """Wrong dimensions, vectors, lists and too few clients are named in the error."""
    for make, words in [
        (lambda: ParityHalving(d=13), "d is"),
        (lambda: ParityOneRound(d=3, r=8), "r is"),
        (lambda: ParityHalving(d=5).algorithm(1.0, 4), "rounds"),
        (lambda: Characters(1.0, d=3, masks="zz"), "hexadecimal"),
        (lambda: Characters(1.0, d=3, masks="07"), "power of two"),
        (lambda: Characters(1.0, d=3, masks="00"), "power of two"),
        (lambda: Characters(1.0, d=2, masks="f0"), "power of two"),
        (lambda: Characters(1.0, d=0), "d is"),
    ]:
        with pytest.raises(InputError, match=words):
            make()  # type: ignore[no-untyped-call]
    assert QUERIES.build("parity-example", {"d": 5}) == ParityExample(5)


def test_bounds_have_the_published_values() -> None:
    """The proven limits and the formulas are those of the limits, in units of C^2 2^d: 2.25 and 1.335 d less the entropy term; counts within 10 %."""
    unit = response_gain(1.0) ** 2
    assert parity_interactive_bound(30, 1.0, 0.9) / unit / 2**30 == pytest.approx(2.25, rel=3e-3)
    assert parity_masks_bound(30, 1.0, 1 - 1e-12) / unit / 2**30 / 30 == pytest.approx(1.335, rel=1e-3)
    counts = [parity_one_round_clients(d, 1.0, 0.1) for d in (4, 6, 8, 10, 12)]
    assert counts == pytest.approx([740, 4_530, 2.05e4, 9.9e4, 4.4e5], rel=0.1)
    assert all(parity_halving_clients(d, 1.0, 0.1) < 1.02 * n for d, n in REFERENCE[HALVING].items())
