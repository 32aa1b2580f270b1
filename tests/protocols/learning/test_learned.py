"""SQ learners as protocols: the model of the learner, its parameters, fresh cohorts, and plain-data results."""

import json
from dataclasses import fields

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.interaction import run
from local_dp.learners.examples import tasks
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import LocalQuery
from local_dp.protocols.learning.learned import Learned, Lesson
from local_dp.protocols.registry import PROTOCOLS
from local_dp.tallies import Tally
from tests.support.inputs.builders import small

NAMES = [f"learn-{name}" for name in tasks()]


def protocol_of(name: str) -> Learned:
    """The protocol at the size of its task."""
    protocol = PROTOCOLS[name]()
    assert isinstance(protocol, Learned)
    return protocol


@pytest.mark.parametrize("name", NAMES)
def test_the_default_count_is_the_theorems(name: str) -> None:
    """By default each query has the clients of Lemma 4.3, and at half or twice as many clients half or twice the cohort."""
    protocol = protocol_of(name)
    clients = protocol.clients(1.0)
    assert clients == protocol.task.learner.clients(1.0, 0.05)
    for part in (0.5, 1.0, 2.0):
        population = protocol.synthetic(int(part * clients), 1)
        lesson = run(protocol.algorithm(1.0, population.size), AggregateOracle(population, np.random.default_rng(1), 1.0))
        assert lesson.clients_per_query == int(part * clients) // protocol.task.learner.queries
        assert lesson.enough_per_query == clients // protocol.task.learner.queries
        assert (lesson.clients_per_query >= lesson.enough_per_query) == (part >= 1)


@pytest.mark.parametrize("name", NAMES)
def test_cohorts_are_fresh_round_by_round(name: str) -> None:
    """No client is asked twice in a run, cohorts follow one another, and a second run of the same algorithm asks the same ones."""
    protocol = small(name)
    population = protocol.synthetic(5000, 2)
    algorithm = protocol.algorithm(1.0, 5000)

    def cohorts() -> list[tuple[int, int]]:
        asked: list[tuple[int, int]] = []

        class Listening(AggregateOracle):
            def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
                asked.extend((query.cohort.start, query.cohort.stop) for query in queries)
                return super().answer(queries)

        run(algorithm, Listening(population, np.random.default_rng(7), 1.0))
        return asked

    first = cohorts()
    assert [start for start, _ in first] == [0, *(stop for _, stop in first[:-1])]
    assert first[-1][1] <= 5000
    assert cohorts() == first


@pytest.mark.parametrize("name", NAMES)
def test_the_hypothesis_is_plain_data_and_a_sentence(name: str) -> None:
    """A result survives JSON, holds the hypothesis as data and as one line of text, and says how many clients answered each query."""
    protocol = protocol_of(name)
    population = protocol.synthetic(10_000, 3)
    lesson: Lesson = run(protocol.algorithm(1.0, 10_000), AggregateOracle(population, np.random.default_rng(3), 1.0))
    described = json.loads(json.dumps(protocol.describe(lesson)))
    assert described["hypothesis"]["rule"]
    assert "\n" not in described["hypothesis"]["rule"]
    assert "[" not in described["hypothesis"]["rule"]  # the terminal's markup
    assert described["hypothesis"]["clients a query"] == 10_000 // protocol.task.learner.queries
    assert described["parameters"]


def test_parameters_are_the_learners() -> None:
    """Numbers and switches of a learner are set by name; a wrong one is refused in a line."""
    kind = PROTOCOLS["learn-conjunctions"]
    assert [field.name for field in fields(kind)] == ["alpha", "slack", "d", "monotone"]
    assert kind.from_settings({"monotone": "true", "d": "3"}).algorithm(1.0, 100).queries[2].cohort.stop == 99  # type: ignore[union-attr]
    for name, settings in (
        ("learn-conjunctions", {"monotone": "yes"}),
        ("learn-conjunctions", {"d": "0"}),
        ("learn-conjunctions", {"d": "40"}),
        ("learn-stumps", {"alpha": "1"}),
        ("learn-perceptron", {"gamma": "2"}),
        ("learn-k-means", {"start": "0"}),
        ("learn-trees", {"depth": "9"}),
        ("local-sgd", {"alpha": "0"}),
    ):
        with pytest.raises(InputError) as error:
            PROTOCOLS[name].from_settings(settings)
        assert len(str(error.value).splitlines()) == 1
