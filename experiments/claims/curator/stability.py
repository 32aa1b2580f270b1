"""Stable choice: what one delta buys, why the printed test loses more than it says, and what the best test saves."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import ClassVar

import numpy as np

from local_dp.curator.laws import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.stable import UNIT, Lead, StableChoice, laplace_acceptance, printed_acceptance
from local_dp.draws import Draws
from local_dp.experiments.lab.chapters import PURE_AND_APPROXIMATE, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.figure_text import figure_check
from local_dp.experiments.lab.intervals import wilson
from local_dp.loss import ATTO, Approximate, Pure, approximate, nano_epsilon
from local_dp.noise import KeyedNoise

LOSSES = ((0.5, 1e-2), (1.0, 1e-3), (1.0, 1e-6), (0.1, 1e-3))
TIMES = (0.5, 1.0, 1.5, 2.0, 2.5)  # at which multiples of epsilon delta is told
FORMS = {"printed": "as printed, Lap(1/eps)", "repaired": "repaired, Lap(2/eps)", "best": "best"}
SHARE, SUCCESS = 0.1, 0.9  # of a point that is to be told, and how often
RUNS: dict[Scale, int] = {"quick": 1000, "full": 20_000}
MOST: dict[Scale, int] = {"quick": 24, "full": 60}  # records of the databases that are enumerated
CERTAIN = 4.4  # standard errors: a right rate is called wrong once in 100,000
Measured = list[tuple[Point, Measurement]]


def lead_of(points: Multiset) -> Lead[int]:
    """The most frequent of the points 0, 1, 2, the lowest of those that tie."""
    counts = np.zeros(3, dtype=np.int64)
    counts[points.values.astype(np.int64)] = points.counts
    best = int(np.argmax(counts))
    return Lead(best, int(counts[best] - np.delete(counts, best).max()))


def acceptance(form: str, loss: Approximate) -> Callable[[int], float]:
    """Pr[an answer | the gap] by the test of this form."""
    choice = StableChoice(lead_of, loss.epsilon, loss.delta)
    forms: dict[str, Callable[[int], float]] = {
        "printed": lambda gap: printed_acceptance(gap, loss),
        "repaired": lambda gap: laplace_acceptance(gap, loss),
        "best": lambda gap: choice.answered(gap) / UNIT,
    }
    return forms[form]


class Stability(Experiment[Point, Measurement]):
    """Beimel, Nissim, Stemmer 2013, Section 2.5.3, repaired."""

    name: ClassVar[str] = "stability"
    chapter: ClassVar[Chapter] = PURE_AND_APPROXIMATE
    title: ClassVar[str] = "Stable choice: naming the winner among any number of candidates"
    claim: ClassVar[str] = (
        "A trusted curator may name the most frequent of any number of values at a price that does not depend on how many there are, if it is ahead by about "
        "(2 / epsilon) ln(1 / delta) records. The test as it was printed loses twice the epsilon that it states, because one replaced record moves the lead by "
        "two; the best test of the lead takes up to a third fewer records than the repaired one."
    )
    source: ClassVar[str] = "Beimel, Nissim, Stemmer 2013, Proposition 2.26 (erratum E1); Desfontaines, Voss, Gipson, Mandayam 2022"

    def points(self, scale: Scale) -> list[Point]:
        losses = [{"epsilon": epsilon, "delta": delta} for epsilon, delta in LOSSES]
        enumerated = [{"kind": "privacy", "form": form, "most": MOST[scale], **loss} for loss in losses for form in FORMS]
        return enumerated + [{"kind": "records", "runs": RUNS[scale], **loss} for loss in losses]

    def measure(self, point: Point, seed: int) -> Measurement:
        return {"privacy": _measure_privacy, "records": _measure_records}[point["kind"]](point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        privacy = [(point, found) for point, found in measurements if point["kind"] == "privacy"]
        records = [(point, found) for point, found in measurements if point["kind"] == "records"]
        spent, needed = _privacy_table(privacy), _records_table(records)
        figure = _figure(privacy)
        checks = [*(_check_form(form, privacy) for form in FORMS), _check_law(privacy), _check_records(records), _check_savings(records)]
        checks.append(figure_check([figure], spent))
        notes = [
            "Under neighbours that add or remove a record, the lead moves by one only, and the printed test would be right.",
            "How many candidates there are appears nowhere: a domain of 2^65536 values costs no record more.",
        ]
        return Finding(checks, [spent, needed], [figure], notes, headline=_headline(privacy, records))


def _measure_privacy(point: Point, seed: int) -> Measurement:
    """delta at multiples of epsilon: the worst hockey stick over all replacements in small multisets of three values, and in long ones of two.

    Of the best test also by the mechanism's own law, in whole numbers: at its epsilon, and at half of it.
    """
    loss = approximate(point["epsilon"], point["delta"])
    accepted = acceptance(point["form"], loss)
    small = [_multisets(n) for n in range(1, point["most"] + 1)]
    moves = {(_lead(records), _lead(others)) for each in (*small, *LONG) for records, others in each.pairs("replace")}
    deltas = [max(_hockey_stick(here, there, accepted, math.exp(times * loss.epsilon)) for here, there in moves) for times in TIMES]
    found: Measurement = {"deltas": deltas, "pairs": len(moves)}
    if point["form"] == "best":
        choice = StableChoice(lead_of, loss.epsilon, loss.delta)
        found["exact"] = float(max(_multisets(n).worst_delta(choice) for n in (1, 5, 9)) * Fraction(ATTO, loss.atto))
        found["beyond"] = float(_multisets(9).worst_delta(choice, Pure(nano_epsilon(loss.epsilon / 2))))
    return found


def _multiset(records: tuple[tuple[int], ...]) -> Multiset:
    return Multiset.of([value for (value,) in records], 2)


def _multisets(n: int, values: int = 3) -> SmallDatabases[tuple[int], Multiset]:
    return SmallDatabases([(value,) for value in range(values)], n, _multiset)


LONG = [_multisets(n, 2) for n in (100, 101, 200, 201)]  # leads that three values reach only in too many databases


def _lead(records: tuple[tuple[int], ...]) -> tuple[int, int]:
    """The best and its gap, as `lead_of`, from the records themselves."""
    counts = [sum(value == each for (value,) in records) for each in range(3)]
    best = counts.index(max(counts))
    return best, counts[best] - max(counts[:best] + counts[best + 1 :])


def _hockey_stick(here: tuple[int, int], there: tuple[int, int], accepted: Callable[[int], float], growth: float) -> float:
    """Of the two laws over: this best, that best, no answer."""
    (best, gap), (other, lead) = here, there
    told, untold = accepted(gap), accepted(lead)
    named = max(0.0, told - growth * (untold if best == other else 0.0))
    return named + max(0.0, (1 - told) - growth * (1 - untold))


def _measure_records(point: Point, seed: int) -> Measurement:
    """The least m at which a point of probability .1, all others being rare, is told nine times of ten, by exact sums; and runs of the mechanism there."""
    loss, runs = approximate(point["epsilon"], point["delta"]), int(point["runs"])
    found: Measurement = {form: _least_records(acceptance(form, loss)) for form in ("repaired", "best")}
    choice: StableChoice[Lead[int], int] = StableChoice(lambda lead: lead, loss.epsilon, loss.delta)
    draws = Draws(KeyedNoise(seed))
    counts = np.random.default_rng([seed, 1]).binomial(found["best"], SHARE, runs)
    found["told"] = sum(choice.release(Lead(0, int(count)), draws) == 0 for count in counts)
    return found


def _least_records(accepted: Callable[[int], float]) -> int:
    """The least m with Pr[told] >= SUCCESS where the lead is Bin(m, SHARE)."""
    low, high = 0, 1 << 14
    while high - low > 1:
        m = (low + high) // 2
        chances = _binomial(m, SHARE)
        low, high = (low, m) if sum(chance * accepted(count) for count, chance in enumerate(chances)) >= SUCCESS else (m, high)
    return high


def _binomial(m: int, share: float) -> list[float]:
    """The law of Bin(m, share)."""
    counts = np.arange(m + 1)
    ways = np.array([math.lgamma(m + 1) - math.lgamma(k + 1) - math.lgamma(m - k + 1) for k in counts])
    law: list[float] = np.exp(ways + counts * math.log(share) + (m - counts) * math.log1p(-share)).tolist()
    return law


def _of_form(privacy: Measured, form: str) -> Measured:
    return [(point, found) for point, found in privacy if point["form"] == form]


def _headline(privacy: Measured, records: Measured) -> str:
    over = [found["deltas"][TIMES.index(1.0)] / point["delta"] for point, found in _of_form(privacy, "printed")]
    if not (over and records):
        return "Not everything was measured."
    point, found = max(records, key=lambda row: (row[0]["epsilon"], -row[0]["delta"]))
    return (
        f"The printed test has {min(over):,.0f} to {max(over):,.0f} times its delta; the best one names a winner of a tenth of {found['best']:,} records at "
        f"epsilon {point['epsilon']:g}, delta {point['delta']:g}, among any number of candidates."
    )


def _check_form(form: str, privacy: Measured) -> Check:
    """What the test of this form loses at epsilon, and the printed one at twice that."""
    rows = [
        (point["epsilon"], point["delta"], found["deltas"][TIMES.index(1.0)], found["deltas"][TIMES.index(2.0)]) for point, found in _of_form(privacy, form)
    ]
    if form == "printed":
        kept = [delta > 10 * stated and math.isclose(twice, stated * math.exp(2 * epsilon) / 2, rel_tol=1e-6) for epsilon, stated, delta, twice in rows]
        said = "the test as printed has many times its delta at its epsilon, and exactly delta e^(2 eps) / 2 at twice that"
    else:
        kept = [delta <= stated * (1 + 1e-9) and delta >= 0.99 * stated for _, stated, delta, _ in rows]
        said = f"the {form} test has its delta at its epsilon, and reaches it"
    told = ", ".join(f"{delta:.3g} of {stated:g} at {epsilon:g}" for epsilon, stated, delta, _ in rows)
    return Check(said, bool(rows) and all(kept), told)


def _check_law(privacy: Measured) -> Check:
    exact = [found["exact"] for _, found in _of_form(privacy, "best")]
    beyond = [found["beyond"] / point["delta"] for point, found in _of_form(privacy, "best")]
    return Check(
        "the law that the mechanism draws from, enumerated in whole numbers, keeps to delta, and not at half the epsilon",
        bool(exact) and max(exact) <= 1 and min(beyond) > 1,
        f"worst over all pairs: {max(exact, default=math.nan):.4f} of delta; at half the epsilon {min(beyond, default=math.nan):.2f} or more",
    )


def _check_records(records: Measured) -> Check:
    rates = [wilson(found["told"], point["runs"], CERTAIN) for point, found in records]
    return Check(
        f"with the least number of records, runs tell a point of probability {SHARE:g} with frequency {SUCCESS:.0%}",
        bool(rates) and all(low <= SUCCESS + 0.01 and high >= SUCCESS for low, high in rates),
        ", ".join(f"{found['told'] / point['runs']:.3f} at {found['best']:,}" for point, found in records),
    )


def _check_savings(records: Measured) -> Check:
    saved = {(point["epsilon"], point["delta"]): 1 - found["best"] / found["repaired"] for point, found in records}
    return Check(
        "the best test takes fewer records than the repaired one everywhere: at least 5 % fewer, and 30 % at (0.1, 1e-3)",
        bool(saved) and min(saved.values()) >= 0.045 and saved.get((0.1, 1e-3), 0.0) >= 0.3,
        ", ".join(f"{share:.1%} at ({epsilon:g}, {delta:g})" for (epsilon, delta), share in saved.items()),
    )


def _name(point: Point) -> str:
    return f"{FORMS[point['form']]} ({point['epsilon']:g}; {point['delta']:g})"


def _privacy_table(privacy: Measured) -> Table:
    rows = [(_name(point), times * point["epsilon"], point["delta"], found["deltas"][place]) for point, found in privacy for place, times in enumerate(TIMES)]
    return Table("delta against epsilon, enumerated", ("test (epsilon; delta)", "epsilon", "stated delta", "delta"), rows)


def _records_table(records: Measured) -> Table:
    rows = []
    for point, found in records:
        low, high = wilson(found["told"], point["runs"])
        told = f"{found['told'] / point['runs']:.3f} [{low:.3f}, {high:.3f}]"
        rows.append((point["epsilon"], point["delta"], found["repaired"], found["best"], told))
    columns = ("epsilon", "delta", "records, repaired test", "records, best test", "told in runs of the best [95 %]")
    return Table(f"records that tell a point of probability {SHARE:g} with probability {SUCCESS:.0%}", columns, rows)


def _figure(privacy: Measured) -> Figure:
    chosen = [(point, found) for point, found in privacy if (point["epsilon"], point["delta"]) == (1.0, 1e-3)]
    curves = [Curve(_name(point), [times * point["epsilon"] for times in TIMES], found["deltas"]) for point, found in chosen]
    stated = Curve("stated: delta at epsilon", [TIMES[0], TIMES[-1]], [1e-3, 1e-3], style="bound")
    return Figure("stability", "What three tests of the lead lose", "epsilon (nats)", "delta", [*curves, stated], log_y=True)


EXPERIMENT = Stability()
