"""`local-dp experiment`, `report` and `coverage`: run experiments, write the report, and measure how often stated intervals contain the truth."""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from local_dp.errors import InputError, unknown
from local_dp.experiments.api.declare import CLUSTER, Drawn, argument, option
from local_dp.experiments.cli.fields import json_option
from local_dp.experiments.lab.catalogue import NAMES, chosen, load
from local_dp.experiments.lab.claim import Scale
from local_dp.experiments.lab.report import write_report
from local_dp.experiments.text.layout import held, number, paragraph, screen_width, table
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.cluster import each_of
from local_dp.loss import nano_epsilon
from local_dp.noise import SEED_BITS

if TYPE_CHECKING:
    from local_dp.experiments.lab.coverage.repetition import Case
    from local_dp.experiments.lab.coverage.stated import Stated

T = TypeVar("T")

DEFAULT_SEED = 1
DEFAULT_OUT = Path("results")


@dataclass(frozen=True)
class RunExperiment(Drawn):
    """Runs an experiment, or all of them: claim, measurements, figures, tables and a verdict.

    Ctrl-C stops; the same command continues. A claim that is not shown prints its failed checks; the exit code is then 1.
    """

    hidden: ClassVar[frozenset[str]] = frozenset(("figure_series", "figure_format"))
    name: str = argument(f"all, or one of: {'; '.join(NAMES)}.", metavar="NAME")
    full: bool = option(False, "All points, or a few (five to ten minutes for all experiments), the default", name="--full/--quick")
    seed: int = option(DEFAULT_SEED, "The same seed gives the same results, byte for byte", metavar="S")
    out: Path = option(DEFAULT_OUT, "Folder for the results; a stopped run continues from it", metavar="FOLDER")
    cluster: str = option("", CLUSTER, metavar="URL")

    def __call__(self) -> int:
        from local_dp.experiments.lab.runner import run_experiments
        from local_dp.experiments.lab.store import code_stamp, write_provenance

        drawing = self.drawing
        if not 0 <= self.seed < 1 << SEED_BITS:
            raise InputError(f"seed is {self.seed}; give a whole number from 0 to 2^{SEED_BITS} - 1")
        modules = chosen(self.name)
        scale: Scale = "full" if self.full else "quick"
        measured: dict[str, tuple[int, int]] = {}
        ended: list[str] = []

        def progress(running: str, done: int, total: int) -> None:
            measured[running] = done, total
            points, every = (sum(part) for part in zip(*measured.values(), strict=True))
            SCREEN.working(f"{points} of {every} points measured, {len(ended)} of {len(modules)} experiments concluded; now {running}", points / every)

        def concluded(name: str, verdict: str) -> None:
            ended.append(name)
            module = next(each for each in modules if load(each).name == name)
            write_provenance(self.out / name / "provenance.json", self.seed, code_stamp(module))
            SCREEN.note("{}: {}/{} points measured; {}".format(name, *measured[name], verdict))

        with SCREEN.resumable():
            findings = run_experiments(modules, scale, self.seed, self.out, progress, concluded, cluster=self.cluster, drawing=drawing)
        SCREEN.working("writing the report")
        page = write_report(self.out)
        for name, finding in findings.items():
            SCREEN.tell(f"{name}: {finding.verdict}")
            for check in finding.checks:
                if not check.shown:
                    SCREEN.tell(paragraph(f"failed: {check.statement} ({check.evidence})", screen_width(), "  "))
        SCREEN.tell(f"report: {page}")
        return int(any(finding.verdict != "shown" for finding in findings.values()))


@dataclass(frozen=True)
class Report:
    """Writes pages about a folder of results: an index, report.html, and a page for each experiment.

    They need no network and no scripts.
    """

    folder: Path = argument("Folder of results, as in experiment --out.", metavar="FOLDER", default=DEFAULT_OUT)

    def __call__(self) -> None:
        SCREEN.working("writing the report")
        SCREEN.tell(f"report: {write_report(self.folder)}")


SUCCESS_RATES = "success-rates"
BINOMIAL = ("survey", "frequency", "mean", "sq")  # protocols whose coverage is known exactly
MOST = 1_000_000
EPSILONS = (0.25, 1.0, 3.0)


@dataclass(frozen=True)
class _Numbered(Generic[T]):
    """The measurement of the case of a number: a worker of a cluster gets the cases once, and numbers then."""

    cases: tuple[T, ...]
    measure: Callable[[T], dict[str, Any]]

    def __call__(self, place: int) -> dict[str, Any]:
        return self.measure(self.cases[place])


@dataclass(frozen=True)
class Coverage:
    """Measures how often stated 95 % intervals contain the truth, by repetition and exactly.

    The exit code is 1 if an interval does not contain the truth as often as stated.
    """

    names: tuple[str, ...] = argument("Protocols and experiments; default: all.", metavar="[NAME]...", default=())
    epsilon: tuple[float, ...] = option((), "An epsilon; may be repeated; default: 0.25, 1 and 3", metavar="E", unit="nats")
    runs: int = option(10_000, "Number of runs of each case; fewer if a run is slow", metavar="R")
    seed: int = option(1, "The same seed gives the same table", metavar="S")
    quick: bool = option(False, "For experiments, only the intervals at quick scale")
    cluster: str = option("", CLUSTER, metavar="URL")
    as_json: bool = json_option("the outcome")

    def __call__(self) -> int:
        from local_dp.experiments.lab.coverage.cases import CASES, SCALES, stating, uncovered

        stated = stating(SCALES[:1] if self.quick else SCALES)
        known = (*CASES, SUCCESS_RATES, *stated)
        wanted = self.names or known
        for name in wanted:
            if name not in known:
                raise InputError(f"{unknown('no intervals to measure of', name, known)} ({uncovered(name)})")
        if not 10 <= self.runs <= MOST or self.seed < 0:
            raise InputError(f"runs is {self.runs} and seed {self.seed}; give 10 to {MOST:,} runs and a seed of 0 or more")
        for value in self.epsilon:
            nano_epsilon(value)
        trials = [case for name, make in stated.items() if name in wanted for case in make()]
        data = self._of_protocols(wanted) | {"stated": self._all(trials, self._tried, lambda case: f"{case.name}, {case.what}, {case.trials:,} trials")}
        kept = [row["holds"] for row in data["measured"]] + [row["inside"] for part in ("exact", "success_rates", "stated") for row in data[part]]
        data["holds"] = all(kept)
        verdict = f"{'All' if all(kept) else f'{sum(kept)} of'} {len(kept)} intervals contain the truth as often as stated."
        SCREEN.tell(json.dumps(data) if self.as_json else f"{_describe(data, screen_width())}\n\n{verdict}")
        return 0 if data["holds"] else 1

    def _of_protocols(self, wanted: Sequence[str]) -> dict[str, Any]:
        from local_dp.experiments.lab.coverage.cases import CASES, exact_ranges, success_rates

        epsilons = self.epsilon or EPSILONS
        cases = [case for name in wanted if name in CASES for value in epsilons for case in CASES[name](value)]
        measured = self._all(cases, self._repeated, lambda case: f"{case.name}, {case.what}, epsilon {number(case.epsilon)}, {case.n:,} clients")
        SCREEN.working("computing the exact coverage")
        exact = [row for value in epsilons for row in exact_ranges(value)] if set(BINOMIAL) & set(wanted) else []
        return {"seed": self.seed, "measured": measured, "exact": exact, "success_rates": success_rates() if SUCCESS_RATES in wanted else []}

    def _all(self, cases: Sequence[T], measure: Callable[[T], dict[str, Any]], name: Callable[[T], str]) -> list[dict[str, Any]]:
        """The rows of these cases, in their order."""
        rows: dict[int, dict[str, Any]] = {}
        SCREEN.working(f"measuring {len(cases)} intervals")
        for place, row in each_of(range(len(cases)), _Numbered(tuple(cases), measure), self.cluster):
            rows[place] = row
            SCREEN.working(f"{len(rows)} of {len(cases)} intervals measured, at last {name(cases[place])}", len(rows) / len(cases))
        return [rows[place] for place in range(len(cases))]

    def _repeated(self, case: "Case") -> dict[str, Any]:
        from local_dp.experiments.lab.coverage.repetition import measure

        runs = max(10, self.runs // case.dear)
        return measure(case, runs, self._generator(f"{case.name} {case.what} {case.tier} {case.n} {case.epsilon}")).describe()

    def _tried(self, case: "Stated") -> dict[str, Any]:
        from local_dp.experiments.lab.coverage.stated import measure_stated

        return measure_stated(case, self.runs, self._generator(f"{case.name} {case.what} {case.trials}"))

    def _generator(self, case: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, zlib.crc32(case.encode())])


def _describe(data: dict[str, Any], width: int) -> str:
    tables = []
    if data["measured"]:
        columns = ("intervals of", "epsilon", "clients", "coverage", "worst [95 %]", "exact worst", "verdict")
        tables.append(table(columns, [_protocol_row(row) for row in data["measured"]], width))
    if data["exact"]:
        heading = ("exact, over every share", "reports", "epsilon", "clients", "mean", "least to most", "in the band from", "verdict")
        tables.append(table(heading, [_exact_row(row) for row in data["exact"]], width))
    if data["success_rates"]:
        rates = [(f"{row['trials']:,}", f"{row['mean']:.4f}", f"{row['least']:.4f}", f"{row['most']:.4f}", _verdict(row)) for row in data["success_rates"]]
        tables.append(table(("success rate of trials", "coverage, exact, rates 0.8 to 0.99", "least", "most", "verdict"), rates, width))
    if data["stated"]:
        titles = ("intervals of experiments", "of", "trials", "coverage [95 %]", "below", "above", "exact", "verdict")
        tables.append(table(titles, [_stated_row(row) for row in data["stated"]], width))
    return "\n\n".join(tables)


def _protocol_row(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["worst_interval"]
    exact = "" if row["worst_exact"] is None else f"{row['worst_exact']:.4f}"
    judged = row["tier"] == "aggregate" and (row["default"] or row["worst_exact"] is None)
    agrees = "agrees" if row["holds"] and not (judged and row["inside"]) else _verdict(row)  # few repetitions are not held to the band
    verdict = agrees if row["agrees"] else "differs from its law"
    clients = f"{row['n']:,}" + (" default" if row["default"] else " simulated" if row["tier"] == "population" else "")
    worst = f"{row['worst']:.4f} {held(f'[{low:.4f}, {high:.4f}]')}"
    return f"{row['name']}, {row['what']}", f"{row['epsilon']:g}", clients, f"{row['coverage']:.4f}", worst, exact, verdict


def _exact_row(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["exact"]
    clients = f"{row['n']:,}" + (" default" if row["default"] else "")
    reach = f"{low:.4f} to {high:.4f}"
    return row["what"], row["randomizer"], f"{row['epsilon']:g}", clients, f"{row['mean']:.4f}", reach, f"{row['holds_from']:,}", _verdict(row)


def _stated_row(row: dict[str, Any]) -> tuple[str, ...]:
    low, high = row["interval"]
    coverage, exact = f"{row['coverage']:.4f} {held(f'[{low:.4f}, {high:.4f}]')}", "" if row["exact"] is None else f"{row['exact']:.4f}"
    missed = (f"{row['missed_below']:.4f}", f"{row['missed_above']:.4f}")
    return row["name"], row["what"], f"{row['trials']:,}", coverage, *missed, exact, _verdict(row)


def _verdict(row: dict[str, Any]) -> str:
    return "inside" if row["inside"] else "outside"
