"""Public against private coins: how many clients it takes to tell a law from the uniform one."""

import math
from typing import ClassVar

import numpy as np

from experiments.claims import coins_runs as runs
from experiments.claims.coins_runs import ALPHA, BETA, EPSILON, FACTORS, FIXED, PRIVATE, PUBLIC
from experiments.lab.chapters import LOCAL_MODEL, Chapter
from experiments.lab.claim import Check, Curve, Experiment, Figure, Finding, Measurement, Point, Scale, Table

SIZES: dict[Scale, tuple[int, ...]] = {"quick": (128, 512, 2048), "full": (64, 128, 256, 512, 1024, 2048, 4096)}
TRIALS: dict[Scale, int] = {"quick": 600, "full": 4000}
SLOPES = {PUBLIC: 1.0, PRIVATE: 1.5}
CERTAIN = 4.5  # standard errors of a share of trials: wrong less than once in a hundred thousand
Measured = list[tuple[Point, Measurement]]


class Coins(Experiment):
    """Uniformity testing with the coins tossed in public, and alone."""

    name: ClassVar[str] = "coins"
    chapter: ClassVar[Chapter] = LOCAL_MODEL
    title: ClassVar[str] = "Public coins are worth a factor sqrt(k)"
    claim: ClassVar[str] = (
        "To tell whether k symbols are equally frequent takes about k C^2 / alpha^2 clients if all tell their sign in the same few random rows, and about "
        "k^(3/2) C^2 / alpha^2 if each has to toss a coin alone. The rows must be random: those that are known beforehand miss some law for ever."
    )
    source: ClassVar[str] = "Acharya, Canonne, Freitag, Tyagi 2019"

    def points(self, scale: Scale) -> list[Point]:
        return [{"coins": coins, "k": k, "trials": TRIALS[scale]} for coins in (PUBLIC, PRIVATE, FIXED) for k in SIZES[scale]]

    def measure(self, point: Point, seed: int) -> Measurement:
        return runs.measure(point, seed)

    def conclude(self, measurements: Measured, scale: Scale) -> Finding:
        checks = [_check_level(measurements), *(_check_slope(measurements, coins) for coins in SLOPES), _check_counts(measurements), _check_fixed(measurements)]
        notes = [
            f"Epsilon {EPSILON:g}; alpha = {ALPHA:g} in total variation; both errors {BETA:g}. The law away from uniform is the hardest: half of the symbols "
            "more frequent, half less, which half at random. Every row's reports are drawn from their binomial law.",
            "That no test with private coins does better than k^(3/2) is proved in the source, not here: the curve is that of the best known one.",
        ]
        return Finding(checks, [_table(measurements)], [_figure(measurements)], notes, headline=_headline(measurements))


def _of(measurements: Measured, coins: str) -> Measured:
    return [(point, found) for point, found in measurements if point["coins"] == coins]


def needed(found: Measurement) -> float:
    """The clients with which a law alpha away is found with probability 1 - beta: by a line through the two numbers around it; NaN if never or always."""
    rates, clients = np.maximum.accumulate(found["away"]), np.log(found["clients"])
    place = int(np.searchsorted(rates, 1 - BETA))
    if not 0 < place < len(rates):
        return math.nan
    part = (1 - BETA - rates[place - 1]) / (rates[place] - rates[place - 1])
    return math.exp(clients[place - 1] + part * (clients[place] - clients[place - 1]))


def _slope(measurements: Measured, coins: str) -> float:
    told = [(point["k"], needed(found)) for point, found in _of(measurements, coins)]
    if len(told) < 2 or any(math.isnan(count) for _, count in told):
        return math.nan
    sizes, counts = np.log(np.array(told)).T
    return float(np.polyfit(sizes, counts, 1)[0])


def _check_level(measurements: Measured) -> Check:
    most = [max(found["uniform"]) - CERTAIN * math.sqrt(BETA * (1 - BETA) / point["trials"]) for point, found in measurements]
    return Check(
        f"the uniform law is rejected in {BETA:.0%} of runs at most, within what chance allows",
        bool(most) and max(most) <= BETA + 0.01,
        ", ".join(f"{point['coins']}, k = {point['k']}: {max(found['uniform']):.3f}" for point, found in measurements),
    )


def _check_slope(measurements: Measured, coins: str) -> Check:
    slope = _slope(measurements, coins)
    return Check(f"with {coins} the clients needed grow as k^{SLOPES[coins]:g}", abs(slope - SLOPES[coins]) < 0.1, f"power {slope:.3f}")


def _check_counts(measurements: Measured) -> Check:
    parts = {(point["coins"], point["k"]): needed(found) / found["predicted"] for point, found in measurements if point["coins"] != FIXED}
    return Check(
        "the closed forms say how many, within a sixth",
        bool(parts) and all(abs(part - 1) < 1 / 6 for part in parts.values()),
        ", ".join(f"{coins}, k = {k}: {part:.2f}" for (coins, k), part in parts.items()),
    )


def _check_fixed(measurements: Measured) -> Check:
    rates = [max(found["away"]) for _, found in _of(measurements, FIXED)]
    return Check(
        "rows known beforehand miss a law that was made for them, with any number of clients",
        bool(rates) and max(rates) < 0.2,
        ", ".join(f"found in {rate:.1%}" for rate in rates),
    )


def _headline(measurements: Measured) -> str:
    counts = {coins: _of(measurements, coins)[-1:] for coins in SLOPES}
    if not all(counts.values()):
        return "Nothing was measured."
    told = {coins: needed(last[0][1]) for coins, last in counts.items()}
    return f"At k = {counts[PUBLIC][0][0]['k']:,}: {told[PUBLIC]:,.0f} clients with public coins, {told[PRIVATE]:,.0f} with private ones."


def _table(measurements: Measured) -> Table:
    rows = [(point["coins"], point["k"], needed(found), found["predicted"], found["away"][FACTORS.index(1.0)]) for point, found in measurements]
    return Table("Clients needed", ("coins", "symbols", "clients needed", "predicted", "found at the predicted number"), rows)


def _figure(measurements: Measured) -> Figure:
    curves = []
    for coins in SLOPES:
        told = [(point["k"], needed(found), found["predicted"]) for point, found in _of(measurements, coins)]
        told = [row for row in told if not math.isnan(row[1])]
        curves.append(Curve(f"{coins}, measured", [k for k, _, _ in told], [count for _, count, _ in told]))
        curves.append(Curve(f"{coins}, predicted", [k for k, _, _ in told], [count for _, _, count in told], "theory"))
    return Figure("coins", "Clients to tell a law from the uniform one", "symbols", "clients", curves, log_x=True, log_y=True)


EXPERIMENT = Coins()
