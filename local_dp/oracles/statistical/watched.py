"""An oracle whose every answer is checked."""

from local_dp.errors import RefusedError
from local_dp.interaction import Oracle
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.exact import ExactOracle
from local_dp.populations.base import Population

ROUNDING = 1e-14  # what floating point may add to an answer at the edge of its tolerance


class LegalOracle:
    """Passes on the answers of another oracle, and raises RefusedError("illegal-answer") unless each is within its tolerance of the expectation."""

    def __init__(self, inner: Oracle[StatisticalQuery, float], population: Population) -> None:
        self.inner = inner
        self.exact = ExactOracle(population)

    def answer(self, queries: tuple[StatisticalQuery, ...]) -> tuple[float, ...]:
        """The other oracle's answers, all of them legal."""
        answers = self.inner.answer(queries)
        for query, answer, expectation in zip(queries, answers, self.exact.answer(queries), strict=True):
            if not abs(answer - expectation) <= query.tolerance + ROUNDING:
                raise RefusedError("illegal-answer", f"{query.query.name}: {answer} is further than {query.tolerance} from the expectation {expectation}")
        return answers
