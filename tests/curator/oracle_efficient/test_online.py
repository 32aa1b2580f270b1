"""Private minimisers of prefixes as online learners: their noise is that of the mechanisms, their
regret keeps to its bound, exactly on small cases."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.bounds.curator import gumbel_spread, leader_regret_bound, separator_spread
from local_dp.curator.mechanism import Law, probabilities
from local_dp.curator.oracle_efficient.online import LossSequence, leader_attack, separator_noise
from local_dp.curator.oracle_efficient.perturbed import Perturbation, PerturbedMinimum
from local_dp.curator.oracle_efficient.separated import Exhaustive, Parities, Separated
from local_dp.curator.selection.exponential import Labelled, OccamLearner
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import seeded
from tests.support.wrong import wrong

SMALL = Parities(2)
EXAMPLES = [(x, y) for x in range(4) for y in (0, 1)]


def expected(
    queries: Separated, examples: list[tuple[int, int]], laws: list[Law[int]]
) -> tuple[Fraction, Fraction, LossSequence]:
    """The expected losses of query t drawn on the examples before example t, and of the one drawn
    on these and example t; laws[t] is that of t examples."""
    x, y = np.array(examples).T
    losses = (queries.values(x) != y).T.astype(np.int64)
    expectations = [Fraction(0), Fraction(0)]
    for more, (t, row) in product((0, 1), enumerate(losses.tolist())):
        for query, share in probabilities(laws[t + more]).items():
            expectations[more] += share * row[query]
    return expectations[0], expectations[1], LossSequence(losses)


def prefixes(examples: list[tuple[int, int]]) -> list[Labelled]:
    return [Labelled.of(tuple(examples[:t])) for t in range(len(examples) + 1)]


@wrong(
    "local_dp.bounds.curator:leader_regret_bound",
    "epsilon / 2",
    "epsilon / 4",
    "an example more costs a quarter of epsilon",
    at="0.5",
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_regret_keeps_to_its_bound(epsilon: float) -> None:
    """Parities of 2 bits, 5 examples, exactly: one example more costs eps / 2; the next leader has
    no more regret than the noise is wide."""
    minimum = PerturbedMinimum(Perturbation(SMALL, epsilon), Exhaustive(SMALL))
    growth = 1 + leader_regret_bound(1, epsilon, 0)  # the price of an example more
    generator = np.random.default_rng(1)
    for _ in range(4):
        examples = [EXAMPLES[place] for place in generator.integers(0, 8, 5)]
        before, after, sequence = expected(
            SMALL, examples, [minimum.law(prefix) for prefix in prefixes(examples)]
        )
        assert before <= growth * after * (1 + 1e-9)
        assert after - sequence.best <= separator_spread(2, 4, epsilon)
        bound = leader_regret_bound(5, epsilon, separator_spread(2, 4, epsilon))
        assert before - sequence.best <= bound


def test_gumbel_noise_is_the_exponential_mechanism() -> None:
    """The regret by its formula is that of the learner's laws on all prefixes."""
    examples = [EXAMPLES[place] for place in (0, 3, 3, 6, 5, 1)]
    learner = OccamLearner(SMALL, 1.0)
    before, _, sequence = expected(
        SMALL, examples, [learner.law(prefix) for prefix in prefixes(examples)]
    )
    assert float(before - sequence.best) == pytest.approx(sequence.gumbel_regret(1.0), abs=1e-6)


@wrong(
    "local_dp.curator.oracle_efficient.online:separator_noise",
    "nano_epsilon(epsilon)",
    "2 * nano_epsilon(epsilon)",
    "the online learner's noise is not that of the private minimum",
)
def test_noise_is_that_of_the_mechanism() -> None:
    """As RSPM's law on two examples, the leader of totals and noise: 20,000 draws within 5 standard
    errors; and as wide as its formula says."""
    database = Labelled.of(((1, 1), (3, 0)))
    noise = separator_noise(SMALL, 2.0, 20_000, seeded(1))
    leaders = np.argmin(SMALL.errors(database.x, database.y) + noise, axis=1)
    law = probabilities(PerturbedMinimum(Perturbation(SMALL, 2.0), Exhaustive(SMALL)).law(database))
    for query, share in law.items():
        error = math.sqrt(share * (1 - share) / 20_000)
        assert abs(np.mean(leaders == query) - float(share)) < 5 * error
    width = np.ptp(noise, axis=1)
    assert abs(width.mean() - separator_spread(2, 4, 2.0)) < 5 * width.std() / math.sqrt(20_000)
    gumbel = np.ptp(np.random.default_rng(1).gumbel(0, 2, (20_000, 64)), axis=1)
    assert abs(gumbel.mean() - gumbel_spread(64, 1.0)) < 5 * gumbel.std() / math.sqrt(20_000)


def test_the_leader_without_noise_loses_every_round() -> None:
    """And a half of the rounds more than the best; with the right noise it keeps to the bound."""
    attack = leader_attack(Parities(6).values(np.arange(64)).astype(np.int64), 4096)
    bound = leader_regret_bound(4096, 0.2, separator_spread(6, 12, 0.2))
    assert attack.regret(np.zeros((4096, 64))) == 2048 > 2 * bound
    assert attack.regret(separator_noise(Parities(6), 0.2, 4096, seeded(1))) < bound


def test_bad_input() -> None:
    refuse(
        ("losses have shape", lambda: LossSequence(np.array([[0, 2]]))),
        ("losses have shape", lambda: LossSequence(np.zeros(3, dtype=np.int64))),
        ("rounds is 0", lambda: leader_regret_bound(0, 1.0, 1.0)),
        ("experts is 1", lambda: gumbel_spread(1, 1.0)),
    )
