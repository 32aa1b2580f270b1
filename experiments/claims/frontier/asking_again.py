"""Where asking again hardly helps: two known laws."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds import channels
from local_dp.bounds.response import response_gain
from local_dp.experiments.lab.parts import (
    FRONTIER,
    Check,
    Experiment,
    Figure,
    Finding,
    Points,
    Rate,
    Row,
    Rows,
    Scale,
    Sheet,
    Table,
    curve,
    every,
    measured,
    tabulate,
)

SUCCESS, VARIATION = 0.9, 0.1
EPSILONS = (0.5, 1.0, 2.0)


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
        gain = best.value / shrunk**2
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
    title = "Two known laws: one round is nearly as good as any protocol"
    claim = (
        "To tell two known laws apart, one round of answers takes little more people than every "
        "protocol that asks in turn needs, and less than twice those that are needed even if "
        "everybody may be questioned again and again."
    )
    source = "limits 12.3"

    def points(self, scale: Scale) -> Points:
        trials = 200_000 if scale == "quick" else 2_000_000
        return [Laws(epsilon, trials) for epsilon in EPSILONS]

    def finding(self, sheet: Sheet) -> Finding:
        laws = sheet[Laws]
        return Finding(
            [*_check_laws(laws)],
            [_laws_table(laws)],
            [_laws_figure(laws)],
            NOTES,
            headline=_headline(laws),
        )


NOTES = [
    "Two laws: any two at this total variation. The best report is found among the 8 columns that "
    "matter. It gains where each law has a part that the other lacks, and they share the rest. "
    "Between two laws of two symbols yes or no is the best report.",
]


def _check_laws(rows: Rows[Laws, Tests]) -> Iterator[Check]:
    """A trial under a given law is binomial; half of the trials under either have no wider law."""
    cases, rates = list[tuple[bool, str]](), dict[str, Rate]()
    for p, m in rows:
        turn, again = p.bounds
        by_best = f"{m.fewer:,} by {m.reports} answers that carry {m.carried:.2f} times as much"
        between = again < turn <= m.fewer <= 1.15 * turn
        verdict = m.carried > 1 and between and m.fewer < 1.95 * again
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
        "or no takes: less than 1.15 times those that every protocol needs in turn, and less "
        "than 1.95 times those that every protocol needs",
        cases,
    )
    yield measured(
        "With so many people the likelier law is the right one in 90 % of the runs, within 0.5 %",
        rates,
        SUCCESS - 0.005,
        SUCCESS + 0.005,
    )


def _headline(rows: Rows[Laws, Tests]) -> str:
    p, m = next((p, m) for p, m in rows if p.epsilon == 1)
    turn, again = (math.ceil(bound) for bound in p.bounds)
    return (
        f"Two laws at total variation {VARIATION:g} take {m.fewer:,} people at epsilon 1 in one "
        f"round, at least {turn:,} in turn and {again:,} however they are asked."
    )


def _laws_table(laws: Rows[Laws, Tests]) -> Table:
    rows = []
    for p, m in laws:
        figures = (round(count / p.unit, 3) for count in (m.clients, m.fewer, *p.bounds))
        rows.append((p.epsilon, *figures, round(m.carried, 3)))
    return tabulate(
        f"Two laws at total variation {VARIATION:g}: people in C^2 / t^2 for {SUCCESS:.0%}",
        "epsilon | yes or no | best report | in turn, at least | every protocol, at least | "
        "best report carries",
        rows,
    )


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
