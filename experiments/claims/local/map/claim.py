"""The map of what each model can learn (KLNRS Figure 2), every class placed by runs, proven bounds
and a checked certificate."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from local_dp.bounds.masked_parity import masked_parity_one_round_clients
from local_dp.experiments.claims.local.map.games import (
    GamePlay,
    ParityGame,
    parity_game_check,
)
from local_dp.experiments.claims.local.map.runs import (
    EPSILON,
    ONE_ROUND,
    PROTOCOLS,
    SHUFFLE_DELTA,
    SUCCESS,
    Curated,
    HiddenConcept,
    Learned,
    OneRound,
    Parity,
    Rules,
    Users,
    shuffled_check,
    shuffled_line,
    shuffled_table,
    whole,
)  # fmt: skip
from local_dp.experiments.claims.local.map.series import (
    COMPARED,
    TITLES,
    Search,
    Series,
    local_bound,
    one_round_bound,
    prediction,
)
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Claimed,
    Curve,
    Experiment,
    Figure,
    Finding,
    LogFigure,
    Points,
    Rate,
    Region,
    Regions,
    Rows,
    Scale,
    Sheet,
    Table,
    cross_check_shown,
    curve,
    grid,
    holds,
    measured,
    tabulate,
)

POLYNOMIAL = 4.0  # the largest power of d that counts as growing slowly
WITHIN = 0.06  # how far from their prediction the numbers lie at most
# how many times more people the smaller model must provably need at the largest dimension: by the
# formulas 33 at d = 16
SEPARATED = 25.0
# times as many people, measured at COMPARED, as the larger model takes: by the formulas 1.4 and 130
APART = 1.2
# How far above its proven bound the best protocol of the smaller model lies at its last dimension:
# by the formulas 1.15 to 1.16, and 1.9.
REACH_MASKED, REACH_PARITY = (1.05, 1.3), (1.5, 2.2)
# the success with the predicted number, which is for SUCCESS: .8996 to .9018, the mean over d, by
# the exact laws and by 2,500 draws
RATE = (0.89, 0.91)
LEAST = 0.87  # the success client by client: the numbers are for 90 %, some people more
RULED_OUT = "masked-parity-one-round"  # cheap to run
MEASURED, EXACT = "measured minimum", "exact minimum, runs agree"
# the dimensions of the searches for a hidden concept
CONCEPTS: dict[Scale, dict[str, tuple[int, ...]]] = {
    "quick": {
        "masked-parity": (4, 8, 16),
        "masked-parity-one-round": (8, 10),
        "parity-halving": (4, 8),
    },
    "full": {
        "masked-parity": (4, 8, 12, 16, 20),
        "masked-parity-one-round": (4, 8, 10, 12),
        "parity-halving": (4, 6, 8, 10),
    },
}
# small points that are run client by client too: d, people
USERS = {
    "stumps": (4, 180),
    "masked-parity": (4, 1200),
    "parity-halving": (4, 460),
}


def _learned_check(statement: str, series: Series, rounds: int, only: bool = True) -> Check:
    """Whether there is a least number of people at every dimension, which is the predicted one,
    takes so many rounds and grows slowly with d."""
    power = series.power(partial(prediction, series.name))
    ratio = series.over_prediction()
    claims = {"measured over predicted": Claimed(ratio, 1 - WITHIN, 1 + WITHIN)}
    rights = [each.right for _, each in series.rows if isinstance(each, Learned) and each.right]
    if rights:
        wins, runs = (sum(column) for column in zip(*rights, strict=True))
        claims["success with the predicted number"] = Claimed(Rate(wins, runs), *RATE)
    statement += (
        f", from as many people as its law predicts (within {WITHIN:.0%}, in the mean over d), no "
        f"more than d^{POLYNOMIAL:g}"
    )
    evidence = f"{_minimum(series, MEASURED)}, predicted d^{power:.1f}"
    also = only and series.in_rounds(rounds) and power <= POLYNOMIAL
    return holds(statement, claims, evidence, also=also)


def _minimum(series: Series, kind: str) -> str:
    return (
        f"{series.describe(COMPARED)} ({kind} for {SUCCESS:.0%} of the runs); it grows as "
        f"{series.growth()}"
    )


def _one_round_check(series: Series) -> Check:
    fixed = all(isinstance(each, Learned) and each.fixed for _, each in series.rows)
    statement = f"{TITLES[series.name]} are learned locally in one round (in LNI)"
    return _learned_check(statement, series, 1, fixed)


def _separation_check(
    statement: str,
    larger: Series,
    smaller: Series,
    bound: Callable[[int], float],
    reach: tuple[float, float],
) -> Check:
    """Whether a proven bound for the smaller model leaves the larger model's number behind, and
    stands by its own runs: the best protocol of the smaller model, measured too, needs more than
    the bound, not many times it, and more than the larger model."""
    (first, d), last = larger.ends, smaller.ends[1]
    proven, over_first = larger.over_bound(d, bound), larger.over_bound(first, bound)
    best = smaller.figure(last) / bound(last)
    apart = smaller.figure(COMPARED) / larger.figure(COMPARED)
    claims = {f"proven, over those enough at d = {d}": Claimed(proven, SEPARATED)}
    growth = Claimed(proven / over_first, SEPARATED**0.5)
    claims[f"growing from d = {first}, times"] = growth
    claims[f"the best protocol ruled out, over its bound at d = {last}"] = Claimed(best, *reach)
    claims[f"and over the larger model's at d = {COMPARED}"] = Claimed(apart, APART)
    people = bound(d)
    times = people / larger.counts[d].n
    evidence = (
        f"at d = {d} proven to need {math.ceil(people):,} people, {times:,.0f} times the "
        f"{larger.describe(d)} that were enough; run, the best protocol of the kind that is ruled "
        f"out needs {smaller.describe(last)}"
    )
    return holds(f"{statement}: {SEPARATED:g} times fewer", claims, evidence)


def _curator_check(series: Series, rows: Rows[Parity, Curated]) -> Check:
    """Whether the runs succeed as often as the curator's exact law says, which is SUCCESS.

    All sizes together: a count of successes of unequal chances varies less than a binomial one of
    their mean (Hoeffding 1956).
    """
    statement = (
        f"Parity is learned by a trusted curator (in CI), no more than d^{POLYNOMIAL:g}, and the "
        "runs succeed as often as the exact law says"
    )
    trials = sum(point.trials for point, _ in rows)
    chance = sum(point.trials * each.predicted for point, each in rows) / trials
    least = min(each.predicted for _, each in rows)
    rate = Rate(sum(each.wins for _, each in rows), trials)
    wins = {f"success, {chance:.4f} by the law": rate}
    also = series.power() <= POLYNOMIAL and least >= SUCCESS
    return measured(statement, wins, chance, chance, _minimum(series, EXACT), also=also)


class Map(Experiment):
    name = "map"
    chapter = LOCAL_MODEL
    title = "What one round can learn, what several can, and what needs a curator"
    claim = (
        "What can be learned from a reasonable number of people depends on who is trusted and on "
        "how often they are asked. Simple rules are learned in one round with nobody trusted "
        "(LNI). A masked parity (see the notes) takes two rounds (LI): in one, the number of "
        "people doubles with every bit. A parity takes a trusted curator (CI): without one it "
        "doubles with every bit too, in however many rounds, as long as each person answers in "
        "one of them."
    )
    source = "KLNRS 2008, Figure 2, Theorems 4.8 and 5.1, Corollary 4.6; Blum et al. 1994"

    def points(self, scale: Scale) -> Points:
        quick = scale == "quick"
        few, runs, trials = (300, 600, 1000) if quick else (2000, 2000, 2000)
        points = grid(OneRound, ONE_ROUND, (4, 8) if quick else (4, 6, 8, 10), [few], [False])
        for name, dimensions in CONCEPTS[scale].items():
            searches = 3 * trials if name == RULED_OUT else trials
            points += grid(HiddenConcept, [name], dimensions, [searches])
        points += grid(Parity, (8, 12, 16) if quick else (8, 12, 16, 20, 24), [runs])
        points += map(ParityGame, (8,) if quick else (8, 10))
        points += grid(OneRound, ONE_ROUND, (8,) if quick else (4, 8, 10), [runs], [True])
        return points + [Users(name, d, n) for name, (d, n) in USERS.items()]

    def finding(self, sheet: Sheet) -> Finding:
        rules = [row for row in sheet[OneRound] if not row[0].shuffled]
        mixed = [row for row in sheet[OneRound] if row[0].shuffled]
        series = _all_series(rules, sheet[HiddenConcept], sheet[Parity])
        in_lni = [_one_round_check(series[name]) for name in ONE_ROUND]
        in_li = _interaction_checks(series)
        in_ci = _curator_checks(series, sheet[Parity], sheet[ParityGame])
        users = [
            cross_check_shown(f"{TITLES[point.name]}, d = {point.d}", crossing, LEAST)
            for point, crossing in sheet[Users]
        ]
        lines = []
        for name, check in zip(ONE_ROUND, in_lni, strict=True):
            line = _enough_lines(series[name]) + shuffled_line(mixed, name, COMPARED)
            lines.append((TITLES[name], [check], line))
        checks = [*in_lni, *in_li, *in_ci, *users, shuffled_check(mixed)]
        tables = [_table(series), shuffled_table(mixed, rules)]
        figures: list[Figure | Regions] = [_regions(series, lines, in_li, in_ci), _curves(series)]
        headline = _headline(series["masked-parity"], series["parity"])
        return Finding(checks, tables, figures, _NOTES, headline=headline)


def _all_series(
    rules: Rules, concepts: Rows[HiddenConcept, Learned], examples: Rows[Parity, Curated]
) -> dict[str, Series]:
    rows: list[Search] = [*rules, *concepts]
    series = {}
    for name in (*ONE_ROUND, *PROTOCOLS):
        series[name] = Series(name, [row for row in rows if row[0].name == name])
    series["parity"] = Series("parity", examples)
    return series


def _interaction_checks(series: dict[str, Series]) -> list[Check]:
    """Masked parity is in LI and not in LNI."""
    masked = series["masked-parity"]
    statement = (
        "Masked parity is learned locally in two rounds, each person asked in one of them (in LI)"
    )
    separation = _separation_check(
        "No non-interactive local protocol, at any epsilon, learns masked parity from so "
        "few people (not in LNI; proven, stated for epsilon 1)",
        masked,
        series["masked-parity-one-round"],
        one_round_bound,
        REACH_MASKED,
    )
    return [_learned_check(statement, masked, 2), separation]


def _curator_checks(
    series: dict[str, Series], examples: Rows[Parity, Curated], plays: Rows[ParityGame, GamePlay]
) -> list[Check]:
    """Parity is in CI and not in LI."""
    parity = series["parity"]
    separation = _separation_check(
        "No local protocol (rounds without limit, people may be asked again) learns "
        "parity from so few people (proven, stated for epsilon 1)",
        parity,
        series["parity-halving"],
        local_bound,
        REACH_PARITY,
    )
    return [_curator_check(parity, examples), separation, parity_game_check(plays)]


_NOTES = [
    "A point function is 1 at one point only; a stump looks at one bit; a conjunction asks for "
    "several bits at once. A parity says whether the number of ones among some hidden bits is "
    "odd. Of a masked parity, half of the examples each tell one hidden bit, and the others tell "
    "the parity of the hidden bits, either all as it is or all reversed: that last bit is what "
    "one round cannot ask for, not knowing the others.",
    f"Numbers of people are minima for {SUCCESS:.0%} success, measured alike for every class and "
    "protocol that is run (for the curator, computed from its exact law and checked by runs). "
    "What is called proven is no measurement: a number that suffices lies above the minimum, one "
    "that is necessary below that of every protocol. Where the necessary number for the smaller "
    "model is still below what was measured in the larger one, nothing is separated yet.",
    "Every class is learned under one distribution: points and stumps as described in the code, "
    "the others from uniform examples. Masked parity separates one round from two for uniform "
    "examples; a protocol for every distribution would have to learn parity.",
    "Three kinds of interaction: non-interactive (all questions are fixed before any answer), "
    "sequentially interactive (questions depend on the answers of others, each person answers in "
    "one round), fully interactive (a person may be asked again). The bound for one round holds "
    "for every non-interactive protocol at every ε. The bound for parity holds for every protocol "
    "at every ε. The game bounds the queries of statistical-query algorithms, adaptive or not.",
    "Behind a shuffler, between the two trusts, the same reports may lose more each: all of those "
    f"to one question together lose ε = {EPSILON:g} beside δ = {SHUFFLE_DELTA:g}, each person "
    "answering one. It is no region of its own: somebody is trusted to mix, and asks once.",
    "A class is drawn in a region only if its checks were shown in this run.",
]


def _headline(masked: Series, parity: Series) -> str:
    d, other = masked.ends[1], parity.ends[1]
    once, alone = math.ceil(one_round_bound(d)), math.ceil(local_bound(other))
    return (
        f"At d = {d} masked parity takes {masked.counts[d].n:,} people in two rounds, and in one "
        f"provably {once:,} or more; at d = {other} parity takes a curator "
        f"{parity.counts[other].n:,}, and without one, each person asked once, provably {alone:,} "
        "or more."
    )


def _regions(
    series: dict[str, Series],
    lines: Sequence[tuple[str, list[Check], str]],
    in_li: list[Check],
    in_ci: list[Check],
) -> Regions:
    masked, parity = series["masked-parity"], series["parity"]
    two = _bound_lines(
        "measured", masked, "in one round", series["masked-parity-one-round"], one_round_bound
    )
    trusted = _bound_lines(
        "computed exactly, runs agree",
        parity,
        "without a curator, however asked",
        series["parity-halving"],
        local_bound,
    )
    several = _shown_classes([(TITLES["masked-parity"], in_li, two)])
    curator = _shown_classes([(TITLES["parity"], in_ci, trusted)])
    regions = [
        Region("LNI = NASQ", "nobody trusted, one round", _shown_classes(lines)),
        Region("LI = SQ", "nobody trusted, several rounds", several),
        Region("CI", "a trusted curator", curator),
    ]
    return Regions(
        "map",
        f"Where each class lies, and the least people for {SUCCESS:.0%} success, at ε = "
        f"{EPSILON:g}",
        regions,
    )


def _shown_classes(candidates: Sequence[tuple[str, list[Check], str]]) -> list[tuple[str, str]]:
    """The classes whose checks were all shown, each with its evidence."""
    return [
        (title, evidence)
        for title, checks, evidence in candidates
        if all(check.shown for check in checks)
    ]


def _enough_lines(series: Series) -> str:
    """The measured number of a class that one round learns, and below it the proven one, which
    suffices and is no minimum."""
    (result,) = (each for point, each in series.rows if point.d == COMPARED)
    assert isinstance(result, Learned)
    return (
        f"measured: {series.describe(COMPARED)}, growing as {series.growth()}\nproven: "
        f"{result.enough:,} people suffice at d = {COMPARED}"
    )


def _bound_lines(
    kind: str, series: Series, ruled_out: str, smaller: Series, bound: Callable[[int], float]
) -> str:
    """The number of a class, and below it for the next smaller region: the proven bound that rules
    it out, and the number measured there."""
    d = series.ends[1]
    least, greatest = math.ceil(bound(COMPARED)), math.ceil(bound(d))
    return (
        f"{kind}: {series.describe(COMPARED)}, {series.describe(d)}\n"
        f"proven {ruled_out}: at least {least:,} at d = {COMPARED}, {greatest:,} at d = {d}\n"
        f"measured {ruled_out}: {smaller.describe(smaller.ends[1])}"
    )


def _table(series: dict[str, Series]) -> Table:
    models = {
        "masked-parity": "sequential, two rounds",
        "parity-halving": "sequential, d rounds",
        "parity": "trusted curator",
    }
    bounds = {"masked-parity-one-round": one_round_bound, "parity-halving": local_bound}
    rows: list[tuple[Any, ...]] = []
    for name, each in series.items():
        for point, result in each.rows:
            enough = result.enough if isinstance(result, Learned) else None
            necessary = math.ceil(bounds[name](point.d)) if name in bounds else None
            model = models.get(name, "non-interactive")
            kind = EXACT if name == "parity" else MEASURED
            people = (*whole(result.count), kind, enough, necessary)
            rows.append((TITLES[name], model, point.d, *people))
    return tabulate(
        f"People for {SUCCESS:.0%} success at ε = {EPSILON:g}",
        "class | who is asked | d | least people | 95 % from | to | kind of number | proven "
        "enough | proven needed",
        rows,
    )


def _curves(series: dict[str, Series]) -> Figure:
    masked, parity = series["masked-parity"].counts, series["parity"].counts

    def runs(label: str, name: str, group: str) -> Curve:
        counts = series[name].counts.items()
        return curve(label, [(d, m.n, m.low, m.high) for d, m in counts], group=group)

    best = [(d, masked_parity_one_round_clients(d, EPSILON, 1 - SUCCESS)) for d in masked]
    once = [(d, one_round_bound(d)) for d in masked]
    alone = [(d, local_bound(d)) for d in parity]
    curator = [(d, count.n) for d, count in parity.items()]
    curves = [
        curve(
            "masked parity, one round: the best protocol known, predicted",
            best,
            "theory",
            "masked once",
        ),
        runs("masked parity, one round: measured", "masked-parity-one-round", "masked once"),
        curve(
            "masked parity, one round: proven, no protocol needs fewer",
            once,
            "bound",
            "masked once",
        ),
        runs("masked parity, two rounds: measured", "masked-parity", "masked twice"),
        curve(
            "parity, no curator, each asked once: proven, no protocol needs fewer",
            alone,
            "bound",
            "alone",
        ),
        runs("parity, no curator: measured", "parity-halving", "alone"),
        curve("parity, trusted curator: computed, runs agree", curator, "theory", "curator"),
    ]
    title = f"People needed against dimension, at ε = {EPSILON:g}"
    return LogFigure("separations", title, "dimension d (bits of an example)", "people", curves)


EXPERIMENT = Map()
