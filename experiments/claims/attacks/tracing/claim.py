"""Tracing: means that are exact enough tell who is in the table, and so do pirates' words and decoders."""

import math
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import numpy as np

from local_dp.accounting.shares import optimal_part
from local_dp.arrays import Bools, Floats
from local_dp.attacks.codes import STRATEGIES, Pirates, marked, tardos, tardos_accused, traitor_tracing
from local_dp.attacks.tracing import FAILURE, Traced, traced, tracing
from local_dp.bounds.attacks import traced_length
from local_dp.curator.account import Account
from local_dp.curator.trusted import TrustedOracle
from local_dp.draws import Draws
from local_dp.experiments.claims.attacks.tracing.signed import check_signed, measure_signed, signed_points, signed_table
from local_dp.experiments.lab.chapters import CURATOR_AND_ATTACKS, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.interaction import Nonadaptive, run
from local_dp.loss import Pure, approximate
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.population import PopulationOracle
from local_dp.oracles.statistical.oracles import ExactOracle, StatisticalQuery
from local_dp.populations.table import Rows
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
LONG = 10  # a coalition beyond which a quarter of the runs must do
TRAITORS: dict[Scale, tuple[int, int]] = {"quick": (3, 60), "full": (10, 200)}  # of how many users
BROADCASTS: dict[Scale, int] = {"quick": 3, "full": 10}
CERTAIN = 4.4  # standard errors: a right rate is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]
Answers: TypeAlias = tuple[float, ...]
Attack: TypeAlias = Nonadaptive[StatisticalQuery, float, Traced]


def _exact(attack: Attack, held: Records, seed: int) -> Answers:
    return ExactOracle(Rows(held)).answer(attack.queries)


def _curated(attack: Attack, held: Records, seed: int) -> Answers:
    """Laplace noise, epsilon 1 and delta 1 / (10 n) for all answers by optimal composition."""
    part = optimal_part(approximate(EPSILON, 1 / (10 * len(held))), len(attack.queries))
    trusted = TrustedOracle[Records](held, Account(Pure(len(attack.queries) * part.nano)), Draws(KeyedNoise(seed)))
    return run(curated_from_sq(_told(attack), part.epsilon, len(held)), trusted)


def _local(attack: Attack, held: Records, seed: int) -> Answers:
    clients = PopulationOracle(Rows(held), KeyedNoise(seed), seed, EPSILON)
    return run(one_sign_each(_told(attack), EPSILON, len(held), seed), clients)


def _told(attack: Attack) -> Nonadaptive[StatisticalQuery, float, Answers]:
    """The attack's questions, with the answers themselves as the result."""
    return Nonadaptive(attack.queries, lambda answers: answers)


MODELS: dict[str, tuple[Callable[[Attack, Records, int], Answers], bool]] = {
    "exact means": (_exact, False),
    "means rounded to 0 or 1": (_exact, True),
    "a curator": (_curated, False),
    "clients": (_local, False),
}
"""Who answers, and whether the answers are rounded."""


class Tracing(Experiment[Point, Measurement]):
    """Boneh, Shaw 1998; Tardos 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015; lecture notes, chapter 5."""

    name: ClassVar[str] = "tracing"
    chapter: ClassVar[Chapter] = CURATOR_AND_ATTACKS
    title: ClassVar[str] = "Tracing: who is in the table?"
    claim: ClassVar[str] = (
        "Whoever answers the means of many attributes well enough tells who is in the table: members stand out by sqrt(d / n) standard deviations from exact "
        "means, and, where d is large against n^2, from means that are only rounded to 0 or 1. What escapes is too inexact to be of use, be it a curator's or "
        "clients' answers at epsilon 1. Mixing rows does not help: of 6 c^2 ln(N / .01) bits, however c pirates mix them, at least one pirate is accused, and "
        "a proof for the code at hand spares all innocents with probability .99; Tardos's own score takes 100 c^2. The same tracer finds who gave a decoder "
        "the keys. And rows can be made that no accurate synthetic data hold but by copying: signed ones."
    )
    source: ClassVar[str] = "Tardos 2008; Dwork, Smith, Steinke, Ullman, Vadhan 2015; Chor, Fiat, Naor 1994; lecture notes 5.2, 5.3 and 6.3"

    def points(self, scale: Scale) -> list[Point]:
        means = [{"kind": "means", "model": model, "d": d, "tables": TABLES[scale]} for model in MODELS for d in BITS[scale]]
        codes = [{"kind": "codes", "c": c, "length": length, "runs": RUNS[scale] // (4 if c > LONG else 1)} for c in COALITIONS[scale] for length in LENGTHS]
        coalition, users = TRAITORS[scale]
        traitors = {"kind": "traitors", "c": coalition, "users": users, "runs": BROADCASTS[scale]}
        return [*means, *codes, traitors, *signed_points(scale)]

    def measure(self, point: Point, seed: int) -> Measurement:
        return MEASURES[point["kind"]](point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        means, codes, traitors, signed = ([(point, found) for point, found in measurements if point["kind"] == kind] for kind in MEASURES)
        tables = [_means_table(means), _codes_table(codes), _traitors_table(traitors), signed_table(signed)]
        figures = [_means_figure(means), _codes_figure(codes)]
        checks = [_check_exact(means), _check_rounded(means), _check_either(means), _check_strangers(means)]
        checks += [_check_caught(codes), _check_spared(codes), _check_tardos(codes), _check_traitors(traitors), check_signed(signed)]
        checks += [figure_check(figures[:1], tables[0], ends=False), figure_check(figures[1:], tables[1])]
        notes = [
            f"The strategies: {', '.join(STRATEGIES)}; each word meets the marking condition. Others may do better, and accusations stay proved.",
            "The curator's sums are kept to 0..n, so that the error of a mean is never above 1.",
        ]
        return Finding(checks, tables, figures, notes, headline=_headline(means))


def _table(n: int, d: int, seed: int, each: int) -> tuple[Floats, Bools]:
    """Shares of strangers, evenly spread, and rows of n members and n strangers."""
    generator = np.random.default_rng([seed, each])
    shares = generator.uniform(0.01, 0.99, d)
    return shares, generator.random((2 * n, d)) < shares


def _measure_means(point: Point, seed: int) -> Measurement:
    """Members and strangers who score above what 1 % of strangers do, those accused, and the largest error of the means that the tracer worked with."""
    answer, rounded = MODELS[point["model"]]
    found = {"members": 0, "strangers": 0, "accused": 0, "falsely": 0, "error": 0.0}
    for each in range(point["tables"]):
        shares, rows = _table(N, int(point["d"]), seed, each)
        attack = tracing(shares, rows, 0.5, rounded=rounded)
        answers = answer(attack, packed(rows[:N]), seed + each)
        read = (np.array(answers) + 1) / 2
        errors = np.abs(((read >= 0.5) if rounded else read) - rows[:N].mean(axis=0))
        _count(found, attack.decode(answers))
        found["error"] = max(found["error"], float(errors.max()))
    return found


def _count(found: Measurement, told: Traced) -> None:
    above, accused = told.scores > ONE_PERCENT, told.accused(FAILURE)
    for name, part in (("members", above[:N]), ("strangers", above[N:]), ("accused", accused[:N]), ("falsely", accused[N:])):
        found[name] += int(part.sum())


def _measure_codes(point: Point, seed: int) -> Measurement:
    """Of each strategy's runs: those in which a pirate is accused; and of all, those in which an innocent is, or anybody by Tardos's own score."""
    c, users = int(point["c"]), 20 * int(point["c"])
    length = math.ceil(point["length"] * traced_length(c, users, FAILURE) / max(LENGTHS))
    caught, falsely, tardos_own = dict.fromkeys(STRATEGIES, 0), 0, 0
    for number, name in enumerate(STRATEGIES):
        for each in range(point["runs"]):
            generator = np.random.default_rng([seed, number, each])
            code = tardos(users, length, 1 / (20 * c), generator)
            word = marked(code.rows[:c], STRATEGIES[name](code.rows[:c], generator))
            accused = traced(code.shares, word.astype(np.float64), code.rows).accused(FAILURE)
            caught[name] += bool(accused[:c].any())
            falsely += bool(accused[c:].any())
            tardos_own += bool(tardos_accused(code, word, c, FAILURE).any())
    return {"bits": length, "caught": caught, "falsely": falsely, "tardos": tardos_own}


def _measure_traitors(point: Point, seed: int) -> Measurement:
    """Runs in which a traitor is accused by each decoder, and an innocent."""
    c, users = int(point["c"]), int(point["users"])
    caught, falsely = dict.fromkeys(("exact means", "coin flips", "a curator"), 0), 0
    for each in range(point["runs"]):
        generator = np.random.default_rng([seed, each])
        code, keys = tardos(users, traced_length(c, users, FAILURE), 1 / (20 * c), generator), keys_of(generator, users)
        attack, held = traitor_tracing(code, keys, 0.5), keys.take(slice(0, c))
        words = {
            "exact means": _exact(attack, held, each),
            "coin flips": Pirates(held, STRATEGIES["coin flips"], generator).answer(attack.queries),
            "a curator": _curated(attack, held, seed + each),
        }
        for name, answers in words.items():
            accused = attack.decode(answers).accused(FAILURE)
            caught[name] += bool(accused[:c].any())
            falsely += bool(accused[c:].any())
    return {"caught": caught, "falsely": falsely}


MEASURES: dict[str, Callable[[Point, int], Measurement]] = {
    "means": _measure_means,
    "codes": _measure_codes,
    "traitors": _measure_traitors,
    "signed": measure_signed,
}


def _share(point: Point, found: Measurement, what: str) -> float:
    return float(found[what] / (N * point["tables"]))


def _largest(means: Measured, model: str) -> tuple[float, float]:
    """The share of members found and the largest error, where d is largest."""
    rows = [(point["d"], _share(point, found, "members"), found["error"]) for point, found in means if point["model"] == model]
    return max(rows)[1:] if rows else (math.nan, math.nan)


def _headline(means: Measured) -> str:
    d = max((int(point["d"]) for point, _ in means), default=0)
    told = ", ".join(f"{_largest(means, model)[0]:.0%} ({model})" for model in MODELS)
    return f"From {d:,} means of a table of {N} rows this share of its members is told from strangers: {told}."


def _check_exact(means: Measured) -> Check:
    rows = [(point["d"], _share(point, found, "members")) for point, found in means if point["model"] == "exact means"]
    expected = [(d, share, math.erfc((ONE_PERCENT - math.sqrt(d / N)) / math.sqrt(2)) / 2) for d, share in rows]
    return Check(
        "from exact means members are found as a score higher by sqrt(d / n) standard deviations says",
        bool(rows) and all(abs(share - normal) < 0.2 for _, share, normal in expected) and max(rows)[1] > 0.95,
        ", ".join(f"{share:.2f} for {normal:.2f} at d = {d}" for d, share, normal in expected),
    )


def _check_rounded(means: Measured) -> Check:
    rows = sorted((point["d"], _share(point, found, "members")) for point, found in means if point["model"] == "means rounded to 0 or 1")
    return Check(
        "rounded to 0 or 1, means hide members where d is small and less and less where it is large",
        len(rows) > 1 and rows[-1][1] > rows[0][1] + 0.2,
        ", ".join(f"{share:.2f} found at d = {d}" for d, share in rows),
    )


def _check_either(means: Measured) -> Check:
    """Where d is largest."""
    rows = {model: _largest(means, model) for model in MODELS}
    private = ("a curator", "clients")
    return Check(
        "where means err by less than 1/2 members are found, and a curator or clients at epsilon 1, from whom none are, err by 1 or nearly",
        all((found < 0.15 and error > 0.9) if model in private else (found > 0.25 and error <= 0.5) for model, (found, error) in rows.items()),
        ", ".join(f"{model}: {found:.2f} found, error {error:.2g}" for model, (found, error) in rows.items()),
    )


def _check_strangers(means: Measured) -> Check:
    trials = sum(N * point["tables"] for point, _ in means)
    above, falsely = (sum(found[what] for _, found in means) for what in ("strangers", "falsely"))
    low, high = wilson(above, max(trials, 1), CERTAIN)
    return Check(
        "one stranger in a hundred scores as much, and hardly one is accused",
        trials > 0 and low <= 0.015 and high >= 0.01 and falsely <= 0.01 * trials,
        f"{above} of {trials} above, {falsely} accused",
    )


def _worst(found: Measurement) -> int:
    return int(min(found["caught"].values()))


def _check_caught(codes: Measured) -> Check:
    full = [(point, found) for point, found in codes if point["length"] == max(LENGTHS)]
    return Check(
        "of 6 c^2 ln(N / .01) bits a pirate is accused in .9 of the runs or more, whatever the strategy",
        bool(full) and all(wilson(_worst(found), point["runs"], CERTAIN)[1] > 0.9 and _worst(found) >= 0.7 * point["runs"] for point, found in full),
        ", ".join(f"{_worst(found)} of {point['runs']} for c = {point['c']}" for point, found in full),
    )


def _check_spared(codes: Measured) -> Check:
    trials, falsely = sum(len(STRATEGIES) * point["runs"] for point, _ in codes), sum(found["falsely"] for _, found in codes)
    return Check(
        "innocents are accused in .01 of the runs at most, at every length",
        trials > 0 and wilson(falsely, trials, CERTAIN)[0] <= FAILURE,
        f"{falsely} of {trials} runs",
    )


def _check_tardos(codes: Measured) -> Check:
    trials, own = sum(len(STRATEGIES) * point["runs"] for point, _ in codes), sum(found["tardos"] for _, found in codes)
    return Check("Tardos's own score seldom accuses anybody at these lengths", trials > 0 and own < 0.1 * trials, f"somebody in {own} of {trials} runs")


def _check_traitors(traitors: Measured) -> Check:
    rows = [(point["runs"], found["caught"], found["falsely"]) for point, found in traitors]
    return Check(
        "who holds the keys is found from the decoder, exact or flipping coins, and from a curator at epsilon 1 is not",
        bool(rows)
        and all(
            min(caught["exact means"], caught["coin flips"]) > runs / 2 > caught["a curator"] and wilson(false, 3 * runs, CERTAIN)[0] <= FAILURE
            for runs, caught, false in rows
        ),
        ", ".join(f"{name} {count} of {runs}" for runs, caught, _ in rows for name, count in caught.items()),
    )


def _means_table(means: Measured) -> Table:
    rows = [(point["model"], point["d"], _share(point, found, "members"), _share(point, found, "strangers"), found["error"]) for point, found in means]
    return Table(f"who is found among {N} members and {N} strangers", ("who answers", "attributes d", "members", "strangers", "largest error"), rows)


def _codes_rows(codes: Measured) -> list[tuple[str, int, int, float, float, float]]:
    return [
        (f"c = {point['c']}", point["length"], found["bits"], _worst(found) / point["runs"], *wilson(_worst(found), point["runs"])) for point, found in codes
    ]


def _codes_table(codes: Measured) -> Table:
    columns = ("pirates", "length / (c^2 ln(N / .01))", "bits", "caught, worst of eight strategies", "from", "to")
    return Table("runs in which a pirate is accused, of 20 c users [95 %]", columns, _codes_rows(codes))


def _traitors_table(traitors: Measured) -> Table:
    rows = [(name, point["c"], point["users"], count, point["runs"]) for point, found in traitors for name, count in found["caught"].items()]
    return Table("traitor tracing", ("decoder", "traitors", "of users", "caught in", "of runs"), rows)


def _means_figure(means: Measured) -> Figure:
    curves = []
    for model in dict.fromkeys(point["model"] for point, _ in means):
        drawn = sorted((point["d"], _share(point, found, "members")) for point, found in means if point["model"] == model)
        curves.append(Curve(model, [d for d, _ in drawn], [share for _, share in drawn]))
    chance = Curve("strangers", [point["d"] for point, _ in means[:1]] + [max((point["d"] for point, _ in means), default=1)], [0.01, 0.01], style="bound")
    return Figure(
        "tracing", f"Members found among strangers, n = {N}", "attributes d", "share of members above 99 % of strangers", [*curves, chance], log_x=True
    )


def _codes_figure(codes: Measured) -> Figure:
    rows = _codes_rows(codes)
    curves = []
    for name in dict.fromkeys(row[0] for row in rows):
        drawn = [row for row in rows if row[0] == name]
        x, worst, low, high = [float(row[1]) for row in drawn], [row[3] for row in drawn], [row[4] for row in drawn], [row[5] for row in drawn]
        curves.append(Curve(name, x, worst, low=low, high=high))
    return Figure("tracing-codes", "Pirates accused, worst of eight strategies", "length / (c^2 ln(N / .01))", "share of runs", curves)


EXPERIMENT = Tracing()
