"""Descent as it is run: how far it may stray from itself on exact expectations."""

from dataclasses import replace

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.learners.examples import faint_examples
from local_dp.learners.halfspaces import Halfspace, MarginDescent
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import BiasedOracle, ExactOracle, downward, upward
from local_dp.populations.finite import Finite
from local_dp.theorems.local_from_sq import local_from_sq

LEARNER = MarginDescent(d=4, steps=12, alpha=0.2)
POPULATION = faint_examples(4, 0.3)


def weights(halfspace: Halfspace) -> np.ndarray:
    return np.array(halfspace.weights)


EXACT = weights(run(LEARNER.algorithm(), ExactOracle(POPULATION)))


def strays(learner: MarginDescent, population: Finite = POPULATION) -> float:
    """How far wrong answers within the tolerance carry the weights, at most of those tried, in units of alpha."""
    exact = weights(run(learner.algorithm(), ExactOracle(population)))
    oracles = (BiasedOracle(population, upward), BiasedOracle(population, downward), BiasedOracle(population, lambda value: 1.0 if value > 0 else -1.0))
    return max(float(np.linalg.norm(weights(run(learner.algorithm(), oracle)) - exact)) for oracle in oracles) / learner.alpha


def test_legal_answers_move_the_weights_by_alpha_at_most() -> None:
    """Under biased answers the weights stay within alpha of the exact ones; with eight times the tolerance they do not."""
    assert strays(LEARNER) <= 1
    assert strays(replace(LEARNER, slack=8.0)) > 1


def variance(clients: int) -> float:
    """The mean square distance of a weight from the exact one, over 40 runs with so many clients in all, in units of spread^2."""
    total = 0.0
    for seed in range(40):
        local = local_from_sq(LEARNER.algorithm(), 1.0, lambda query: clients // LEARNER.queries)
        oracle = PopulationOracle(faint_examples(4, 0.3, clients, seed), KeyedNoise(seed), seed, 1.0)
        total += float(((weights(run(local, oracle)) - EXACT) ** 2).mean())
    return total / 40 / LEARNER.spread**2


def test_the_clients_it_asks_for_keep_the_spread() -> None:
    """With the clients that `clients` asks for, a weight's variance is at most spread^2, and more than a tenth of it; with a sixty-fourth it is above."""
    asked = LEARNER.clients(1.0, 0.05)
    assert 0.1 < variance(asked) <= 1
    assert variance(asked // 64) > 1


def test_fewer_clients_take_fewer_steps() -> None:
    """A quarter of the clients take half the steps, few take one, and fewer than coordinates are refused."""
    asked = LEARNER.clients(1.0, 0.05)
    assert LEARNER.affordable(1.0, asked) == LEARNER
    assert LEARNER.affordable(1.0, 10 * asked) == LEARNER
    assert LEARNER.affordable(1.0, asked // 4).steps in (5, 6)
    assert LEARNER.affordable(1.0, 4).steps == 1
    with pytest.raises(InputError, match="too few"):
        LEARNER.affordable(1.0, 3)


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"length": 9.0}, {"length": 0.0}, {"radius": -1.0}, {"spread": 0.0}, {"loss": "square"}, {"d": 0}])
def test_bad_parameters_are_refused(wrong: dict[str, object]) -> None:
    """Parameters without a guarantee are InputErrors."""
    with pytest.raises(InputError):
        replace(LEARNER, **wrong)  # type: ignore[arg-type]
