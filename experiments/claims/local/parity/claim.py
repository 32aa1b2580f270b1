"""Parity: a trusted curator learns it from a number of examples linear in d, local clients only from exponentially many."""

import math
from typing import ClassVar

from local_dp.experiments.claims.local.parity.central import central_checks, central_curves, central_points, central_tables, measure_central
from local_dp.experiments.claims.local.parity.local import local_curves, local_points, measure_local
from local_dp.experiments.lab.calibration import intervals_check
from local_dp.experiments.lab.chapters import LOCAL_MODEL, Chapter
from local_dp.experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale

GROWTH = 0.7  # doublings of the local n for each dimension that count as exponential


class Parity(Experiment[Point, Measurement]):
    """KLNRS Theorem 3.8 beside Corollary 4.6: what a curator buys."""

    name: ClassVar[str] = "parity"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Parity: easy for a trusted curator, exponential without one"
    claim: ClassVar[str] = (
        "A hidden parity of d bits is learned privately by a trusted curator from a number of examples that grows linearly with d, while clients who trust "
        "nobody and randomize their own answers need about 2^d of them, in one round or in many, if each is asked in one round only."
    )
    source: ClassVar[str] = "KLNRS 2008, Section 3.2, Theorem 3.8 and Corollary 4.6; limits 4"

    def points(self, scale: Scale) -> list[Point]:
        return central_points(scale) + local_points(scale)

    def measure(self, point: Point, seed: int) -> Measurement:
        return measure_local(point, seed) if point["kind"] == "local" else measure_central(point, seed)

    def conclude(self, measurements: list[tuple[Point, Measurement]], scale: Scale) -> Finding:
        central = [(point, found) for point, found in measurements if point["kind"] != "local"]
        beyond, local_tables, local_checks = local_curves([(point, found) for point, found in measurements if point["kind"] == "local"])
        within = central_curves(central)
        figure = Figure(
            "parity",
            "Examples or clients for 90 % exact recovery of a parity, epsilon 1",
            "dimension d",
            "least n",
            within + beyond,
            log_x=True,
            log_y=True,
        )
        notes = [
            "A* charged exactly pays for all its runs together, not for their sum; that saves a factor of about 1.5 over two runs with added budgets.",
            "The exponential mechanism needs 2^d time and, because scores fluctuate, a little more than its closed form; the other learners are efficient.",
            "Counts: those of the efficient learners are exact minima; the exponential mechanism's are measured minima, with the whole numbers within 3.9 "
            "standard errors, the local ones measured minima with 95 % intervals. The lower bound for interactive local protocols is proven for sequential "
            "interaction (nobody is asked in two rounds); fully interactive protocols are outside of it.",
        ]
        checks = [*central_checks(central), separation(within, beyond), *local_checks, intervals_check()]
        return Finding(checks, [*central_tables(central), *local_tables], [figure], notes, headline=headline(within, beyond))


def headline(within: list[Curve], beyond: list[Curve]) -> str:
    """The fewest examples and the fewest clients that were measured in the greatest dimension of the latter."""
    d = max((d for curve in beyond if curve.style == "measured" for d in curve.x), default=0.0)
    least = [[dict(zip(curve.x, curve.y, strict=True)).get(d, math.inf) for curve in curves if curve.style == "measured"] for curves in (within, beyond)]
    curator, local = (min(counts, default=math.inf) for counts in least)
    return f"At d = {d:g} a parity takes a trusted curator {curator:,.0f} examples and local clients {local:,.0f}."


def separation(within: list[Curve], beyond: list[Curve]) -> Check:
    """Whether the measured local curves grow exponentially and lie above every curator's at their greatest d."""
    local = [curve for curve in beyond if curve.style == "measured" and len(curve.x) > 1]
    rates = [math.log2(curve.y[-1] / curve.y[0]) / (curve.x[-1] - curve.x[0]) for curve in local]
    factors = [curve.y[-1] / central.y[list(central.x).index(curve.x[-1])] for curve in local for central in within if curve.x[-1] in central.x]
    return Check(
        "each further dimension nearly doubles the clients of both local protocols, which need more than any curator's learner here",
        bool(rates) and bool(factors) and min(rates) >= GROWTH and min(factors) > 1,
        f"doublings a dimension: {', '.join(f'{rate:.2f} ({curve.label})' for rate, curve in zip(rates, local, strict=True))}; "
        f"local n over a curator's at the greatest d: from {min(factors, default=math.nan):.0f} to {max(factors, default=math.nan):.0f} times",
    )


EXPERIMENT = Parity()
