"""`kinds-of-interaction` is shown as it stands; clients that speak twice, wrong counts and wrong
bounds in its place are not."""

import math
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Counts, Ints, Words
from local_dp.bounds.interaction import ladder_one_round_least
from local_dp.experiments.claims.frontier import kinds_of_interaction as kinds
from local_dp.experiments.claims.frontier.kinds_of_interaction import (
    AGAIN,
    BELOW,
    EXPERIMENT,
    IN_TURN,
    ONE_ROUND,
    Count,
    Loss,
    Users,
    Way,
)
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.memory import Speakers
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.randomizers.repeated.memoised import OneOfRounds
from tests.support.runs.quick import Quick, Twin

QUICK, LEAD, WEIGHT = Quick(EXPERIMENT), kinds.lead, OneOfRounds.weight


def forgets(speakers: Speakers, session: str, silence: int, places: Counts, values: Ints) -> Ints:
    """Nobody is silent after an answer: ratio E^2 and more."""
    speakers.reserve(session, int(places.max()) + 1)
    return values


def zero(randomizer: OneOfRounds, reports: Ints, values: Ints, cells: Ints) -> Words:
    """Silence is always 0, so a 1 shows who speaks: refused before any ratio is taken."""
    zeros = np.uint64(randomizer.total) * (reports == 0)
    return np.where(
        values == 2,
        zeros,
        WEIGHT(randomizer, reports, values, cells),
    )


def times(factor: float) -> dict[str, Any]:
    return {
        "ladder_one_round_least": lambda *arguments: factor * ladder_one_round_least(*arguments)
    }


HALF = {"lead": lambda depth, many, lean, *rest: LEAD(depth, many, lean / 2, *rest)}
TWINS = [
    Twin("clients that speak twice", Speakers, {"once_only": forgets}, (Loss,), "lose exactly"),
    Twin("silence in place of a coin", OneOfRounds, {"weight": zero}, (Loss,), "lose exactly"),
    Twin(
        "a session charged by the sum",
        kinds,
        {"_allowed": lambda rounds, session: rounds == 1},
        (Loss,),
        "lose exactly",
    ),
    Twin(
        "answers that lean half as far",
        kinds,
        HALF,
        (Users, Count),
        "client by client",
        "closed forms",
    ),
    Twin(
        "fresh clients in place of the same",
        Way,
        {"again": False},
        (Count,),
        "k times fewer",
        "200 times",
    ),
    Twin("a hundredth of the bound", kinds, times(0.01), (), "200 times"),
    Twin("a hundred times the bound", kinds, times(100), (), "theorem's least"),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(
    TWINS, slow=("answers that lean half as far",)
)


@pytest.mark.long
@pytest.mark.parametrize(
    "way", [Way(ONE_ROUND, 3, 1), Way(IN_TURN, 4, 2), Way(BELOW, 2, 2), Way(AGAIN, 2, 2)], ids=str
)
def test_the_law_is_that_of_the_clients(way: Way) -> None:
    """1,000 runs client by client and 60,000 from the law: success differs by less than five
    standard errors, which a right law does once in a million."""
    n, many, draws = max(way.least, way.predicted // 2), 1000, 60_000
    protocol, right = way.protocol(), 0
    algorithm: Any = protocol.algorithm(1.0, n)
    for seed in range(many):
        population = protocol.synthetic(n, seed)
        right += (
            run(algorithm, PopulationOracle(population, KeyedNoise(seed), seed, 1.0))
            == population.path
        )
    share = kinds.successes(way, n, draws, np.random.default_rng(4)) / draws
    variance = share * (1 - share) * (1 / many + 1 / draws)
    assert abs(right / many - share) < 5 * math.sqrt(variance)


def test_kinds_of_paths_are_all_paths() -> None:
    """Over all 2^depth paths, for any tables: the mean lead at each level comes from a half of the
    clients' own level, and from no other."""
    lead = kinds.lead(3, 8 * 1000, 0.05, 40_000, np.random.default_rng(1))
    mean, error = lead.mean(axis=0), lead.std(axis=0) / math.sqrt(len(lead))
    assert (abs(mean - 2 * 0.05 * np.array([8000, 4000, 2000])) < 5 * error).all()
