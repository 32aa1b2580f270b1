"""A learner on a person's own table, with public or private bounds of columns; its hypothesis is
judged by clients held out for that, with an interval."""

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise, repeat
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
from local_dp.protocols.local_protocol import (
    BETA,
    LocalProtocol,
    PlainData,
    parameter,
    policy,
    target_error,
)
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
    if isinstance(hypothesis, Centres):
        return Centres(((0.0,) * len(hypothesis.points[0]),))
    return AllOf(())


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
    if exclude:
        questions.append(completeness(encoding, 0.5))
    queries = tuple(
        local_query(query, epsilon, Cohort(*cohort))
        for query, cohort in zip(questions, pairwise(ends), strict=True)
    )
    tallies = yield queries
    own, plain, *whole = (
        query.randomizer.estimate(tally).on_scale(-1.0, 1.0)
        for query, tally in zip(queries, tallies, strict=True)
    )
    share = whole[0] if whole else None
    other = _score(plain, share)
    if verdict(hypothesis).classifies and other.value < 0.5:
        other = other.opposite()
    return _score(own, share), other


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


def _true(judge: Verdict, encoding: Encoding, population: Population) -> float:
    queries = StatisticalQuery(encoded(encoding, judge), 0.5), completeness(encoding, 0.5)
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
    tolerance: float = target_error(0.05)

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
        cuts = self.cuts if self.seen.form == "bits" else 1
        return sum(1 if question_in(text) else cuts for text in self._inputs)

    def encoding(self, private: dict[str, Range]) -> Encoding:
        """How each client sees its own record, by public and private bounds."""
        ranges = {**private, **self.given}
        columns: list[tuple[str, Range]] = []
        for text in self._inputs:
            if question_in(text):
                columns.append((text, _YES_NO))
            elif self.seen.form == "bits":
                cuts = _cuts(text, ranges[text], self.cuts)
                columns += zip(cuts, repeat(_YES_NO), strict=False)
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
        each = 2 if self.missing == "exclude" else 4 / 3
        return rr_clients(epsilon, 2 * self.tolerance, BETA) * each

    def notice(self, epsilon: float, clients: int) -> str | None:
        """The learner's guarantee and the score each need clients of their own."""
        enough = self.clients(epsilon)
        near = self.tolerance * (self._judges(epsilon) / (self.held_out * clients)) ** 0.5
        if clients >= enough:
            return None
        expected = f"a score that is right to about +-{near:.2g}"
        if near >= 0.5:
            expected = "a score no better than a guess"
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
            raise self._too_few(clients, finders, clients - first)
        exclude = self.missing == "exclude"
        teachers = first - finders
        learner = self.built.affordable(epsilon, teachers - exclude)
        cohort = teachers // (learner.queries + exclude)
        enough = math.ceil(self.built.clients(epsilon, BETA) / self.built.queries)

        def play() -> LocalPlay[Lesson]:
            ranges: tuple[Range, ...] = ()
            if self.unknown:
                ranges = yield from locate(self.unknown, epsilon, Cohort(0, finders), LEARNING)
            encoding = self.encoding(dict(zip(self.unknown, ranges, strict=True)))
            put = among_complete if exclude else on_table
            local = local_from_sq(put(learner.algorithm(), encoding), epsilon, lambda query: cohort)
            hypothesis = yield from as_play(_shift(local, finders))
            judges = Cohort(first, clients)
            scores = yield from judge(hypothesis, encoding, epsilon, judges, exclude)
            return Lesson(hypothesis, encoding, *scores, cohort, enough, learner)

        return Adaptive(play)

    def _too_few(self, clients: int, finders: int, judges: int) -> InputError:
        roles, advice = f"{judges:,} judge", "use more clients"
        if self.unknown:
            roles = f"{finders:,} find the bounds of {len(self.unknown)} columns, {roles}"
            bounds = ";".join(f"{name}=LOW..HIGH" for name in self.unknown[:4])  # for example
            advice = f"add bounds='{bounds}', name fewer features, or {advice}"
        return InputError(
            f"{clients:,} clients are too few to learn: {roles}, and nobody is left; {advice}"
        )

    def synthetic(self, clients: int, seed: int) -> Population:
        """Ages 20 to 79, visits 0 to 9; the odds of being ill are e^((age - 60) / 10 + (visits - 2)
        / 2)."""
        age, visits, ill = (
            part.ravel()
            for part in np.meshgrid(np.arange(20, 80), np.arange(10), np.arange(2), indexing="ij")
        )
        score = (age - 60) / 10 + (visits - 2) / 2
        kinds = Records({"age": age, "visits": visits, LABEL: ill})
        return Finite(kinds, 1 / (1 + np.exp(np.where(ill == 1, -score, score))), clients, seed)

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
            table.refuse(
                "refuse",
                lambda part: ~np.isin(part[self.label], (0, 1)) & ~absent(part[self.label]),
                f"the label {self.label!r} is neither 0 nor 1",
                f"a question as the label, such as '{self.label} == 1'",
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
        protocol = replace(self, features=self.features or numbers)
        encoding = protocol.encoding(dict.fromkeys(protocol.unknown, _YES_NO))
        encoding.encode(records)  # raises with the columns there are
        if encoding.may_lack(records):
            table.refuse(
                self.missing,
                lambda part: ~encoding.present(part),
                "a feature or the label has no value",
                "missing=exclude (they are left out), or other features",
            )
        return protocol

    def describe(self, result: Lesson) -> PlainData:
        encoding = result.encoding
        unit = unit_of(result.hypothesis, encoding)
        rule = in_words(result.hypothesis, encoding)
        trivial, what = "trivial", "mean square distance, as a share of the largest"
        if verdict(result.hypothesis).classifies:
            trivial, what = "majority label", "accuracy"
            rule = f"{encoding.label}: {rule}"
        elif encoding.label:
            what = "mean square error"
        hypothesis = {
            "rule": rule,
            what: _in_words(result.score, unit),
            trivial: _in_words(result.baseline, unit),
            "clients a query": result.clients_per_query,
            "enough": result.enough_per_query,
        }
        ends = zip(encoding.features, encoding.lows, encoding.highs, strict=True)
        bounds = {text: [low, high] for text, low, high in ends if not question_in(text)}
        return {
            "hypothesis": hypothesis,
            "learner": self.learner,
            "label": encoding.label,
            "features": list(encoding.features),
            "bounds": bounds,
            "score": {"what": what, **_in_units(result.score, unit)},
            "baseline": _in_units(result.baseline, unit),
            "parameters": asdict(result.hypothesis),
        }

    def explain(self, result: Lesson) -> str:
        rule = in_words(result.hypothesis, result.encoding)
        right = verdict(result.hypothesis).classifies
        score, label = result.score, result.encoding.label
        low, high = (score, result.baseline) if right else (result.baseline, score)
        worse = ""
        if low.high < high.low:
            worse = "no better than"
        elif low.value <= high.value:
            worse = "not shown to be better than"
        if right:
            sentence = (
                f"{label} where {rule}; right on {100 * score.value:.0f} % of the clients held "
                f"out, {100 * score.low:.0f} to {100 * score.high:.0f} % with 95 % confidence."
            )
            return sentence + (f" It is {worse} the more frequent label for all." if worse else "")
        least, most = result.encoding.label_low, result.encoding.label_high
        if least < most:
            rule += f"; the error is that of {label} clipped to [{least:.4g}, {most:.4g}]"
        return rule + (f"; {worse} the middle of the bounds for all" if worse else "")

    def true_score(self, result: Lesson, population: Population) -> float:
        """The hypothesis's score in the distribution that the clients are drawn from, in [0, 1]."""
        return true_score(result.hypothesis, result.encoding, population)

    def true_error(self, result: Lesson, population: Population) -> float:
        """The distance of the stated score from the true one, in the unit of the score."""
        away = abs(result.score.value - self.true_score(result, population))
        return away * unit_of(result.hypothesis, result.encoding)

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
        places = np.flatnonzero(result.encoding.present(records))
        kinds = result.encoding.encode(records.take(places))
        return run(result.learner.algorithm(), ExactOracle(Finite(kinds, shares[places], 1, 0)))


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
    places = range(1, cuts + 1)
    ends = (bounds.low + (bounds.high - bounds.low) * place / (cuts + 1) for place in places)
    return [f"{name} >= {end}" for end in apart(ends)]


def _shift(algorithm: LocalAlgorithm[Any], start: int) -> LocalAlgorithm[Any]:
    """The same algorithm with the clients from `start` on."""

    def ask(
        queries: tuple[LocalQuery, ...], before: tuple[LocalQuery, ...]
    ) -> tuple[LocalQuery, ...]:
        return tuple(
            query.restricted(query.cohort.start + start, query.cohort.stop + start)
            for query in queries
        )

    return translate(algorithm, ask, lambda queries, others, answers: answers)


def _in_words(score: Score, unit: float) -> str:
    return f"{score.value * unit:.3g} ({score.low * unit:.3g} .. {score.high * unit:.3g})"


def _in_units(score: Score, unit: float) -> PlainData:
    return {
        "estimate": score.value * unit,
        "standard_error": score.standard_error * unit,
        "interval": [score.low * unit, score.high * unit],
        "n": score.n,
    }
