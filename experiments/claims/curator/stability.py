"""Stable choice: the benefit of a delta, the true loss of the printed test, and the savings by the
best test."""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.random import default_rng

from local_dp.curator.mechanism import SmallDatabases
from local_dp.curator.multisets import Multiset
from local_dp.curator.selection.stable import (
    UNIT,
    Lead,
    StableChoice,
    laplace_acceptance,
    printed_acceptance,
)
from local_dp.experiments.lab.parts import (
    PURE_AND_APPROXIMATE,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    curve,
    every,
    holds,
    seeded,
    table_of,
    tabulate,
)
from local_dp.loss import ATTO, Approximate, Pure, approximate, nano_epsilon
from local_dp.optimise import least_clients

LOSSES = ((0.5, 1e-2), (1.0, 1e-3), (1.0, 1e-6), (0.1, 1e-3))
TIMES = (0.5, 1.0, 1.5, 2.0, 2.5)  # the multiples of epsilon at which delta is computed
ONCE, TWICE = TIMES.index(1.0), TIMES.index(2.0)
FORMS = {"printed": "as printed, Lap(1/eps)", "repaired": "repaired, Lap(2/eps)", "best": "best"}
SHARE, SUCCESS = 0.1, 0.9  # of the point to be named, and how often it is
RUNS = {"quick": 10_000, "full": 100_000}
MOST = {"quick": 24, "full": 60}  # records of the databases that are enumerated


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


class Enumerated(Row):
    deltas: list[float]  # at the multiples of epsilon
    # of the best test: the worst delta by the mechanism's own law, in units of the stated one
    exact: float = math.nan
    beyond: float = math.nan  # of the best test: the same at half of epsilon, as a probability


class Privacy(Row):
    """The worst hockey stick over all replacements in small multisets of three values, and in long
    ones of two."""

    form: str
    most: int
    epsilon: float
    delta: float

    def measure(self, seed: int) -> Enumerated:
        loss = approximate(self.epsilon, self.delta)
        chance_at = acceptance(self.form, loss)
        moves = set[tuple[tuple[int, int], tuple[int, int]]]()
        for each in (*map(_multisets, range(1, self.most + 1)), *LONG):
            moves |= {(_lead(one), _lead(other)) for one, other in each.pairs("replace")}
        deltas = []
        for times in TIMES:
            growth = math.exp(times * loss.epsilon)
            deltas.append(max(_hockey_stick(*move, chance_at, growth) for move in moves))
        if self.form != "best":
            return Enumerated(deltas)
        choice = StableChoice(lead_of, loss.epsilon, loss.delta)
        exact = max(_multisets(n).worst_delta(choice) for n in (1, 5, 9))
        beyond = _multisets(9).worst_delta(choice, Pure(nano_epsilon(loss.epsilon / 2)))
        return Enumerated(deltas, float(exact * ATTO / loss.atto), float(beyond))

    @property
    def name(self) -> str:
        return f"{FORMS[self.form]} ({self.epsilon:g}; {self.delta:g})"


def _multiset(records: tuple[tuple[int], ...]) -> Multiset:
    return Multiset.of([value for (value,) in records], 2)


def _multisets(n: int, values: int = 3) -> SmallDatabases[tuple[int], Multiset]:
    return SmallDatabases([(value,) for value in range(values)], n, _multiset)


# leads that three values reach only in too many databases
LONG = [_multisets(n, 2) for n in (100, 101, 200, 201)]


def _lead(records: tuple[tuple[int], ...]) -> tuple[int, int]:
    """The best and its gap, as `lead_of`, from the records themselves."""
    counts = [sum(value == each for (value,) in records) for each in range(3)]
    best = counts.index(max(counts))
    return best, counts[best] - max(counts[:best] + counts[best + 1 :])


def _hockey_stick(
    here: tuple[int, int], there: tuple[int, int], chance_at: Callable[[int], float], growth: float
) -> float:
    """Of the two laws over: this best, that best, no answer."""
    answer, other = chance_at(here[1]), chance_at(there[1])
    same = other if here[0] == there[0] else 0.0
    failure = max(0.0, (1 - answer) - growth * (1 - other))
    return max(0.0, answer - growth * same) + failure


class Least(Row):
    repaired: int  # records, by exact sums
    best: int
    chance: float  # that the best test with its records names the point: the exact sum
    named: Rate  # the runs that do

    @property
    def rate(self) -> str:
        return str(self.named)


class Records(Row):
    """The least m at which a point of probability .1, all others being rare, is named nine times of
    ten."""

    runs: int
    epsilon: float
    delta: float

    def measure(self, seed: int) -> Least:
        loss = approximate(self.epsilon, self.delta)
        repair, best = (_least_records(acceptance(form, loss)) for form in ("repaired", "best"))
        choice: StableChoice[Lead[int], int] = StableChoice(
            lambda lead: lead, loss.epsilon, loss.delta
        )
        draws = seeded(seed)
        counts = default_rng([seed, 1]).binomial(best, SHARE, self.runs)
        hits = sum(choice.release(Lead(0, int(count)), draws) == 0 for count in counts)
        return Least(repair, best, _success(acceptance("best", loss), best), Rate(hits, self.runs))


def _least_records(chance_at: Callable[[int], float]) -> int:
    return least_clients(lambda m: _success(chance_at, m) >= SUCCESS)


def _success(chance_at: Callable[[int], float], m: int) -> float:
    """Pr[named], where the lead is Bin(m, SHARE)."""
    counts = np.arange(m + 1)
    log_factorials = np.array([math.lgamma(k + 1) for k in counts])
    ways = log_factorials[m] - log_factorials - log_factorials[::-1]
    logs = ways + counts * math.log(SHARE)
    logs += (m - counts) * math.log1p(-SHARE)
    law: list[float] = np.exp(logs).tolist()
    return sum(chance * chance_at(count) for count, chance in enumerate(law))


class Stability(Experiment):
    name = "stability"
    chapter = PURE_AND_APPROXIMATE
    title = "Stable choice: naming the winner among any number of candidates"
    claim = (
        "A trusted curator may name the most frequent of any number of values at a price that "
        "does not depend on how many there are. The winner must be ahead by about (2 / epsilon) "
        "ln(1 / delta) records. The printed test loses twice its stated epsilon, because one "
        "replaced record moves the lead by two. The best test of the lead takes up to three "
        "tenths fewer records than the repaired one."
    )
    source = (
        "Beimel, Nissim, Stemmer 2013, Proposition 2.26 (erratum E1); Desfontaines, Voss, Gipson, "
        "Mandayam 2022"
    )

    def points(self, scale: Scale) -> Points:
        privacy = (Privacy(form, MOST[scale], *loss) for loss in LOSSES for form in FORMS)
        return [*privacy, *(Records(RUNS[scale], *loss) for loss in LOSSES)]

    def finding(self, sheet: Sheet) -> Finding:
        privacy, records = sheet[Privacy], sheet[Records]
        forms = (
            _check_form(form, [row for row in privacy if row[0].form == form]) for form in FORMS
        )
        checks = [
            *forms,
            *_check_best(privacy, records),
        ]
        rows = []
        for p, m in privacy:
            for times, delta in zip(TIMES, m.deltas, strict=True):
                rows.append((p.name, times * p.epsilon, p.delta, delta))
        headings = "test (epsilon; delta) | epsilon | stated delta | delta"
        losses = tabulate("delta against epsilon, enumerated", headings, rows)
        tables = [losses, table_of(LEAST, LEAST_COLUMNS, records)]
        headline = _headline(privacy, records)
        return Finding(checks, tables, [_figure(losses)], NOTES, headline=headline)


LEAST = f"records that name a point of probability {SHARE:g} with probability {SUCCESS:.0%}"
LEAST_COLUMNS = (
    "epsilon | delta | records, repaired test = repaired | records, best test = best | named in "
    "runs of the best [95 %] = rate"
)
NOTES = [
    (
        "Under neighbours that add or remove a record, the lead moves by one only, and the "
        "printed test would be right."
    ),
    "The number of candidates appears nowhere: a domain of 2^65536 values costs no record more.",
]


def _figure(losses: Table) -> Figure:
    names = [f"{form} (1; 0.001)" for form in FORMS.values()]
    curves = losses.curves("test (epsilon; delta) | epsilon | delta", *names)
    ends = [(TIMES[0], 1e-3), (TIMES[-1], 1e-3)]
    curves.append(curve("stated: delta at epsilon", ends, "bound"))
    title = "The loss of three tests of the lead"
    return LogFigure("stability", title, "epsilon (nats)", "delta", curves)


def _check_best(
    privacy: Rows[Privacy, Enumerated], records: Rows[Records, Least]
) -> Iterator[Check]:
    best = [(p, m) for p, m in privacy if p.form == "best"]
    worst = max(m.exact for _, m in best)
    half = min(m.beyond / p.delta for p, m in best)
    yield Check(
        "the mechanism's own law, enumerated in whole numbers, keeps to delta, and "
        "not at half the epsilon",
        worst <= 1 < half,
        f"worst over all pairs: {worst:.4f} of delta; at half the epsilon {half:.2f} or more",
    )
    rates = {}
    for _, m in records:
        name = f"{m.best:,} records, where the sum is {m.chance:.4f}"
        rates[name] = Claimed(m.named, m.chance, m.chance)
    exact = all(SUCCESS <= m.chance < SUCCESS + 0.01 for _, m in records)
    yield holds(
        "with the least number of records, runs name a point of probability "
        f"{SHARE:g} as often as the exact sum says: in {SUCCESS:.0%}",
        rates,
        also=exact,
    )
    savings = {(p.epsilon, p.delta): 1 - m.best / m.repaired for p, m in records}
    verdict = min(savings.values()) >= 0.049 and savings.get((0.1, 1e-3), 0.0) >= 0.3
    evidence = ", ".join(
        f"{share:.1%} at ({place[0]:g}, {place[1]:g})" for place, share in savings.items()
    )
    yield Check(
        "the best test takes fewer records than the repaired one everywhere: at least "
        "4.9 % fewer, and 30 % at (0.1, 1e-3)",
        verdict,
        evidence,
    )


def _headline(privacy: Rows[Privacy, Enumerated], records: Rows[Records, Least]) -> str:
    over = [m.deltas[ONCE] / p.delta for p, m in privacy if p.form == "printed"]
    p, m = max(records, key=lambda row: (row[0].epsilon, -row[0].delta))
    best = (
        f"the best one names a winner of a tenth of {m.best:,} records at epsilon {p.epsilon:g}, "
        f"delta {p.delta:g}, among any number of candidates"
    )
    return f"The printed test has {min(over):,.0f} to {max(over):,.0f} times its delta; {best}."


def _check_form(form: str, rows: Rows[Privacy, Enumerated]) -> Check:
    """The loss of the test of this form at epsilon; of the printed one also at twice that."""
    texts = [f"{m.deltas[ONCE]:.3g} of {p.delta:g} at {p.epsilon:g}" for p, m in rows]
    if form == "printed":
        statement = (
            "the test as printed has many times its delta at its epsilon, and exactly delta e^(2 "
            "eps) / 2 at twice that"
        )
        twice = [
            math.isclose(m.deltas[TWICE], p.delta * math.exp(2 * p.epsilon) / 2, rel_tol=1e-6)
            for p, m in rows
        ]
        breaks = (m.deltas[ONCE] > 10 * p.delta for p, m in rows)
        return every(
            statement,
            zip(breaks, texts, strict=True),
            also=all(twice),
        )
    meets = (0.99 * p.delta <= m.deltas[ONCE] <= p.delta * (1 + 1e-9) for p, m in rows)
    return every(
        f"the {form} test has its delta at its epsilon, and reaches it",
        zip(meets, texts, strict=True),
    )


EXPERIMENT = Stability()
