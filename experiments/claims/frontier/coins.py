"""How many people it takes to distinguish a law from the uniform one: with coins that everybody sees, and with coins of one's own."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds import interaction
from local_dp.bounds.interaction import ROWS, half_stretch
from local_dp.bounds.response import response_gain
from local_dp.cube import walsh_hadamard
from local_dp.experiments.lab.chapters import FRONTIER
from local_dp.experiments.lab.checks import every
from local_dp.experiments.lab.claim import Check, Experiment, Figure, Finding, Scale, Table, curve
from local_dp.experiments.lab.findings import Rows
from local_dp.protocols.surveys.identity import row_statistic

EPSILON, ALPHA = 1.0, 0.25
BETA, MEAN = 0.05, 0.1  # both errors at the threshold of `identity`; the mean of both at the best threshold of the run
HALVES = {"10 shared halves": 10, "40 shared halves": 40}  # groups, each with one public random half of the symbols
TEN, _ = HALVES
PUBLIC, PRIVATE, FIXED = f"{ROWS} shared rows", "own rows", "rows known beforehand"
FACTORS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.15, 1.35, 2.0)  # of the predicted number of clients
SIZES: dict[Scale, tuple[int, ...]] = {"quick": (16, 64, 256, 1024, 2048), "full": (16, 64, 256, 1024, 2048, 4096)}
TRIALS: dict[Scale, int] = {"quick": 6000, "full": 20_000}
OWN_CELLS: dict[Scale, int] = {"quick": 2 << 20, "full": 12 << 20}  # with own rows, the largest number of trials times symbols
KNOWN: dict[str, dict[int, float]] = {  # people for each number of symbols, as measured by a prototype on 2026-11-22
    TEN: {16: 6_160, 64: 27_700, 256: 119_500, 1024: 472_700},
    PRIVATE: {16: 6_180, 64: 42_500, 256: 308_600, 1024: 2.24e6},
}
CERTAIN = 4.5  # standard errors of a share of trials: wrong less than once in a hundred thousand
Counts = dict[str, dict[int, float]]  # people by design and k


@dataclass(frozen=True)
class Errors:
    """False alarms and misses at the stated threshold, and the least mean of both at any threshold, for each number of clients."""

    clients: list[int]
    predicted: int
    alarms: list[float]
    misses: list[float]
    least: list[float]


@dataclass(frozen=True)
class Test:
    """A test of uniformity over k symbols, at several numbers of clients."""

    design: str
    k: int
    trials: int

    @property
    def predicted(self) -> int:
        """The closed form: with halves for a mean error of .1, else for both errors of .05."""
        if self.design in HALVES:
            return interaction.shared_half_clients(EPSILON, self.k, ALPHA, MEAN, HALVES[self.design])
        return (interaction.private_coin_clients if self.design == PRIVATE else interaction.public_coin_clients)(EPSILON, self.k, ALPHA, BETA)

    def threshold(self, clients: int) -> float:
        """Above it the uniform law is rejected: with halves half of the shift by a law alpha away, else the .05 tail of the uniform law."""
        if self.design in HALVES:
            return interaction.half_threshold(half_stretch(EPSILON, self.k, ALPHA, clients, HALVES[self.design]), HALVES[self.design])
        return interaction.chi_square_quantile(BETA, self.k - 1 if self.design == PRIVATE else ROWS)

    def formula(self, clients: int) -> tuple[float, float]:
        """False alarms and misses at the stated threshold, by the formula."""
        if self.design in HALVES:
            stretch = half_stretch(EPSILON, self.k, ALPHA, clients, HALVES[self.design])
            return interaction.half_errors(stretch, HALVES[self.design], self.threshold(clients))
        return BETA, 1 - BETA if self.design == FIXED else BETA

    def measure(self, seed: int) -> Errors:
        generator = np.random.default_rng(seed)
        clients, alarms, misses, least = [round(factor * self.predicted) for factor in FACTORS], [], [], []
        for n in clients:
            means, expected = moments(self.design, self.k, self.trials, generator)
            uniform, away = (statistics(each, expected, n, generator) for each in (expected, means))
            limit = self.threshold(n)
            alarms.append(float((uniform > limit).mean()))
            misses.append(float((away <= limit).mean()))
            least.append(least_error(uniform, away))
        return Errors(clients, self.predicted, alarms, misses, least)


def moments(design: str, k: int, trials: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
    """The mean sign of each row under a law alpha away and under the uniform one, for each trial: shape (trials, rows).

    Halves: the count of the more frequent symbols in each is hypergeometric. Random rows: the sums of a row over the more frequent symbols, and over
    the others, are two binomials. Own rows, Sylvester's without the first: a transform of a random half. Rows known beforehand: an adversary makes a half
    more frequent that all of them split evenly.
    """
    half = k // 2
    if design in HALVES:
        inside = generator.hypergeometric(half, half, half, size=(trials, HALVES[design]))
        return 4 * ALPHA * (2 * inside - half) / k, np.zeros(inside.shape)
    if design == PUBLIC:
        signs = 2.0 * generator.binomial(half, 0.5, size=(2, trials, ROWS)) - half
        expected = signs.sum(axis=0) / k
        return expected + 2 * ALPHA * (signs[0] - signs[1]) / k, expected
    if design == FIXED:
        return np.zeros((trials, ROWS)), np.zeros((trials, ROWS))
    law = np.tile(np.repeat([1.0, -1.0], half), (trials, 1))
    moved: Floats = walsh_hadamard(generator.permuted(law, axis=1).T).T[:, 1:]
    return 2 * ALPHA * moved / k, np.zeros(moved.shape)


def statistics(means: Floats, expected: Floats, clients: int, generator: np.random.Generator) -> Floats:
    """The test's statistic in each trial: the reports of each row are binomial."""
    gain, size = response_gain(EPSILON), max(1, clients // means.shape[1])
    plus = generator.binomial(size, (1 + means / gain) / 2)
    return row_statistic(2.0 * plus - size, np.full(means.shape, float(size)), expected, gain)


def least_error(uniform: Floats, away: Floats) -> float:
    """The mean of both errors at the best threshold of the run."""
    both = np.concatenate([uniform, away])
    order = np.argsort(both, kind="stable")
    rejected = np.concatenate([np.zeros(len(uniform)), np.ones(len(away))])[order]
    wrong = len(uniform) + np.concatenate([[0.0], np.cumsum(2 * rejected - 1)])  # uniform sums above the threshold and others below it
    return float(wrong.min() / len(both))


class Coins(Experiment[Test, Errors]):
    name = "coins"
    chapter = FRONTIER
    title = "Sharing a coin saves sqrt(k)"
    claim = (
        "Without any interaction, a coin that everybody sees saves people. To test whether k symbols are equally frequent takes of the order of "
        "k C^2 / alpha^2 people if a few random halves of the symbols are shared, and k^1.5 C^2 / alpha^2 if everybody draws a row alone. The shared part "
        "must be random: rows that are known beforehand miss some law for ever."
    )
    source = "Acharya, Canonne, Freitag, Tyagi 2019 (limits 12.5)"

    def points(self, scale: Scale) -> list[Test]:
        trials = TRIALS[scale]
        return [
            Test(design, k, min(trials, OWN_CELLS[scale] // k) if design == PRIVATE else trials)
            for design in (*HALVES, PUBLIC, PRIVATE, FIXED)
            for k in SIZES[scale]
        ]

    def conclude(self, measurements: Rows[Test, Errors], scale: Scale) -> Finding:
        least: Counts = {design: {} for design in (*HALVES, PUBLIC, PRIVATE)}
        tested: Counts = {design: {} for design in (PUBLIC, PRIVATE)}
        for p, m in measurements:
            for counts, errors, level in ((least, m.least, MEAN), (tested, m.misses, BETA)):
                if p.design in counts:
                    counts[p.design][p.k] = needed(m.clients, errors, level)
        formula = {(p.design, p.k): m.predicted for p, m in measurements}
        known = {(design, k): least[design].get(k, math.nan) / count for design, counts in KNOWN.items() for k, count in counts.items()}
        alarms = {(p.design, p.k): (max(m.alarms), p.trials) for p, m in measurements if p.design not in HALVES}
        gains = {k: count / least[TEN].get(k, math.nan) for k, count in least[PRIVATE].items()}
        missed = [1 - min(m.misses) for p, m in measurements if p.design == FIXED]
        checks = [
            _check_slope("with a shared coin", 1.0, *(least[design] for design in HALVES), tested[PUBLIC]),
            _check_slope("with rows drawn alone", 1.5, least[PRIVATE], tested[PRIVATE]),
            Check(
                "the more symbols, the more a shared coin saves, and more than four times at the most",
                bool(gains) and list(gains.values()) == sorted(gains.values()) and gains[max(gains)] > 4,
                ", ".join(f"k = {k}: {gain:.2f}" for k, gain in gains.items()),
            ),
            _check_formula("the chi-square formula gives the need for shared halves, within a tenth", 0.1, _shares(least, formula, HALVES)),
            _check_formula("the closed forms of `identity` give its need, within a sixth", 1 / 6, _shares(tested, formula, tested)),
            Check(
                "10 groups and rows drawn alone need at most a tenth more people than a prototype of each did",
                all(ratio <= 1.1 for ratio in known.values()),
                _listed(known, ".2f"),
            ),
            _check_half_way(measurements),
            Check(
                f"the threshold of `identity` rejects the uniform law in at most {BETA:.0%} of the runs, within chance",
                bool(alarms) and all(share - CERTAIN * math.sqrt(BETA * (1 - BETA) / trials) <= BETA + 0.01 for share, trials in alarms.values()),
                _listed({place: share for place, (share, _) in alarms.items()}, ".3f"),
            ),
            Check(
                "rows known beforehand miss a law that was made for them, with any number of people",
                bool(missed) and max(missed) < 0.2,
                ", ".join(f"found in {rate:.1%}" for rate in missed),
            ),
        ]
        notes = [
            f"Epsilon {EPSILON:g}, total variation {ALPHA:g}. The law away from uniform is the hardest: half of the symbols are more frequent, half less; "
            "which half is random. The sums of reports are drawn from their binomial laws.",
            f"People for a mean of both errors of {MEAN:g} at the best threshold of the run. For `local-dp run identity`, which has {ROWS} shared rows or own "
            f"ones, also for both errors of {BETA:g} at its threshold. With halves the formula's threshold is half of the shift by the law away.",
            "The source proves that no test with private coins does better than k^1.5; the curve is that of the best known one.",
        ]
        tables = [_people(least, tested, formula), _errors(measurements)]
        return Finding(checks, tables, [_figure(least, tested, formula)], notes, headline=_headline(least))


def needed(clients: list[int], errors: list[float], level: float) -> float:
    """The clients at which the error falls through `level`: by a parabola through errors from a fourth to four times as much; NaN if it does not."""
    people, shares = np.array(clients), np.array(errors)
    near = (shares > level / 4) & (shares < 4 * level)
    if not shares[-1] < level < shares[0] or near.sum() < 3:
        return math.nan
    return math.exp(np.polyval(np.polyfit(np.log(shares[near]), np.log(people[near]), 2), math.log(level)))


def unit(k: int) -> float:
    """C^2 k / alpha^2."""
    return response_gain(EPSILON) ** 2 * k / ALPHA**2


def _slope(by_k: dict[int, float]) -> float:
    if len(by_k) < 2 or any(math.isnan(count) for count in by_k.values()):
        return math.nan
    return float(np.polyfit(np.log(list(by_k)), np.log(list(by_k.values())), 1)[0])


def _check_slope(who: str, power: float, *counts: dict[int, float]) -> Check:
    slopes = [_slope(by_k) for by_k in counts]
    powers = ", ".join(f"{slope:.3f}" for slope in slopes)
    statement = f"{who} the number of people grows as k^{power:g}, within a tenth in the power"
    return Check(statement, all(abs(slope - power) < 0.1 for slope in slopes), f"powers {powers}; the last at the threshold of `identity`")


def _shares(counts: Counts, formula: dict[tuple[str, int], int], designs: Iterable[str]) -> dict[tuple[str, int], float]:
    return {(design, k): count / formula[design, k] for design in designs for k, count in counts[design].items()}


def _listed(shares: dict[tuple[str, int], float], digits: str) -> str:
    """The shares of each design, in the order of k."""
    designs = dict.fromkeys(design for design, _ in shares)
    return "; ".join(f"{each}: " + ", ".join(f"{share:{digits}}" for (design, _), share in shares.items() if design == each) for each in designs)


def _check_formula(statement: str, within: float, shares: dict[tuple[str, int], float]) -> Check:
    return Check(statement, bool(shares) and all(abs(share - 1) <= within for share in shares.values()), _listed(shares, ".2f"))


def _check_half_way(measurements: Rows[Test, Errors]) -> Check:
    cases = []
    for p, m in measurements:
        if p.design in HALVES:
            errors = zip((e for pair in zip(m.alarms, m.misses, strict=True) for e in pair), (e for n in m.clients for e in p.formula(n)), strict=True)
            off = [(abs(error - predicted), CERTAIN * math.sqrt(predicted * (1 - predicted) / p.trials)) for error, predicted in errors]
            cases.append((all(gap <= 0.02 + chance for gap, chance in off), f"{p.design}, k = {p.k}: {max(off)[0]:.3f} away at most"))
    statement = "the threshold half way between both laws of the halves errs as the formula predicts, within .02 and chance, with any number of people"
    return every(statement, cases)


def _headline(least: Counts) -> str:
    k = max(least[TEN].keys() & least[PRIVATE].keys(), default=0)
    if not k or math.isnan(least[TEN][k] + least[PRIVATE][k]):
        return "No number of people was found that is enough both with a shared coin and without."
    return f"At k = {k:,}: {least[TEN][k]:,.0f} people with halves that 10 groups share, {least[PRIVATE][k]:,.0f} with rows drawn alone."


def _people(least: Counts, tested: Counts, formula: dict[tuple[str, int], int]) -> Table:
    def whole(count: float) -> int | str:
        return "" if math.isnan(count) else round(count)

    rows: list[tuple[object, ...]] = []
    for design, by_k in least.items():
        for k, count in by_k.items():
            rest = (formula[design, k], "", "") if design in HALVES else ("", whole(tested.get(design, {}).get(k, math.nan)), formula[design, k])
            rows.append((design, k, whole(count), round(count / unit(k), 2), *rest))
    error = f"mean error {MEAN:g}"
    columns = ("design", "symbols k", f"people, {error}", "in C^2 k / alpha^2", f"formula, {error}", f"people, both errors {BETA:g}", "formula, both errors")
    return Table("People needed", columns, rows)


def _errors(measurements: Rows[Test, Errors]) -> Table:
    at = FACTORS.index(1.0)
    rows = [(p.design, p.k, m.predicted, m.alarms[at], m.misses[at], *(round(e, 3) for e in p.formula(m.predicted))) for p, m in measurements]
    columns = ("design", "symbols k", "people", "false alarms", "misses", "formula", "formula, misses")
    return Table("Errors at the stated threshold, with as many people as the formula gives", columns, rows)


def _figure(least: Counts, tested: Counts, formula: dict[tuple[str, int], int]) -> Figure:
    curves = []
    for counts, error in ((least, f"mean error {MEAN:g}"), (tested, f"both errors {BETA:g}")):
        for design in (*HALVES, PRIVATE) if counts is least else tested:
            drawn, name = [(k, count / unit(k)) for k, count in counts[design].items() if not math.isnan(count)], f"{design}, {error}"
            curves.append(curve(name, drawn, group=name))
            if counts is tested or design in HALVES:
                curves.append(curve(f"{design}, formula", ((k, formula[design, k] / unit(k)) for k, _ in drawn), "theory", group=name))
    return Figure("coins", "People to distinguish a law from the uniform one", "symbols k", "people / (C^2 k / alpha^2)", curves, log_x=True, log_y=True)


EXPERIMENT = Coins()
