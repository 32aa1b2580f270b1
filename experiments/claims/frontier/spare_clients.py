"""Why learners take fewer clients than the theorem plans: three factors, each found by itself."""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

from numpy.random import Generator, default_rng
from scipy import special

from local_dp.bounds.response import MAX_WALK, response_gain, rr_clients_exact
from local_dp.experiments.claims.local.suite.runs import (
    BETA,
    EDGE,
    EPSILON,
    LEGAL,
    Fewest,
    Users,
    successes_of,
)
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
    Claimed,
    ClientCount,
    Experiment,
    Finding,
    LogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    cross_check_shown,
    curve,
    every,
    geometric_mean,
    holds,
    least_count,
    measured,
    measured_clients,
    within,
)
from local_dp.interaction import run, translate
from local_dp.learners.examples import Task, tasks
from local_dp.learners.learner import Learner
from local_dp.oracles.statistical.oracles import ExactOracle, NoisyOracle, StatisticalQuery
from local_dp.protocols.learning.learned import Learned
from local_dp.protocols.local_protocol import find_protocol

STEP = 1.02  # between the tolerances tried
PATTERNS = {True: 256, False: 16}  # random patterns of errors at each, in one round or several
# runs of each search: perceptron takes longest, so it is first
FULL = {
    "perceptron": 1200,
    "decision-lists": 1200,
    "conjunctions": 4800,
    "stumps": 4800,
    "thresholds": 2400,
    "naive-bayes": 2400,
    "low-degree": 2400,
}
QUICK = dict.fromkeys(("stumps", "thresholds", "low-degree"), 2400)
NEAR = 0.03  # from 1 - BETA: the success of a count to a few percent
HALF = 0.85  # with half the clients a one-sided decision, the flattest, is right in 81.8 %
ROOM, TIMES = 1.05, 4.0
PRECISION = 0.997  # of `rr_clients_exact` beyond MAX_WALK
STAGES = ("planned", "by exact tails", "at the needed tolerance", "by random errors", "least")
FACTORS, ENDS = ("exact tails", "spare tolerance", "random errors"), ("low", "high")


class Factors(Row):
    slack: float  # the largest multiple of the tolerance at which no adversary defeats the learner
    count: ClientCount
    random: ClientCount  # the same for normal errors in place of reports
    # fresh runs with the least number, with half of it, and with normal errors and the least number
    right: tuple[int, int, int]


class Spare(Row):
    """A learner on its hard task, and the runs of each search."""

    task: str
    trials: int

    @property
    def learner(self) -> Learner[Any]:
        return tasks()[self.task].learner

    @property
    def runs(self) -> int:
        """That confirm a count."""
        return self.trials // 2

    def people(self, slack: float) -> int:
        """With whom all answers are within so many times the tolerance except with probability
        BETA, by the exact law."""
        learner = self.learner
        each = 1 - (1 - BETA) ** (1 / learner.queries)
        tolerance = slack * learner.tolerance
        return learner.queries * rr_clients_exact(EPSILON, tolerance, each)

    def stages(self, result: Factors) -> tuple[int, ...]:
        """The people of STAGES."""
        exact = (self.people(slack) for slack in (1.0, result.slack))
        return self.learner.clients(EPSILON, BETA), *exact, result.random.n, result.count.n

    def measure(self, seed: int) -> Factors:
        task, least = tasks()[self.task], self.learner.queries
        erring, fresh = (default_rng([seed, place]) for place in range(2))
        population, algorithm = task.population(1, 0), task.learner.algorithm()

        def keeps(n: int, runs: int) -> int:
            oracle = ReportErrors(population, (n // least) ** -0.5, erring)
            return sum(_keeps(task, run(algorithm, oracle)) for _ in range(runs))

        count = Fewest(self.task, self.trials).measure(seed)
        n = max(least, count.n)
        random = measured_clients(keeps, n, target=1 - BETA, trials=2 * self.trials, least=least)
        protocol = find_protocol(f"learn-{self.task}")()
        assert isinstance(protocol, Learned)
        successes = successes_of(protocol, fresh)
        whole, half = (successes(max(least, n // part), self.runs) for part in (1, 2))
        right = whole, half, keeps(n, self.runs)
        return Factors(tolerated(task, erring), count, random, right)


def _keeps(task: Task[Any], hypothesis: Any) -> bool:
    """True if the learner kept its promise on its hard task."""
    return task.excess(hypothesis, task.population(1, 0)) <= task.learner.alpha * (1 + EDGE)


class ReportErrors(NoisyOracle):
    """Normal errors with the variance of randomized response, (C^2 - mean^2) / n for sd = n^-1/2:
    no client, no tolerance."""

    def answer_one(self, query: StatisticalQuery) -> float:
        mean = ExactOracle.answer_one(self, query)
        spread = math.sqrt(response_gain(EPSILON) ** 2 - mean**2)
        return mean + self.sd * spread * float(self.generator.normal())


def tolerated(task: Task[Any], generator: Generator) -> float:
    """The largest multiple of the proven tolerance, in steps, at which no legal oracle tried
    defeats the learner; below 1 if one does at the proven tolerance."""
    slack = 1 / STEP
    while _survives(task, slack * STEP, generator):
        slack *= STEP
    return slack


def _survives(task: Task[Any], slack: float, generator: Generator) -> bool:
    """The learner itself stays as it is: its oracles alone have more tolerance."""
    population, learner = task.population(1, 0), task.learner
    algorithm = translate(
        learner.algorithm(),
        lambda queries, before: tuple(
            replace(query, tolerance=slack * query.tolerance) for query in queries
        ),
        lambda queries, translation, answers: answers,
    )
    makers = [*LEGAL.values(), *[LEGAL["scattered"]] * PATTERNS[learner.rounds == 1]]
    oracles = (make(population, generator) for make in makers)
    return all(_keeps(task, run(algorithm, oracle)) for oracle in oracles)


class SpareClients(Experiment):
    name = "spare-clients"
    chapter = FRONTIER
    title = "Why learners take fewer people than the theorem plans"
    claim = (
        "A learner that asks for averages runs on private answers, and a theorem plans how many "
        "people that takes. On their hard tasks learners take far fewer people. Three factors "
        "explain it: exact tails in place of inequalities, tolerance that the learner does not "
        "need, and errors that are random where the theorem allows for the worst ones."
    )
    source = "KLNRS 2008, Lemma 4.3 and Theorem 4.8 (limits 9)"

    def points(self, scale: Scale) -> Points:
        searches = FULL if scale == "full" else QUICK
        return [*(Spare(*search) for search in searches.items()), Users("stumps")]

    def finding(self, sheet: Sheet) -> Finding:
        rows: Rows[Spare, Factors] = sheet[Spare]
        whole = [least_count(m.count) / least_count(m.random) for _, m in rows]
        checks = [
            _check_tails(rows),
            within(
                "No adversary defeats a learner within its proven tolerance; conjunctions and "
                f"stumps are defeated within {STEP - 1:.0%} beyond it",
                {p.task: m.slack for p, m in rows},
                low=1,
                also=all(m.slack < STEP for p, m in rows if p.task in ("conjunctions", "stumps")),
            ),
            measured(
                f"Random errors spare at least {TIMES:g} times the people that keep all answers "
                "within the needed tolerance (in units of these)",
                {p.task: least_count(m.random) / p.people(m.slack) for p, m in rows},
                high=1 / TIMES,
            ),
            measured(
                "The three factors multiply to the whole ratio, measured on clients' reports, "
                f"to {ROOM - 1:.0%} (geometric mean over the learners, in units of it)",
                {"": geometric_mean(whole)},
                1 / ROOM,
                ROOM,
            ),
            _check_counts(rows),
            *(cross_check_shown("The learner of stumps run locally", m) for _, m in sheet[Users]),
        ]
        table = _table(rows)
        return Finding(checks, [table], [_figure(table)], NOTES, headline=_headline(table))


NOTES = [
    f"Epsilon {EPSILON:g}, success in {1 - BETA:.0%} of runs. Every query has as many clients of "
    "its own as every other, also one that an adaptive learner never asks.",
    "The needed tolerance is the largest at which no adversary that was tried defeats the learner "
    f"on its hard task: {len(LEGAL)} legal oracles and random patterns of errors, "
    f"{PATTERNS[True]} for one round and {PATTERNS[False]} for several, in steps of "
    f"{STEP - 1:.0%}. A better adversary would move a part of this factor to random errors. On "
    "another distribution the factor may be 1.",
    "Random errors are normal, with the variance of randomized response at each query's mean; "
    "the measured least number comes from clients' reports.",
]


def _check_tails(rows: Rows[Spare, Factors]) -> Check:
    cases = []
    for p, _ in rows:
        t, people = p.learner.queries, p.people(1.0)
        n = people // t
        less = n - 1 if n <= MAX_WALK else math.floor(PRECISION * n)
        enough, fewer = (all_within(each, t, p.learner.tolerance) for each in (n, less))
        ratio = p.learner.clients(EPSILON, BETA) / people
        true = fewer < 1 - BETA <= enough and 1.3 < ratio < 1.8
        cases.append((true, f"{p.task}: {enough:.5f}, planned {ratio:.3f} times as many"))
    return every(
        f"By another computation all answers are within the tolerance in {1 - BETA:.0%} of runs "
        "with the exact count, and not with a client less a query (beyond a million clients a "
        f"query {1 - PRECISION:.1%} less); the theorem plans 1.3 to 1.8 times as many",
        cases,
    )


def all_within(n: int, t: int, tolerance: float) -> float:
    """The probability that t answers of mean 0 are, each from n clients."""
    edge = math.floor(n * (1 + tolerance / response_gain(EPSILON)) / 2)
    return float((1 - 2 * special.bdtrc(edge, n, 0.5)) ** t)


def _check_counts(rows: Rows[Spare, Factors]) -> Check:
    claims = {}
    for p, m in rows:
        whole, half, normal = (Rate(right, p.runs) for right in m.right)
        claims[f"{p.task}, half"] = Claimed(half, high=HALF)
        for name, rate in ((p.task, whole), (f"{p.task}, normal errors", normal)):
            claims[name] = Claimed(rate, 1 - BETA - NEAR, 1 - BETA + NEAR)
    return holds(
        f"Fresh runs with the least number succeed in {1 - BETA:.0%}, within {NEAR:.0%}, also with "
        f"normal errors; with half of it in {HALF:.0%} at most",
        claims,
    )


def _table(rows: Rows[Spare, Factors]) -> Table:
    cells = []
    for p, m in rows:
        stages, count = p.stages(m), m.count
        factors = [before / after for before, after in pairwise(stages[:4])]
        factors += [stages[0] / n for n in (count.n, count.high, count.low)]
        cells.append((p.task, *stages, round(m.slack, 3), *(round(each, 2) for each in factors)))
    columns = ("learner", *STAGES, "tolerance / proven", *FACTORS, "all three", *ENDS)
    return Table("People for the same promise, and the factors between them", columns, cells)


def _figure(table: Table) -> LogFigure:
    names, *columns = (table.column(each) for each in ("learner", *FACTORS, "all three", *ENDS))
    bars = [
        curve(name, enumerate(factors), "bars")
        for name, factors in zip(FACTORS, columns[:3], strict=True)
    ]
    whole = curve("all three, measured", zip(range(len(names)), *columns[3:], strict=True))
    title = f"How many times too many people the theorem plans, and why (epsilon {EPSILON:g})"
    axes = "learner", "people planned / people needed (1: nothing to spare)"
    return LogFigure(
        "spare-clients", title, *axes, [*bars, whole], "one-round", x_ticks=tuple(names)
    )


def _headline(table: Table) -> str:
    whole = table.column("all three")
    place = whole.index(max(whole))
    name, plan, least = (table.column(each)[place] for each in ("learner", "planned", "least"))
    tails, tolerance, randomness = (table.column(each)[place] for each in FACTORS)
    return (
        f"{name}: the theorem plans {plan:,} people and {least:,} are enough. Exact tails spare "
        f"{tails:.2f} times, tolerance {tolerance:.3g} times, random errors {randomness:.3g} times."
    )


EXPERIMENT = SpareClients()
