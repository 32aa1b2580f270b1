"""What a trusted curator tells of a table, each in a line: `import local_dp as ldp; ldp.curate.histogram(table, "occupation", epsilon=1, delta=1e-6)`.

The other trust: the records are shown to the curator, and only what it releases is private. No domain, bounds or labels need be declared. Every function
takes epsilon (1 nat), delta (1e-6; None for pure privacy, where there is such a form), seed or private; a table is a path, a mapping of columns or a frame.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias, TypedDict, Unpack

from local_dp.experiments.api.curating.attributes import Attribute, Attributes
from local_dp.experiments.api.curating.graphs import CountTriangles
from local_dp.experiments.api.curating.labels import Point, Rectangles, Threshold
from local_dp.experiments.api.curating.learned import Learned
from local_dp.experiments.api.curating.numbers import Intervals, Mean
from local_dp.experiments.api.curating.tables import MarginalCounts, SyntheticRecords
from local_dp.experiments.api.curating.values import Histogram, Median, Quantiles
from local_dp.experiments.api.functions import Bounds, bounds_written, ends_of, settings_written
from local_dp.experiments.api.tables import Table, records_of
from local_dp.experiments.api.trusted import Release, Trust, release
from local_dp.protocols.learning.learn import Learn

Cuts: TypeAlias = Mapping[str, Sequence[float]]
Listed: TypeAlias = Mapping[str, Sequence[object]]


class CuratorOptions(TypedDict, total=False):
    """How the curator is to release."""

    epsilon: float
    delta: float | None
    seed: int | None
    private: bool
    budget: Path | str | None


def median(table: Table, column: str, **how: Unpack[CuratorOptions]) -> Release:
    """The median of a column of numbers, without bounds."""
    return release(Median(column), records_of(table), Trust(**how))


def mean(table: Table, column: str, *, bounds: Bounds, outside: str = "refuse", **how: Unpack[CuratorOptions]) -> Release:
    """The mean of a column of numbers between public bounds; numbers beyond them are refused, or clipped (`outside`)."""
    return release(Mean(column, *ends_of(bounds), outside), records_of(table), Trust(**how))


def intervals(table: Table, column: str, *, bounds: Bounds, cells: int = 1024, outside: str = "refuse", **how: Unpack[CuratorOptions]) -> Release:
    """How many records lie in any interval between public bounds, which are cut into `cells` equal parts."""
    return release(Intervals(column, *ends_of(bounds), cells, outside), records_of(table), Trust(**how))


def triangles(table: Table, source: str, target: str, *, nodes: int, **how: Unpack[CuratorOptions]) -> Release:
    """How many triangles a graph has whose edges are the rows, each joining the values of two columns; one edge more or less is hidden."""
    return release(CountTriangles(source, target, nodes), records_of(table), Trust(**how))


def marginals(
    table: Table, columns: Sequence[str] = (), *, ways: int = 2, cuts: Cuts | None = None, labels: Listed | None = None, **how: Unpack[CuratorOptions]
) -> Release:
    """How many records have each combination of values, for every `ways` of some columns.

    `columns` are questions or columns of 0 and 1; `cuts` are columns of numbers with the places where each is cut, `labels` columns with their public labels.
    """
    return release(MarginalCounts(_attributes(columns, cuts, labels), ways), records_of(table), Trust(**how))


def synthetic(
    table: Table, columns: Sequence[str] = (), *, ways: int = 2, cuts: Cuts | None = None, labels: Listed | None = None, **how: Unpack[CuratorOptions]
) -> Release:
    """Records that no one gave, with nearly the table's marginals of every `ways` columns, which are declared as for `marginals`."""
    return release(SyntheticRecords(_attributes(columns, cuts, labels), ways), records_of(table), Trust(**how))


def _attributes(columns: Sequence[str], cuts: Cuts | None, labels: Listed | None) -> Attributes:
    numbers = [Attribute(column, cuts=tuple(map(float, places))) for column, places in (cuts or {}).items()]
    listed = [Attribute(column, labels=tuple(map(str, each))) for column, each in (labels or {}).items()]
    return Attributes((*map(Attribute, columns), *numbers, *listed))


def learn(
    table: Table,
    label: str = "",
    *,
    learner: str = "logistic-regression",
    features: Sequence[str] = (),
    bounds: Mapping[str, Bounds] | None = None,
    cuts: int = 1,
    parameters: Mapping[str, object] | None = None,
    missing: str = "refuse",
    **how: Unpack[CuratorOptions],
) -> Release:
    """A rule that predicts the label, as `ldp.learn` finds it among people who trust nobody; bounds of the number columns that it uses are declared."""
    learning = Learn(learner=learner, label=label, features=tuple(features), cuts=cuts, missing=missing)
    learning = replace(learning, bounds=bounds_written(bounds), parameters=settings_written(parameters))
    return release(Learned(learning), records_of(table), Trust(**how))


def histogram(table: Table, column: str, **how: Unpack[CuratorOptions]) -> Release:
    """How often each value of a column occurs, where that is told; nobody need say which values there are."""
    return release(Histogram(column), records_of(table), Trust(**how))


def quantiles(table: Table, column: str, *, levels: int = 3, **how: Unpack[CuratorOptions]) -> Release:
    """The quantiles 1/2^levels, 2/2^levels, ... of a column of numbers, without bounds: 3 levels are octiles."""
    return release(Quantiles(column, levels), records_of(table), Trust(**how))


def threshold(table: Table, column: str, label: str, *, alpha: float = 0.1, **how: Unpack[CuratorOptions]) -> Release:
    """The number from which on the label is 1: a column of 0 and 1, or a yes/no question such as "affairs > 0"."""
    return release(Threshold(column, label, alpha), records_of(table), Trust(**how))


def point(table: Table, column: str, label: str, **how: Unpack[CuratorOptions]) -> Release:
    """The one value at which the label is 1 most often, if it is ahead by enough."""
    return release(Point(column, label), records_of(table), Trust(**how))


def rectangle(table: Table, columns: Sequence[str], label: str, *, alpha: float = 0.1, **how: Unpack[CuratorOptions]) -> Release:
    """Bounds of several columns of numbers between which the label is 1."""
    return release(Rectangles(tuple(columns), label, alpha), records_of(table), Trust(**how))
