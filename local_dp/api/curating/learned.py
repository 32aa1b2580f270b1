"""A rule learned from a whole table: any statistical-query learner, its queries answered by noisy
sums over all records."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from local_dp.api.declare import option, pair, policy
from local_dp.api.tables import Bounds, bounds_text, settings_text
from local_dp.api.trusted import Offer, Question, Task
from local_dp.curator.account import DeclaredAccount
from local_dp.curator.clipped import laplace_error, rounding_error
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play, as_play
from local_dp.learners.tabular import in_words, unit_of, verdict
from local_dp.loss import Loss
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.populations.finite import Population, Rows
from local_dp.protocols.learning.learn import Learn, trivial, true_baseline, true_score
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.encoded import Encoding, encoded
from local_dp.records import Records
from local_dp.text.layout import grain, held, number
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import LEAST, among_complete, completeness, on_table, put_to_records

_TOLERANCE = 0.5  # of the verdicts: their noise is that of their share of the budget


def _reach(query: StatisticalQuery, nano: int, size: int, misses: Fraction) -> float:
    """The noise of an answer on the [-1, 1] scale exceeds this with probability `misses` at most.
    The sum is rounded, too."""
    steps = put_to_records(query).domain.size - 1
    noise = laplace_error(Fraction(nano, steps), misses)[1]
    return 2 * (noise + rounding_error(size)) / (steps * size)


SAME_RECORDS = (
    "Its score is measured on the records it was learned from; on others it may be worse."
)


Written: TypeAlias = Mapping[str, object]


@dataclass(frozen=True)
class LearnedRule(Question[Records | Population, "Taught"]):
    """Releases a rule that predicts a label, by any learner of `run learn`. Bounds of its number
    columns are declared."""

    figureless = "a rule"
    label: str = option(
        "", "Column, or a yes/no question", help="Such as 'affairs > 0'", metavar="Y"
    )
    _: KW_ONLY
    learner: str = option(
        "logistic-regression", "A learner; `local-dp describe learn` lists them", metavar="NAME"
    )
    features: Sequence[str] = option(
        (),
        "Number column or yes/no question; may be repeated",
        help="Default: every other number column",
        name="--feature --features",
        metavar="X",
    )
    bounds: Mapping[str, Bounds | str] | None = option(
        None,
        "Public bounds of a number column; may be repeated",
        help="Such as age=17..60",
        name="--bound --bounds",
        metavar="COLUMN=LOW..HIGH",
        read=pair,
        collect=dict,
        split=True,
    )
    cuts: int = option(1, "Cuts of a number column, for learners of bits", metavar="N")
    parameters: Written | None = option(
        None,
        "Parameter of the learner; may be repeated",
        help="Such as depth=2",
        name="--set --parameters",
        metavar="NAME=VALUE",
        read=pair,
        collect=dict,
        split=True,
    )
    missing: str = policy("rows that lack a feature or the label", exclude="it is left out")
    name = "learn"
    summary = "Learns a rule that predicts a label"
    example = (
        "learn --records fair.csv --label 'affairs > 0' --feature age --feature rate_marriage "
        "--bound age=15..45 --bound rate_marriage=1..5"
    )

    @property
    def reads(self) -> frozenset[str] | None:
        return super().reads if self.features else None

    def task(self, table: Launch) -> Task[Records | Population, "Taught"]:
        learning = self.protocol.for_table(table)
        if learning.unknown:
            raise InputError(
                f"bounds are public: declare those of {', '.join(learning.unknown)}, as in bounds "
                f"{learning.unknown[0]}=17..60"
            )
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
    """A hypothesis, its score and the score of a trivial rule, on the records it was learned from.
    A score is an accuracy or a square error.

    `low` and `high` are the ends of a score's interval.
    """

    hypothesis: Any
    score: float
    low: float
    high: float
    trivial: float


@dataclass(frozen=True)
class Learned(Task[Records | Population, Taught]):
    """The task of a learner that knows the table's columns."""

    learning: Learn
    loss: Loss
    name = "learn"
    summary = "Learns a rule that predicts a label"

    def offer(self, size: int) -> Offer[Records | Population, Taught]:
        # of complete rows: for the learner and for the verdicts
        shares = 2 if self._excludes else 0
        account = DeclaredAccount(self.loss, self.learning.built.queries + 2 + shares)
        algorithm = curated_from_sq(
            Adaptive(lambda: self._play(account.part.nano, size)), account.part.epsilon, size
        )
        return Offer(f"{account.queries:,} noisy sums", algorithm, account)

    def _play(self, nano: int, size: int) -> Play[StatisticalQuery, float, Taught]:
        """Learns on all rows, or on the complete ones, whose share is one more query. Then judges
        the rule and a trivial one in the same way."""
        learner, encoding = self.learning.built.algorithm(), self.encoding
        hypothesis = yield from as_play(
            among_complete(learner, encoding) if self._excludes else on_table(learner, encoding)
        )
        verdicts = [
            StatisticalQuery(encoded(encoding, verdict(each)), _TOLERANCE)
            for each in (hypothesis, trivial(hypothesis))
        ]
        queries = (*verdicts, *[completeness(encoding, _TOLERANCE)] * self._excludes)
        answers = yield queries
        misses = Fraction(1, 20 * (len(queries) - 1))
        reaches = [_reach(query, nano, size, misses) for query in queries]
        least, share, most = 1.0, 1.0, 1.0
        if self._excludes:
            least, share, most = (answers[2] + side * reaches[2] for side in (-1, 0, 1))
        ends = [
            (answers[0] + side) / min(1.0, max(LEAST, whole))
            for side in (-reaches[0], reaches[0])
            for whole in (least, most)
        ]
        unit = unit_of(hypothesis, encoding)
        values = [answer / max(share, LEAST) for answer in answers[:2]]
        score, other, low, high = (
            unit * (1 + min(1.0, max(-1.0, each))) / 2 for each in (*values, min(ends), max(ends))
        )
        if verdict(hypothesis).classifies:
            other = max(other, 1 - other)
        return Taught(hypothesis, score, low, high, other)

    @property
    def _excludes(self) -> bool:
        return self.learning.missing == "exclude"

    @property
    def encoding(self) -> Encoding:
        return self.learning.encoding({})

    def database(self, records: Records) -> Records:
        return records

    def to_data(self, result: Taught, records: Records) -> PlainData:
        sentence = in_words(result.hypothesis, self.encoding)
        label, ends = self.encoding.label, [result.low, result.high]
        what = "mean square error" if label else "mean square distance"
        if verdict(result.hypothesis).classifies:
            what, sentence = "accuracy", f"{label} where {sentence}"
        interval = held(" .. ".join(number(each, grain(None, ends)) for each in ends))
        return {
            "columns": ["rule", what],
            "rows": [[self.learning.learner, result.score], ["a trivial rule", result.trivial]],
            "explanation": f"{sentence}. {SAME_RECORDS}",
            "parameters": asdict(result.hypothesis),
            "interval": ends,
            "error": (
                f"With probability 95 % or more the {what} of the rule on these records lies in "
                f"{interval}."
            ),
        }

    def truth(self, result: Taught, records: Records) -> PlainData:
        population, unit = Rows(records), unit_of(result.hypothesis, self.encoding)
        scores = [
            score(result.hypothesis, self.encoding, population)
            for score in (true_score, true_baseline)
        ]
        return {"score": unit * scores[0], "trivial": unit * scores[1]}
