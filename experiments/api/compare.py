"""Compares randomizers by measurement: the bound on the largest error in 95 % of the runs, for each epsilon and number of clients."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.best import Reports
from local_dp.errors import InputError, reading, unknown
from local_dp.experiments.api.asking import protocol_of
from local_dp.experiments.api.declare import WIDTH, Tabular
from local_dp.experiments.api.tables import Dates, Table, records_of, sample_rows
from local_dp.experiments.lab.claim import Curve, Data, Figure
from local_dp.experiments.lab.figures import save
from local_dp.experiments.lab.store import MeasurementStore, code_stamp, plain, write_text
from local_dp.experiments.lab.style import DEFAULT, Drawing
from local_dp.experiments.text.layout import as_csv, held, number, paragraph, python_errors, table
from local_dp.experiments.tiers.cluster import each_of
from local_dp.experiments.tiers.outcome import table_digest
from local_dp.interaction import Nonadaptive, run
from local_dp.noise import KeyedNoise, stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.oracles import PopulationOracle
from local_dp.populations.finite import Population, Resampled
from local_dp.protocols.local_protocol import BETA, LocalProtocol
from local_dp.protocols.planning.ways import CURATOR, OPEN, Way, asked_of, estimators, law_of, ways
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.tallies import Z95, Tally

Progress = Callable[[str, int, int], None]  # (what is measured, points measured, points in all)
_BLOCK = 1 << 22  # counts that are drawn at a time
MOST_RUNS = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The measurements: each randomizer (or `only` these of all that apply) at each epsilon with each number of clients, `runs` times.

    `tier` "aggregate" draws tallies from their law; "population" simulates every client, of randomizers for the protocol's own query.
    """

    epsilon: tuple[float, ...] = (0.5, 1.0, 2.0)
    clients: tuple[int, ...] = (1000, 10_000, 100_000)
    only: tuple[str, ...] = ()
    runs: int = 1000
    tier: Literal["aggregate", "population"] = "aggregate"
    seed: int = 1

    def __post_init__(self) -> None:
        if not 20 <= self.runs <= MOST_RUNS:
            raise InputError(f"runs is {self.runs}; give 20 to {MOST_RUNS:,}: fewer have no 95 % point")
        if min(self.clients) < 1:
            raise InputError(f"clients is {min(self.clients)}; give 1 or more")
        KeyedNoise(self.seed)  # refuses what is no seed


@dataclass(frozen=True)
class Comparison:
    """A protocol on people like the rows of a table or, without one, on its synthetic population."""

    protocol: LocalProtocol[Any]
    grid: Grid
    records: Records | None = None

    def population(self, clients: int, seed: int) -> Population:
        """Clients drawn afresh."""
        return self.protocol.synthetic(clients, seed) if self.records is None else Resampled(self.records, clients, seed)

    @cached_property
    def _people(self) -> Population:
        """The population of the truth: synthetic, or each row of the table once."""
        return self.population(1, 0) if self.records is None else sample_rows(self.records, len(self.records), 0)

    def reports(self, epsilon: float) -> list[Reports]:
        """The randomizers to compare. Raises InputError for one that does not apply."""
        applicable = {each.randomizer.name: each for each in estimators(self.protocol, epsilon)}
        if self.grid.tier == "population":
            applicable = {name: each for name, each in applicable.items() if each.randomizer.domain == asked_of(self.protocol, epsilon).query.domain}
        for name in self.grid.only:
            if name not in applicable:
                raise InputError(unknown(f"in tier {self.grid.tier} {self.protocol.name} has no randomizer", name, applicable))
        return [applicable[name] for name in self.grid.only or applicable]

    @cached_property
    def _reports(self) -> dict[float, list[Reports]]:
        return {epsilon: self.reports(epsilon) for epsilon in self.grid.epsilon}

    def points(self) -> list[Data]:
        """The independent pieces of work, as plain data; a point holds everything that its measurement depends on."""
        about = {
            "protocol": self.protocol.name,
            "settings": asdict(self.protocol),
            "table": "" if self.records is None else table_digest(self.records),
            "tier": self.grid.tier,
        }
        return [
            {**about, "randomizer": reports.randomizer.name, "epsilon": epsilon, "clients": clients, "runs": self.grid.runs}
            for epsilon in self.grid.epsilon
            for reports in self._reports[epsilon]
            for clients in self.grid.clients
        ]

    def measure(self, point: Data) -> Data:
        """The 95 % point of the largest error, with its 95 % interval, and the mean squared error of one coordinate's estimate."""
        reports = next(each for each in self._reports[point["epsilon"]] if each.randomizer.name == point["randomizer"])
        key = stream_key(f"compare {point['protocol']} {point['randomizer']} {point['epsilon']:g} {point['clients']}", self.grid.seed)
        generator = np.random.default_rng([*key])
        draw = self._drawn if self.grid.tier == "aggregate" else self._simulated
        errors = draw(reports, point, generator)
        largest = np.sort(np.abs(errors).max(axis=1))
        low, at, high = (float(largest[place]) for place in quantile_places(len(largest)))
        return {"error": at, "low": low, "high": high, "rmse": math.sqrt(float(np.mean(errors**2)))}

    def _drawn(self, reports: Reports, point: Data, generator: np.random.Generator) -> Floats:
        """The errors of each run, shape (runs, m), by tallies drawn from their law."""
        truth, law = self._truth(reports, point["epsilon"])
        by_report = reports.law(law)
        block, runs = max(1, _BLOCK // len(by_report)), point["runs"]
        sizes = [min(block, runs - start) for start in range(0, runs, block)]
        return np.concatenate([reports.estimates(generator.multinomial(point["clients"], by_report, size=size)) - truth for size in sizes])

    def _simulated(self, reports: Reports, point: Data, generator: np.random.Generator) -> Floats:
        """The same, every client simulated, with new records for each run."""
        truth, _ = self._truth(reports, point["epsilon"])
        query = LocalQuery(asked_of(self.protocol, point["epsilon"]).query, reports.randomizer, Cohort(0, point["clients"]))
        errors = []
        for _ in range(point["runs"]):
            people, noise, coins = generator.integers(1 << 53, size=3).tolist()
            oracle = PopulationOracle(self.population(point["clients"], people), KeyedNoise(noise), coins, point["epsilon"])
            tally = run(Nonadaptive[LocalQuery, Tally, Tally]((query,), lambda answers: answers[0]), oracle)
            errors.append(reports.estimates(tally.counts.ravel()) - truth)
        return np.array(errors)

    def _truth(self, reports: Reports, epsilon: float) -> tuple[Floats, Floats]:
        """The truth, shape (m,), and the law of a client's value."""
        law = law_of(self._people, asked_of(self.protocol, epsilon))
        aim = self.protocol.aim()
        assert aim is not None  # or there were no reports
        return law @ aim.target, law

    def run(
        self,
        folder: Path,
        progress: Progress = lambda what, done, total: None,
        drawing: Drawing = DEFAULT,
        formats: Sequence[str] = ("png", "svg"),
        cluster: str = "",
    ) -> "Compared":
        """Measures the points that are missing in `folder`, and writes comparison.csv and figures in these formats there. Raises InputError."""
        compared = self.measured(folder, progress, cluster)
        rows = compared.data["rows"]
        write_text(folder / "comparison.csv", as_csv(rows[0], (row.values() for row in rows)))
        save(compared.figure, *(folder / f"comparison.{ending}" for ending in formats), drawing=drawing)
        return compared

    def measured(self, folder: Path, progress: Progress = lambda what, done, total: None, cluster: str = "") -> "Compared":
        """Measures the points that are missing in `folder`. Raises InputError."""
        points = self.points()
        store = MeasurementStore(folder, code_stamp(__name__))
        missing = [point for point in points if store.get(point, self.grid.seed) is None]
        for done, (point, measurement) in enumerate(each_of(missing, self.measure, cluster), len(points) - len(missing) + 1):
            store.add(point, self.grid.seed, measurement)
            progress(f"{point['randomizer']}, epsilon {point['epsilon']:g}, {point['clients']:,} clients", done, len(points))
        store.sort()
        with reading(store.path, "remove it to measure again"):
            rows = [self._row(point, store.get(point, self.grid.seed) or {}) for point in points]
            figure = self._figure(rows)
        return Compared(plain({"protocol": self.protocol.name, "tier": self.grid.tier, "runs": self.grid.runs, "seed": self.grid.seed, "rows": rows}), figure)

    def _row(self, point: Data, measured: Data) -> dict[str, Any]:
        way = next(each for each in self._ways[point["epsilon"]] if each.name == point["randomizer"])
        if any(type(value) not in (int, float) for value in measured.values()):
            raise InputError(f"a measurement of {point['randomizer']} holds something else than numbers; compare in another folder")
        about = {key: point[key] for key in ("randomizer", "epsilon", "clients")}
        return {**about, **measured, "planned": way.accuracy(point["clients"])}

    @cached_property
    def _ways(self) -> dict[float, list[Way]]:
        return {epsilon: ways(self.protocol, epsilon, self._people) for epsilon in self.grid.epsilon}

    def _figure(self, rows: list[dict[str, Any]]) -> Figure:
        """Error against clients: measured with intervals, closed forms as lines. First the curator and no privacy, then the best randomizers."""
        x, curves = sorted(self.grid.clients), []
        for epsilon in self.grid.epsilon:
            curator = next(way for way in self._ways[epsilon] if way.name == CURATOR)
            curves.append(Curve(f"{CURATOR}, epsilon {epsilon:g}", x, [curator.accuracy(n) for n in x], "theory"))
        open_to_all = next(way for way in self._ways[self.grid.epsilon[0]] if way.name == OPEN)
        curves.append(Curve(OPEN, x, [open_to_all.accuracy(n) for n in x], "theory"))
        last = [row for row in rows if row["clients"] == x[-1]]
        best = {row["epsilon"]: min(other["error"] for other in last if other["epsilon"] == row["epsilon"]) for row in last}
        for row in sorted(last, key=lambda row: row["error"] / best[row["epsilon"]]):
            name, epsilon = row["randomizer"], row["epsilon"]
            own = sorted((row for row in rows if (row["randomizer"], row["epsilon"]) == (name, epsilon)), key=lambda row: row["clients"])
            at, label = [row["clients"] for row in own], f"{name}, epsilon {epsilon:g}"
            y, low, high, planned = ([row[key] for row in own] for key in ("error", "low", "high", "planned"))
            curves += [Curve(label, at, y, low=low, high=high, group=label), Curve(f"{label}, closed form", at, planned, "theory", group=label)]
        title = f"{self.protocol.name}: the largest error in 95 % of {self.grid.runs:,} runs"
        return Figure("comparison", title, "clients", "largest error", curves, "one-round", log_x=True, log_y=True)


def quantile_places(runs: int) -> tuple[int, int, int]:
    """The ranks of the 95 % point and of the ends of its 95 % interval among sorted runs, by the binomial law."""
    middle, reach = (1 - BETA) * runs, Z95 * math.sqrt(runs * BETA * (1 - BETA))
    low, at, high = math.floor(middle - reach) - 1, math.ceil(middle) - 1, math.ceil(middle + reach)
    return max(low, 0), at, min(high, runs - 1)


@dataclass(frozen=True, repr=False)
class Compared(Tabular):
    """The errors of randomizers, a row for each with each epsilon and number of clients: the 95 % point of the largest error, measured and in closed form."""

    figure: Figure

    def frame(self) -> Mapping[str, list[Any]]:
        rows = self.data["rows"]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def draw(self, path: Path, drawing: Drawing) -> None:
        save(self.figure, path, drawing=drawing)

    def text(self, width: int = WIDTH) -> str:
        head = f"{self.data['protocol']}: the largest error in 95 % of {held(number(self.data['runs']) + ' runs')}, in tier {self.data['tier']}"
        heading = ("randomizer", "epsilon", "clients", "largest error", "95 % interval", "closed form")
        rows = []
        for row in self.data["rows"]:
            interval = held(f"{number(row['low'])} .. {number(row['high'])}")
            rows.append((row["randomizer"], f"{row['epsilon']:g}", number(row["clients"]), number(row["error"]), interval, number(row["planned"])))
        return f"{paragraph(head, width)}\n\n{table(heading, rows, width)}"


@python_errors()
def compare(
    task: str | LocalProtocol[Any],
    of: Table | None = None,
    *,
    folder: str | Path | None = None,
    cluster: str = "",
    csv: str = "",
    dates: Dates = None,
    **how: Any,
) -> Compared:
    """Measures randomizers side by side, on people like the rows of a table or on synthetic ones: `compare("frequency", k=16, epsilon=1, clients=1000)`.

    A protocol given by name takes its parameters as keywords, beside the fields of `Grid`: `epsilon`, `clients`, `only`, `runs`, `tier`, `seed`.
    `cluster` is the address of a Dask scheduler.
    With a `folder` the measurements, the table and the figure are kept there, and a stopped comparison continues. Raises InputError.
    """
    own = {each.name: isinstance(each.default, tuple) for each in fields(Grid)}
    given: dict[str, Any] = {name: _several(value) if own[name] else value for name, value in how.items() if name in own}
    protocol = protocol_of(task, {name: value for name, value in how.items() if name not in own}, own)
    records = None if of is None else records_of(of, csv=csv, dates=dates, only=protocol.reads)
    known = protocol if records is None else protocol.for_table(Launch(records, private=False))
    comparison = Comparison(known, Grid(**given), records)
    if folder is not None:
        return comparison.run(Path(folder), cluster=cluster)
    with TemporaryDirectory() as kept:
        return comparison.measured(Path(kept), cluster=cluster)


def _several(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, str | int | float) else tuple(value)
