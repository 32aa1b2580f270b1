"""A rule learned from a whole table: any statistical-query learner, its queries answered by noisy sums over all records."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar, TypeAlias, TypeVar

from local_dp.curator.account import DeclaredAccount
from local_dp.errors import InputError
from local_dp.experiments.api.declare import option, pair, policy
from local_dp.experiments.api.tables import Bounds, bounds_text, settings_text
from local_dp.experiments.api.trusted import Offer, Question, Task
from local_dp.interaction import Adaptive, Algorithm, Nonadaptive, Play, as_play
from local_dp.learners.tabular import in_words, verdict
from local_dp.loss import Loss
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.learning.learn import Learn, trivial, true_baseline, true_score, unit_of
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.encoded import Encoding
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import among_complete, on_table

R = TypeVar("R")
_TOLERANCE = 0.5  # of the verdicts: their noise is that of their share of the budget
SAME_RECORDS = "Its score is measured on the records it was learned from; on others it may be worse."


Written: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class LearnedRule(Question[Records | Population, "Taught"]):
    """Releases a rule that predicts a label, by any learner of `run learn`. Bounds of its number columns are declared."""

    figureless = "a rule"
    label: str = option("", "A column, or a yes/no question such as 'affairs > 0'", metavar="Y")
    _: KW_ONLY
    learner: str = option("logistic-regression", "A learner; `local-dp describe learn` lists them", metavar="NAME")
    features: Sequence[str] = option(
        (), "A number column or a yes/no question; may be repeated; default: every other number column", name="--feature --features", metavar="X"
    )
    bounds: Mapping[str, Bounds] | None = option(
        None,
        "Public bounds of a number column, such as age=17..60; may be repeated",
        name="--bound --bounds",
        metavar="COLUMN=LOW..HIGH",
        read=pair,
        collect=dict,
    )
    cuts: int = option(1, "Cuts of a number column, for learners of bits", metavar="N")
    parameters: Written | None = option(
        None, "A parameter of the learner, such as depth=2; may be repeated", name="--set --parameters", metavar="NAME=VALUE", read=pair, collect=dict
    )
    missing: str = policy("A row that lacks a feature or the label", exclude="it is left out")
    name: ClassVar[str] = "learn"
    example: ClassVar[str] = (
        "learn --records fair.csv --label 'affairs > 0' --feature age --feature rate_marriage --bound age=15..45 --bound rate_marriage=1..5"
    )

    def task(self, table: Launch) -> Task[Records | Population, "Taught"]:
        learning = self.protocol.for_table(table)
        if learning.unknown:
            raise InputError(f"bounds are public: declare those of {', '.join(learning.unknown)}, as in bounds {learning.unknown[0]}=17..60")
        return Learned(learning, self.loss)

    @property
    def protocol(self) -> Learn:
        return Learn(
            learner=self.learner,
            label=self.label,
            features=tuple(self.features),
            bounds=bounds_text(self.bounds),
            cuts=self.cuts,
            parameters=settings_text(self.parameters),
            missing=self.missing,
        )


@dataclass(frozen=True)
class Taught:
    """A hypothesis, its score and the score of a trivial rule, on the records it was learned from. A score is an accuracy or a square error."""

    hypothesis: Any
    score: float
    trivial: float


@dataclass(frozen=True)
class Learned(Task[Records | Population, Taught]):
    """The task of a learner that knows the table's columns."""

    learning: Learn
    loss: Loss
    name: ClassVar[str] = "learn"

    def offer(self, size: int) -> Offer[Records | Population, Taught]:
        shares = 2 if self._excludes else 0  # of complete rows: for the learner and for the verdicts
        account = DeclaredAccount(self.loss, self.learning.built.queries + 2 + shares)
        asked = curated_from_sq(Adaptive(self._play), account.part.epsilon, size)
        return Offer(f"{account.queries:,} noisy sums", asked, account)

    def _play(self) -> Play[StatisticalQuery, float, Taught]:
        hypothesis = yield from self._on_rows(self.learning.built.algorithm())
        verdicts = tuple(StatisticalQuery(verdict(judged), _TOLERANCE) for judged in (hypothesis, trivial(hypothesis)))
        score, other = ((1 + answer) / 2 for answer in (yield from self._on_rows(Nonadaptive(verdicts, lambda answers: answers))))
        unit = unit_of(hypothesis, self.encoding)
        return Taught(hypothesis, unit * score, unit * (max(other, 1 - other) if verdict(hypothesis).classifies else other))

    def _on_rows(self, algorithm: Algorithm[StatisticalQuery, float, R]) -> Play[StatisticalQuery, float, R]:
        """The algorithm on all rows, or on the complete ones; their share is one more query."""
        return as_play(among_complete(algorithm, self.encoding) if self._excludes else on_table(algorithm, self.encoding))

    @property
    def _excludes(self) -> bool:
        return self.learning.missing == "exclude"

    @property
    def encoding(self) -> Encoding:
        return self.learning.encoding({})

    def database(self, records: Records) -> Records:
        return records

    def to_data(self, result: Taught, records: Records) -> dict[str, Any]:
        rule, right = in_words(result.hypothesis, self.encoding), verdict(result.hypothesis).classifies
        what = "accuracy" if right else "mean square error" if self.encoding.label else "mean square distance"
        sentence = f"{self.encoding.label} where {rule}" if right else rule
        rows = [[self.learning.learner, result.score], ["a trivial rule", result.trivial]]
        return {"columns": ["rule", what], "rows": rows, "explanation": f"{sentence}. {SAME_RECORDS}", "parameters": asdict(result.hypothesis)}

    def truth(self, result: Taught, records: Records) -> dict[str, Any]:
        population, unit = Rows(records), unit_of(result.hypothesis, self.encoding)
        scores = [score(result.hypothesis, self.encoding, population) for score in (true_score, true_baseline)]
        return {"score": unit * scores[0], "trivial": unit * scores[1]}
