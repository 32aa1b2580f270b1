"""Tracing: means that are exact enough reveal who is in the table, and so do pirates' words and decoders."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from local_dp.accounting.rules import optimal_part
from local_dp.arrays import Bools
from local_dp.attacks.tracing import FAILURE, STRATEGIES, Pirates, Traced, marked, tardos, tardos_accused, traced, tracing, traitor_tracing
from local_dp.bounds.attacks import traced_length
from local_dp.curator.account import Account, TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.claims.attacks.tracing.signed import Signed, Verified, check_signed, signed_points, signed_table
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS
from local_dp.experiments.lab.checks import every
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve, of_kind
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.findings import CERTAIN, Rows, curves
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations import table as population
from local_dp.queries.encoded import packed
from local_dp.queries.subsets import keys_of
from local_dp.records import Records
from local_dp.theorems.curated import curated_from_sq
from local_dp.theorems.local_from_sq import one_sign_each

N, EPSILON = 25, 1.0  # members, and as many strangers beside them
ONE_PERCENT = 2.3263  # the score that a stranger exceeds with probability .01, in the normal limit
BITS: dict[Scale, tuple[int, ...]] = {"quick": (100, 400, 1225), "full": (100, 625, 2500, 10_000)}
TABLES: dict[Scale, int] = {"quick": 4, "full": 10}
COALITIONS: dict[Scale, tuple[int, ...]] = {"quick": (3, 5), "full": (3, 5, 10, 20)}
LENGTHS = (1, 2, 3, 4, 6)  # in units of c^2 ln(N / .01)
RUNS: dict[Scale, int] = {"quick": 10, "full": 20}
LONG = 10  # larger coalitions get a quarter of the runs
TRAITORS: dict[Scale, tuple[int, int]] = {"quick": (3, 60), "full": (10, 200)}  # of how many users
BROADCASTS: dict[Scale, int] = {"quick": 3, "full": 10}
Answers: TypeAlias = tuple[float, ...]
Attack: TypeAlias = Nonadaptive[StatisticalQuery, float, Traced]


def _exact(attack: Attack, rows: Records, seed: int) -> Answers:
    return ExactOracle(population.Rows(rows)).answer(attack.queries)


def _curated(attack: Attack, rows: Records, seed: int) -> Answers:
    """Laplace noise, epsilon 1 and delta 1 / (10 n) for all answers by optimal composition."""
    part = optimal_part(approximate(EPSILON, 1 / (10 * len(rows))), len(attack.queries))
    trusted = TrustedOracle[Records](rows, Account(Pure(len(attack.queries) * part.nano)), Draws(KeyedNoise(seed)))
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
    "a curator": (_curated, False),
    "clients": (_local, False),
}
"""Who answers, and whether the answers are rounded."""


def _caught(accused: Bools, c: int) -> tuple[bool, bool]:
    """Whether one of the first c is accused, and one of the others."""
    return bool(accused[:c].any()), bool(accused[c:].any())


@dataclass(frozen=True)
class Traces:
    members: float  # the share of members who score above 99 % of strangers
    strangers: float  # and of strangers
    accused: int  # strangers accused
    error: float  # the largest error of the means


@dataclass(frozen=True)
class Means:
    """Members traced from d means of several tables."""

    model: str
    d: int
    tables: int

    def measure(self, seed: int) -> Traces:
        answer, rounded = MODELS[self.model]
        members, strangers, accused, error = 0, 0, 0, 0.0
        for each in range(self.tables):
            generator = np.random.default_rng([seed, each])
            shares = generator.uniform(0.01, 0.99, self.d)
            rows = generator.random((2 * N, self.d)) < shares  # members, then strangers
            attack = tracing(shares, rows, 0.5, rounded=rounded)
            answers = answer(attack, packed(rows[:N]), seed + each)
            read, traces = (np.array(answers) + 1) / 2, attack.decode(answers)
            above = traces.scores > ONE_PERCENT
            members, strangers = members + int(above[:N].sum()), strangers + int(above[N:].sum())
            accused += int(traces.accused(FAILURE)[N:].sum())
            error = max(error, float(np.abs(((read >= 0.5) if rounded else read) - rows[:N].mean(axis=0)).max()))
        return Traces(members / (N * self.tables), strangers / (N * self.tables), accused, error)


@dataclass(frozen=True)
class Accusations:
    caught: dict[str, int]  # by strategy or decoder: runs in which a pirate or traitor is accused
    falsely: int  # runs in which an innocent is
    bits: int = 0  # of the code
    tardos: int = 0  # runs in which Tardos's own score accuses anybody

    @property
    def worst(self) -> int:
        return min(self.caught.values())


@dataclass(frozen=True)
class Codes:
    """Words of c pirates by every strategy, from a code of `length` c^2 ln(N / .01) bits."""

    c: int
    length: int
    runs: int

    def measure(self, seed: int) -> Accusations:
        c, users = self.c, 20 * self.c
        length = math.ceil(self.length * traced_length(c, users, FAILURE) / max(LENGTHS))
        caught, falsely, tardos_own = dict.fromkeys(STRATEGIES, 0), 0, 0
        for number, name in enumerate(STRATEGIES):
            for each in range(self.runs):
                generator = np.random.default_rng([seed, number, each])
                code = tardos(users, length, 1 / (20 * c), generator)
                word = marked(code.rows[:c], STRATEGIES[name](code.rows[:c], generator))
                pirate, innocent = _caught(traced(code.shares, word.astype(np.float64), code.rows).accused(FAILURE), c)
                caught[name], falsely = caught[name] + pirate, falsely + innocent
                tardos_own += bool(tardos_accused(code, word, c, FAILURE).any())
        return Accusations(caught, falsely, length, tardos_own)

    @property
    def name(self) -> str:
        return f"c = {self.c}"


@dataclass(frozen=True)
class Traitors:
    """Decoders built from the keys of c of the users."""

    c: int
    users: int
    runs: int

    def measure(self, seed: int) -> Accusations:
        c, users = self.c, self.users
        caught, falsely = dict.fromkeys(("exact means", "coin flips", "a curator"), 0), 0
        for each in range(self.runs):
            generator = np.random.default_rng([seed, each])
            code, keys = tardos(users, traced_length(c, users, FAILURE), 1 / (20 * c), generator), keys_of(generator, users)
            attack, rows = traitor_tracing(code, keys, 0.5), keys.take(slice(0, c))
            words = {
                "exact means": _exact(attack, rows, each),
                "coin flips": Pirates(rows, STRATEGIES["coin flips"], generator).answer(attack.queries),
                "a curator": _curated(attack, rows, seed + each),
            }
            for name, answers in words.items():
                traitor, innocent = _caught(attack.decode(answers).accused(FAILURE), c)
                caught[name], falsely = caught[name] + traitor, falsely + innocent
        return Accusations(caught, falsely)


Point: TypeAlias = Means | Codes | Traitors | Signed
Measurement: TypeAlias = Traces | Accusations | Verified


class Tracing(Experiment[Point, Measurement]):
    name = "tracing"
    chapter = CURATOR_AND_ATTACKS
    title = "Tracing: who is in the table?"
    claim = (
        "Accurate means of many attributes reveal who is in the table. Members stand out by sqrt(d / n) standard deviations from exact means and, where d is "
        "large against n^2, even from means rounded to 0 or 1. A curator's or clients' answers at epsilon 1 escape, but are too inexact to be of use. Mixing "
        "rows does not help: of 6 c^2 ln(N / .01) bits, however c pirates mix them, at least one pirate is accused. A proof for the code at hand spares all "
        "innocents with probability .99; Tardos's own score takes 100 c^2. The same tracer finds who gave a decoder the keys. Some rows appear in accurate "
        "synthetic data only if they are copied: signed ones."
    )
    source = "Tardos 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015; Chor, Fiat, Naor 1994; lecture notes 5.2, 5.3 and 6.3"

    def points(self, scale: Scale) -> list[Point]:
        return [
            *(Means(model, d, TABLES[scale]) for model in MODELS for d in BITS[scale]),
            *(Codes(c, length, RUNS[scale] // (4 if c > LONG else 1)) for c in COALITIONS[scale] for length in LENGTHS),
            Traitors(*TRAITORS[scale], BROADCASTS[scale]),
            *signed_points(scale),
        ]

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        means, codes = of_kind(measurements, Means), of_kind(measurements, Codes)
        traitors, signed = of_kind(measurements, Traitors), of_kind(measurements, Signed)
        rows = [(p.name, p.length, m.worst / p.runs, *wilson(m.worst, p.runs), m.bits) for p, m in codes]
        tables = [_means_table(means), _codes_table(rows), _traitors_table(traitors), signed_table(signed)]
        figures = [
            _means_figure(means),
            Figure("tracing-codes", "Pirates accused, worst of eight strategies", "length / (c^2 ln(N / .01))", "share of runs", curves(r[:5] for r in rows)),
        ]
        trials, traced_runs = sum(N * p.tables for p, _ in means), sum(len(STRATEGIES) * p.runs for p, _ in codes)
        own, falsely = sum(m.tardos for _, m in codes), sum(m.falsely for _, m in codes)
        checks = [
            _check_exact(means),
            _check_rounded(means),
            _check_either(means),
            _check_strangers(means, trials),
            _check_caught(codes),
            Check(
                "innocents are accused in .01 of the runs at most, at every length",
                traced_runs > 0 and wilson(falsely, traced_runs, CERTAIN)[0] <= FAILURE,
                f"{falsely} of {traced_runs} runs",
            ),
            Check(
                "Tardos's own score seldom accuses anybody at these lengths",
                traced_runs > 0 and own < 0.1 * traced_runs,
                f"somebody in {own} of {traced_runs} runs",
            ),
            _check_traitors(traitors),
            check_signed(signed),
            figure_check(figures[:1], tables[0], ends=False),
            figure_check(figures[1:], tables[1]),
        ]
        notes = [
            f"The strategies: {', '.join(STRATEGIES)}; each word meets the marking condition. Others may do better, and accusations stay proved.",
            "The curator's sums are kept to 0..n, so that the error of a mean is never above 1.",
        ]
        return Finding(checks, tables, figures, notes, headline=_headline(means))


def _largest(means: Rows[Means, Traces], model: str) -> tuple[float, float]:
    """The share of members found and the largest error, where d is largest."""
    return max(((p.d, m.members, m.error) for p, m in means if p.model == model), default=(0, math.nan, math.nan))[1:]


def _headline(means: Rows[Means, Traces]) -> str:
    d = max((p.d for p, _ in means), default=0)
    shares = ", ".join(f"{_largest(means, model)[0]:.0%} ({model})" for model in MODELS)
    return f"From {d:,} means of a table of {N} rows this share of its members is traced: {shares}."


def _check_exact(means: Rows[Means, Traces]) -> Check:
    expected = [(p.d, m.members, math.erfc((ONE_PERCENT - math.sqrt(p.d / N)) / math.sqrt(2)) / 2) for p, m in means if p.model == "exact means"]
    return every(
        "from exact means members are found as a score higher by sqrt(d / n) standard deviations predicts",
        ((abs(share - normal) < 0.2, f"{share:.2f} for {normal:.2f} at d = {d}") for d, share, normal in expected),
        also=max(expected, default=(0, 0.0, 0.0))[1] > 0.95,
    )


def _check_rounded(means: Rows[Means, Traces]) -> Check:
    rows = sorted((p.d, m.members) for p, m in means if p.model == "means rounded to 0 or 1")
    return Check(
        "rounded to 0 or 1, means hide members where d is small and less and less where it is large",
        len(rows) > 1 and rows[-1][1] > rows[0][1] + 0.2,
        ", ".join(f"{share:.2f} found at d = {d}" for d, share in rows),
    )


def _check_either(means: Rows[Means, Traces]) -> Check:
    """Where d is largest."""
    cases = []
    for model in MODELS:
        share, error = _largest(means, model)
        holds = share < 0.15 and error > 0.9 if model in ("a curator", "clients") else share > 0.25 and error <= 0.5
        cases.append((holds, f"{model}: {share:.2f} found, error {error:.2g}"))
    return every("where means err by less than 1/2 members are found; a curator or clients at epsilon 1, from whom none are, err by 1 or nearly", cases)


def _check_strangers(means: Rows[Means, Traces], trials: int) -> Check:
    above, accused = sum(round(m.strangers * N * p.tables) for p, m in means), sum(m.accused for _, m in means)
    low, high = wilson(above, max(trials, 1), CERTAIN)
    return Check(
        "one stranger in a hundred scores as much, and hardly one is accused",
        trials > 0 and low <= 0.015 and high >= 0.01 and accused <= 0.01 * trials,
        f"{above} of {trials} above, {accused} accused",
    )


def _check_caught(codes: Rows[Codes, Accusations]) -> Check:
    full = [(p, m.worst, wilson(m.worst, p.runs, CERTAIN)[1]) for p, m in codes if p.length == max(LENGTHS)]
    return every(
        "of 6 c^2 ln(N / .01) bits a pirate is accused in .9 of the runs or more, whatever the strategy",
        ((high > 0.9 and worst >= 0.7 * p.runs, f"{worst} of {p.runs} for c = {p.c}") for p, worst, high in full),
    )


def _check_traitors(traitors: Rows[Traitors, Accusations]) -> Check:
    cases = []
    for p, m in traitors:
        caught = min(m.caught["exact means"], m.caught["coin flips"]) > p.runs / 2 > m.caught["a curator"]
        text = ", ".join(f"{name} {count} of {p.runs}" for name, count in m.caught.items())
        cases.append((caught and wilson(m.falsely, 3 * p.runs, CERTAIN)[0] <= FAILURE, text))
    return every("the holder of the keys is found from the decoder, exact or flipping coins, and from a curator at epsilon 1 is not", cases)


def _means_table(means: Rows[Means, Traces]) -> Table:
    rows = [(p.model, p.d, m.members, m.strangers, m.error) for p, m in means]
    return Table(f"share found among {N} members and {N} strangers", ("who answers", "attributes d", "members", "strangers", "largest error"), rows)


def _codes_table(rows: list[tuple[str, int, float, float, float, int]]) -> Table:
    columns = ("pirates", "length / (c^2 ln(N / .01))", "bits", "caught, worst of eight strategies", "from", "to")
    return Table("runs in which a pirate is accused, of 20 c users [95 %]", columns, [(*row[:2], row[5], *row[2:5]) for row in rows])


def _traitors_table(traitors: Rows[Traitors, Accusations]) -> Table:
    rows = [(name, p.c, p.users, count, p.runs) for p, m in traitors for name, count in m.caught.items()]
    return Table("traitor tracing", ("decoder", "traitors", "of users", "caught in", "of runs"), rows)


def _means_figure(means: Rows[Means, Traces]) -> Figure:
    ends = [p.d for p, _ in means[:1]] + [max((p.d for p, _ in means), default=1)]
    chance = curve("strangers", ((d, 0.01) for d in ends), "bound")
    title, axis = f"Members found among strangers, n = {N}", "share of members above 99 % of strangers"
    return Figure("tracing", title, "attributes d", axis, [*curves((p.model, p.d, m.members) for p, m in means), chance], log_x=True)


EXPERIMENT = Tracing()
