"""Parity under a trusted curator: the least n of four private learners against d, their exact
privacy loss, and the proven least number of local clients."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.random import default_rng

from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.curator import (
    exponential_parity_examples,
    packing_parity_examples,
    paper_parity_examples,
    parity_examples,
    parity_success,
    plain_parity_examples,
)
from local_dp.curator.mechanism import SmallDatabases, epsilon_of
from local_dp.curator.oracle_efficient.separated import Parities
from local_dp.curator.parity import gf2
from local_dp.curator.parity.learner import (
    Examples,
    ParityLearner,
    amplified_learner,
    draw_examples,
    exact_learner,
    paper_amplified,
    paper_learner,
    two_runs,
)
from local_dp.curator.selection.exponential import Labelled, OccamLearner, log_probabilities
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    Check,
    Claimed,
    Curve,
    Experiment,
    Finding,
    LogLogFigure,
    Normal,
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
    mean,
    seeded,
    table_of,
    tabulate,
    within,
)
from local_dp.optimise import least_clients

SUCCESS = 0.9
DRAWS = 600  # of a small law
SMALL_D = 2  # of the enumerated databases
BETA = 1 - SUCCESS
ALPHA = 0.25  # of the printed size
ERRORS = 3.9  # standard errors within which the whole numbers of the table lie
ROOM = 6  # standard errors: what is known of a probability that is itself a mean
ABOVE = 1.25  # times the closed form, with which the exponential mechanism is certainly enough
# up to here the exponential mechanism is run; beyond, its closed form stands alone
MEASURED_DIMENSION = 20
APART_FROM, APART = 8, 12  # by the formulas 13.5 times at d = 8

PRINTED, IMPROVED = "A* as printed", "two runs of the improved A"
DEFAULT, MECHANISM = "A* charged exactly", "exponential mechanism"
LEARNERS: dict[str, Callable[[float], ParityLearner]] = {
    PRINTED: lambda epsilon: paper_amplified(epsilon, BETA),
    IMPROVED: two_runs,
    DEFAULT: lambda epsilon: amplified_learner(epsilon, BETA),
}
AUDITED: dict[str, Callable[[float], ParityLearner]] = {
    "A as printed": paper_learner,
    "A with exact constants": exact_learner,
    **LEARNERS,
}


@dataclass(frozen=True)
class Sized:
    """A least n, the exact loss there, and how many of the runs there return the parity."""

    n: int
    loss: float
    successes: int
    trials: int

    @property
    def ends(self) -> tuple[int, int]:
        """All whole numbers that n may be."""
        return self.n, self.n


@dataclass(frozen=True)
class Computed(Sized):
    predicted: float  # the share of successes, by an exact law


@dataclass(frozen=True)
class Searched(Sized):
    """By a search, with the whole numbers within so many standard errors, the closed form, and
    Pr[the parity] on sequences of examples: (mean, error)."""

    low: int
    high: int
    closed: int
    at_n: tuple[float, float]
    at_closed: tuple[float, float]
    above: tuple[float, float]  # with ABOVE times the closed form

    @property
    def ends(self) -> tuple[int, int]:
        return self.low, self.high


class Closed(Row):
    closed: int  # the closed form, beyond MEASURED_DIMENSION


class Learner(Row):
    """The least n of an efficient learner, and runs that confirm it."""

    learner: str
    d: int
    epsilon: float
    trials: int

    def measure(self, seed: int) -> Computed:
        learner = LEARNERS[self.learner](self.epsilon)
        n = parity_examples(learner, self.d, SUCCESS)
        right = 0
        for trial in range(self.trials):
            generator = default_rng([seed, self.d, trial])
            r = gf2.pack(generator.integers(0, 2, self.d).astype(np.uint8))
            examples = draw_examples(self.d, r, n, generator)
            hypothesis = learner.release(examples, seeded(int(generator.integers(1 << 63))))
            right += hypothesis == gf2.mask(r)
        return Computed(n, learner.epsilon, right, self.trials, parity_success(learner, self.d, n))


class Mechanism(Row):
    """The least n at which the mean probability of the true parity reaches SUCCESS, over fixed
    sequences of examples; then fresh runs there.

    `low` to `high` are all n at which SUCCESS is within ERRORS standard errors of that mean: one or
    two whole numbers, too few for a 95 % interval.
    """

    d: int
    epsilon: float
    trials: int

    @property
    def learner(self) -> str:
        return MECHANISM

    def measure(self, seed: int) -> Searched | Closed:
        d, epsilon = self.d, self.epsilon
        closed = exponential_parity_examples(d, epsilon, SUCCESS)
        if d > MEASURED_DIMENSION:
            return Closed(closed)
        trials = max(20, min(self.trials, (1 << 22 if self.trials < 1000 else 1 << 25) >> d))
        weights = cache(lambda n: _truth_weights(d, epsilon, n, trials, seed))

        def least(errors: float) -> int:
            def enough(n: int) -> bool:
                share, error = weights(n)
                return share + errors * error >= SUCCESS

            return least_clients(enough, least=closed // 2)

        low, n, high = least(ERRORS), least(0.0), least(-ERRORS)
        return Searched(
            n,
            epsilon,
            self._successes(n, trials, seed),
            trials,
            low,
            high,
            closed,
            weights(n),
            weights(closed),
            weights(math.ceil(ABOVE * closed)),
        )

    def _successes(self, n: int, trials: int, seed: int) -> int:
        learner, right = OccamLearner(Parities(self.d), self.epsilon), 0
        for trial in range(trials):
            generator = default_rng([seed, self.d, trial, 1])
            r = int(generator.integers(1 << self.d))
            x = generator.integers(0, 1 << self.d, n)
            y = (np.bitwise_count(x & r) & 1).astype(np.int64)
            draws = seeded(int(generator.integers(1 << 63)))
            right += learner.release(Labelled(x, y), draws) == r
        return right


def _truth_weights(d: int, epsilon: float, n: int, trials: int, seed: int) -> tuple[float, float]:
    """The mean over samples of Pr[the true parity is chosen], and its standard error: r = 0 without
    loss of generality."""
    weights = []
    for trial in range(trials):
        x = default_rng([seed, d, trial]).integers(0, 1 << d, n)
        errors = Parities(d).errors(x, np.zeros(n, dtype=np.int64))
        weights.append(math.exp(log_probabilities(-errors, epsilon)[0]))
    figure = mean(weights)
    return figure.value, figure.error


class Loss(Row):
    loss: float  # exactly
    charged: float
    databases: int
    drawn: list[int]  # how often each outcome was, from n examples (1, 1)
    law: list[float]  # of these outcomes


class Privacy(Row):
    """The loss of a learner over all pairs of neighbouring databases of n examples."""

    learner: str
    epsilon: float
    n: int

    def __str__(self) -> str:
        return f"{self.learner}, epsilon {self.epsilon:g}, n = {self.n}"

    def measure(self, seed: int) -> Loss:
        learner = AUDITED[self.learner](self.epsilon)
        universe = list(product(range(1 << SMALL_D), (0, 1)))
        small = SmallDatabases(universe, self.n, lambda pairs: Examples.of(SMALL_D, pairs))
        loss = epsilon_of(max(small.worst_ratios(learner).values()))
        examples, draws = Examples.of(SMALL_D, ((1, 1),) * self.n), seeded(seed)
        law = learner.law(examples)
        counts = Counter(learner.release(examples, draws) for _ in range(DRAWS))
        total = sum(law.values())
        shares = [float(Fraction(weight, total)) for weight in law.values()]
        outcomes = [counts[outcome] for outcome in law]
        return Loss(loss, learner.epsilon, len(universe) ** self.n, outcomes, shares)


Sizes = Rows[Learner | Mechanism, Computed | Searched | Closed]
Runs = Rows[Learner | Mechanism, Computed | Searched]


class Parity(Experiment):
    name = "parity"
    chapter = LOCAL_MODEL
    title = "Parity: easy for a trusted curator, exponential without one"
    claim = (
        "A hidden parity of d bits is learned privately by a trusted curator from a number of "
        "examples that grows linearly with d, while clients who trust nobody and randomize their "
        "own answers provably need about 2^d of them, however often they are asked."
    )
    source = "KLNRS 2008, Section 3.2, Theorem 3.8 and Corollary 4.6; limits 4"

    def points(self, scale: Scale) -> Points:
        """Sizes by learner, d and epsilon; privacy losses by learner, epsilon and n."""
        trials, dimensions = 300, [4, 8, 12, 16, 32]
        if scale == "full":
            trials, dimensions = 2000, [4, 8, 12, 16, 20, 32, 64, 128]
        cases = [(d, 1.0) for d in dimensions]
        cases += [(d, 0.5) for d in (8, 16, 32)]
        points: Points = [
            Learner(name, d, epsilon, trials) for name in LEARNERS for d, epsilon in cases
        ]
        points += [Mechanism(d, epsilon, trials) for d, epsilon in cases]
        for name in AUDITED:
            epsilons = (0.5,) if name == "A as printed" else (0.5, 1.0, 2.0)
            points += grid(Privacy, [name], epsilons, (2, 3))
        return points

    def finding(self, sheet: Sheet) -> Finding:
        sizes: Sizes = [*sheet[Learner], *sheet[Mechanism]]
        losses = sheet[Privacy]
        runs = [(p, m) for p, m in sizes if not isinstance(m, Closed)]
        loss_table = table_of(
            f"Exact privacy loss over all pairs of neighbouring databases, d = {SMALL_D}",
            "learner | nominal epsilon = epsilon | n | databases | loss found = loss : 6 | "
            "loss charged = charged : 6",
            losses,
        )
        checks = [
            _check_exact(losses),
            _check_printed(losses),
            _check_charge(losses),
            _check_drawn(losses),
            *_check_rates(runs),
            _check_closed(runs),
            _check_linear(runs),
            _check_apart(runs),
        ]
        title = "Examples or clients for 90 % exact recovery of a parity, epsilon 1"
        figure = LogLogFigure("parity", title, "dimension d", "least n", _curves(sizes, runs))
        tables = [_size_table(sizes), loss_table]
        return Finding(checks, tables, [figure], _NOTES, headline=_headline(runs))


_NOTES = [
    (
        "A* charged exactly pays for all its runs together, not for their sum; that saves a factor "
        "of about 1.5 over two runs with added budgets."
    ),
    (
        "The exponential mechanism needs 2^d time and, because scores fluctuate, a little more "
        "than its closed form; the other learners are efficient."
    ),
    "The counts of the efficient learners are exact minima. The exponential mechanism's are "
    "measured, with the whole numbers within 3.9 standard errors. The bound for local clients "
    "holds for every kind of interaction, also if clients are asked again. Experiment "
    "one-round-parity measures how many clients the local protocols take.",
]


def _at_one(runs: Runs) -> dict[int, list[int]]:
    """The least numbers of examples of all learners, by d, at epsilon 1."""
    numbers = dict[int, list[int]]()
    for p, m in runs:
        if p.epsilon == 1.0:
            numbers.setdefault(p.d, []).append(m.n)
    return numbers


def _local_bound(d: int) -> float:
    return parity_interactive_bound(d, 1.0, SUCCESS)


def _headline(runs: Runs) -> str:
    numbers = _at_one(runs)
    d = max(d for d in numbers if d <= MEASURED_DIMENSION)
    return (
        f"At d = {d} a parity takes a trusted curator {min(numbers[d]):,} examples, and local "
        f"clients at least {_local_bound(d):,.0f}."
    )


def _check_apart(runs: Runs) -> Check:
    """Against the curator's worst learner."""
    figures = {
        f"d = {d}": _local_bound(d) / max(ns) for d, ns in _at_one(runs).items() if d >= APART_FROM
    }
    return within(
        f"From d = {APART_FROM} on every local protocol, however it asks, provably takes at least "
        f"{APART:g} times what any of these learners takes",
        figures,
        APART,
    )


def _curves(sizes: Sizes, runs: Runs) -> list[Curve]:
    """n against d at epsilon 1, with the packing bound and elimination without privacy."""
    curves = []
    for name in (*LEARNERS, MECHANISM):
        own = [(p, m) for p, m in runs if (p.learner, p.epsilon) == (name, 1.0)]
        curves.append(curve_of(f"curator: {name}", "d | n | ends.0 | ends.1", own))
    forms = [(p, m) for p, m in sizes if isinstance(m, Closed) and p.epsilon == 1.0]
    dimensions = [int(d) for d in curves[0].x]
    packing = [(d, packing_parity_examples(d, 1.0, SUCCESS)) for d in dimensions]
    plain = [(d, plain_parity_examples(d, SUCCESS)) for d in dimensions]
    clients = [(d, _local_bound(d)) for d in dimensions if d <= MEASURED_DIMENSION]
    limit = "curator: no purely private learner below (packing, to first order)"
    return [
        *curves,
        curve_of(f"curator: {MECHANISM}, closed form, not run", "d | closed", forms, "theory"),
        curve(limit, packing, "bound"),
        curve("without privacy", plain, "theory"),
        curve("local clients, however asked, proven limit", clients, "bound"),
    ]


def _size_table(sizes: Sizes) -> Table:
    rows: list[tuple[Any, ...]] = []
    for p, m in sizes:
        setting = p.learner, p.epsilon, p.d
        if isinstance(m, Closed):
            form = (m.closed, "closed form, not run", "closed form", m.closed)
            rows.append((*setting, *form, round(p.epsilon, 4)))
            continue
        kind, formula = "exact", None
        if isinstance(m, Searched):
            kind, formula = f"measured [{m.low}, {m.high}]", m.closed
        elif p.learner == PRINTED:
            formula = paper_parity_examples(p.d, p.epsilon, ALPHA, BETA)
        rate = str(Rate(m.successes, m.trials))
        rows.append((*setting, m.n, kind, rate, formula, round(m.loss, 4)))
    headings = (
        f"learner | epsilon | d | least n | kind [at {ERRORS:g} standard errors] | exact "
        "recoveries at n [95 %] | n by formula | exact loss"
    )
    return tabulate("Trusted curator: examples for 90 % exact recovery, uniform x", headings, rows)


def _check_exact(losses: Rows[Privacy, Loss]) -> Check:
    gaps = [abs(m.loss - p.epsilon) for p, m in losses if p.learner == "A with exact constants"]
    return Check(
        "the learner A with p = tanh(eps/2) and no answer with probability 1/(e^eps + 2) "
        "loses exactly epsilon",
        max(gaps) < 1e-9,
        f"largest difference {max(gaps):.1e} over {len(gaps)} enumerations",
    )


def _check_printed(losses: Rows[Privacy, Loss]) -> Check:
    rows = [(p.epsilon, m.loss) for p, m in losses if p.learner == "A as printed"]
    facts = []
    for eps, loss in rows:
        law = math.log((1 + eps / 4) / (1 - eps / 4))
        facts.append((abs(loss - law) < 1e-9, f"{loss:.4f} at a nominal {eps:g}"))
    return every(
        "the learner A as printed loses ln((1 + eps/4) / (1 - eps/4)), about half of the "
        "epsilon it is charged",
        facts,
    )


def _check_charge(losses: Rows[Privacy, Loss]) -> Check:
    excess = max(m.loss - m.charged for _, m in losses)
    over = max(m.charged - p.epsilon for p, m in losses)
    return Check(
        "no learner loses more than its exact charge, nor is charged more than epsilon, on "
        "any pair of neighbours",
        excess < 1e-12 and over < 1e-12,
        f"{len(losses)} enumerations; largest loss minus charge {excess:.1e}, largest charge "
        f"minus epsilon {over:.1e}",
    )


def _check_drawn(losses: Rows[Privacy, Loss]) -> Check:
    laws = {str(p): (m.drawn, m.law) for p, m in losses}
    return drawn("every learner is drawn from the law whose loss was enumerated", laws)


def _check_rates(runs: Runs) -> list[Check]:
    """The runs of all sizes of a learner together: a count of successes of unequal chances varies
    less than a binomial one of their mean (Hoeffding 1956).

    The mechanism's probability is a mean over other sequences of examples, and known to ROOM of its
    standard errors.
    """
    laws: dict[str, list[tuple[int, int, float, float]]] = {}
    chances = {}
    for name in LEARNERS:
        exact = [m for p, m in runs if p.learner == name and isinstance(m, Computed)]
        laws[name] = [(m.trials, m.successes, m.predicted, 0.0) for m in exact]
        if exact:
            chances[f"{name}, the least"] = min(m.predicted for m in exact)
            chances[f"{name}, the most"] = max(m.predicted for m in exact)
    laws[MECHANISM] = [(m.trials, m.successes, *m.at_n) for _, m in runs if isinstance(m, Searched)]
    claims = {}
    for name, rows in laws.items():
        trials = sum(each for each, *_ in rows)
        chance = sum(each * mean for each, _, mean, _ in rows) / max(trials, 1)
        error = math.hypot(*(each * error for each, _, _, error in rows))
        room = ROOM * error / max(trials, 1)
        rate = Rate(sum(successes for _, successes, *_ in rows), trials)
        label = f"{name}, {chance:.4f} by its law" + (f" to {room:.4f}" if room else "")
        claims[label] = Claimed(rate, chance - room, chance + room)
    return [
        holds(
            "the runs of each learner at its least n, all sizes together, return the parity "
            "as often as its law says",
            claims,
        ),
        within(
            "by its exact law each efficient learner returns the parity with 90 % at its n, "
            "at most half a point more",
            chances,
            SUCCESS,
            SUCCESS + 0.005,
        ),
    ]


def _check_closed(runs: Runs) -> Check:
    """The closed form puts e^(-eps E[errors] / 2) for E[e^(-eps errors / 2)], which is more."""
    claims = {}
    for p, m in runs:
        if isinstance(m, Searched):
            name = f"d = {p.d}, epsilon {p.epsilon:g}, {m.closed}"
            below, above = (Normal(*each, m.trials - 1) for each in (m.at_closed, m.above))
            claims[name] = Claimed(below, high=SUCCESS)
            claims[f"times {ABOVE:g}, {name}"] = Claimed(above, SUCCESS)
    return holds(
        "the exponential mechanism succeeds in less than 90 % with its closed form, "
        f"in more with {ABOVE:g} times that",
        claims,
    )


def _check_linear(runs: Runs) -> Check:
    """The mechanism is there by its closed form, below which it fails."""
    by_learner: dict[str, dict[int, int]] = {}
    for p, m in runs:
        if p.epsilon == 1.0:
            by_learner.setdefault(p.learner, {})[p.d] = m.closed if isinstance(m, Searched) else m.n
    growth, margins = {}, []
    for name, ns in by_learner.items():
        first, last = min(ns), max(ns)
        growth[name] = ns[last] / ns[first] * first / last
        margins += [n / packing_parity_examples(d, 1.0, SUCCESS) for d, n in ns.items()]
    ordered = all(
        by_learner[DEFAULT][d] < by_learner[IMPROVED][d] < by_learner[PRINTED][d]
        for d in by_learner.get(DEFAULT, {})
    )
    falls = ", ".join(f"{100 * share:.0f} % ({name})" for name, share in growth.items())
    return Check(
        "a curator needs a number of examples linear in d, never below the packing bound, and "
        "exact charging needs the fewest of the efficient learners",
        max(growth.values()) <= 1 and min(margins) >= 1 and ordered,
        f"n / d from the least to the greatest d falls to {falls}; the nearest is "
        f"{min(margins):.2f} times the packing bound (to first order)",
    )


EXPERIMENT = Parity()
