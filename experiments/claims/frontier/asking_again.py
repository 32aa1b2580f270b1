"""Where asking again cannot help: parity stays exponential for fully interactive protocols, by
cutting transcripts and pasting them."""

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds import channels
from local_dp.bounds.channels import parity_interactive_bound, pasting_constant
from local_dp.bounds.parity import parity_halving_clients
from local_dp.bounds.response import response_gain
from local_dp.cube import character
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
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
    curve_of,
    every,
    exact_recovery,
    grid,
    measured,
    own_seed,
    tabulate,
    within,
)
from local_dp.hardness.transcripts import (
    WorstProtocols,
    cut_distances,
    cut_inputs,
    random_protocol,
    transcript_laws,
)
from local_dp.protocols.parity.parity import ParityHalving

EPSILON, SUCCESS, VARIATION = 1.0, 0.9, 0.1
TURNS = {2: 6, 4: 8, 8: 10}
SEARCHES = {
    "quick": ((2, 8, 20, 400.0), (4, 16, 7, 100.0)),  # clients, turns, steps and reach of the grid
    "full": ((2, 8, 20, 400.0), (2, 16, 40, 1000.0), (4, 16, 7, 100.0)),
}
EPSILONS = (0.5, 1.0, 2.0)
HALVING = (
    0.89,
    0.94,
    # the success at the formula's count: .912 to .920 in 2,000 to 20,000 runs at each d, as
    # measured with seed 5
)
NEAR = 0.92  # of the constant for two clients: a search reaches this share
DRAWN = range(4, 13)  # the d of the figure


class Distances(Row):
    whole: float  # h^2 of all clients together
    parts: float  # the sum of h^2 of each alone

    @property
    def ratio(self) -> float:
        return self.whole / self.parts if self.parts else (math.inf if self.whole else 0.0)


class Drawn(Row):
    """The protocol of the largest ratio among some that are drawn at random."""

    clients: int
    turns: int
    count: int

    def measure(self, seed: int) -> Distances:
        generator, inputs = default_rng(seed), cut_inputs(self.clients)
        distances = []
        for _ in range(self.count):
            protocol = random_protocol(self.clients, self.turns, generator)
            distances.append(Distances(*cut_distances(transcript_laws(protocol, inputs))))
        return max(distances, key=lambda each: each.ratio)


class Worst(Row):
    """The worst protocol that a search finds."""

    clients: int
    turns: int
    steps: int
    reach: float

    def measure(self, seed: int) -> Distances:
        protocol, _ = WorstProtocols(self.clients, self.turns, self.steps, self.reach).find()
        return Distances(*cut_distances(transcript_laws(protocol, cut_inputs(self.clients))))


class Curator(Row):
    """A curator who sees all bits and answers their AND by randomized response: epsilon-private,
    but nothing factors."""

    clients: int

    def measure(self, seed: int) -> Distances:
        bits = cut_inputs(self.clients).all(axis=1)
        true = 1 / (1 + math.exp(-EPSILON))
        ones = np.where(bits, true, 1 - true)
        return Distances(*cut_distances(np.stack([1 - ones, ones], axis=1)))


class Information(Row):
    # the mean over parities of the h^2 that one report puts between the parity and random labels:
    # by the best channel
    best: float
    masks: float  # by randomized parities


class Person(Row):
    """One report about a parity of d bits."""

    d: int
    epsilon: float

    def measure(self, seed: int) -> Information:
        best = channels.best_channel(
            self.epsilon, 2 << self.d, lambda columns: parity_distances(columns, self.d)
        ).value
        shrink = 1 / response_gain(self.epsilon)
        masks = (shrink_distance(shrink) + shrink_distance(-shrink)) / 2 / 2**self.d
        return Information(best, masks)

    @property
    def bound(self) -> float:
        squares = channels.report_squares(self.epsilon)
        return channels.affinity_curvature(self.epsilon) * squares / float(2**self.d)


class Tests(Row):
    carried: float  # by the best report, relative to yes or no
    clients: int  # by yes or no
    fewer: int  # by the best report
    reports: int  # of the best report
    two: int  # the correct tests by yes or no
    best: int  # and by the best report


class Laws(Row):
    """How often the likelier of two laws is the right one."""

    epsilon: float
    trials: int

    def measure(self, seed: int) -> Tests:
        generator = default_rng(seed)
        shrunk = VARIATION / response_gain(self.epsilon)
        best = channels.best_two_laws(self.epsilon, VARIATION)
        likely = 1 + shrunk
        unlikely = 1 - shrunk
        two = np.array([[likely, unlikely], [unlikely, likely]]) / 2
        gain = best.value / (1 - math.sqrt(1 - shrunk**2))
        clients = channels.two_laws_clients(self.epsilon, VARIATION, 1 - SUCCESS)
        fewer = math.ceil(clients / gain)
        reports = np.array([best.columns @ law for law in channels.easiest_laws(VARIATION)])
        right = correct(two, clients, self.trials, generator)
        best_right = correct(reports, fewer, self.trials, generator)
        return Tests(gain, clients, fewer, len(best.columns), right, best_right)

    @property
    def unit(self) -> float:
        """C^2 / t^2."""
        return (response_gain(self.epsilon) / VARIATION) ** 2

    @property
    def bounds(self) -> tuple[float, float]:
        """The least clients of protocols that ask in turn, and of all protocols."""
        point = (self.epsilon, VARIATION, SUCCESS)
        return channels.two_laws_in_turn_bound(*point), channels.two_laws_asked_again_bound(*point)


class Recovery(Row):
    clients: int  # by the formula
    successes: int


class Halving(Row):
    """How often halving, which asks in turn, finds a parity."""

    d: int
    trials: int

    def measure(self, seed: int) -> Recovery:
        clients = parity_halving_clients(self.d, EPSILON, 1 - SUCCESS)
        own = own_seed("asking again", seed, self.d)
        recovery = exact_recovery(ParityHalving(d=self.d), EPSILON, own)
        return Recovery(clients, recovery(clients, self.trials))


def limit(point: Drawn | Worst) -> float:
    """What all clients together reveal at most, in units of the sum of what each reveals alone."""
    return pasting_constant(point.clients)


def shrink_distance(change: float) -> float:
    """1 + t/2 - sqrt(1 + t): what a report adds to h^2, per probability, if its own probability
    changes by the factor 1 + t."""
    return change**2 / (2 * (1 + math.sqrt(1 + change)) ** 2)


def parity_distances(columns: Floats, d: int) -> Floats:
    """The mean over r of a report's (sqrt M_r - sqrt M)^2 / 2; the first 2^d symbols bear the label
    +1, the others -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    points = np.arange(1 << d, dtype=np.uint64)
    signs = np.array([character(r, points) for r in range(1 << d)])
    labels = ((plus - minus) / 2) @ signs.T / 2**d
    random = ((plus + minus) / 2).mean(axis=-1, keepdims=True)
    differences = np.sqrt(random + labels) - np.sqrt(random)
    distances: Floats = (differences**2).mean(axis=-1) / 2
    return distances


def correct(reports: Floats, clients: int, trials: int, generator: Generator) -> int:
    """The trials, half of them under either law of a report, in which the right law is the likelier
    one; a fair coin decides a tie."""
    scores = np.log(reports[0] / reports[1])
    sums = []
    for law, sign in zip(reports, (1, -1), strict=True):
        counts = generator.multinomial(clients, law / law.sum(), size=trials // 2)
        sums.append(sign * (counts @ scores))
    right = 0
    for total in sums:
        coins = generator.random(len(total)) < 0.5
        right += int(np.where(np.abs(total) < 1e-9, coins, total > 0).sum())
    return right


class AskingAgain(Experiment):
    name = "asking-again"
    chapter = FRONTIER
    title = "Parity stays exponential, however often one asks"
    claim = (
        "To find a hidden parity of d bits takes of the order of 2^d people, even if everybody "
        "may be questioned again and again. All answers together reveal at most 3.47 times the "
        "sum of each person's share, no matter who is asked or how often. A share is a squared "
        "Hellinger distance: the answers of one person among strangers."
    )
    source = "limits 12.3; Jayram 2009"

    def points(self, scale: Scale) -> Points:
        count, trials = (100, 200_000) if scale == "quick" else (1000, 2_000_000)
        protocols = (Drawn(n, turns, count) for n, turns in TURNS.items())
        searches = (Worst(*search) for search in SEARCHES[scale])
        people = grid(Person, (1, 2), (*EPSILONS, 3.0))
        laws = (Laws(epsilon, trials) for epsilon in EPSILONS)
        halving = (
            Halving(d, 1000) for d in ((4, 6, 8, 10) if scale == "quick" else (4, 6, 8, 10, 12))
        )
        return [
            *protocols,
            *searches,
            *map(Curator, TURNS),
            *people,
            *laws,
            *halving,
        ]

    def finding(self, sheet: Sheet) -> Finding:
        halving, laws = sheet[Halving], sheet[Laws]
        # the largest of equally many clients last
        worst = sorted(sheet[Worst], key=lambda row: (row[0].clients, row[1].ratio))
        checks = [*_check_shares(sheet, worst), *_check_parity(halving), *_check_laws(laws)]
        tables = [
            _parity_table(halving),
            _ratio_table(sheet[Drawn], worst),
            _laws_table(laws),
        ]
        figures = [
            _parity_figure(halving),
            _ratio_figure(sheet[Drawn], worst),
            _laws_figure(laws),
        ]
        return Finding(checks, tables, figures, NOTES, headline=_headline(halving))


NOTES = [
    f"Parity: epsilon {EPSILON:g}, found exactly with probability {SUCCESS:.0%}. Halving asks "
    "nobody twice; no protocol that asks again is known to do better. The bound for all protocols "
    "adds divergences up exactly (experiment parity-any-rounds); the squared distances here bound "
    "large epsilon.",
    "Protocols written out: a tree of single bits, where any client may speak at each node; half "
    "of the tree's probabilities lie near 0 or 1. The worst one is searched for on a grid of "
    "likelihood ratios, so a worse one may exist.",
    "Two laws: any two at this total variation. The best report is found among the 8 columns that "
    "matter. It gains where each law has a part that the other lacks, and they share the rest. "
    "Between two laws of two symbols yes or no is the best report.",
]


def _check_shares(sheet: Sheet, worst: Rows[Worst, Distances]) -> Iterator[Check]:
    """What all reveal together, against the sum of what each reveals alone."""
    cases = []
    for p, m in sheet[Drawn]:
        verdict = m.ratio <= limit(p) * (1 + 1e-9)
        cases.append((verdict, f"{m.ratio:.3f} of {limit(p):.3f} with {p.clients} clients"))
    yield every(
        (
            "In protocols drawn at random and written out, all clients together are never "
            "farther apart than the constant times the sum of each alone"
        ),
        cases,
    )
    cases = []
    for point, m in worst:
        verdict = NEAR * (point.clients == 2) <= m.ratio / limit(point) <= 1
        cases.append((verdict, f"{m.ratio:.4f} of {limit(point):.4f} with {point.clients} clients"))
    yield every(
        (
            "The worst protocols that a search finds stay below it too, and for two "
            f"clients reach {NEAR:.0%} of it: no much smaller constant is true"
        ),
        cases,
    )
    cases = []
    for curator, m in sheet[Curator]:
        verdict = m.whole > pasting_constant() * m.parts
        evidence = f"{curator.clients} clients: {m.whole:.3f} together, {m.parts:.3f} in sum"
        cases.append((verdict, evidence))
    yield every(
        "A curator's private answer, which does not factor, breaks it: the AND of all bits", cases
    )
    cases = []
    for person, m in sheet[Person]:
        share = m.best / person.bound
        verdict = max(share, m.masks / m.best) <= 1 + 1e-9
        cases.append((verdict, f"{share:.2f} (d = {person.d}, epsilon {person.epsilon:g})"))
    yield every(
        (
            "No report of one person carries more than the bound's share of a parity: the "
            "best channel's information, in units of the bound"
        ),
        cases,
    )


def _check_parity(rows: Rows[Halving, Recovery]) -> Iterator[Check]:
    bounds = [least(d) for d in (*DRAWN, DRAWN[-1] + 1)]
    units = {}
    for p, m in rows:
        most = 1.9 if p.d >= 8 else 2.3
        units[f"d = {p.d}"] = m.clients / least(p.d) / most
    yield within(
        "With each bit the people that every protocol needs at least double; halving, which "
        "asks nobody twice, takes at most 2.3 times as many, and less than 1.9 times from d = "
        "8 on (in units of these)",
        units,
        0.75,
        1.0,
        also=all(more >= 2 * fewer for fewer, more in pairwise(bounds)),
    )
    successes = sum(m.successes for _, m in rows)
    trials = sum(p.trials for p, _ in rows)
    rates = {f"d = {p.d}": Rate(m.successes, p.trials) for p, m in rows}
    rates["all"] = Rate(successes, trials)
    yield measured(
        (
            "With the clients of its formula halving finds the parity in 89 to 94 % of the "
            "runs, at every d and in all"
        ),
        rates,
        *HALVING,
    )


def _check_laws(rows: Rows[Laws, Tests]) -> Iterator[Check]:
    """A trial under a given law is binomial; half of the trials under either have no wider law."""
    cases, rates = list[tuple[bool, str]](), dict[str, Rate]()
    for p, m in rows:
        turn, again = p.bounds
        by_best = f"{m.fewer:,} by {m.reports} answers that carry {m.carried:.2f} times as much"
        between = again < turn <= m.fewer <= 1.65 * turn
        verdict = m.carried > 1 and between and m.fewer < 1.9 * again
        cases.append(
            (
                verdict,
                f"epsilon {p.epsilon:g}: {m.clients:,}, {by_best}",
            )
        )
        two = Rate(m.two, p.trials)
        best = Rate(m.best, p.trials)
        rates |= {
            f"epsilon {p.epsilon:g}, yes or no": two,
            f"epsilon {p.epsilon:g}, best report": best,
        }
    yield every(
        "One round tells two known laws apart by the best report with fewer people than yes "
        "or no takes: less than 1.65 times those that every protocol needs in turn, and less "
        "than 1.9 times those that every protocol needs",
        cases,
    )
    yield measured(
        ("With so many people the likelier law is the right one in 90 % of the runs, within 0.5 %"),
        rates,
        SUCCESS - 0.005,
        SUCCESS + 0.005,
    )


def _headline(rows: Rows[Halving, Recovery]) -> str:
    p, m = rows[-1]
    bound = (
        f"At d = {p.d} no purely private protocol finds the parity with fewer than "
        f"{least(p.d):,.0f} people, however it asks."
    )
    return f"{bound} Halving, which asks nobody twice, takes {m.clients:,}."


def least(d: int) -> float:
    """The people that every protocol needs."""
    return parity_interactive_bound(d, EPSILON, SUCCESS)


def _parity_table(halving: Rows[Halving, Recovery]) -> Table:
    rows = []
    for p, m in halving:
        unit = response_gain(EPSILON) ** 2 * 2.0**p.d
        rate = round(m.successes / p.trials, 3)
        bound = least(p.d)
        ratio = round(m.clients / unit, 2)
        rows.append(
            (
                p.d,
                round(bound),
                m.clients,
                rate,
                round(bound / unit, 3),
                ratio,
            )
        )
    headings = (
        "d | every protocol, at least | halving | its success | the first in C^2 2^d | halving in "
        "C^2 2^d"
    )
    return tabulate(f"Parity at epsilon {EPSILON:g}: people for {SUCCESS:.0%}", headings, rows)


def _ratio_table(protocols: Rows[Drawn, Distances], worst: Rows[Worst, Distances]) -> Table:
    largest = {p.clients: round(m.ratio, 4) for p, m in worst}
    rows = []
    for p, m in protocols:
        worst_ratio = largest.get(p.clients, "")
        rows.append((p.clients, round(m.ratio, 3), worst_ratio, round(limit(p), 4)))
    title = "What all clients together reveal, in units of the sum of what each reveals alone"
    return tabulate(title, "clients | largest drawn | largest found | proven limit", rows)


def _laws_table(laws: Rows[Laws, Tests]) -> Table:
    rows = []
    for p, m in laws:
        figures = (round(count / p.unit, 3) for count in (m.clients, m.fewer, *p.bounds))
        rows.append((p.epsilon, *figures, round(m.carried, 3)))
    return tabulate(
        f"Two laws at total variation {VARIATION:g}: people in C^2 / t^2 for {SUCCESS:.0%}",
        (
            "epsilon | yes or no | best report | in turn, at least | every protocol, at least | "
            "best report carries"
        ),
        rows,
    )


def _parity_figure(halving: Rows[Halving, Recovery]) -> Figure:
    formulas = ((d, parity_halving_clients(d, EPSILON, 1 - SUCCESS)) for d in DRAWN)
    bounds = ((d, least(d)) for d in DRAWN)
    curves = [
        curve_of(
            "halving, which asks nobody twice, as it was run",
            "d | clients",
            halving,
            group="halving",
        ),
        curve(
            "halving, formula",
            formulas,
            "theory",
            group="halving",
        ),
        curve("asked again and again, proven limit", bounds, "bound"),
    ]
    return LogFigure(
        "asking-again-parity",
        "Parity: people needed, however they are asked",
        "bits of the hidden parity d",
        "people",
        curves,
    )


def _ratio_figure(protocols: Rows[Drawn, Distances], worst: Rows[Worst, Distances]) -> Figure:
    limits = ((p.clients, limit(p)) for p, _ in protocols)
    ratios = {p.clients: m.ratio for p, m in worst}.items()
    curves = [
        curve("proven limit", limits, "bound"),
        curve("worst protocol found by search", ratios),
        curve_of("largest of those drawn at random", "clients | ratio", protocols),
    ]
    title, axis = (
        "What all reveal together is bounded by what each reveals alone",
        "squared distance, all together over the sum of each alone",
    )
    return Figure("asking-again-pasting", title, "clients", axis, curves, "interactive", log_x=True)


def _laws_figure(laws: Rows[Laws, Tests]) -> Figure:
    labels = (
        "one round, yes or no",
        "one round, the best report",
        "asked in turn, proven limit",
        "asked again and again, proven limit",
    )
    heights = [[count / p.unit for count in (m.clients, m.fewer, *p.bounds)] for p, m in laws]
    heights_by_label = zip(labels, zip(*heights, strict=True), strict=True)
    curves = [curve(label, enumerate(bars), "bars") for label, bars in heights_by_label]
    ticks = tuple(f"epsilon {p.epsilon:g}" for p, _ in laws)
    return Figure(
        "asking-again-laws",
        "Telling two known laws apart",
        "privacy",
        "people, in C^2 / t^2",
        curves,
        x_ticks=ticks,
    )


EXPERIMENT = AskingAgain()
