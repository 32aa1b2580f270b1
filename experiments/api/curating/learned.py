"""What a curator learns of a label from a whole table: any statistical-query learner, its queries answered by noisy sums over all records."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self, TypeVar

from local_dp.curator.account import DeclaredAccount
from local_dp.errors import InputError
from local_dp.experiments.api.trusted import Offer, Task, Trust
from local_dp.interaction import Adaptive, Algorithm, Nonadaptive, Play, as_play
from local_dp.learners.tabular import in_words, verdict
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.population import Population
from local_dp.populations.table import Rows
from local_dp.protocols.learning.held_out import trivial, true_baseline, true_score
from local_dp.protocols.learning.learn import Learn, unit_of
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.encoded import Encoding
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.on_table import among_complete, on_table

R = TypeVar("R")
_TOLERANCE = 0.5  # of what is asked once: the noise decides, not this


@dataclass(frozen=True)
class Taught:
    """A hypothesis, and what noisy sums say of it and of the trivial one: the share that is right, or a square error; of the records it was learned from."""

    hypothesis: Any
    score: float
    trivial: float


@dataclass(frozen=True)
class Learned(Task[Records | Population, Taught]):
    """The rule that a learner finds for a label, as `ldp.learn` would, but by the curator. Bounds of the number columns that it uses are declared."""

    learning: Learn
    name = "learn"

    def for_table(self, launch: Launch, trust: Trust) -> Self:
        learning = self.learning.for_table(launch)
        if learning.unknown:
            raise InputError(f"bounds are public: declare those of {', '.join(learning.unknown)}, as in bounds {learning.unknown[0]}=17..60")
        return replace(self, learning=learning)

    def offer(self, trust: Trust, size: int) -> Offer[Records | Population, Taught]:
        shares = 2 if self._excludes else 0  # of complete rows: for the learner and for the verdicts
        account = DeclaredAccount(trust.loss, self.learning.built.queries + 2 + shares)
        asked = curated_from_sq(Adaptive(self._play), account.part.epsilon, size)
        return Offer(f"{account.queries:,} noisy sums", asked, account)

    def _play(self) -> Play[StatisticalQuery, float, Taught]:
        hypothesis = yield from self._on_rows(self.learning.built.algorithm())
        verdicts = tuple(StatisticalQuery(verdict(judged), _TOLERANCE) for judged in (hypothesis, trivial(hypothesis)))
        score, other = ((1 + answer) / 2 for answer in (yield from self._on_rows(Nonadaptive(verdicts, lambda answers: answers))))
        unit = unit_of(hypothesis, self.encoding)
        return Taught(hypothesis, unit * score, unit * (max(other, 1 - other) if verdict(hypothesis).classifies else other))

    def _on_rows(self, algorithm: Algorithm[StatisticalQuery, float, R]) -> Play[StatisticalQuery, float, R]:
        """Put to all rows, or to the complete ones, whose share is one query more."""
        return as_play(among_complete(algorithm, self.encoding) if self._excludes else on_table(algorithm, self.encoding))

    @property
    def _excludes(self) -> bool:
        return self.learning.missing == "exclude"

    @property
    def encoding(self) -> Encoding:
        """How each record is seen."""
        return self.learning.encoding({})

    def database(self, records: Records) -> Records:
        return records

    def to_data(self, result: Taught, records: Records) -> dict[str, Any]:
        rule, right = in_words(result.hypothesis, self.encoding), verdict(result.hypothesis).classifies
        what = "share that is right" if right else "mean square error" if self.encoding.label else "mean square distance"
        said = f"{f'{self.encoding.label} where {rule}' if right else rule}. It is judged by the records that it was learned from; on others it may do worse."
        rows = [[self.learning.learner, result.score], ["a trivial rule", result.trivial]]
        return {"columns": ["rule", what], "rows": rows, "explanation": said, "parameters": asdict(result.hypothesis)}

    def truth(self, result: Taught, records: Records) -> dict[str, Any]:
        population, unit = Rows(records), unit_of(result.hypothesis, self.encoding)
        scores = [score(result.hypothesis, self.encoding, population) for score in (true_score, true_baseline)]
        return {"score": unit * scores[0], "trivial": unit * scores[1]}
