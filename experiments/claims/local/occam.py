"""Private Occam: the exponential mechanism learns any finite class, and how many examples that
takes."""

import math
from collections import Counter
from dataclasses import dataclass
from itertools import product
from statistics import linear_regression

import numpy as np
from numpy.random import Generator, default_rng
from scipy import special

from local_dp.arrays import Floats, Ints
from local_dp.bounds.curator import (
    occam_examples,
    occam_examples_printed,
    occam_examples_realizable,
    occam_examples_uniform,
)
from local_dp.curator.mechanism import SmallDatabases, epsilon_of
from local_dp.curator.oracle_efficient.separated import Parities, Thresholds
from local_dp.curator.selection.exponential import (
    ExponentialMechanism,
    HypothesisClass,
    Labelled,
    OccamLearner,
)
from local_dp.experiments.lab.parts import (
    CURATOR_AND_ATTACKS,
    Check,
    Claimed,
    Experiment,
    Figure,
    Finding,
    LogLogFigure,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    curve,
    curve_of,
    drawn,
    every,
    grid,
    holds,
    log_choose,
    measured,
    quantile,
    seeded,
    tabulate,
    within,
)
from local_dp.optimise import crossing, least_clients

BETA = 0.1
# the share of runs, over all n, that may exceed the proven alpha; it is about a thousandth
FAILING = 0.01
DRAWS = 1500  # of a small law
# the class of the error curves: thresholds on 256 points, the best one at 100
POINTS, TARGET = 256, 100
# the class of the sizes: independent features, one of them better by alpha than all others
HYPOTHESES = 1024
FLIP = {"realizable": 0.0, "agnostic": 0.2}  # share of labels flipped at random
EXPONENT = {"realizable": -1.0, "agnostic": -2.0}  # of alpha in the number of examples

TRIALS = {"quick": 400, "full": 2000}


def enough(case: str, size: int, epsilon: float, alpha: float) -> int:
    """The proven n of the case."""
    bound = occam_examples_realizable if case == "realizable" else occam_examples
    return bound(size, epsilon, alpha, BETA)


def guaranteed_error(case: str, size: int, epsilon: float, n: int) -> float:
    """The least alpha whose proven n is at most n; 1 if there is none."""

    def few(alpha: float) -> bool:
        return enough(case, size, epsilon, alpha) > n

    _, least = crossing(1e-6, 1 - 1e-9, few, 50)
    return 1.0 if few(least) else least


class Excess(Row):
    quantile: float  # the 90 % quantile, with its 95 % interval
    low: float
    high: float
    bound: float  # the proven alpha
    failures: int  # runs above it


class Error(Row):
    """How far the error of the chosen threshold lies above the best one's, with n examples."""

    case: str
    epsilon: float
    n: int
    trials: int

    def steps_off(self, seed: int) -> Ints:
        """The number of points of the grid by which the chosen threshold is above the best one, in
        each trial."""
        learner, steps = OccamLearner(Thresholds(POINTS), self.epsilon), []
        for trial in range(self.trials):
            generator = default_rng([seed, self.n, trial])
            x = generator.integers(0, POINTS, self.n)
            flips = generator.random(self.n) < FLIP[self.case]
            examples = Labelled(x, ((x >= TARGET) ^ flips).astype(np.int64))
            draws = seeded(int(generator.integers(1 << 63)))
            steps.append(learner.release(examples, draws) - TARGET)
        return np.array(steps)

    def measure(self, seed: int) -> Excess:
        steps, unit = self.steps_off(seed), (1 - 2 * FLIP[self.case]) / POINTS
        away = _within_steps(steps, default_rng([seed, self.n]))
        middle, low, high = (unit * end for end in quantile(away.tolist(), 1 - BETA))
        bound = guaranteed_error(self.case, POINTS + 1, self.epsilon, self.n)
        return Excess(middle, low, high, bound, int(np.sum(unit * np.abs(steps) > bound)))


@dataclass(frozen=True)
class Chosen:
    n: int
    successes: int  # runs with n examples that choose the best feature
    chance: float  # of that, exactly


class Sizes(Row):
    """Runs at the least n, at the proven and at the printed n."""

    least: Chosen
    proven: Chosen
    printed: Chosen


class Size(Row):
    """The least n at which the best feature is chosen with probability 1 - BETA, by the exact
    law."""

    case: str
    epsilon: float
    alpha: float
    trials: int

    def chance(self, n: int) -> float:
        """Of the best feature, with n examples."""
        return best_chosen(self.case, self.epsilon, self.alpha, n)

    def runs(self, n: int, seed: int) -> Chosen:
        mechanism = ExponentialMechanism(_fewest_errors, self.epsilon)
        generator, right = default_rng([seed, n, 1]), 0
        draws = seeded(int(generator.integers(1 << 63)))
        for _ in range(self.trials):
            errors = _draw_errors(self.case, self.alpha, n, generator)
            right += mechanism.release(errors, draws) == 0
        return Chosen(n, right, self.chance(n))

    def measure(self, seed: int) -> Sizes:
        least = least_clients(lambda n: self.chance(n) >= 1 - BETA)
        proven = enough(self.case, HYPOTHESES, self.epsilon, self.alpha)
        paper = occam_examples_printed(HYPOTHESES, self.epsilon, self.alpha, BETA)
        return Sizes(*(self.runs(n, seed) for n in (least, proven, paper)))


class Loss(Row):
    loss: float  # over all pairs of neighbours, exactly
    drawn: list[int]  # how often each outcome of one database was
    law: list[float]  # of these outcomes


class Privacy(Row):
    """The privacy of a small class on databases of three examples."""

    hypotheses: str
    epsilon: float

    def measure(self, seed: int) -> Loss:
        parities = self.hypotheses == "parities"
        hypotheses: HypothesisClass = Parities(2) if parities else Thresholds(3)
        small = SmallDatabases(list(product(range(4 if parities else 3), (0, 1))), 3, Labelled.of)
        learner, draws = OccamLearner(hypotheses, self.epsilon), seeded(seed)
        database = Labelled.of(((0, 0), (1, 1), (2, 1)))
        law = learner.law(database)
        counts = Counter(learner.release(database, draws) for _ in range(DRAWS))
        whole = sum(law.values())
        shares = [weight / whole for weight in law.values()]
        loss = epsilon_of(max(small.worst_ratios(learner).values()))
        return Loss(loss, [counts[hypothesis] for hypothesis in law], shares)


class Occam(Experiment):
    name = "occam"
    chapter = CURATOR_AND_ATTACKS
    title = (
        "Private Occam: whatever can be learned at all can be learned privately by a trusted "
        "curator"
    )
    claim = (
        "A trusted curator who picks a hypothesis with probability falling exponentially in its "
        "errors learns any finite class H privately: to come within alpha of the best takes about "
        "ln |H| / alpha examples if some hypothesis is perfect and ln |H| / alpha^2 if none is."
    )
    source = "KLNRS 2008, Theorems 3.6 and 3.7; limits 4.1"

    def points(self, scale: Scale) -> Points:
        trials, epsilons = TRIALS[scale], (0.5,) if scale == "quick" else (0.1, 0.5, 2.0)
        points = grid(Error, FLIP, epsilons, [50 << k for k in range(9)], [trials])
        points += grid(Size, FLIP, [1.0], (0.02, 0.04, 0.08, 0.16), [trials])
        return points + grid(Privacy, ("parities", "thresholds"), (0.5, 1.0, 2.0))

    def finding(self, sheet: Sheet) -> Finding:
        errors, least = sheet[Error], sheet[Size]
        checks = [
            *_check_privacy(sheet[Privacy]),
            _check_errors(errors),
            *_check_sizes(least),
            _check_slopes(least),
            _check_printed(least),
        ]
        tables = [_error_table(errors), _size_table(least)]
        figures = [*_error_figures(errors), _size_figure(least)]
        return Finding(checks, tables, figures, _NOTES, headline=_headline(least))


_NOTES = [
    "The proven sizes rest on one inequality, Pr[h] <= min(1, e^(-eps (errors of h - errors of the "
    "best) / 2)), instead of uniform convergence. They show that the printed size of Theorem 3.7 "
    "is enough without a perfect hypothesis too. The printed proof does not cover that case.",
    (
        "The error of thresholds with random label noise falls like 1/n, faster than in general. "
        "The class of independent features needs 1/alpha^2."
    ),
    "If one of these features is perfect, the least n almost reaches the proven n. If none is, the "
    "proof loses a factor of 2, because each feature disagrees with the best on half of the "
    "examples only.",
    (
        "A threshold lies anywhere between its two neighbouring points, so the quantile of its "
        "error has a continuous law."
    ),
]


def _within_steps(steps: Ints, generator: Generator) -> Floats:
    """The distance of thresholds that lie anywhere between the two points they part: a continuous
    law, as the interval of a quantile needs."""
    away: Floats = np.abs(steps + generator.random(len(steps)) - 0.5)
    return away


def _error_rates(case: str, alpha: float) -> tuple[float, float]:
    """The error of the best feature and of every other one."""
    return (0.0, alpha) if case == "realizable" else (0.5 - alpha, 0.5)


def best_chosen(
    case: str, epsilon: float, alpha: float, n: int, hypotheses: int = HYPOTHESES
) -> float:
    """Pr[the best feature is chosen], examples and mechanism together: exact up to the error of
    quadrature.

    The exponential mechanism chooses the largest of the scores -eps errors / 2, each plus a Gumbel
    variable of its own (McSherry, Talwar 2007). The errors are independent binomial counts, so the
    others are all below x with probability F(x)^(hypotheses - 1).
    """
    rates, half = _error_rates(case, alpha), epsilon / 2
    (best, chances), (others, other_chances) = (_binomial(n, rate) for rate in rates)
    own, step = np.linspace(-half * best.max() - 6, -half * best.min() + 40, 1500, retstep=True)
    fall = np.exp(np.minimum(-(own[:, None] + half * best), 50))
    other_fall = np.exp(np.minimum(-(own[:, None] + half * others), 50))
    density = (fall * np.exp(-fall)) @ chances
    below = np.exp(-other_fall) @ other_chances
    return min(1.0, float(step * (density @ below ** (hypotheses - 1))))


def _binomial(n: int, rate: float) -> tuple[Floats, Floats]:
    """The counts within nine standard errors, and their probabilities."""
    reach = 9 * math.sqrt(n * rate * (1 - rate)) + 9
    low = max(0, math.floor(n * rate - reach))
    high = min(n, math.ceil(n * rate + reach))
    counts = np.arange(low, high + 1.0)
    logs = log_choose(n, counts) + special.xlogy(counts, rate)
    return counts, np.exp(logs + special.xlog1py(n - counts, -rate))


def _draw_errors(case: str, alpha: float, n: int, generator: Generator) -> np.ndarray:
    """The errors of HYPOTHESES independent features on n examples, the first one best by alpha:
    exact in law."""
    best, others = _error_rates(case, alpha)
    first = generator.binomial(n, best, 1)
    return np.append(first, generator.binomial(n, others, HYPOTHESES - 1)).astype(np.int64)


def _fewest_errors(errors: Ints) -> Ints:
    return -errors


def _check_privacy(privacy: Rows[Privacy, Loss]) -> list[Check]:
    laws = {f"{p.hypotheses}, epsilon {p.epsilon:g}": (m.drawn, m.law) for p, m in privacy}
    losses = [(m.loss <= p.epsilon, f"{m.loss:.4f} of {p.epsilon:g}") for p, m in privacy]
    statement = (
        "the loss of the sampled law, rounding included, is at most epsilon over all pairs of "
        "neighbouring databases"
    )
    return [every(statement, losses), drawn("the hypotheses are drawn from that law", laws)]


def _check_errors(errors: Rows[Error, Excess]) -> Check:
    """By the theorem the truth is at most BETA, at every n; here it is some thousandths, so its
    mean over n says more."""
    rates = {}
    for case in FLIP:
        own = [(p, m) for p, m in errors if p.case == case]
        rates[case] = Rate(sum(m.failures for _, m in own), sum(p.trials for p, _ in own))
    return measured(
        f"the chosen hypothesis exceeds the proven alpha in at most {FAILING:.0%} of the runs "
        f"at all n together (the theorem allows {BETA:.0%} at each)",
        rates,
        high=FAILING,
    )


def _check_sizes(least: Rows[Size, Sizes]) -> list[Check]:
    """A count of successes of unequal chances varies less than a binomial one of their mean
    (Hoeffding 1956)."""
    claims, trials = {}, sum(p.trials for p, _ in least)
    for kind in ("least", "proven", "printed"):
        runs: list[Chosen] = [getattr(m, kind) for _, m in least]
        chance = float(np.mean([each.chance for each in runs]))
        rate = Rate(sum(each.successes for each in runs), trials)
        claims[f"the {kind} n, {chance:.4f} by its law"] = Claimed(rate, chance, chance)
    ratios = {f"{p.case}, alpha {p.alpha:g}": m.proven.n / m.least.n for p, m in least}
    return [
        holds(
            "runs choose the best as often as the exact law says: at the least n in "
            f"{1 - BETA:.0%}, at the proven and the printed n in no fewer",
            claims,
        ),
        within(
            "the proven n is at least the least n, and at most four times it (in units of it)",
            ratios,
            1,
            4,
        ),
    ]


def _headline(least: Rows[Size, Sizes]) -> str:
    """The counts at the smallest error."""
    alpha = min(p.alpha for p, _ in least)
    own = [(p.case, m.least.n, m.proven.n) for p, m in least if p.alpha == alpha]
    counts = "; ".join(f"{case}, {n:,} ({proven:,} proven)" for case, n, proven in own)
    return (
        f"The best of {HYPOTHESES:,} rules, to an excess error of {alpha:g} at epsilon 1, takes "
        f"so many examples: {counts}."
    )


def _check_slopes(least: Rows[Size, Sizes]) -> Check:
    """The exponents of alpha in the exact least n, in units of the theorem's."""
    ratios = {}
    for case, expected in EXPONENT.items():
        sizes = [(math.log(p.alpha), math.log(m.least.n)) for p, m in least if p.case == case]
        exponent = linear_regression(*zip(*sizes, strict=True)).slope
        ratios[f"{case}, of {expected:g}"] = exponent / expected
    return within(
        "the least n grows like 1/alpha with a perfect hypothesis and like 1/alpha^2 without "
        "(exponent over the theorem's)",
        ratios,
        0.95,
        1.05,
    )


def _check_printed(least: Rows[Size, Sizes]) -> Check:
    ratios = [m.printed.n / occam_examples(HYPOTHESES, p.epsilon, p.alpha, BETA) for p, m in least]
    chance = min(m.printed.chance for _, m in least)
    return Check(
        "the printed size of Theorem 3.7 is at least the proven agnostic one, and enough: the "
        "theorem holds agnostically although its proof does not",
        min(ratios) >= 1 and chance >= 1 - BETA,
        f"printed over proven from {min(ratios):.3f} to {max(ratios):.3f}; at the printed n "
        f"the best is chosen with probability {chance:.4f} or more",
    )


def _error_table(errors: Rows[Error, Excess]) -> Table:
    rows = []
    for p, m in errors:
        rate = str(Rate(m.failures, p.trials))
        rows.append((p.case, p.epsilon, p.n, round(m.quantile, 4), round(m.bound, 4), rate))
    headings = (
        "case | epsilon | n | 90 % quantile of the excess error | proven alpha | above it [95 %]"
    )
    return tabulate(f"Excess error of thresholds on {POINTS} points", headings, rows)


def _size_table(least: Rows[Size, Sizes]) -> Table:
    rows = []
    for p, m in least:
        formulas = (
            size(HYPOTHESES, p.epsilon, p.alpha, BETA)
            for size in (occam_examples_printed, occam_examples_uniform)
        )
        rate = str(Rate(m.least.successes, p.trials))
        rows.append((p.case, p.epsilon, p.alpha, m.least.n, rate, m.proven.n, *formulas))
    return tabulate(
        f"Examples for an excess error below alpha with probability 90 %, {HYPOTHESES} "
        "independent features",
        "case | epsilon | alpha | least n | successes at n [95 %] | proven n | printed n | n "
        "by uniform convergence",
        rows,
    )


def _error_figures(errors: Rows[Error, Excess]) -> list[Figure]:
    figures = list[Figure]()
    for epsilon in sorted({p.epsilon for p, _ in errors}):
        curves = []
        for case in FLIP:
            here = [row for row in errors if (row[0].case, row[0].epsilon) == (case, epsilon)]
            curves += [
                curve_of(f"{case}, measured", "n | quantile | low | high", here),
                curve_of(f"{case}, proven", "n | bound", here, "bound"),
            ]
        title = f"Error above the best threshold, exceeded in 10 % of runs, epsilon {epsilon:g}"
        figures.append(
            LogLogFigure(f"occam-error-{epsilon:g}", title, "examples n", "excess error", curves)
        )
    return figures


def _size_figure(least: Rows[Size, Sizes]) -> Figure:
    curves = []
    for case in FLIP:
        here = [row for row in least if row[0].case == case]
        curves += [
            curve_of(f"{case}, least", "alpha | least.n", here),
            curve_of(f"{case}, proven", "alpha | proven.n", here, "bound"),
        ]
    for label, size in (
        ("printed, agnostic", occam_examples_printed),
        ("by uniform convergence, agnostic", occam_examples_uniform),
    ):
        sizes = [(alpha, size(HYPOTHESES, 1.0, alpha, BETA)) for alpha in curves[-1].x]
        curves.append(curve(label, sizes, "theory"))
    return LogLogFigure(
        "occam-size",
        f"Examples to pick the best of {HYPOTHESES} features, epsilon 1",
        "advantage alpha",
        "least n",
        curves,
    )


EXPERIMENT = Occam()
