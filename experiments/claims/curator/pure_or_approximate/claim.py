"""What a little delta buys a curator who learns: records against the size of the domain, pure,
approximate and with public points."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from local_dp.experiments.claims.curator.pure_or_approximate.runs import (
    ALPHA,
    EPSILON,
    SUCCESS,
    Bound,
    Key,
    Learner,
    Proven,
    Records,
)
from local_dp.experiments.lab.parts import (
    PURE_AND_APPROXIMATE,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Normal,
    Points,
    Positive,
    Rate,
    Region,
    Regions,
    Rows,
    Scale,
    Sheet,
    Table,
    crossing,
    curve,
    grid,
    holds,
    measured,
    tabulate,
)
from local_dp.loss import ATTO, NANO

BITS = (8, 16, 32, 64, 128, 256, 1024)
EXACT: tuple[Key, ...] = (
    ("points", "pure", 0.0),
    ("points", "stable", 1e-6),
    ("points", "stable", 1e-3),
    ("thresholds", "pure", 0.0),
)
QUICK: dict[Key, tuple[tuple[int, ...], int]] = {  # on which domains, and over how many samples
    ("points", "buckets", 0.0): ((16, 1024), 240),
    ("points", "labels", 0.0): ((16, 1024), 240),
    ("thresholds", "labels", 0.0): ((16, 256), 240),
    ("thresholds", "semi-private", 0.0): ((16, 256), 240),
    ("thresholds", "dyadic", 1e-6): ((8, 16, 64, 256), 26),
    ("thresholds", "dyadic", 1e-3): ((8, 32, 128), 20),
    ("thresholds", "RecConcave", 1e-6): ((64, 128), 6),
}
FULL: dict[Key, tuple[tuple[int, ...], int]] = {
    **{
        key: ((16, 64, 256, 1024), 400)
        for key in QUICK
        if key[1] in ("buckets", "labels", "semi-private")
    },
    **{("thresholds", "dyadic", delta): (BITS, 120) for delta in (1e-6, 1e-3)},
    **{("thresholds", "RecConcave", delta): ((32, 64, 128, 256), 24) for delta in (1e-6, 1e-3)},
}
RUNS = {"quick": 300, "full": 1000}
GROWN = 1.25  # how many times as many records a flat number may be in the largest domain
# In a domain of so many bits a learner takes more records than the pure one, and in one of more
# bits at most so many times as many.
CROSSED: dict[Key, tuple[int, int, float]] = {
    ("points", "stable", 1e-6): (16, 32, 0.75),
    ("thresholds", "dyadic", 1e-6): (8, 64, 0.35),
    ("thresholds", "RecConcave", 1e-6): (64, 128, 0.9),
}
BEYOND = 3.75  # times as many records as dyadic thresholds RecConcave takes, at least
# the growth of the proven number of records of dyadic thresholds where the bits double
DOUBLED = 4 * math.log(2) / (ALPHA * EPSILON)
SIZES: dict[str, int] = {"points": 64, "thresholds": 256}  # bits at which the separation is stated
# and how many times fewer records a delta takes there than is proven without
APART: dict[str, float] = {"points": 1.5, "thresholds": 2.5}
BEST: dict[str, Key] = {
    "points": ("points", "stable", 1e-6),
    "thresholds": ("thresholds", "dyadic", 1e-6),
}
_KINDS = {
    "pure": "pure, proper",
    "stable": "stable choice, proper",
    "buckets": "pure, improper: buckets",
    "dyadic": "dyadic intervals",
    "RecConcave": "RecConcave, tuned",
    "labels": "only labels secret",
    "semi-private": "300 public points",
}
_DELTAS = {0.0: "", 1e-6: ", delta 1e-6", 1e-3: ", delta 1e-3"}
LABELS: dict[Key, str] = {
    (of, kind, delta): name + suffix
    for of in SIZES
    for kind, name in _KINDS.items()
    for delta, suffix in _DELTAS.items()
}
START = 16  # bits of the smallest domain in the regions


@dataclass(frozen=True)
class Series:
    """The least numbers of one learner, or the proven ones, by the bits of the domain."""

    numbers: dict[int, float]
    # the same with their errors: none where the number is an exact sum
    figures: dict[int, Positive]

    @property
    def bits(self) -> list[int]:
        return list(self.numbers)

    @property
    def exact(self) -> bool:
        return not any(figure.error for figure in self.figures.values())

    @property
    def grown(self) -> Positive:
        """How many times as many records the last size takes as the first."""
        return self.figures[self.bits[-1]] / self.figures[self.bits[0]]

    def __str__(self) -> str:
        """The numbers at the first size from 2^16 on and at the last."""
        first = next(bits for bits in self.bits if bits >= START)
        last = self.bits[-1]
        return (
            f"{self.numbers[first]:,.0f} people at 2^{first}, {self.numbers[last]:,.0f} at 2^{last}"
        )


Learners = dict[Key, Series]


class PureOrApproximate(Experiment):
    name = "pure-or-approximate"
    chapter = PURE_AND_APPROXIMATE
    title = "What a little delta buys a trusted curator who learns"
    claim = (
        "A curator learns which point of a domain is marked, or where a threshold lies in it. If "
        "the answer must be a point or a threshold of the domain, pure privacy provably needs a "
        "number of people that grows with the number of bits of the domain. With a delta of one "
        "in a million, a point takes the same few hundred people in any domain, and a threshold "
        "takes hardly more people when the bits are doubled. Where only labels are secret, a "
        "threshold takes the same few people everywhere; and so does a point with pure privacy, "
        "if the hypothesis need not name it."
    )
    source = (
        "Beimel, Nissim, Stemmer 2013, Lemma 3.2, Theorems 3.18 and 6.2, Lemma 5.7; Beimel, "
        "Nissim, Stemmer 2013b; Feldman, Xiao 2014"
    )

    def points(self, scale: Scale) -> Points:
        exact = ((key, (BITS, 40 if scale == "quick" else 100)) for key in EXACT)
        plan = [
            *exact,
            *(QUICK if scale == "quick" else FULL).items(),
        ]
        return [
            *(
                Learner(*key, bits, samples, RUNS[scale] // (10 if key[1] == "RecConcave" else 1))
                for key, (sizes, samples) in plan
                for bits in sizes
            ),
            *grid(Proven, SIZES, BITS),
        ]

    def finding(self, sheet: Sheet) -> Finding:
        learners: Rows[Learner, Records] = sorted(sheet[Learner], key=lambda row: row[0].bits)
        proven: Rows[Proven, Bound] = sheet[Proven]
        series: Learners = {}
        for key in dict.fromkeys(p.key for p, _ in learners):
            rows = [(p, m.least) for p, m in learners if p.key == key]
            numbers: dict[int, float] = {p.bits: least.n for p, least in rows}
            series[key] = Series(
                numbers,
                {p.bits: least.figure(p.samples) for p, least in rows},
            )
        bounds = {of: Series({p.bits: m.n for p, m in proven if p.of == of}, {}) for of in SIZES}
        separations = {of: _check_separation(of, series, bounds[of]) for of in SIZES}
        kinds = ("pure", "dyadic", "RecConcave")
        flat = {key: _check_flat(key, each) for key, each in series.items() if key[1] not in kinds}
        beyond = _check_beyond(series)
        table, figures = _table(learners, bounds), [_figure(of, learners, proven) for of in SIZES]
        growth = (_check_grows(key, each) for key, each in series.items() if key[1] == "dyadic")
        crossings = (_check_crossing(key, series) for key in CROSSED)
        checks = [
            *_check_numbers(learners),
            *separations.values(),
            *flat.values(),
            *growth,
            *crossings,
            beyond,
        ]
        title = "Learned from a number of people that does not grow with the domain"
        regions = Regions(
            "flat", title, _regions(series, bounds["points"], flat, separations, beyond)
        )
        return Finding(
            checks, [table], [regions, *figures], NOTES, headline=_headline(series, bounds)
        )


NOTES = [
    f"Records for {SUCCESS:.0%} success within alpha {ALPHA:g}, epsilon {EPSILON:g}, in the worst "
    "distribution known. Of points: just alpha on the target. Of thresholds, the worst of five: a "
    "needle (just over alpha on both sides of the target, which alone is then good), a needle "
    "with a staircase of points at distances 1, 2, 4, ..., the staircase alone, and plateaus of "
    "2^(d/2) and 2^(3d/4) around the target, which is random and odd.",
    "Success is computed exactly: in closed form where there is one, else given a sample and "
    "averaged over samples. Intervals are of two standard errors of that average. Runs draw fresh "
    "samples.",
    "The proven number holds for every purely private learner that names a point or a threshold "
    "of the domain (proper), by packing. For thresholds every purely private learner needs a "
    "number that grows with the bits (Feldman, Xiao 2014). With a delta every learner needs the "
    "iterated logarithm of the domain (Alon, Livni, Malliaris, Moran 2019): proven there, not run.",
    "So it is a theorem too that only the privacy of labels makes thresholds flat. Dyadic "
    "thresholds grow as log log of the domain, and RecConcave at depth 2 no faster, from a higher "
    "start.",
]


def _headline(series: Learners, bounds: dict[str, Series]) -> str:
    texts = []
    for of, bits in SIZES.items():
        need = bounds[of].numbers[bits]
        best = series[BEST[of]].numbers[bits]
        with_delta = (
            f"{best:,.0f} people with a delta of {BEST[of][2]:g}, in the worst of the laws tried"
        )
        texts.append(f"one of 2^{bits} {of} takes {with_delta}, and provably {need:,.0f} without")
    return f"To learn and name {'; '.join(texts)}."


def _check_numbers(learners: Rows[Learner, Records]) -> Iterator[Check]:
    """The loss of each learner, its runs, and the other distributions.

    The runs of a learner are those of all domains, which are independent. Given its sample each run
    has its own chance. The number of successes of such runs is no wider than the binomial one of
    the mean chance (Hoeffding 1956). Mean chances have a long lower tail, in which Student's law
    errs to the safe side.
    """
    wrong = list[str]()
    claims = dict[str, Claimed]()
    others = dict[str, Normal]()
    for p, m in learners:
        if (m.nano, m.atto) != (round(EPSILON * NANO), round(p.delta * ATTO)):
            wrong.append(f"{LABELS[p.key]} at {p.bits} bits")
        others |= {f"{p.bits} bits, {law}": figure for law, figure in m.least.others.items()}
    for key in dict.fromkeys(p.key for p, _ in learners):
        rows = [(p.runs, m.right, m.expected) for p, m in learners if p.key == key]
        trials, right, expected = (sum(each) for each in zip(*rows, strict=True))
        share = expected / trials
        rate = Rate(right, trials)
        claims[f"{LABELS[key]} ({key[0]}), {share:.3f} expected"] = Claimed(rate, share, share)
    enough = (
        "The least number for a threshold, pure, is an exact sum over one distribution, and "
        "enough in all the others"
    )
    yield Check(
        "Every learner's loss, counted from its parts, is the epsilon and the delta of "
        "the comparison",
        not wrong,
        "; ".join(wrong) or f"{len(learners)} learners",
    )
    yield holds(
        "With the least number of records, releases are right as often as the exact chance says",
        claims,
    )
    yield measured(enough, others, SUCCESS)


def _check_separation(of: str, series: Learners, proven: Series) -> Check:
    """The proven number against the run one: at one size, further apart with every size from there
    on, and kept by the pure learner that is run."""
    pure = series[of, "pure", 0.0].numbers
    best = series[BEST[of]]
    bits = SIZES[of]
    bound, times = proven.numbers, APART[of]
    near = all(
        bound[size] <= number <= 5 * bound[size] for size, number in pure.items() if size >= START
    )
    statement = (
        f"No purely private proper learner of {of} of 2^{bits} needs less than {times:g} times "
        "the records of one with a delta: proven against run"
    )
    need, own, least = bound[bits], pure[bits], best.numbers[bits]
    evidence = f"proven {need:,.0f}, run pure {own:,.0f}, with delta {BEST[of][2]:g} {least:,.0f}"
    if not best.exact:
        return measured(
            statement,
            {"in units of the proven": best.figures[bits] / need},
            high=1 / times,
            more=evidence,
            also=near,
        )
    ratios = [bound[size] / number for size, number in best.numbers.items()]
    verdict = need >= times * least and ratios == sorted(ratios) and near
    return Check(statement, verdict, evidence)


def _check_flat(key: Key, series: Series) -> Check:
    first, last = series.bits[0], series.bits[-1]
    name = f"{LABELS[key]} ({key[0]}): the number does not grow with the domain"
    text = f"{series.numbers[first]:,.0f} at 2^{first}, {series.numbers[last]:,.0f} at 2^{last}"
    if series.exact:
        return Check(name, len(set(series.numbers.values())) == 1, text)
    statement = f"{name}, to at most {GROWN:g} times as many"
    return measured(statement, {"": series.grown}, high=GROWN, more=text)


def _check_grows(key: Key, series: Series) -> Check:
    first, last = series.bits[0], series.bits[-1]
    doublings, growth = math.log2(last / first), series.grown
    errors = (series.numbers[bits] * series.figures[bits].error for bits in (first, last))
    error = math.hypot(*errors)
    slope = (series.numbers[last] - series.numbers[first]) / doublings
    each = Normal(
        slope,
        error / doublings,
        growth.degrees,
    )
    statement = (
        f"{LABELS[key]} ({key[0]}): at most {DOUBLED:.0f} records more where the bits are "
        "doubled, which is log log of the domain"
    )
    return measured(statement, {"a doubling": each}, high=DOUBLED)


def _check_crossing(key: Key, series: Learners) -> Check:
    """In units of the pure learner's numbers, which are exact."""
    few, many, most = CROSSED[key]
    pure, learner = series[key[0], "pure", 0.0].numbers, series[key]
    ratios = {bits: learner.figures[bits] / pure[bits] for bits in (few, many)}
    statement = (
        f"{LABELS[key]} ({key[0]}) takes more records than pure privacy in a domain of 2^{few}, "
        f"and at most {most:g} times as many in one of 2^{many}"
    )
    place = crossing(pure, learner.numbers)
    where = (
        f"fewer from about 2^{place:.0f} on"
        if math.isfinite(place)
        else "nowhere fewer in these domains"
    )
    if learner.exact:
        return Check(statement, ratios[many].value <= most and ratios[few].value > 1, where)
    claims = {
        f"2^{few}": Claimed(ratios[few], 1.0),
        f"2^{many}": Claimed(ratios[many], high=most),
    }
    return holds(statement, claims, where)


def _check_beyond(series: Learners) -> Check:
    """RecConcave against dyadic thresholds, where both are measured."""
    ratios: dict[str, Positive] = {}
    for (of, kind, delta), concave in series.items():
        dyadic = series.get((of, "dyadic", delta))
        if kind == "RecConcave" and dyadic:
            for bits, figure in concave.figures.items():
                if bits in dyadic.figures:
                    ratios[f"2^{bits}, delta {delta:g}"] = figure / dyadic.figures[bits]
    return measured(
        f"RecConcave at depth 2, tuned, takes at least {BEYOND} times as many records as "
        "dyadic thresholds",
        ratios,
        BEYOND,
    )


def _table(learners: Rows[Learner, Records], bounds: dict[str, Series]) -> Table:
    """Every least number, with the proven one beside it where it is about the same."""
    rows = []
    order = list(dict.fromkeys(p.key for p, _ in learners))
    for p, m in sorted(learners, key=lambda row: order.index(row[0].key)):
        proven = bounds[p.of].numbers[p.bits] if p.kind == "pure" else None
        least = m.least
        right = f"{m.right / p.runs:.3f} of {m.expected / p.runs:.3f}"
        interval = (least.n, least.low, least.high)
        rows.append((p.of, LABELS[p.key], p.bits, *interval, proven, least.law, right))
    return tabulate(
        "Least records for 90 % success, alpha 0.1, epsilon 1",
        "class | learner | bits | records | from | to | proven needed | worst distribution | "
        "runs right, expected",
        rows,
    )


def _figure(of: str, learners: Rows[Learner, Records], proven: Rows[Proven, Bound]) -> Figure:
    """The numbers of all learners of one class."""
    curves = []
    for key in dict.fromkeys(p.key for p, _ in learners if p.of == of):
        leasts = [(p.bits, m.least) for p, m in learners if p.key == key]
        intervals = ((bits, least.n, least.low, least.high) for bits, least in leasts)
        curves.append(
            curve(
                LABELS[key],
                intervals,
                group=LABELS[key],
            )
        )
    bounds = [(p.bits, m) for p, m in proven if p.of == of]
    minima = ((bits, m.n) for bits, m in bounds)
    curves.append(
        curve(
            "proven for pure, proper learners",
            minima,
            "bound",
            group=LABELS[of, "pure", 0.0],
        )
    )
    curves.append(curve("without privacy", ((bits, m.plain) for bits, m in bounds), "theory"))
    return LogLogFigure(
        f"{of}-by-domain", f"Records that learn {of}", "bits of the domain", "records", curves
    )


def _regions(
    series: Learners,
    proven: Series,
    flat: dict[Key, Check],
    separations: dict[str, Check],
    beyond: Check,
) -> list[Region]:
    """The results that the run showed to be flat, each in the innermost region where it is."""

    def place(
        of: str, kinds: Iterable[str], name: str, further: str, *also: Check
    ) -> list[tuple[str, str]]:
        keys = [key for key in flat if key[0] == of and key[1] in kinds]
        checks = (*(flat[key] for key in keys), *also)
        if not keys or not all(check.shown for check in checks):
            return []
        runs = [*(f"run: {LABELS[key]}: {series[key]}" for key in keys), further]
        return [
            (
                name,
                "\n".join(runs).rstrip(),
            )
        ]

    need = f"proven, pure and proper: at least {proven}"
    growth = (
        f"run, all secret, delta 1e-6: {series['thresholds', 'dyadic', 1e-6]}; proven not to be "
        "flat (Alon et al. 2019)"
    )
    labels = place(
        "thresholds",
        ("labels", "semi-private"),
        "Thresholds",
        growth,
        separations["thresholds"],
        beyond,
    )
    stable = place("points", ("stable",), "Points, named", need, separations["points"])
    return [
        Region(
            "Pure",
            "epsilon alone",
            place("points", ("buckets",), "Points, by hypotheses that need not name one", ""),
        ),
        Region(
            "Approximate",
            "epsilon and a delta",
            stable,
        ),
        Region("Only labels secret", "or some points public", labels),
    ]


EXPERIMENT = PureOrApproximate()
