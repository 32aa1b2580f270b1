"""`kinds-of-interaction` is shown as it stands; clients that speak twice, wrong counts and wrong bounds in its place are not."""

import math
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.bounds.interaction import ladder_one_round_least
from local_dp.experiments.claims.frontier.kinds_of_interaction import claim, runs
from local_dp.experiments.claims.frontier.kinds_of_interaction.claim import EXPERIMENT
from local_dp.experiments.claims.frontier.kinds_of_interaction.runs import AGAIN, BELOW, IN_TURN, ONE_ROUND, Way
from local_dp.interaction import run
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.local.sessions import Spoken
from local_dp.protocols.parity.ladder import ways_on
from local_dp.randomizers.repeated.one_of_rounds import OneOfRounds
from tests.support.runs.quick import Quick, lost

pytestmark = pytest.mark.long
QUICK = Quick(EXPERIMENT)
found = QUICK.where


def test_shown() -> None:
    """At the quick scale; and a point measured twice with one seed is identical."""
    assert found().verdict == "shown", lost(found())
    assert QUICK.measure(0) == QUICK.right(0)


def test_clients_that_speak_twice_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Truth in two rounds: ratio E^2 and more."""

    def forgets(self: Spoken, session: str, silence: int, start: int, values: Ints) -> Ints:
        self.reserve(session, start + len(values))
        return values

    monkeypatch.setattr(Spoken, "once_only", forgets)
    assert "lose exactly" in lost(found("loss"))


def test_silence_in_place_of_a_coin_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A channel in which silence is always 0 is refused before any ratio is taken: a 1 shows who speaks."""
    honest = OneOfRounds.weight

    def zero(self: OneOfRounds, reports: Ints, values: Ints, cells: Ints) -> Words:
        return np.where(values == 2, np.uint64(self.total) * (reports == 0), honest(self, reports, values, cells))

    monkeypatch.setattr(OneOfRounds, "weight", zero)
    assert "lose exactly" in lost(found("loss"))


def test_a_session_charged_by_the_sum_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger that charges every round lets no session pass."""
    monkeypatch.setattr(runs, "_allowed", lambda rounds, session: rounds == 1)
    assert "lose exactly" in lost(found("loss"))


def test_another_law_than_the_clients_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers that lean half as far as those of clients do succeed less often, and take four times as many."""
    honest = runs.lead
    monkeypatch.setattr(runs, "lead", lambda depth, many, lean, *rest: honest(depth, many, lean / 2, *rest))
    assert "client by client" in lost(found("users"))
    assert "closed forms" in lost(found("count"))


def test_fresh_clients_in_place_of_the_same_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """If asking again took as many as asking in turn, nothing would be k times fewer."""
    monkeypatch.setattr(Way, "again", False)
    told = lost(found("count"))
    assert "k times fewer" in told
    assert "200 times" in told


def test_a_bound_with_another_capacity_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of the bound leaves asking again two times fewer, and a hundred times of it what one round does not reach."""
    honest = ladder_one_round_least
    monkeypatch.setattr(claim, "ladder_one_round_least", lambda *given: honest(*given) / 100)
    assert "200 times" in lost(found())
    monkeypatch.setattr(claim, "ladder_one_round_least", lambda *given: honest(*given) * 100)
    assert "theorem's least" in lost(found())


def test_nothing_measured_shows_nothing() -> None:
    """Without measurements no check is shown, and the headline says so."""
    empty = EXPERIMENT.conclude([], "quick")
    assert empty.verdict == "not shown"
    assert empty.headline == "No path was found."


@pytest.mark.parametrize(("name", "k", "rounds"), [(ONE_ROUND, 3, 1), (IN_TURN, 4, 2), (BELOW, 2, 2), (AGAIN, 2, 2)])
def test_the_law_is_that_of_the_clients(name: str, k: int, rounds: int) -> None:
    """1,000 runs client by client and 60,000 from the law: success differs by less than five standard errors, which a right law does once in a million."""
    way = Way(name, k, rounds)
    n, many, drawn = max(way.least, way.predicted // 2), 1000, 60_000
    protocol, right = way.protocol(), 0
    algorithm: Any = protocol.algorithm(1.0, n)
    for seed in range(many):
        population = protocol.synthetic(n, seed)
        right += run(algorithm, PopulationOracle(population, KeyedNoise(seed), seed, 1.0)) == population.path
    share = runs.successes(way, n, drawn, np.random.default_rng(4)) / drawn
    assert abs(right / many - share) < 5 * math.sqrt(share * (1 - share) * (1 / many + 1 / drawn))


def test_kinds_of_paths_are_all_paths() -> None:
    """Over all 2^depth paths, whatever the tables: the mean lead at each level is what a half of the clients' own level adds, and no other level's."""
    lead = runs.lead(3, 8 * 1000, 0.05, 40_000, np.random.default_rng(1))
    mean, error = lead.mean(axis=0), lead.std(axis=0) / math.sqrt(len(lead))
    assert (abs(mean - 2 * 0.05 * np.array([8000, 4000, 2000])) < 5 * error).all()
    assert len(ways_on("1", 3, range(8), OneOfRounds(1.0))) == 8
