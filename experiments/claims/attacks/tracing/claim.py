"""Tracing: means that are exact enough reveal who is in the table, and so do pirates' words and
decoders."""

import math
from collections.abc import Callable, Iterator
from dataclasses import field

import numpy as np
from numpy.random import default_rng

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools
from local_dp.attacks import (
    FAILURE,
    STRATEGIES,
    Pirates,
    Traced,
    marked,
    tardos,
    tardos_accused,
    traced,
    tracing,
    traitor_tracing,
)
from local_dp.bounds.attacks import traced_length
from local_dp.curator.account import Account, TrustedOracle
from local_dp.experiments.claims.attacks.tracing.signed import (
    Signed,
    check_signed,
    signed_points,
    signed_table,
)
from local_dp.experiments.lab.parts import (
    CURATOR_AND_ATTACKS,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    Points,
    Positive,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    curve,
    holds,
    mean,
    measured,
    positive_mean,
    seeded,
    tabulate,
    wilson,
)
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations import finite as population
from local_dp.queries.encoded import packed
from local_dp.queries.subsets import keys_of
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.from_sq import one_sign_each

N, EPSILON = 25, 1.0  # members, and as many strangers beside them
ONE_PERCENT = 2.3263  # the score that a stranger exceeds with probability .01, in the normal limit
BITS = {"quick": (100, 400, 1225), "full": (100, 625, 2500, 10_000)}
TABLES = {  # of each model: clients take seconds
    "quick": {"exact means": 40, "means rounded to 0 or 1": 40, "a curator": 16, "clients": 6},
    "full": {"exact means": 60, "means rounded to 0 or 1": 60, "a curator": 20, "clients": 10},
}
COALITIONS = {"quick": (3, 5), "full": (3, 5, 10, 20)}
# the strategy whose pirate scores a part 1 / pi of all bits: from c = 10 on Tardos's own score
# reaches him
COPIED = "one copied"
LENGTHS = (1, 2, 3, 4, 6)  # in units of c^2 ln(N / .01)
RUNS = {"quick": 20, "full": 40}
OFTEN = 5  # times as many runs at the full length
LONG = 10  # larger coalitions get a quarter of the runs
TRAITORS = {"quick": (3, 60), "full": (10, 200)}  # of how many users
BROADCASTS = {"quick": 20, "full": 20}
# how far mean scores may be from those predicted: .4 % (exact) and .9 % (rounded) in 300 tables and
# more, as measured with seed 11
NEAR = 0.04
# of the runs accuse an innocent at most: 4 of 8,000, as measured with 100 runs of each strategy,
# coalition and length; .01 is proved
SPARED = 0.002
Answers = tuple[float, ...]
Attack = Nonadaptive[StatisticalQuery, float, Traced]


def _exact(attack: Attack, rows: Records, seed: int) -> Answers:
    return ExactOracle(population.Rows(rows)).answer(attack.queries)


def _from_curator(attack: Attack, rows: Records, seed: int) -> Answers:
    """Laplace noise, epsilon 1 and delta 1 / (10 n) for all answers by optimal composition."""
    part = optimal_part(approximate(EPSILON, 1 / (10 * len(rows))), len(attack.queries))
    trusted = TrustedOracle[Records](
        rows, Account(Pure(len(attack.queries) * part.nano)), seeded(seed)
    )
    return run(curated_from_sq(_plain(attack), part.epsilon, len(rows)), trusted)


def _local(attack: Attack, rows: Records, seed: int) -> Answers:
    clients = PopulationOracle(population.Rows(rows), KeyedNoise(seed), seed, EPSILON)
    return run(one_sign_each(_plain(attack), EPSILON, len(rows), seed), clients)


def _plain(attack: Attack) -> Nonadaptive[StatisticalQuery, float, Answers]:
    """The attack's queries, with the answers themselves as the result."""
    return Nonadaptive(attack.queries, lambda answers: answers)


MODELS: dict[str, tuple[Callable[[Attack, Records, int], Answers], bool]] = {
    "exact means": (_exact, False),
    "means rounded to 0 or 1": (_exact, True),
    "a curator": (_from_curator, False),
    "clients": (_local, False),
}
"""Who answers, and whether the answers are rounded."""

SCORED = tuple(MODELS)[:2]  # of which the mean score is predicted


def _hits(accusations: Bools, c: int) -> tuple[bool, bool]:
    """Whether one of the first c is accused, and one of the others."""
    return bool(accusations[:c].any()), bool(accusations[c:].any())


class Traces(Row):
    shares: list[float]  # of each table: the share of members who score above 99 % of strangers
    scores: list[float]  # the mean score of its members
    errors: list[float]  # the largest error of its means
    above: int  # strangers who score as much, in all tables
    accused: int  # strangers accused

    @property
    def members(self) -> float:
        return float(np.mean(self.shares))

    @property
    def error(self) -> float:
        return max(self.errors)


class Means(Row):
    """Members traced from d means of several tables."""

    model: str
    d: int
    tables: int

    def measure(self, seed: int) -> Traces:
        answer, rounded = MODELS[self.model]
        shares_above, scores, errors = list[float](), list[float](), list[float]()
        strangers = np.zeros(2, dtype=np.int64)  # who score as much, and who are accused
        for each in range(self.tables):
            generator = default_rng([seed, each])
            shares = generator.uniform(0.01, 0.99, self.d)
            rows = generator.random((2 * N, self.d)) < shares  # members, then strangers
            attack = tracing(shares, rows, 0.5, rounded=rounded)
            answers = answer(attack, packed(rows[:N]), seed + each)
            read, verdicts = (np.array(answers) + 1) / 2, attack.decode(answers)
            above = verdicts.scores > ONE_PERCENT
            shares_above.append(float(above[:N].mean()))
            scores.append(float(verdicts.scores[:N].mean()))
            means = (read >= 0.5) if rounded else read
            errors.append(float(np.abs(means - rows[:N].mean(axis=0)).max()))
            strangers += above[N:].sum(), verdicts.accused(FAILURE)[N:].sum()
        return Traces(shares_above, scores, errors, *strangers.tolist())

    @property
    def predicted(self) -> float:
        """By how much members stand out, in standard deviations of a stranger: of exact means, and
        of means rounded to 0 or 1."""
        if self.model == "exact means":
            return math.sqrt(self.d / N)
        return math.sqrt(self.d) * _rounded_score(N)


def _rounded_score(n: int) -> float:
    """What a bit's mean, rounded to 0 or 1, adds to a member's score, for shares that are uniform
    in [.01, .99].

    A member's bit decides where the others have one 1 too few: so the product of x - p and q - p
    has p (1 - p) times that probability as its mean.
    """
    shares, most = np.linspace(0.01, 0.99, 1000), math.ceil(n / 2)
    ways = math.comb(n - 1, most - 1)
    decides = ways * shares ** (most - 1) * (1 - shares) ** (n - most)
    ones = np.zeros(len(shares))
    for count in range(most, n + 1):
        ones += math.comb(n, count) * shares**count * (1 - shares) ** (n - count)
    variances = shares * (1 - shares)
    squares = (ones * (1 - shares) ** 2 + (1 - ones) * shares**2) / variances
    return float(decides.mean() / math.sqrt(squares.mean()))


class Accusations(Row):
    caught: dict[str, int]  # by strategy or decoder: runs in which a pirate or traitor is accused
    falsely: int  # runs in which an innocent is
    bits: int = 0  # of the code
    # the mean score of pirates who interleave their rows, in each run
    scores: list[float] = field(default_factory=list)
    tardos: int = 0  # runs in which Tardos's own score accuses anybody, but those of one row copied

    @property
    def worst(self) -> int:
        return min(self.caught.values())


class Codes(Row):
    """Words of c pirates by every strategy, from a code of `length` c^2 ln(N / .01) bits."""

    c: int
    length: int
    runs: int

    def measure(self, seed: int) -> Accusations:
        c, users = self.c, 20 * self.c
        length = math.ceil(self.length * traced_length(c, users, FAILURE) / max(LENGTHS))
        hits, scores, falsely, tardos_own = dict.fromkeys(STRATEGIES, 0), list[float](), 0, 0
        for number, name in enumerate(STRATEGIES):
            for each in range(self.runs):
                generator = default_rng([seed, number, each])
                code = tardos(users, length, 1 / (20 * c), generator)
                word = marked(code.rows[:c], STRATEGIES[name](code.rows[:c], generator))
                traces = traced(code.shares, word.astype(np.float64), code.rows)
                pirate, innocent = _hits(traces.accused(FAILURE), c)
                scores += [float(traces.scores[:c].mean())] * (name == "interleaved")
                hits[name], falsely = hits[name] + pirate, falsely + innocent
                tardos_own += name != COPIED and bool(tardos_accused(code, word, c, FAILURE).any())
        return Accusations(hits, falsely, length, scores, tardos_own)

    @property
    def name(self) -> str:
        return f"c = {self.c}"


class Traitors(Row):
    """Decoders built from the keys of c of the users."""

    c: int
    users: int
    runs: int

    def measure(self, seed: int) -> Accusations:
        c, users = self.c, self.users
        hits, falsely = dict.fromkeys(("exact means", "coin flips", "a curator"), 0), 0
        for each in range(self.runs):
            generator = default_rng([seed, each])
            code = tardos(users, traced_length(c, users, FAILURE), 1 / (20 * c), generator)
            keys = keys_of(generator, users)
            attack, rows = traitor_tracing(code, keys, 0.5), keys.take(slice(0, c))
            pirates = Pirates(rows, STRATEGIES["coin flips"], generator)
            exact = _exact(attack, rows, each)
            words = {
                "exact means": exact,
                "coin flips": pirates.answer(attack.queries),
                "a curator": _from_curator(attack, rows, seed + each),
            }
            for name, answers in words.items():
                traitor, innocent = _hits(attack.decode(answers).accused(FAILURE), c)
                hits[name], falsely = hits[name] + traitor, falsely + innocent
        return Accusations(hits, falsely)


def _runs(c: int, length: int, runs: int) -> int:
    """More at the full length, and a quarter for large coalitions."""
    return runs * (OFTEN if length == max(LENGTHS) else 1) // (4 if c > LONG else 1)


class Tracing(Experiment):
    name = "tracing"
    chapter = CURATOR_AND_ATTACKS
    title = "Tracing: who is in the table?"
    claim = (
        "Accurate means of many attributes reveal who is in the table. Members stand out by "
        "sqrt(d / n) standard deviations from exact means and, where d is large against n^2, even "
        "from means rounded to 0 or 1. A curator's or clients' answers at epsilon 1 escape, but "
        "are too inexact to be of use. Mixing rows does not help: of 6 c^2 ln(N / .01) bits, "
        "however c pirates mix them, at least one pirate is accused. A proof for the code at hand "
        "spares all innocents with probability .99; Tardos's own score takes 100 c^2. The same "
        "tracer finds who gave a decoder the keys. Some rows appear in accurate synthetic data "
        "only if they are copied: signed ones."
    )
    source = (
        "Tardos 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015; Chor, Fiat, Naor 1994; lecture "
        "notes 5.2, 5.3 and 6.3"
    )

    def points(self, scale: Scale) -> Points:
        return [
            *(Means(model, d, TABLES[scale][model]) for model in MODELS for d in BITS[scale]),
            *(
                Codes(c, length, _runs(c, length, RUNS[scale]))
                for c in COALITIONS[scale]
                for length in LENGTHS
            ),
            Traitors(*TRAITORS[scale], BROADCASTS[scale]),
            *signed_points(scale),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        means = sheet[Means]
        codes = sheet[Codes]
        traitors = sheet[Traitors]
        signed = sheet[Signed]
        lengths = [
            (p.name, p.length, m.bits, m.worst / p.runs, *wilson(m.worst, p.runs)) for p, m in codes
        ]
        shares = [(p.model, p.d, m.members, m.above / (N * p.tables), m.error) for p, m in means]
        tables = [
            tabulate(
                f"share found among {N} members and {N} strangers",
                "who answers | attributes d | members | strangers | largest error",
                shares,
            ),
            tabulate(
                "runs in which a pirate is accused, of 20 c users [95 %]",
                "pirates | length / (c^2 ln(N / .01)) | bits | caught, worst of eight "
                "strategies | from | to",
                lengths,
            ),
            signed_table(signed),
        ]
        title, length = "Pirates accused, worst of eight strategies", "length / (c^2 ln(N / .01))"
        accusations = tables[1].curves(
            f"pirates | {length} | caught, worst of eight strategies | from | to"
        )
        figures = [
            _means_figure(tables[0]),
            Figure("tracing-codes", title, length, "share of runs", accusations),
        ]
        checks = [
            _check_scores(means),
            _check_either(means),
            _check_strangers(means),
            *_check_codes(codes),
            _check_traitors(traitors),
            check_signed(signed),
        ]
        notes = [
            (
                f"The strategies: {', '.join(STRATEGIES)}; each word meets the marking condition. "
                "Others may do better, and accusations stay proved."
            ),
            "The curator's sums are kept to 0..n, so that the error of a mean is never above 1.",
        ]
        return Finding(checks, tables, figures, notes, headline=_headline(means))


def _headline(means: Rows[Means, Traces]) -> str:
    d = max(p.d for p, _ in means)
    shares = ", ".join(f"{m.members:.0%} ({p.model})" for p, m in means if p.d == d)
    return f"From {d:,} means of a table of {N} rows this share of its members is traced: {shares}."


def _check_scores(means: Rows[Means, Traces]) -> Check:
    """One statistic a model: the scores of a table of each d together, which are independent of
    other such sets of tables."""
    figures = {}
    for model in SCORED:
        rows = [(p.predicted, m.scores) for p, m in means if p.model == model]
        sums = [sum(scores) for scores in zip(*(scores for _, scores in rows), strict=True)]
        figures[model] = positive_mean(sums) / sum(prediction for prediction, _ in rows)
    return measured(
        "From exact means members score sqrt(d / n) standard deviations more than strangers, "
        f"and from rounded ones as computed, within {NEAR:.0%}",
        figures,
        1 - NEAR,
        1 + NEAR,
    )


def _check_either(means: Rows[Means, Traces]) -> Check:
    """Where d is largest; errors of one size have a mean without an error."""
    d = max(p.d for p, _ in means)
    least = {"exact means": 0.95, "means rounded to 0 or 1": 0.35}
    inexact = {"a curator": 0.9, "clients": 20.0}
    claims = {}
    for model, m in ((p.model, m) for p, m in means if p.d == d):
        share, error = mean(m.shares), positive_mean(m.errors)
        claims[f"{model}: found"] = (
            Claimed(share, least[model]) if model in least else Claimed(share, high=0.05)
        )
        claims[f"{model}: largest error"] = (
            Claimed(error, inexact[model]) if model in inexact else Claimed(error, high=0.5)
        )
    return holds(
        "From means that err by at most 1/2 at least 95 % of members are found, and 35 % from "
        "rounded ones; from a curator and clients at epsilon 1, who err by 0.9 and 20 or more, at "
        "most 5 % (d largest)",
        claims,
    )


def _check_strangers(means: Rows[Means, Traces]) -> Check:
    """A stranger's row is independent of the answers and of other strangers' rows, given the
    shares: so the counts are binomial, or nearly."""
    trials = sum(N * p.tables for p, _ in means)
    above = Rate(sum(m.above for _, m in means), trials)
    accusations = Rate(sum(m.accused for _, m in means), trials)
    claims = {
        "above": Claimed(above, 0.005, 0.015),
        "accused": Claimed(accusations, high=FAILURE / (2 * N)),
    }
    statement = (
        "One stranger in a hundred scores as much, within 0.5 %, and at most 0.02 % are accused, "
        "as is proved"
    )
    return holds(statement, claims)


def _check_codes(codes: Rows[Codes, Accusations]) -> Iterator[Check]:
    full = [(p, m) for p, m in codes if p.length == max(LENGTHS)]
    rates = dict[str, Claimed]()
    alone = dict[str, Claimed]()
    scores = dict[str, Positive]()
    for p, m in full:
        for name, count in m.caught.items():
            alone[f"{name}, c = {p.c}"] = Claimed(Rate(count, p.runs), 0.95)
        total = Rate(sum(m.caught.values()), p.runs * len(STRATEGIES))
        rates[f"all, c = {p.c}"] = Claimed(total, 0.98)
        deviations = math.sqrt(max(LENGTHS) * math.log(20 * p.c / FAILURE))  # sqrt(d) / c
        scores[p.name] = positive_mean(m.scores) / deviations
    times = sum(p.runs for p, _ in codes)
    falsely = sum(m.falsely for _, m in codes)
    yield holds(
        "Of 6 c^2 ln(N / .01) bits a pirate is accused in 95 % of the runs or more by "
        "every strategy, in 98 % of all",
        alone | rates,
    )
    yield measured(
        "There, pirates who interleave their rows score sqrt(6 ln(N / .01)) standard "
        f"deviations more than others in the mean, within {NEAR:.0%}",
        scores,
        1 - NEAR,
        1 + NEAR,
    )
    yield measured(
        f"Innocents are accused in {SPARED:.1%} of the runs at most, where 1 % is proved",
        {"": Rate(falsely, times * len(STRATEGIES))},
        high=SPARED,
    )
    accusations = Rate(sum(m.tardos for _, m in codes), times * (len(STRATEGIES) - 1))
    yield measured(
        "Tardos's own score accuses somebody in 1 % of the runs at most, at these "
        "lengths, unless one row is copied whole",
        {"": accusations},
        high=FAILURE,
    )


def _check_traitors(traitors: Rows[Traitors, Accusations]) -> Check:
    claims = {}
    for p, m in traitors:
        for name, count in m.caught.items():
            rate = Rate(count, p.runs)
            claims[name] = Claimed(rate, *((0, 0.05) if name == "a curator" else (0.95,)))
        claims["others accused"] = Claimed(Rate(m.falsely, len(m.caught) * p.runs), high=FAILURE)
    return holds(
        "The holder of the keys is found from 95 % of decoders, exact or flipping coins, and "
        "from 5 % of curators at epsilon 1 at most",
        claims,
    )


def _means_figure(shares: Table) -> Figure:
    sizes = shares.column("attributes d")
    curves = shares.curves("who answers | attributes d | members")
    curves.append(curve("strangers", [(sizes[0], 0.01), (max(sizes), 0.01)], "bound"))
    title = f"Members found among strangers, n = {N}"
    axes = ("attributes d", "share of members above 99 % of strangers")
    return Figure("tracing", title, *axes, curves, log_x=True)


EXPERIMENT = Tracing()
