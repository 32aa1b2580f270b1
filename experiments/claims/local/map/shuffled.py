"""The shuffled model on the map: what one round learns when somebody mixes the reports, between nobody trusted and a curator."""

import math
from collections.abc import Mapping

from local_dp.experiments.claims.local.map.runs import EPSILON, ONE_ROUND, SHUFFLE_DELTA, SUCCESS
from local_dp.experiments.lab.claim import Check, Measurement, Point, Table

SHUFFLED = "shuffled"
FEWER = 0.75  # of the people without a shuffler, at most, for the class that asks for most: its crowds are the largest
Rows = list[tuple[Point, Measurement]]


def shuffled_points(quick: bool) -> list[Point]:
    """The classes that one round learns, where all classes are counted, and at full scale below and above."""
    trials = 1000 if quick else 2000
    return [{"class": SHUFFLED, "of": name, "d": d, "trials": trials} for name in ONE_ROUND for d in ((8,) if quick else (4, 8, 10))]


def _pairs(mixed: Rows, by_class: Mapping[str, Rows]) -> list[tuple[Point, Measurement, Measurement]]:
    """Each class and dimension behind a shuffler, and without it."""
    alone = {(name, point["d"]): found for name in ONE_ROUND for point, found in by_class[name]}
    return [(point, found, alone[point["of"], point["d"]]) for point, found in mixed]


def shuffled_check(mixed: Rows, by_class: Mapping[str, Rows]) -> Check:
    """Whether mixing never takes more people, up to the intervals, and at the largest crowds far fewer."""
    pairs = _pairs(mixed, by_class)
    known = bool(pairs) and all("n" in found and "n" in alone for _, found, alone in pairs)
    never = known and all(found["low"] <= alone["high"] and found["report"] >= EPSILON for _, found, alone in pairs)
    gains = [found["high"] / alone["low"] for _, found, alone in pairs] if known else [math.inf]
    said = ", ".join(f"{point['of']}, d = {point['d']}: {found.get('n')} of {alone.get('n')} people" for point, found, alone in pairs)
    statement = "With the reports shuffled, and the same ε for all of them together, one round takes no more people, and some class far fewer"
    return Check(statement, never and min(gains) <= FEWER, said)


def shuffled_told(mixed: Rows, name: str, d: int) -> str:
    """One line beside a class: how many people it takes behind a shuffler."""
    for point, found in mixed:
        if (point["of"], point["d"]) == (name, d) and "n" in found:
            low, high = math.floor(found["low"]), math.ceil(found["high"])
            return f"\nmeasured behind a shuffler: {found['n']:,} people at d = {d} [{low:,} to {high:,}]"
    return ""


def shuffled_table(mixed: Rows, by_class: Mapping[str, Rows], titles: Mapping[str, str]) -> Table:
    """The least people without a shuffler and with one, and what a report then loses."""
    rows = [(titles[point["of"]], point["d"], alone.get("n"), *_interval(found), found.get("report")) for point, found, alone in _pairs(mixed, by_class)]
    columns = ("class", "d", "least people, not shuffled", "shuffled", "95 % from", "to", "ε of a report")
    return Table(f"One round behind a shuffler: {SUCCESS:.0%} success, ε = {EPSILON:g} and δ = {SHUFFLE_DELTA:g} for all reports together", columns, rows)


def _interval(found: Measurement) -> tuple[int | None, ...]:
    return (found["n"], math.floor(found["low"]), math.ceil(found["high"])) if "n" in found else (None, None, None)
