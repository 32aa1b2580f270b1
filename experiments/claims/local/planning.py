"""Planning: the number of clients that a closed form asks for, beside the least number for which 95
% of the runs are within the accuracy.

`local-dp experiment planning --full` measures every count of the table in docs/guide.md; some
minutes on one core.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng

from local_dp.arrays import Floats
from local_dp.bounds.best import report_laws
from local_dp.experiments.lab.parts import (
    LOCAL_MODEL,
    ClientCount,
    Curve,
    Experiment,
    Figure,
    Finding,
    Points,
    Row,
    Rows,
    Scale,
    Sheet,
    curve,
    grid,
    least_count,
    measured,
    measured_clients,
    reached_check,
    table_of,
)
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import stream_key
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, find_protocol, largest_error
from local_dp.protocols.planning.ways import plan_of, tolerance_of
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records
from local_dp.tallies import Tally

EPSILONS = (0.1, 1.0, 4.0)
TASKS = ("survey", "frequency", "mean", "quantiles")
WITHIN = 0.05
TRIALS = {"quick": 20_000, "full": 200_000}
IN_ROUNDS = ("quantiles",)  # run by run, some milliseconds each
TRIALS_IN_ROUNDS = {"quick": 2_000, "full": 60_000}
# a number of clients stands for these around it: reports are whole, and success is a saw-tooth in n
# of about that period
SIZES = np.linspace(-0.05, 0.05, 21)
BLOCK = 1 << 22  # counts that are drawn at a time
NARROW = 16  # a tally of so few counts is likely to be drawn more than once
# clients of the synthetic population whose law is taken: the law does not depend on how many there
# are
MADE_UP = 1


class Planned(Row):
    planned: int  # by the closed form, for this population
    any: int  # and for any population
    randomizer: str
    accuracy: float
    count: ClientCount

    @property
    def interval(self) -> str:
        return f"{self.count.low} to {self.count.high}"


class Task(Row):
    """A protocol at one epsilon, and the runs of its search."""

    task: str
    epsilon: float
    trials: int

    def __str__(self) -> str:
        return f"{self.task}, epsilon {self.epsilon:g}"

    def measure(self, seed: int) -> Planned:
        """The plan, and a search for the least number of clients that is enough."""
        kind = find_protocol(self.task)
        target = {"of": "population"} if "of" in kind.__dataclass_fields__ else {}
        protocol = kind(**target)
        tolerance = tolerance_of(protocol)
        assert tolerance is not None
        plan = plan_of(protocol, self.epsilon, protocol.synthetic(MADE_UP, 0))
        generator = default_rng([seed, *stream_key(f"planning {self.task} {self.epsilon:g}", seed)])
        clients = plan.clients(tolerance)
        any_population = plan_of(protocol, self.epsilon).clients(tolerance)
        successes = within(protocol, self.epsilon, tolerance, generator)
        count = measured_clients(successes, clients, target=1 - BETA, trials=self.trials)
        return Planned(clients, any_population, plan.name, tolerance, count)


class Planning(Experiment):
    name = "planning"
    chapter = LOCAL_MODEL
    title = "Planning: how many clients an accuracy takes"
    claim = (
        "The closed form of `local-dp plan` gives the least number of clients within 5 %. With so "
        "many, the largest error of a survey, of eight frequencies, of a mean or of a median "
        "stays within the accuracy in 95 % of the runs, at epsilon 0.1, 1 and 4."
    )
    source = (
        "Central limit form of Warner 1965, Kairouz et al. 2014, Bassily and Smith 2015, Duchi, "
        "Jordan and Wainwright 2013"
    )

    def points(self, scale: Scale) -> Points:
        points: Points = []
        for task in TASKS:
            trials, epsilons = TRIALS, [*EPSILONS]
            if task in IN_ROUNDS:
                trials, epsilons = TRIALS_IN_ROUNDS, [1.0] if scale == "quick" else epsilons
            points += grid(Task, [task], epsilons, [trials[scale]])
        return points

    def finding(self, sheet: Sheet) -> Finding:
        plans = sheet[Task]
        ratios = {str(p): least_count(m.count) / m.planned for p, m in plans}
        off = {name: 1 / ratio.value - 1 for name, ratio in ratios.items()}
        worst = max(off, key=lambda name: abs(off[name]))
        statement = (
            f"Every plan is within {WITHIN:.0%} of the least number of clients (which is in units "
            "of the plan)"
        )
        columns = (
            "task | epsilon | accuracy | randomizer | planned | measured = count.n | 95 % "
            "interval = interval | planned / measured = planned / count.n : 3 | planned, any "
            "population = any | runs = count.trials"
        )
        headline = (
            f"Of {len(off)} plans the furthest is {abs(off[worst]):.1%} off the measured number of "
            f"clients ({worst})."
        )
        return Finding(
            [reached_check(plans), measured(statement, ratios, 1 - WITHIN, 1 + WITHIN)],
            [table_of("Planned and measured numbers of clients", columns, plans)],
            [_figure(plans)],
            [NOTE],
            headline=headline,
        )


NOTE = (
    "The clients are drawn from the population that a run without a table makes up. If nothing is "
    "known about the population, plan for the last column but one."
)


def _figure(plans: Rows[Task, Planned]) -> Figure:
    places, ratios = range(len(plans)), []
    for place, (_, m) in enumerate(plans):
        ends = (m.count.n, m.count.high, m.count.low)
        ratios.append((place, *(m.planned / end for end in ends)))
    curves = [curve("planned / measured, 95 % interval", ratios)]
    for side, sign in (("above", 1), ("below", -1)):
        end = 1 + sign * WITHIN
        curves.append(Curve(f"{WITHIN:.0%} {side}", places, [end] * len(plans), "bound"))
    ticks = tuple(f"{p.task}, {p.epsilon:g}" for p, _ in plans)
    return Figure(
        "planned-over-measured",
        "Planned over measured clients",
        "task and epsilon",
        "ratio",
        curves,
        "one-round",
        x_ticks=ticks,
    )


def within(
    protocol: LocalProtocol[Any], epsilon: float, accuracy: float, generator: Generator
) -> Callable[[int, int], int]:
    """For `minimal_clients`: in how many of some runs the largest error is within the accuracy.

    Tallies are drawn from their law and decoded by the protocol. The runs are shared out among
    numbers of clients around n (`SIZES`).
    """
    population = protocol.synthetic(MADE_UP, 0)
    algorithm = protocol.algorithm(epsilon, MADE_UP)
    if not isinstance(algorithm, Nonadaptive):
        return _within_in_rounds(protocol, epsilon, accuracy, generator)
    laws = [
        (query.randomizer, _report_law(query.randomizer, population.law(query.query)))
        for query in algorithm.queries
    ]
    truth = np.atleast_1d(np.asarray(protocol.truth(population), dtype=np.float64))

    def count(n: int, runs: int) -> int:
        successes = 0
        for size, share in _sizes(n, runs):
            for tallies, times in _draw_tallies(laws, size, generator, share):
                result: Any = algorithm.decode(tallies)
                estimate = getattr(result, "estimate", result)
                successes += times * (largest_error(estimate.value, truth) <= accuracy)
        return successes

    return count


def _report_law(randomizer: Randomizer, law: Floats) -> Floats:
    """Pr[cell, report] of a client whose value has this law over the domain, flattened."""
    assert isinstance(randomizer, FiniteChannel)
    places = np.flatnonzero(law)
    mass = law[places] @ report_laws(randomizer, places)
    return np.asarray(mass / mass.sum())


def _draw_tallies(
    laws: list[tuple[Any, Floats]], n: int, generator: Generator, runs: int
) -> Iterator[tuple[tuple[Tally, ...], int]]:
    """The tallies of n clients a query in so many runs, drawn from their laws, and how many runs
    gave them."""
    ends = np.cumsum([law.size for _, law in laws])
    block = max(1, BLOCK // int(ends[-1]))
    for start in range(0, runs, block):
        size = min(block, runs - start)
        rows = np.hstack([generator.multinomial(n, law, size=size) for _, law in laws])
        times = np.ones(len(rows), dtype=np.int64)
        if ends[-1] <= NARROW:
            rows, times = np.unique(rows, axis=0, return_counts=True)
        for row, count in zip(rows, times.tolist(), strict=True):
            tallies = []
            for part, (channel, _) in zip(np.split(row, ends[:-1]), laws, strict=True):
                tallies.append(Tally(part.reshape(channel.cells, channel.alphabet)))
            yield tuple(tallies), count


def _within_in_rounds(
    protocol: LocalProtocol[Any], epsilon: float, accuracy: float, generator: Generator
) -> Callable[[int, int], int]:
    """The same for a protocol of several rounds, run by run in the aggregate tier."""
    people = _Known(protocol.synthetic(MADE_UP, 0))

    def count(n: int, runs: int) -> int:
        successes = 0
        for size, share in _sizes(n, runs):
            algorithm = protocol.algorithm(epsilon, size)
            for _ in range(share):
                result = run(algorithm, AggregateOracle(people, generator, epsilon))
                successes += protocol.true_error(result, people) <= accuracy
        return successes

    return count


class _Known(Population):
    """A population whose laws are computed once: a search asks the same few hundred thresholds
    again and again."""

    def __init__(self, people: Population) -> None:
        super().__init__(people.size)
        self.people, self._law, self._tally_law = people, cache(people.law), cache(people.tally_law)

    def batch(self, start: int, stop: int) -> Records:
        return self.people.batch(start, stop)

    def law(self, query: Query) -> Floats:
        return self._law(query)

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        return self._tally_law(query, randomizer)


def _sizes(n: int, runs: int) -> list[tuple[int, int]]:
    """The numbers of clients that stand for n, and how many of the runs each has."""
    sizes = np.maximum(1, np.rint(n * (1 + SIZES)).astype(np.int64)).tolist()
    share, more = divmod(runs, len(sizes))
    return [(size, share + (place < more)) for place, size in enumerate(sizes)]


EXPERIMENT = Planning()
