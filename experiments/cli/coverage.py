"""`local-dp coverage`: how often the intervals that protocols and experiments state hold the truth."""

import json
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.cli.fields import argument, option
from experiments.cli.screen import SCREEN
from experiments.text.layout import held, screen_width, table
from experiments.text.numbers import number
from local_dp.errors import InputError, unknown
from local_dp.loss import nano_epsilon

SUCCESS_RATES = "success-rates"
AT_USER_LEVEL = 10  # so many times fewer repetitions where every client is simulated
MOST = 1_000_000
EPSILONS = (0.25, 1.0, 3.0)


@dataclass(frozen=True)
class Coverage:
    """Measures how often stated 95 % intervals hold the truth, by repetition and, where reports are binomial, exactly."""

    names: tuple[str, ...] = argument("Whose intervals: of these protocols; none given, all of them.", metavar="[NAME]...", default=())
    epsilon: tuple[float, ...] = option((), "May be repeated; without it, 0.25, 1 and 3", metavar="E", unit="nats")
    repetitions: int = option(10_000, "Runs of each case; a tenth of it where every client is simulated", metavar="R")
    seed: int = option(1, "The same seed gives the same table", metavar="S")
    as_json: bool = option(False, "Print the outcome as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        from experiments.lab.coverage_cases import CASES, least_counts, success_rates

        known = (*CASES, SUCCESS_RATES)
        wanted = self.names or known
        for name in wanted:
            if name not in known:
                raise InputError(f"{unknown('no intervals to measure of', name, known)} (other protocols find a concept and state no interval)")
        if not 10 <= self.repetitions <= MOST or self.seed < 0:
            raise InputError(f"repetitions is {self.repetitions} and seed {self.seed}; give 10 to {MOST:,} repetitions and a seed of 0 or more")
        epsilons = self.epsilon or EPSILONS
        for value in epsilons:
            nano_epsilon(value)
        measured = [row for name in wanted if name in CASES for value in epsilons for row in self._measured(name, value)]
        SCREEN.working("computing the exact coverage")
        binomial = any(name in ("survey", "frequency", "mean", "sq") for name in wanted)
        exact = [row for value in epsilons for row in least_counts(value)] if binomial else []
        data = {"seed": self.seed, "measured": measured, "exact": exact, "success_rates": success_rates() if SUCCESS_RATES in wanted else []}
        SCREEN.tell(json.dumps(data) if self.as_json else _told(data, screen_width()))

    def _measured(self, name: str, epsilon: float) -> list[dict[str, Any]]:
        """The cases of one protocol at one epsilon."""
        from experiments.lab.coverage import measure
        from experiments.lab.coverage_cases import CASES

        rows = []
        for case in CASES[name](epsilon):
            SCREEN.working(f"measuring {case.name}, {case.what}, epsilon {number(epsilon)}, {case.n:,} clients")
            generator = np.random.default_rng([self.seed, zlib.crc32(f"{case.name} {case.what} {case.tier} {case.n} {case.epsilon}".encode())])
            runs = self.repetitions if case.tier == "aggregate" else max(10, self.repetitions // AT_USER_LEVEL)
            rows.append(measure(case, runs, generator).describe())
        return rows


def _told(data: dict[str, Any], width: int) -> str:
    tables = []
    if data["measured"]:
        columns = ("intervals of", "epsilon", "clients", "coverage", "worst [95 %]", "exact worst", "verdict")
        tables.append(table(columns, [_measured(row) for row in data["measured"]], width))
    if data["exact"]:
        heading = ("exact, over every share", "reports", "epsilon", "in the band from", "default clients", "coverage there")
        tables.append(table(heading, [_counts(row) for row in data["exact"]], width))
    if data["success_rates"]:
        rates = [(f"{row['trials']:,}", f"{row['mean']:.4f}", f"{row['least']:.4f}", f"{row['most']:.4f}", _verdict(row)) for row in data["success_rates"]]
        tables.append(table(("success rate of trials", "coverage, exact, rates 0.8 to 0.99", "least", "most", "verdict"), rates, width))
    return "\n\n".join(tables)


def _measured(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["worst_interval"]
    exact = "" if row["worst_exact"] is None else f"{row['worst_exact']:.4f}"
    verdict = "at odds with its law" if not row["agrees"] else "agrees" if row["tier"] == "population" else _verdict(row)
    clients = f"{row['n']:,}" + (" default" if row["default"] else " simulated" if row["tier"] == "population" else "")
    worst = f"{row['worst']:.4f} {held(f'[{low:.4f}, {high:.4f}]')}"
    return f"{row['name']}, {row['what']}", f"{row['epsilon']:g}", clients, f"{row['coverage']:.4f}", worst, exact, verdict


def _counts(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["exact"]
    return row["what"], row["randomizer"], f"{row['epsilon']:g}", f"{row['holds_from']:,}", f"{row['default']:,}", f"{low:.4f} to {high:.4f}"


def _verdict(row: dict[str, Any]) -> str:
    return "inside" if row["inside"] else "outside"
