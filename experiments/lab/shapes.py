"""The parts of a finding: tables, figures and checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Data = dict[str, Any]  # a point or a measurement as plain JSON data
Scale = Literal["quick", "full"]
# the chance of one check to fail where its claim is true: with 500 checks, 1 % for all together
ALPHA = 2e-5
Style = Literal["measured", "theory", "bound", "bars"]


@dataclass(frozen=True)
class Curve:
    """One curve of a figure; `low` and `high`, where given, are its confidence band."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    style: Style = "measured"
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    # of its series; by default its label without the role: "X, measured" and "X, predicted" are one
    # series
    group: str = ""


def curve(
    label: str, points: Iterable[Sequence[float]], style: Style = "measured", group: str = ""
) -> Curve:
    """A curve through points (x, y) or (x, y, low, high), in the order of x."""
    ordered = sorted(points, key=lambda point: point[0])
    x, y, *band = [*zip(*ordered, strict=True)] or [(), ()]
    low, high = band or (None, None)
    return Curve(label, x, y, style, low, high, group)


@dataclass(frozen=True)
class Table:
    """A table of results, whose columns a figure names."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def column(self, heading: str) -> list[Any]:
        """The cells below a heading."""
        place = self.columns.index(heading)
        return [row[place] for row in self.rows]

    def where(self, column: str, value: object) -> "Table":
        """The rows with this value in this column."""
        pairs = zip(self.rows, self.column(column), strict=True)
        return replace(self, rows=[row for row, cell in pairs if cell == value])

    def curves(
        self, columns: str, *names: str, style: Style = "measured", group: bool = False
    ) -> list[Curve]:
        """A curve for each of the names, or for all, through the rows with a number in each of the
        columns "name | x | y" or "name | x | y | low | high"."""
        places = [self.columns.index(heading) for heading in split(columns)]
        points: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
        for row in self.rows:
            name, *point = (row[place] for place in places)
            if None not in point and (name in points or not names):
                points.setdefault(name, []).append(tuple(point))
        return [
            curve(name, each, style, group=name if group else "")
            for name, each in points.items()
            if each
        ]


def split(columns: str) -> list[str]:
    """The parts of a list of columns, as in "bits | records"."""
    return [part.strip() for part in columns.split("|")]


def tabulate(title: str, headings: str, rows: Iterable[tuple[Any, ...]]) -> Table:
    """A table of plain cells under these headings, as in "bits | records"."""
    return Table(title, tuple(split(headings)), list(rows))


def table_of(title: str, columns: str, rows: Iterable[Any]) -> Table:
    """A table of the fields of rows.

    `columns` is as in "bits | records = n | share = right.share / runs : 3". A column has a
    heading, its field if that has another name, and the digits it is rounded to. A field may be a
    field of a field, one of its places, or a quotient. A row is one object or several; the first
    that has a field gives it.
    """
    headings, fields = [], []
    for part in split(columns):
        heading, _, field = part.partition(" = ")
        headings.append(heading.partition(" : ")[0])
        fields.append(field or heading)
    cells = [tuple(_cell(row, field) for field in fields) for row in rows]
    return Table(title, tuple(headings), cells)


def _cell(row: Any, field: str) -> Any:
    name, _, digits = field.partition(" : ")
    top, _, bottom = name.partition(" / ")
    value = _value(row, top) / _value(row, bottom) if bottom else _value(row, top)
    return round(value, int(digits)) if digits else value


def _value(row: Any, name: str) -> Any:
    """The field of this name; of several objects, that of the first which has it."""
    path = name.split(".")
    value = row if isinstance(row, tuple) else (row,)
    if not path[0].isdigit():
        value = next((each for each in value if hasattr(each, path[0])), value[0])
    for part in path:
        value = value[int(part)] if part.isdigit() else getattr(value, part)
    return value


def curve_of(
    label: str, fields: str, rows: Iterable[Any], style: Style = "measured", group: str = ""
) -> Curve:
    """A curve through fields of rows: "x | y" or "x | y | low | high"."""
    return curve(label, table_of(label, fields, rows).rows, style, group)


@dataclass(frozen=True)
class Figure:
    """A figure: curves over common axes, `bars` side by side. `x_ticks` names the positions 0, 1,
    ... of a categorical axis.

    `model` is the model of computation, as in `style.PALETTE`, of the curves whose names state
    none: their colour.
    """

    name: str
    title: str
    x_label: str
    y_label: str
    curves: list[Curve]
    model: str = "curator"
    log_x: bool = False
    log_y: bool = False
    x_ticks: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogFigure(Figure):
    """A figure with a logarithmic vertical axis."""

    log_y: bool = True


@dataclass(frozen=True)
class LogLogFigure(LogFigure):
    """A figure with two logarithmic axes."""

    log_x: bool = True


@dataclass(frozen=True)
class Region:
    """A region of a diagram and what was placed in it: pairs of a name and a few words of
    evidence."""

    title: str
    subtitle: str
    placed: list[tuple[str, str]]


@dataclass(frozen=True)
class Regions:
    """A diagram of nested regions, the innermost first; what belongs to an inner region belongs to
    all that enclose it."""

    name: str
    title: str
    regions: list[Region]


@dataclass(frozen=True)
class Check:
    """One statement of the claim, whether the run showed it, and the figures that decide.
    `lab/checks.py` makes the common ones."""

    statement: str
    shown: bool
    evidence: str
    chance: float = (
        0.0  # at most, that it fails where the statement is true; 0 where nothing random decides
    )
    # the smallest wrong figure that makes it fail with probability 0.99; any wrong one where
    # nothing random decides
    catches: str = ""


@dataclass(frozen=True)
class Finding:
    """What an experiment found: its verdict is "shown" if every check was shown, else "not shown".

    `headline` is one sentence for a reader in a hurry, with this run's own figure in it; where
    nothing could be measured it says so.
    """

    checks: list[Check]
    tables: list[Table] = field(default_factory=list)
    figures: Sequence[Figure | Regions] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # by file name: what `local-dp certify` checks
    certificates: dict[str, dict[str, Any]] = field(default_factory=dict)
    headline: str = field(kw_only=True)

    @property
    def verdict(self) -> str:
        return "shown" if self.checks and all(check.shown for check in self.checks) else "not shown"
