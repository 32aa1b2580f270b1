"""The cross-check: what is drawn from a law against the thing itself, and the ways in which a wrong program fails it."""

import pytest

from local_dp.arrays import Floats, Ints
from local_dp.experiments.lab.checks import ALPHA, alike
from local_dp.experiments.lab.cross_check import Trial, cross_check, cross_check_shown
from local_dp.experiments.lab.statistics import Rate
from local_dp.interaction import Nonadaptive
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.finite import Finite, bernoulli
from local_dp.populations.population import Population
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Tally

N = 400


def majority(start: int = 0, stop: int = N, epsilon: float = 1.0) -> Nonadaptive[LocalQuery, Tally, bool]:
    """Whether most clients would say yes."""
    randomizer = BinaryRR(epsilon)
    return Nonadaptive((LocalQuery(Question("yes == 1"), randomizer, Cohort(start, stop)),), lambda tallies: bool(randomizer.estimate(tallies[0]).value > 0.5))


def people(seed: int) -> Finite:
    return bernoulli("yes", 0.56, N, seed)


def right(result: bool, population: Population) -> bool:
    return result


def shown(algorithm: Nonadaptive[LocalQuery, Tally, bool], population: object = people, least: float = 0.8) -> tuple[bool, str]:
    trial = Trial(algorithm, population, right, N, 1.0)  # type: ignore[arg-type]
    check = cross_check_shown("majority", cross_check(lambda: trial, 1), least)
    return check.shown, check.evidence


def test_a_right_program_is_shown_with_both_figures() -> None:
    """Both rates, whom it asked and its exact loss are the evidence, and one seed gives one measurement."""
    good, evidence = shown(majority())
    assert good
    assert all(words in evidence for words in ("client by client", "from the law", "asked 400 of 400", "loss 1.000000"))
    trial = Trial(majority(), people, right, N, 1.0)
    assert cross_check(lambda: trial, 5, users=50, laws=50) == cross_check(lambda: trial, 5, users=50, laws=50)


class _Doubled(BinaryRR):
    """Twin: answers at twice the epsilon that it is charged."""

    def respond(self, values: Ints, words: Ints, cells: Ints) -> Ints:  # type: ignore[override]
        return BinaryRR(2 * self.epsilon).respond(values, words, cells)  # type: ignore[arg-type]


def test_wrong_programs_are_not_shown() -> None:
    """A decoder that always says no, cohorts one short or one beyond, a cohort asked twice, and twice the epsilon each fail."""
    assert not shown(Nonadaptive(majority().queries, lambda tallies: False))[0]
    assert "asked 399 of 400" in shown(majority(stop=N - 1))[1]
    assert not shown(majority(stop=N - 1))[0]
    assert not shown(majority(1, N + 1))[0]
    assert shown(majority(epsilon=2.0))[1].startswith("refused: ")
    assert not shown(majority(epsilon=2.0))[0]


def test_a_channel_or_a_law_that_differs_is_not_shown() -> None:
    """Reports at twice the epsilon charged, or records that do not follow the law, part the two rates."""

    def doubled() -> Nonadaptive[LocalQuery, Tally, bool]:
        (query,) = majority().queries
        return Nonadaptive((LocalQuery(query.query, _Doubled(1.0), query.cohort),), majority().decode)

    class Lying(Finite):
        def law(self, query: Query) -> Floats:
            return super().law(query)[::-1]

    assert not shown(doubled(), least=0.0)[0]
    assert not shown(majority(), lambda seed: Lying(people(seed).kinds, [0.44, 0.56], N, seed), least=0.0)[0]


@pytest.mark.parametrize(("first", "second", "same"), [((360, 400), (1440, 1600), True), ((360, 400), (1250, 1600), False), ((0, 400), (0, 1600), True)])
def test_rates_are_compared(first: tuple[int, int], second: tuple[int, int], same: bool) -> None:
    """Equal rates agree, ones 12 points apart do not, and rates of 0 are no trouble."""
    assert alike(Rate(*first), Rate(*second), ALPHA)[0] == same
