"""Planning: the number of clients that a closed form asks for, beside the least number for which 95 % of the runs are within the accuracy.

`local-dp experiment planning --full` measures every count of the table in docs/planning.md; some minutes on one core.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table
from local_dp.experiments.lab.coverage.runs import Crowd, Drawn
from local_dp.experiments.lab.minimal_clients import measured_clients, reached_check
from local_dp.experiments.lab.store import as_data
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import stream_key
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.populations.population import Population
from local_dp.protocols.local_protocol import BETA, LocalProtocol, largest_error
from local_dp.protocols.planning.local import plan_of, tolerance_of
from local_dp.protocols.registry import find_protocol
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.records import Records

EPSILONS = (0.1, 1.0, 4.0)
TASKS: dict[str, dict[str, Any]] = {"survey": {}, "frequency": {}, "mean": {}, "quantiles": {}}  # and their parameters
WITHIN = 0.05
TRIALS = {"quick": 20_000, "full": 200_000}
IN_ROUNDS = ("quantiles",)  # run by run, some milliseconds each
TRIALS_IN_ROUNDS = {"quick": 2_000, "full": 60_000}
SIZES = np.linspace(-0.05, 0.05, 21)  # a number of clients stands for these around it: reports are whole, and success is a saw-tooth in n of about that period
MADE_UP = 1  # clients of the population whose law is taken: the law does not depend on how many there are


class Planning(Experiment[Point, Measurement]):
    """Closed forms against measured counts."""

    name: ClassVar[str] = "planning"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Planning: how many clients an accuracy takes"
    claim: ClassVar[str] = (
        "The closed form of `local-dp plan` gives, within 5 %, the least number of clients for which the largest error of a survey, of eight frequencies, "
        "of a mean or of a median stays within the accuracy in 95 % of the runs, at epsilon 0.1, 1 and 4."
    )
    source: ClassVar[str] = "Central limit form of Warner 1965, Kairouz et al. 2014, Bassily and Smith 2015, Duchi, Jordan and Wainwright 2013"

    def points(self, scale: Scale) -> list[Point]:
        asked = [(task, epsilon) for task in TASKS for epsilon in EPSILONS if scale == "full" or task not in IN_ROUNDS or epsilon == 1]
        return [{"task": task, "epsilon": epsilon, "trials": (TRIALS_IN_ROUNDS if task in IN_ROUNDS else TRIALS)[scale]} for task, epsilon in asked]

    def measure(self, point: Point, seed: int) -> Measurement:
        protocol, epsilon = find_protocol(point["task"])(**TASKS[point["task"]]), point["epsilon"]
        tolerance = tolerance_of(protocol)
        assert tolerance is not None
        way = plan_of(protocol, epsilon, protocol.synthetic(MADE_UP, 0))
        generator = np.random.default_rng([seed, *stream_key(f"planning {point['task']} {epsilon:g}", seed)])
        planned = way.clients(tolerance)
        found = as_data(measured_clients(within(protocol, epsilon, tolerance, generator), planned, target=1 - BETA, trials=point["trials"]))
        return {"planned": planned, "any": plan_of(protocol, epsilon).clients(tolerance), "randomizer": way.name, "accuracy": tolerance, **found}

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        counts = [(_name(point), found) for point, found in measurements]
        known = [(name, found) for name, found in counts if "n" in found]
        off = {_name(point): found["planned"] / _held_to(point, found) - 1 for point, found in measurements if "n" in found}
        worst = max(off, key=lambda name: abs(off[name]), default="")
        statement = f"Every plan is within {WITHIN:.0%} of the measured count, or of its interval where fewer than {TRIALS['quick']:,} runs leave that wide"
        agrees = Check(statement, bool(off) and abs(off[worst]) <= WITHIN, f"the furthest: {worst}, {off[worst]:+.1%}" if off else "nothing was measured")
        sure = [name for name, found in known if max(found["planned"] / found["low"] - 1, 1 - found["planned"] / found["high"]) > WITHIN]
        evidence = f"not of: {'; '.join(sure)}" if sure else f"{len(known)} counts"
        certain = Check("So it is of both ends of the count's 95 % interval", not sure, evidence)
        judged = [certain] if scale == "full" else []  # fewer runs leave the interval wide
        headline = f"Of {len(off)} plans the furthest is {abs(off[worst]):.1%} off the measured number of clients ({worst})." if off else "No count was found."
        return Finding([reached_check(counts), agrees, *judged], [_table(measurements)], [_figure(measurements)], [NOTE], headline=headline)


def _name(point: Point) -> str:
    return f"{point['task']}, epsilon {point['epsilon']:g}"


def _held_to(point: Point, found: Measurement) -> float:
    """What the plan is held to: the measured count; where few runs leave its interval wide, the nearest place of that."""
    few = point["trials"] < TRIALS["quick"]
    nearest: float = min(max(found["planned"], found["low"]), found["high"]) if few else found["n"]
    return nearest


NOTE = (
    "The clients are drawn from the population that a run without a table makes up. The last column but one is what must be planned for where nothing is known "
    "about it."
)


def _table(measurements: list[tuple[Point, Measurement]]) -> Table:
    columns = ("task", "epsilon", "accuracy", "randomizer", "planned", "measured", "95 % interval", "planned / measured", "planned, any population", "runs")
    rows = [
        (
            *(point["task"], point["epsilon"], found["accuracy"], found["randomizer"], found["planned"], found["n"]),
            *(f"{found['low']} to {found['high']}", round(found["planned"] / found["n"], 3), found["any"], found["trials"]),
        )
        for point, found in measurements
        if "n" in found
    ]
    return Table("Planned and measured numbers of clients", columns, rows)


def _figure(measurements: list[tuple[Point, Measurement]]) -> Figure:
    known = [(point, found) for point, found in measurements if "n" in found]
    at = list(range(len(known)))
    measured, low, high = ([found["planned"] / found[key] for _, found in known] for key in ("n", "high", "low"))
    bands = [Curve(f"{WITHIN:.0%} {side}", at, [1 + sign * WITHIN] * len(at), "bound") for side, sign in (("above", 1), ("below", -1))]
    ticks = tuple(f"{point['task']}, {point['epsilon']:g}" for point, _ in known)
    curve = Curve("planned / measured, 95 % interval", at, measured, low=low, high=high)
    return Figure("planned-over-measured", "Planned over measured clients", "task and epsilon", "ratio", [curve, *bands], x_ticks=ticks)


def within(protocol: LocalProtocol[Any], epsilon: float, accuracy: float, generator: np.random.Generator) -> Callable[[int, int], int]:
    """For `minimal_clients`: in how many of some runs the largest error is within the accuracy; tallies are drawn from their law, and decoded by the protocol.

    The runs are shared out among numbers of clients around n (`SIZES`).
    """
    population = protocol.synthetic(MADE_UP, 0)
    asked = protocol.algorithm(epsilon, MADE_UP)
    if not isinstance(asked, Nonadaptive):
        return _within_in_rounds(protocol, epsilon, accuracy, generator)
    crowds = [Crowd.drawn_from(query, population) for query in asked.queries]
    truth = np.atleast_1d(np.asarray(protocol.truth(population), dtype=np.float64))

    def successes(n: int, runs: int) -> int:
        kept = 0
        for size, share in _sizes(n, runs):
            people = [Crowd(crowd.randomizer, [(size, law) for _, law in crowd.groups]) for crowd in crowds]
            for (estimate,), times in Drawn(people, asked.decode)(generator, share):
                kept += times * (largest_error(estimate.value, truth) <= accuracy)
        return kept

    return successes


def _within_in_rounds(protocol: LocalProtocol[Any], epsilon: float, accuracy: float, generator: np.random.Generator) -> Callable[[int, int], int]:
    """The same for a protocol of several rounds, run by run in the aggregate tier."""

    people = _Known(protocol.synthetic(MADE_UP, 0))

    def successes(n: int, runs: int) -> int:
        kept = 0
        for size, share in _sizes(n, runs):
            algorithm = protocol.algorithm(epsilon, size)
            for _ in range(share):
                result = run(algorithm, AggregateOracle(people, generator, epsilon))
                kept += protocol.true_error(result, people) <= accuracy
        return kept

    return successes


class _Known(Population):
    """A population whose laws are computed once: a search asks the same few hundred thresholds again and again."""

    def __init__(self, people: Population) -> None:
        super().__init__(people.size)
        self.people, self._law, self._tally_law = people, cache(people.law), cache(people.tally_law)

    def batch(self, start: int, stop: int) -> Records:
        return self.people.batch(start, stop)

    def law(self, query: Query) -> Floats:
        return self._law(query)

    def tally_law(self, query: Query, randomizer: FiniteChannel) -> Floats | None:
        return self._tally_law(query, randomizer)


def _sizes(n: int, runs: int) -> list[tuple[int, int]]:
    """The numbers of clients that stand for n, and how many of the runs each has."""
    sizes = np.maximum(1, np.rint(n * (1 + SIZES)).astype(np.int64)).tolist()
    return [(size, runs // len(sizes) + (place < runs % len(sizes))) for place, size in enumerate(sizes)]


EXPERIMENT = Planning()
