"""An oracle whose every answer is checked."""

from local_dp.errors import RefusedError
from local_dp.interaction import Oracle
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.exact import ExactOracle
from local_dp.oracles.watched import Watched
from local_dp.populations.population import Population

ROUNDING = 1e-14  # what floating point may add to an answer at the edge of its tolerance


def legal(oracle: Oracle[StatisticalQuery, float], population: Population) -> Watched[StatisticalQuery, float]:
    """The oracle, watched: RefusedError("illegal-answer") unless each of its answers is within its tolerance of the population's expectation."""
    exact = ExactOracle(population)

    def check(queries: tuple[StatisticalQuery, ...], answers: tuple[float, ...]) -> None:
        for query, answer, expectation in zip(queries, answers, exact.answer(queries), strict=True):
            if not abs(answer - expectation) <= query.tolerance + ROUNDING:
                raise RefusedError("illegal-answer", f"{query.query.name}: {answer} is further than {query.tolerance} from the expectation {expectation}")

    return Watched(oracle, after=check)
