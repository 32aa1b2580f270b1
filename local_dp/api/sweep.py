"""Sweeps: errors measured over a grid of protocols, parameters, epsilons, numbers of clients and
seeds. `compare` is the sweep of one protocol."""

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard, get_origin, get_type_hints

from local_dp.api.asking import protocol_of, with_table, with_target
from local_dp.api.declare import WIDTH, Tabular, by_name, check_table
from local_dp.api.errors_of import OWN, Case, Tier
from local_dp.api.tables import Dates, Table, records_of
from local_dp.bus.children import Folder
from local_dp.checks import check_whole, convert_fields, real_number, whole_number
from local_dp.errors import InputError, reading, unknown
from local_dp.experiments.lab.figures import save
from local_dp.experiments.lab.shapes import Curve, Data, Figure
from local_dp.experiments.lab.store import MeasurementStore, code_stamp, plain
from local_dp.experiments.lab.style import DEFAULT, Drawing
from local_dp.experiments.peers.heavy_hitters import PUBLISHED
from local_dp.noise import KeyedNoise
from local_dp.protocols.local_protocol import LocalProtocol, find_protocol
from local_dp.protocols.planning.ways import CURATOR, OPEN, estimators
from local_dp.protocols.search.heavy_hitters import HeavyHitters
from local_dp.protocols.surveys.policies import Launch
from local_dp.records import Records
from local_dp.simulation.cluster import each_of, plug_ins_of
from local_dp.simulation.installation import stamp_of
from local_dp.text.layout import held, number, paragraph
from local_dp.text.widgets import table

# (what is measured, points measured, points in all)
Progress: TypeAlias = Callable[[str, int, int], None]
MOST_RUNS, MOST_POINTS = 1_000_000, 100_000
MOST_SHOWN, MOST_WORKERS = 40, 1024  # rows of a text, and processes
_ALWAYS = ("randomizer", "epsilon", "clients")
MEASURED = ("error", "low", "high", "rmse")
COLUMNS = ("protocol", "randomizer", "epsilon", "clients", "seed", *MEASURED, "planned")
EXAMPLE = (
    "give a file such as: epsilon = [1, 2], clients = [1000, 4000], seed = [1, 2], and for each "
    "protocol a table of parameters: [frequency], k = [4, 16]"
)


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The measurements: each randomizer (or `only` these of all that apply) at each epsilon, number
    of clients and seed, `runs` times.

    `tier` "aggregate" draws tallies from their law; "population" simulates every client, of
    randomizers for the protocol's own query.
    """

    epsilon: tuple[float, ...] = (0.5, 1.0, 2.0)
    clients: tuple[int, ...] = (1000, 10_000, 100_000)
    only: tuple[str, ...] = ()
    runs: int = 1000
    tier: Tier = "aggregate"
    seed: tuple[int, ...] = (1,)

    def __post_init__(self) -> None:
        convert_fields(self)
        if not 20 <= self.runs <= MOST_RUNS:
            raise InputError(
                f"runs is {self.runs}; give 20 to {MOST_RUNS:,}: fewer have no 95 % point"
            )
        if self.tier not in ("aggregate", "population"):
            raise InputError(f"tier is {self.tier!r:.80}; give aggregate or population")
        for name in ("epsilon", "clients", "seed"):
            if not getattr(self, name):
                raise InputError(f"{name} has 0 values; give at least one")
        if min(self.clients) < 1:
            raise InputError(f"clients is {min(self.clients)}; give 1 or more")
        for seed in self.seed:
            KeyedNoise(seed)  # refuses what is no seed

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Grid":
        """The grid with these values, of which each list may be one value. Raises InputError."""
        read = dict(values)
        readers: dict[str, Callable[[str, str], Any]] = {
            "epsilon": real_number,
            "clients": whole_number,
        }
        for name in read.keys() & {"epsilon", "clients", "only", "seed"}:
            read[name] = _several(read[name])
            if name in readers:
                read[name] = tuple(readers[name](name, str(each)) for each in read[name])
        if "runs" in read:
            read["runs"] = whole_number("runs", str(read["runs"]))
        return cls(**read)


@dataclass(frozen=True)
class Sweep:
    """Cases, each measured at every point of a grid. The measurement of a point depends on the
    point and its seed alone."""

    cases: tuple[Case, ...]
    grid: Grid

    @cached_property
    def points(self) -> list[tuple[Case, Data, int]]:
        """The independent pieces of work: case, point and seed. Raises InputError."""
        grid = self.grid
        choices = [
            (case, epsilon, case.randomizers(epsilon, grid.only))
            for case in self.cases
            for epsilon in grid.epsilon
        ]
        names = sum(len(names) for *_, names in choices)
        many = names * len(grid.clients) * len(grid.seed)
        if many > MOST_POINTS:
            raise InputError(f"the grid has {many:,} points; give at most {MOST_POINTS:,}")
        return [
            (case, case.point(name, epsilon, clients, grid.runs), int(seed))
            for case, epsilon, names in choices
            for name in names
            for clients in grid.clients
            for seed in grid.seed
        ]

    def __call__(self, place: int) -> Data:
        """The measurement of one point."""
        case, point, seed = self.points[place]
        return case.measure(point, seed)

    @cached_property
    def stamp(self) -> str:
        """Equal where the code, Python and numpy that decide the measurements are."""
        return f"{code_stamp(__name__)}-{stamp_of(plug_ins_of(self.cases))}"

    def measured(
        self, folder: Path, name: str, progress: Progress, cluster: str, workers: int
    ) -> "Compared":
        """Measures the points that the file of this name lacks, and stores each at once. Raises
        InputError, and BusError for a lost cluster."""
        points, store = self.points, MeasurementStore(folder, self.stamp, name)
        with reading(store.path, "remove it to measure again"):
            missing = [
                place
                for place, (_, point, seed) in enumerate(points)
                if not _is_stored(store.get(point, seed))
            ]
        measurements = each_of(missing, self, cluster, min(workers, len(missing)))
        start = len(points) - len(missing) + 1
        for done, (place, measurement) in enumerate(measurements, start):
            case, point, seed = points[place]
            store.add(point, seed, measurement)
            what = (
                f"{case.name}, {point['randomizer']}, epsilon {point['epsilon']:g}, "
                f"{point['clients']:,} clients, seed {seed}"
            )
            progress(what, done, len(points))
        store.sort()
        with reading(store.path, "remove it to measure again"):
            rows = [
                self._row(case, point, seed, entry)
                for case, point, seed in points
                if _is_stored(entry := store.get(point, seed))
            ]
        return Compared(plain({"tier": self.grid.tier, "runs": self.grid.runs, "rows": rows}), self)

    def _row(self, case: Case, point: Data, seed: int, errors: Data) -> dict[str, Any]:
        names = dict.fromkeys(name for each in self.cases for name in each.parameters)
        parameters = {
            f"parameter_{name}" if name in COLUMNS else name: case.parameters.get(name)
            for name in names
        }
        about = {key: point[key] for key in ("randomizer", "epsilon", "clients")}
        return {
            "protocol": case.protocol.name,
            **parameters,
            **about,
            "seed": seed,
            **errors,
            "planned": case.planned(**about),
        }


def _is_stored(entry: Any) -> TypeGuard[Data]:
    """True if there is a measurement. Raises ValueError for other data."""
    if entry is None:
        return False
    if (
        not isinstance(entry, dict)
        or entry.keys() != {*MEASURED}
        or not all(type(each) in (int, float) and math.isfinite(each) for each in entry.values())
    ):
        raise ValueError(f"a measurement has not one number for each of {', '.join(MEASURED)}")
    return True


@dataclass(frozen=True, repr=False)
class Compared(Tabular):
    """Errors, a row for each point of a grid: the 95 % point of the largest error, measured and in
    closed form."""

    sweep: Sweep

    def origin(self) -> tuple[Any, str]:
        return list(self.sweep.grid.seed), self.sweep.stamp

    def frame(self) -> Mapping[str, list[Any]]:
        rows = self.data["rows"]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def draw(self, path: Path, drawing: Drawing) -> None:
        save(self.figure(), path, drawing=drawing)

    def text(self, width: int = WIDTH) -> str:
        names = dict.fromkeys(row["protocol"] for row in self.data["rows"])
        head = (
            f"{', '.join(names)}: the largest error in 95 % of "
            f"{held(number(self.data['runs']) + ' runs')}, in tier {self.data['tier']}"
        )
        frame, listing = self.frame(), self.data["rows"][:MOST_SHOWN]
        several = (name for name in ("protocol", "seed") if len(set(frame[name])) > 1)
        columns = {*_ALWAYS, *several}
        about = [name for name in frame if name not in COLUMNS or name in columns]
        rows = [(*(_cell(name, row[name]) for name in about), *_errors(row)) for row in listing]
        grid = table((*about, "largest error", "95 % interval", "closed form"), rows, width)
        more = len(self.data["rows"]) - len(listing)
        end = f"\n\nand {more:,} more rows; --json prints all" if more else ""
        return f"{paragraph(head, width)}\n\n{grid}{end}"

    def figure(self) -> Figure:
        """Error against clients, or against epsilon where there is one number of clients; of
        several seeds the mean, and the ends of all intervals.

        Closed forms are lines; of one protocol also the curator's and that of no privacy. The best
        randomizers come first.
        """
        grid, cases = self.sweep.grid, self.sweep.cases
        by_epsilon = len(set(grid.clients)) == 1 < len(set(grid.epsilon))
        across, beside = ("epsilon", "clients") if by_epsilon else ("clients", "epsilon")
        series: dict[tuple[str, str, float], dict[float, list[Data]]] = {}
        for (case, _, _), row in zip(self.sweep.points, self.data["rows"], strict=True):
            points = series.setdefault((case.name, row["randomizer"], row[beside]), {})
            points.setdefault(row[across], []).append(row)
        last = {key: _mean(points[max(points)], "error") for key, points in series.items()}
        best = {
            key[::2]: min(last[other] for other in last if other[::2] == key[::2]) for key in last
        }
        curves = [] if len(cases) > 1 or cases[0].whole else self._lines(across)
        for key in sorted(series, key=lambda key: last[key] / (best[key[::2]] or 1)):
            name, randomizer, value = key
            parts = [name] if len(cases) > 1 or randomizer == OWN else []
            parts += [] if randomizer == OWN else [randomizer]
            curves += _curves(", ".join((*parts, _labelled(beside, value))), series[key])
        names = ", ".join(dict.fromkeys(case.protocol.name for case in cases))
        above = all(y > 0 for curve in curves for y in (*curve.y, *(curve.low or ())))
        return Figure(
            "comparison",
            f"{names}: the largest error in 95 % of {grid.runs:,} runs",
            across,
            "largest error",
            curves,
            "one-round",
            log_x=True,
            log_y=above,
        )

    def _lines(self, across: str) -> list[Curve]:
        """The errors of the trusted curator, and of no privacy."""
        (case,), grid = self.sweep.cases, self.sweep.grid

        is_count = across == "clients"
        x: list[float] = sorted({*(grid.clients if is_count else grid.epsilon)})

        def line(label: str, name: str, value: float) -> Curve:
            errors = []
            for at in x:
                epsilon, clients = (value, int(at)) if is_count else (at, int(value))
                way = next(way for way in case.ways(epsilon) if way.name == name)
                errors.append(way.accuracy(clients))
            return Curve(label, x, errors, "theory")

        beside = "epsilon" if is_count else "clients"
        values = list(dict.fromkeys(grid.epsilon if is_count else grid.clients))
        lines = [line(f"{CURATOR}, {_labelled(beside, each)}", CURATOR, each) for each in values]
        return [*lines, line(OPEN, OPEN, values[0])]


def _cell(name: str, value: Any) -> str:
    if value is None:
        return ""
    if name == "clients":
        return number(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _errors(row: Data) -> tuple[str, str, str]:
    interval = held(f"{number(row['low'])} .. {number(row['high'])}")
    theory = row["planned"]
    return number(row["error"]), interval, "" if theory is None else number(theory)


def _curves(label: str, points: Mapping[float, list[Data]]) -> list[Curve]:
    """The measured errors of a randomizer, and their closed form where there is one."""
    x = sorted(points)
    rows = [points[at] for at in x]
    y = [_mean(each, "error") for each in rows]
    low = [min(row["low"] for row in each) for each in rows]
    high = [max(row["high"] for row in each) for each in rows]
    curves = [Curve(label, x, y, low=low, high=high, group=label)]
    theory = [each[0]["planned"] for each in rows]
    if None not in theory:
        curves.append(Curve(f"{label}, closed form", x, theory, "theory", group=label))
    return curves


def _mean(rows: Sequence[Data], name: str) -> float:
    return float(sum(row[name] for row in rows)) / len(rows)


def _labelled(name: str, value: float) -> str:
    return f"epsilon {value:g}" if name == "epsilon" else f"{value:,} clients"


def cores() -> int:
    return os.cpu_count() or 1


def read_grid(source: str | Path | Mapping[str, Any], of: Records | None = None) -> Sweep:
    """The sweep in a file of TOML, or in a mapping of the same form: the fields of `Grid`, and for
    each protocol a mapping of parameters. Raises InputError.

    A parameter has one value or a list of values; a parameter that is a list itself has one list,
    or a list of lists.
    """
    if isinstance(source, Mapping):
        data: Mapping[str, Any] = source
    else:
        with reading(source, EXAMPLE):
            data = tomllib.loads(Path(source).read_text(encoding="utf-8"))
    names = [each.name for each in fields(Grid)]
    protocols = [
        (name, each)
        for name, value in data.items()
        if name not in names
        for each in (value if isinstance(value, list) and value else [value])
    ]
    for name, axes in protocols:
        if not isinstance(axes, Mapping):
            raise InputError(f"{unknown('no key', name, names)}; {EXAMPLE}")
    grid = Grid.of({name: value for name, value in data.items() if name in names})
    cases = tuple(case for name, axes in protocols for case in _cases(name, axes, grid.tier, of))
    if not cases:
        raise InputError(f"the grid names 0 protocols; {EXAMPLE}")
    return Sweep(cases, grid)


def _cases(
    name: str, axes: Mapping[str, Any], tier: Tier, records: Records | None
) -> Iterator[Case]:
    """A protocol with every choice of its parameters."""
    hints = get_type_hints(find_protocol(name))

    def values(key: str, value: Any) -> Sequence[Any]:
        if not isinstance(value, list | tuple):
            return [value]
        if not value:
            raise InputError(f"{key} of {name} has 0 values; give at least one")
        of_lists = key == "bounds" or get_origin(hints.get(key)) is tuple
        many = not of_lists or all(isinstance(each, list | tuple) for each in value)
        return value if many else [value]

    for choice in product(*(values(key, value) for key, value in axes.items())):
        settings = dict(zip(axes, choice, strict=True))
        parameters = {
            key: value if isinstance(value, bool | int | float | str) else str(value)
            for key, value in settings.items()
        }
        yield Case(_for_table(protocol_of(name, settings), records), tier, records, parameters)


def _for_table(protocol: LocalProtocol[Any], records: Records | None) -> LocalProtocol[Any]:
    return protocol if records is None else protocol.for_table(Launch(records, private=False))


def swept(
    sweep: Sweep,
    out: Path | None,
    progress: Progress = lambda what, done, total: None,
    *,
    cluster: str = "",
    workers: int | None = 1,
    drawing: Drawing = DEFAULT,
    formats: Sequence[str] = ("png", "svg"),
) -> Compared:
    """Measures the points that are missing beside the table `out`, and writes it (.parquet, .csv or
    .json) and its figure. Raises InputError and BusError."""
    workers = cores() if workers is None else workers
    check_whole("workers", workers, 1, MOST_WORKERS)
    if out is None:
        with Folder() as folder:
            return sweep.measured(Path(folder), "measurements.jsonl", progress, cluster, workers)
    check_table(out)
    result = sweep.measured(
        out.parent, f"{out.name}.measurements.jsonl", progress, cluster, workers
    )
    result.write(out)
    save(result.figure(), *(out.with_suffix(f".{ending}") for ending in formats), drawing=drawing)
    return result


@by_name
def sweep(
    grid: str | Path | Mapping[str, Any],
    of: Table | None = None,
    *,
    out: str | Path | None = None,
    cluster: str = "",
    workers: int | None = None,
    csv: str = "",
    dates: Dates = None,
) -> Compared:
    """Measures protocols over a grid:
    `sweep({"epsilon": [1, 2], "clients": 1000, "seed": [1, 2], "frequency": {"k": [4, 16]}})`.

    The grid is a mapping or a file of TOML: the fields of `Grid`, and for each protocol its
    parameters. It measures people like the rows of a table, or synthetic ones, in `workers`
    processes (default: one for each core), or on the workers of the Dask scheduler at the address
    `cluster`. With `out`, a file that ends in .parquet, .csv or .json, the table and a figure are
    written, and a stopped sweep continues. Raises InputError.
    """
    records = None if of is None else records_of(of, csv=csv, dates=dates)
    path = None if out is None else Path(out)
    return swept(read_grid(grid, records), path, cluster=cluster, workers=workers)


@by_name
def compare(
    task: str | LocalProtocol[Any],
    of: Table | None = None,
    *,
    out: str | Path | None = None,
    cluster: str = "",
    csv: str = "",
    dates: Dates = None,
    **how: Any,
) -> Compared:
    """Measures randomizers side by side, on people like the rows of a table or on synthetic ones:
    `compare("frequency", k=16, epsilon=1, clients=1000)`.

    A protocol given by name takes its parameters as keywords, beside the fields of `Grid`:
    `epsilon`, `clients`, `only`, `runs`, `tier`, `seed`. `of` is the table, or the parameter `of`.
    `cluster` and `out` are those of `sweep`. Raises InputError.
    """
    of, how = with_target(of, how)
    own = [each.name for each in fields(Grid)]
    parameters = {name: value for name, value in how.items() if name not in own}
    protocol = protocol_of(task, parameters, own)
    of_table, records = with_table(protocol, of, csv, dates)
    grid = Grid.of({name: value for name, value in how.items() if name in own})
    path = None if out is None else Path(out)
    return swept(comparison(of_table, grid, records), path, cluster=cluster)


def comparison(protocol: LocalProtocol[Any], grid: Grid, records: Records | None = None) -> Sweep:
    """The sweep of one protocol; of frequent strings also of two published ones. Raises InputError
    where its answer is no mean over clients."""
    cases: list[LocalProtocol[Any]] = [protocol]
    if isinstance(protocol, HeavyHitters):
        own = vars(protocol)
        cases += [
            kind(**{each.name: own[each.name] for each in fields(kind)}) for kind in PUBLISHED
        ]
    else:
        estimators(protocol, grid.epsilon[0])
    return Sweep(tuple(Case(each, grid.tier, records) for each in cases), grid)


def _several(value: Any) -> tuple[Any, ...]:
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    return tuple(value) if is_list and getattr(value, "ndim", 1) != 0 else (value,)
