"""A learner on a person's own table, with public or private bounds of columns; its hypothesis is
judged by clients held out for that, with an interval."""

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from local_dp.bounds.response import rr_clients
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_built, check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, as_play, run, translate
from local_dp.learners.learner import Learner
from local_dp.learners.moments import Centres, LinearModel
from local_dp.learners.rules import AllOf
from local_dp.learners.tabular import (
    TABULAR,
    Seen,
    Verdict,
    in_words,
    seen_by,
    settings_of,
    unit_of,
    verdict,
)
from local_dp.loss import nano_epsilon
from local_dp.oracles.local.asked import Cohort, LocalAlgorithm, LocalPlay, LocalQuery, LocalRounds
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.finite import Finite, Population, weighted_records
from local_dp.protocols.local_protocol import BETA, LocalProtocol, PlainData, parameter, policy
from local_dp.protocols.surveys.policies import Launch
from local_dp.protocols.vectors.mean_found import (
    LEARNING,
    Range,
    finding_clients,
    locate,
    range_clients,
)
from local_dp.queries.encoded import Encoding, check_bounds, encoded, question_in
from local_dp.queries.grammar import columns_of, names_in
from local_dp.queries.labels import apart
from local_dp.records import Records, absent
from local_dp.tallies import Estimate
from local_dp.theorems.from_sq import (
    LEAST,
    among_complete,
    completeness,
    local_from_sq,
    local_query,
    on_table,
)

HALF = normal_quantile(0.0125)  # of an interval that misses half as often as one of 95 %


@dataclass(frozen=True)
class Score:
    """A hypothesis's accuracy, or its error as a share of the largest, over n reports of complete
    records; with its 95 % interval clipped to [0, 1]."""

    value: float
    standard_error: float
    low: float
    high: float
    n: int

    def opposite(self) -> "Score":
        """The score of the opposite classifier."""
        return Score(1 - self.value, self.standard_error, 1 - self.high, 1 - self.low, self.n)


def trivial(hypothesis: Any) -> Any:
    """The baseline of a hypothesis: the label yes for all (the judge also considers no), the middle
    of the label's bounds, one centre in the middle."""
    if isinstance(hypothesis, LinearModel):
        return LinearModel((0.0,) * len(hypothesis.weights))
    return (
        Centres(((0.0,) * len(hypothesis.points[0]),))
        if isinstance(hypothesis, Centres)
        else AllOf(())
    )


def judge(
    hypothesis: Any, encoding: Encoding, epsilon: float, clients: Cohort, exclude: bool
) -> LocalPlay[tuple[Score, Score]]:
    """The scores of the hypothesis and of the trivial one, from fresh clients, in one round.

    Three quarters of the clients judge the hypothesis and one quarter the trivial one; with rows to
    leave out, half, a quarter, and a quarter for the share of complete rows. Privacy: each answers
    once. The interval of a ratio combines those of its two parts at half the error each.
    """
    shares = (0, 2, 3, 4) if exclude else (0, 3, 4)
    ends = [clients.start + len(clients) * share // 4 for share in shares]
    if min(end - start for start, end in pairwise(ends)) < 1:
        raise InputError(
            f"{len(clients)} clients are held out, too few to judge a hypothesis; use more clients"
        )
    questions = [
        StatisticalQuery(encoded(encoding, verdict(each)), 0.5)
        for each in (hypothesis, trivial(hypothesis))
    ]
    questions += [completeness(encoding, 0.5)] if exclude else []
    queries = tuple(
        local_query(query, epsilon, Cohort(ends[place], ends[place + 1]))
        for place, query in enumerate(questions)
    )
    tallies = yield queries
    own, plain, *whole = (
        query.randomizer.estimate(tally).on_scale(-1.0, 1.0)
        for query, tally in zip(queries, tallies, strict=True)
    )
    share = whole[0] if whole else None
    other = _score(plain, share)
    return _score(own, share), other.opposite() if verdict(
        hypothesis
    ).classifies and other.value < 0.5 else other


def _score(answer: Estimate, share: Estimate | None) -> Score:
    """(1 + a / m) / 2 for the answer a on the [-1, 1] scale and the share m of complete rows."""
    a = float(answer.value)
    if share is None:
        low, high = (float(end) for end in answer.interval())
        value, error = a, float(answer.standard_error)
    else:
        m = max(float(share.value), LEAST)
        wholes = np.clip(share.interval(HALF), LEAST, 1.0)
        ratios = [float(end / whole) for end in answer.interval(HALF) for whole in wholes]
        value = a / m
        low = min(ratios)
        high = max(ratios)
        error = math.hypot(float(answer.standard_error), value * float(share.standard_error)) / m
    value, low, high = ((1 + min(max(each, -1.0), 1.0)) / 2 for each in (value, low, high))
    return Score(value, error / 2, low, high, answer.n)


def true_score(hypothesis: Any, encoding: Encoding, population: Population) -> float:
    """The score of the hypothesis in the distribution that the clients are drawn from."""
    return _true(verdict(hypothesis), encoding, population)


def true_baseline(hypothesis: Any, encoding: Encoding, population: Population) -> float:
    """The same for the trivial hypothesis, with the better label."""
    score = _true(verdict(trivial(hypothesis)), encoding, population)
    return max(score, 1 - score) if verdict(hypothesis).classifies else score


def _true(judged: Verdict, encoding: Encoding, population: Population) -> float:
    queries = StatisticalQuery(encoded(encoding, judged), 0.5), completeness(encoding, 0.5)
    score, complete = (query.expectation(population.law(query.query)) for query in queries)
    return (1 + score / complete) / 2


# rows times queries up to which a simulation also runs the learner on exact expectations
MOST_WORK = 10**8
LABEL = "ill"
_YES_NO = Range(0.0, 1.0)  # of a question


@dataclass(frozen=True)
class Lesson:
    """A hypothesis, its encoding, its score and that of the trivial one on the clients held out,
    and the clients of each query, actual and sufficient."""

    hypothesis: Any
    encoding: Encoding
    score: Score
    baseline: Score
    clients_per_query: int
    enough_per_query: int
    learner: Learner[Any]


@dataclass(frozen=True, kw_only=True)
class Learn(LocalProtocol[Lesson]):
    """Runs `learner` on a table: predicts `label` from `features`, and estimates how often the
    prediction is right on clients held out for that.

    A feature is a number column or a yes/no question, separated by ';'; by default every other
    number column. The label is a question, a column of 0 and 1, or for linear-regression a number
    column; k-means has none. `bounds` are public bounds such as age=17..60; other clients find
    missing ones privately. Learners of bits cut a number column at `cuts` places. `parameters` are
    the learner's own, such as depth=4. Rows with missing values stop the run, or with `missing`
    exclude count as 0 in every answer, divided by the estimated share of complete rows. Without a
    table, predicts illness from age and visits. Privacy: every client answers at most once,
    epsilon-locally private. Utility: the learner's own. With the default number of clients the
    stated accuracy is within `tolerance` of the truth with probability 95 %; the last share
    `held_out` of the clients judges. Cost: one bit a client.
    """

    name = "learn"
    summary = "Learns to predict a column, and estimates the accuracy"
    figureless = "a hypothesis"
    source = "KLNRS 2008, Theorem 4.8; the learners' own"
    example = "--records fair.csv --label 'affairs > 0' --missing exclude"
    error_unit = "distance of the stated score from the true one"
    learner: str = parameter("logistic-regression", "Learner", help=f"{', '.join(TABULAR)}")
    label: str = parameter(
        "", "Column or yes/no question that is predicted", help="Such as 'affairs > 0'"
    )
    features: tuple[str, ...] = parameter(
        (),
        "Number columns and yes/no questions to predict from",
        help="Default: every other number column",
    )
    bounds: tuple[str, ...] = parameter(
        (), "Public bounds of columns; others are found privately", help="Such as 'age=17..60'"
    )
    cuts: int = parameter(1, "Cuts of a number column, for learners of bits")
    parameters: tuple[str, ...] = parameter(
        (), "Parameters of the learner", help="Such as 'depth=4'"
    )
    missing: str = policy("rows with missing values", exclude="they are left out")
    held_out: float = parameter(
        0.2, "Share of clients held out for the accuracy", unit="share of clients"
    )
    tolerance: float = parameter(
        0.05,
        "Error in 95 % of runs; sets the default client number",
        unit="share",
    )

    def check(self) -> None:
        check_share("held_out", self.held_out)
        check_whole("cuts", self.cuts, 1, 64)
        if self.seen.form == "grid" and len(self._inputs) != 1:
            raise InputError(
                f"{self.learner} has one feature, and {len(self._inputs)} are given; name it with "
                "features="
            )
        check_built(self.built)
        self.encoding(dict.fromkeys(self.unknown, _YES_NO))

    @property
    def seen(self) -> Seen:
        """How the learner sees a table."""
        return seen_by(self.learner)

    @property
    def answer(self) -> str:
        """The label's text, empty for a learner without one."""
        return "" if self.seen.answer == "none" else self.label or LABEL

    @property
    def _inputs(self) -> tuple[str, ...]:
        return self.features or (("age",) if self.seen.form == "grid" else ("age", "visits"))

    @property
    def given(self) -> dict[str, Range]:
        """The public bounds by column. Raises InputError on a malformed text."""
        return dict(map(_read_bounds, self.bounds))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The columns whose bounds a first round must find."""
        label = (self.answer,) if self.seen.answer == "number" else ()
        return tuple(
            name
            for name in dict.fromkeys((*self._inputs, *label))
            if not question_in(name) and name not in self.given
        )

    @cached_property
    def built(self) -> Learner[Any]:
        """The learner, with its number of features."""
        return self.seen.make(self._width, settings_of(self.seen, self.parameters))

    @property
    def _width(self) -> int:
        return sum(
            self.cuts if self.seen.form == "bits" and not question_in(text) else 1
            for text in self._inputs
        )

    def encoding(self, private: dict[str, Range]) -> Encoding:
        """How each client sees its own record, by public and private bounds."""
        ranges = {**private, **self.given}
        columns: list[tuple[str, Range]] = []
        for text in self._inputs:
            if question_in(text):
                columns.append((text, _YES_NO))
            elif self.seen.form == "bits":
                columns += [
                    (question, _YES_NO) for question in _cuts(text, ranges[text], self.cuts)
                ]
            else:
                columns.append((text, ranges[text]))
        y = Range(0.0, 0.0)
        if self.seen.answer == "number":
            y = _YES_NO if question_in(self.answer) else ranges[self.answer]
        return Encoding(
            features=tuple(text for text, _ in columns),
            lows=tuple(bounds.low for _, bounds in columns),
            highs=tuple(bounds.high for _, bounds in columns),
            form=self.seen.form,
            scale=self.seen.scale(self._width),
            constant=self.seen.constant,
            steps=1 << getattr(self.built, "bits", 1),
            label=self.answer,
            label_low=y.low,
            label_high=y.high,
        )

    def clients(self, epsilon: float) -> int:
        learning = len(self.unknown) * range_clients(epsilon) + self.built.clients(epsilon, BETA)
        return math.ceil(max(learning / (1 - self.held_out), self._judges(epsilon) / self.held_out))

    def _judges(self, epsilon: float) -> float:
        """How many clients tell the score to the tolerance."""
        return rr_clients(epsilon, 2 * self.tolerance, BETA) * (
            2 if self.missing == "exclude" else 4 / 3
        )

    def notice(self, epsilon: float, clients: int) -> str | None:
        """The learner's guarantee and the score each need clients of their own."""
        enough = self.clients(epsilon)
        near = self.tolerance * (self._judges(epsilon) / (self.held_out * clients)) ** 0.5
        if clients >= enough:
            return None
        expected = (
            f"a score that is right to about +-{near:.2g}"
            if near < 0.5
            else "a score no better than a guess"
        )
        return (
            f"You have {clients:,} clients; the guarantee of {self.learner} at epsilon "
            f"{epsilon:g} needs {enough:,}. Expect {expected}."
        )

    def algorithm(self, epsilon: float, clients: int) -> LocalRounds[Lesson]:
        nano_epsilon(epsilon)
        first = clients - math.ceil(self.held_out * clients)  # the first client that judges
        finders = max(
            len(self.unknown) * 2 * finding_clients(epsilon),
            min(len(self.unknown) * range_clients(epsilon), first // 2),
        )
        if finders >= first:
            needed = (
                f"{finders:,} find the bounds of {len(self.unknown)} columns, " * bool(self.unknown)
                + f"{clients - first:,} judge"
            )
            bounds = ";".join(f"{name}=LOW..HIGH" for name in self.unknown[:4])  # for example
            ways = (
                f"add bounds='{bounds}', name fewer features, or use more clients"
                if self.unknown
                else "use more clients"
            )
            raise InputError(
                f"{clients:,} clients are too few to learn: {needed}, and nobody is left; {ways}"
            )
        teachers = first - finders
        learner = self.built.affordable(epsilon, teachers - (self.missing == "exclude"))
        cohort = teachers // (learner.queries + (self.missing == "exclude"))
        enough = math.ceil(self.built.clients(epsilon, BETA) / self.built.queries)

        def play() -> LocalPlay[Lesson]:
            ranges: tuple[Range, ...] = ()
            if self.unknown:
                ranges = yield from locate(self.unknown, epsilon, Cohort(0, finders), LEARNING)
            encoding = self.encoding(dict(zip(self.unknown, ranges, strict=True)))
            algorithm = (
                among_complete(learner.algorithm(), encoding)
                if self.missing == "exclude"
                else on_table(learner.algorithm(), encoding)
            )
            hypothesis = yield from as_play(
                _moved(local_from_sq(algorithm, epsilon, lambda query: cohort), finders)
            )
            scores = yield from judge(
                hypothesis, encoding, epsilon, Cohort(first, clients), self.missing == "exclude"
            )
            return Lesson(hypothesis, encoding, *scores, cohort, enough, learner)

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        """Ages 20 to 79, visits 0 to 9; the odds of being ill are e^((age - 60) / 10 + (visits - 2)
        / 2)."""
        age, visits, ill = (
            part.ravel()
            for part in np.meshgrid(np.arange(20, 80), np.arange(10), np.arange(2), indexing="ij")
        )
        score = (age - 60) / 10 + (visits - 2) / 2
        return Finite(
            Records({"age": age, "visits": visits, LABEL: ill}),
            (1 / (1 + np.exp(np.where(ill == 1, -score, score)))).tolist(),
            clients,
            seed,
        )

    @property
    def reads(self) -> frozenset[str] | None:
        return names_in(self.features, self.given, self.label) if self.features else None

    def for_table(self, table: Launch) -> Self:
        records = table.types
        if self.seen.answer != "none" and not self.label:
            raise InputError(
                "learn needs a label: a question such as label='affairs > 0', or a column"
            )
        for name in self.given:
            records[name]  # raises with the columns there are
        question = question_in(self.label) if self.label else None
        about = columns_of(question) if question else {self.label}
        if question is None and self.seen.answer == "yes or no":
            table.types.numbers(self.label)  # raises for texts and dates
            choices = f"a question as the label, such as '{self.label} == 1'"
            table.refuse(
                "refuse",
                lambda part: ~np.isin(part[self.label], (0, 1)) & ~absent(part[self.label]),
                f"the label {self.label!r} is neither 0 nor 1",
                choices,
            )
        numbers = tuple(
            name
            for name, values in records.columns.items()
            if values.dtype.kind not in "UM" and name not in about
        )
        if not (self.features or numbers):
            raise InputError(
                "the table has no number column beside the label; name the features, as in "
                "features='sex == \"F\"'"
            )
        built = replace(self, features=self.features or numbers)
        encoding = built.encoding(dict.fromkeys(built.unknown, _YES_NO))
        encoding.encode(records)  # raises with the columns there are
        if encoding.may_lack(records):
            choices = "missing=exclude (they are left out), or other features"
            table.refuse(
                self.missing,
                lambda part: ~encoding.present(part),
                "a feature or the label has no value",
                choices,
            )
        return built

    def describe(self, result: Lesson) -> PlainData:
        encoding = result.encoding
        right = verdict(result.hypothesis).classifies
        unit = unit_of(result.hypothesis, encoding)
        what = (
            "accuracy"
            if right
            else "mean square error"
            if encoding.label
            else "mean square distance, as a share of the largest"
        )
        rule = in_words(result.hypothesis, encoding)
        shown = {
            "rule": f"{encoding.label}: {rule}" if right else rule,
            what: _shown(result.score, unit),
            "majority label" if right else "trivial": _shown(result.baseline, unit),
            "clients a query": result.clients_per_query,
            "enough": result.enough_per_query,
        }
        bounds = {
            text: [low, high]
            for text, low, high in zip(
                encoding.features, encoding.lows, encoding.highs, strict=True
            )
            if not question_in(text)
        }
        return {
            "hypothesis": shown,
            "learner": self.learner,
            "label": encoding.label,
            "features": list(encoding.features),
            "bounds": bounds,
            "score": {"what": what, **_scaled(result.score, unit)},
            "baseline": _scaled(result.baseline, unit),
            "parameters": asdict(result.hypothesis),
        }

    def explain(self, result: Lesson) -> str:
        rule = in_words(result.hypothesis, result.encoding)
        right = verdict(result.hypothesis).classifies
        low, high = (result.score, result.baseline) if right else (result.baseline, result.score)
        worse = (
            "no better than"
            if low.high < high.low
            else "not shown to be better than"
            if low.value <= high.value
            else ""
        )
        if not right:
            least, most = result.encoding.label_low, result.encoding.label_high
            clipped = (
                (
                    f"; the error is that of {result.encoding.label} clipped to [{least:.4g}, "
                    f"{most:.4g}]"
                )
                if least < most
                else ""
            )
            return f"{rule}{clipped}" + f"; {worse} the middle of the bounds for all" * bool(worse)
        value, *ends = (
            f"{100 * share:.0f}"
            for share in (result.score.value, result.score.low, result.score.high)
        )
        told = f" It is {worse} the more frequent label for all." * bool(worse)
        return (
            f"{result.encoding.label} where {rule}; right on {value} % of the clients held out, "
            f"{ends[0]} to {ends[1]} % with 95 % confidence.{told}"
        )

    def truth(self, population: Population) -> None:
        """A score is compared with that of its own hypothesis, by `true_error`."""

    def true_score(self, result: Lesson, population: Population) -> float:
        """The hypothesis's score in the distribution that the clients are drawn from, in [0, 1]."""
        return true_score(result.hypothesis, result.encoding, population)

    def true_error(self, result: Lesson, population: Population) -> float:
        """The distance of the stated score from the true one, in the unit of the score."""
        return abs(result.score.value - self.true_score(result, population)) * unit_of(
            result.hypothesis, result.encoding
        )

    def compared(self, result: Lesson, population: Population) -> PlainData:
        twin = self.twin(result, population)
        unit = unit_of(result.hypothesis, result.encoding)
        return {
            "true_score": self.true_score(result, population) * unit,
            "true_baseline": true_baseline(result.hypothesis, result.encoding, population) * unit,
            "score_on_exact_expectations": None
            if twin is None
            else true_score(twin, result.encoding, population) * unit,
        }

    def twin(self, result: Lesson, population: Population) -> Any:
        """The same learner's hypothesis on exact expectations over the complete rows; None if that
        is too much work."""
        records, shares = weighted_records(population)
        if len(records) * result.learner.queries > MOST_WORK:
            return None
        kept = np.flatnonzero(result.encoding.present(records))
        complete = Finite(result.encoding.encode(records.take(kept)), shares[kept].tolist(), 1, 0)
        return run(result.learner.algorithm(), ExactOracle(complete))


def _read_bounds(text: str) -> tuple[str, Range]:
    name, _, span = text.rpartition("=")
    try:
        low, high = map(float, span.split(".."))
    except ValueError:
        raise InputError(
            f"{text!r} is no bound; write them like age=17..60, separated by ';'"
        ) from None
    check_bounds(name.strip(), low, high)
    return name.strip(), Range(low, high)


def _cuts(column: str, bounds: Range, cuts: int) -> list[str]:
    """Questions at equal distances between the bounds."""
    name = column if column.isidentifier() else f"`{column}`"
    return [
        f"{name} >= {cut}"
        for cut in apart(
            bounds.low + (bounds.high - bounds.low) * place / (cuts + 1)
            for place in range(1, cuts + 1)
        )
    ]


def _moved(algorithm: LocalAlgorithm[Any], start: int) -> LocalAlgorithm[Any]:
    """The same algorithm with the clients from `start` on."""

    def ask(
        queries: tuple[LocalQuery, ...], before: tuple[LocalQuery, ...]
    ) -> tuple[LocalQuery, ...]:
        return tuple(
            query.restricted(query.cohort.start + start, query.cohort.stop + start)
            for query in queries
        )

    return translate(algorithm, ask, lambda queries, asked, answers: answers)


def _shown(score: Score, unit: float) -> str:
    return f"{score.value * unit:.3g} ({score.low * unit:.3g} .. {score.high * unit:.3g})"


def _scaled(score: Score, unit: float) -> PlainData:
    return {
        "estimate": score.value * unit,
        "standard_error": score.standard_error * unit,
        "interval": [score.low * unit, score.high * unit],
        "n": score.n,
    }
