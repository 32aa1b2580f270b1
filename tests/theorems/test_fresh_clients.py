"""Fresh clients for every statistical query: as many as it was given, each in one cohort."""

from itertools import pairwise

from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.oracles.local.asked import LocalRounds
from local_dp.oracles.statistical.oracles import StatisticalPlay, StatisticalQuery
from local_dp.populations.table import Rows
from local_dp.queries.tables import Question
from local_dp.theorems.local_from_sq import local_from_sq
from tests.support.inputs.builders import population_oracle, yes_records

QUERY = StatisticalQuery(Question("yes == 1"), 0.1)


def test_every_query_has_the_clients_it_was_given() -> None:
    """Cohorts have the asked-for sizes, follow one another without a gap, and go on from round to round."""
    sizes = iter([5, 7, 11, 13])
    local = local_from_sq(Nonadaptive((QUERY,) * 4, lambda answers: answers), 1.0, lambda query: next(sizes))
    cohorts = [query.cohort for query in local.queries]
    assert [len(cohort) for cohort in cohorts] == [5, 7, 11, 13]
    assert cohorts[0].start == 0
    assert all(first.stop == second.start for first, second in pairwise(cohorts))


def test_rounds_go_on_where_the_last_one_ended() -> None:
    """An adaptive algorithm's later rounds ask clients that were not asked before, and every play begins with the first client."""

    def play() -> StatisticalPlay[None]:
        yield (QUERY, QUERY)
        yield (QUERY,)

    algorithm: LocalRounds[None] = local_from_sq(Adaptive(play), 1.0, lambda query: 10)
    for _ in range(2):
        oracle = population_oracle(Rows(yes_records(30)))
        run(algorithm, oracle)
        assert [summary.n for summary in oracle.rounds] == [20, 10]
        assert oracle.interaction == "sequentially interactive"
