"""What one asks of a table, each in a line: `import local_dp as ldp; ldp.mean(table, "age", bounds=(15, 45))`.

Every function also takes the options of a run (`asking.RunOptions`): epsilon (1 nat), tier ("population"), clients, resample, seed or private,
hosts, broker, deadline, quorum, allow, progress. A table is a path, a mapping of columns or a frame. What it cannot decide, it refuses with the choices.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, Unpack

from local_dp.errors import InputError
from local_dp.experiments.api.asking import Options, RunOptions, ask
from local_dp.experiments.api.result import Result
from local_dp.experiments.api.tables import Table
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.protocols.learning.learn import Learn
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.protocols.surveys.crosstab import Crosstab
from local_dp.protocols.surveys.frequency import Frequency, Histogram
from local_dp.protocols.surveys.statistical_queries import StatisticalQueries
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean import Mean
from local_dp.protocols.vectors.mean_found import MeanFound
from local_dp.protocols.vectors.mean_vector import MeanVector
from local_dp.queries.cells import SEPARATOR

Labels: TypeAlias = Iterable[object]
Bounds: TypeAlias = tuple[float, float]


def run(protocol: LocalProtocol[Any], table: Table | None = None, **how: Unpack[Options]) -> Result:
    """Runs any protocol, on a table or on clients that are made up."""
    return ask(protocol, table, RunOptions.of(how))


def survey(
    table: Table,
    question: str,
    *,
    by: str = "",
    labels: Labels = (),
    labels_from_data: bool = False,
    missing: str = "refuse",
    other: str = "refuse",
    **how: Unpack[Options],
) -> Result:
    """The share of records that answer yes to a question such as "affairs > 0 and age >= 30"; with `by`, within each group of that column.

    `missing`: where a missing value leaves the question open, refuse, count it as "no", or "exclude" the record. See
    `local_dp.protocols.surveys.survey.Survey`.
    """
    protocol = Survey(question=question, by=by, labels=_texts(labels), labels_from_data=labels_from_data, missing=missing, other=other)
    return ask(protocol, table, RunOptions.of(how))


def frequency(
    table: Table,
    column: str,
    *,
    labels: Labels = (),
    labels_from_data: bool = False,
    missing: str = "refuse",
    other: str = "refuse",
    **how: Unpack[Options],
) -> Result:
    """The share of each label of a column. The labels are public: list them, or in a simulation read them with `labels_from_data`.

    `missing`: refuse, "category" (a label of its own) or "exclude" (shares among those present); `other`: refuse or "category".
    See `local_dp.protocols.surveys.frequency.Frequency`.
    """
    protocol = Frequency(column=column, labels=_texts(labels), labels_from_data=labels_from_data, missing=missing, other=other)
    return ask(protocol, table, RunOptions.of(how))


def histogram(table: Table, column: str, *, bounds: Bounds, bins: int = 10, missing: str = "refuse", **how: Unpack[Options]) -> Result:
    """The share of each of `bins` equal intervals of the public bounds, and of what lies below and above.

    `missing`: refuse, "category" (a share of its own) or "exclude" (shares among those present). See `local_dp.protocols.surveys.frequency.Histogram`.
    """
    low, high = ends_of(bounds)
    return ask(Histogram(column=column, low=low, high=high, bins=bins, missing=missing), table, RunOptions.of(how))


def mean(
    table: Table,
    column: str | Sequence[str],
    *,
    bounds: Bounds | Mapping[str, Bounds] | None = None,
    outside: str = "refuse",
    missing: str = "refuse",
    by: str = "",
    labels: Labels = (),
    labels_from_data: bool = False,
    other: str = "refuse",
    **how: Unpack[Options],
) -> Result:
    """The mean of a column of numbers between public bounds; with `by`, within each group of that column.

    Of a list of columns their means together, by one report of the whole record (`local_dp.protocols.vectors.mean_vector.MeanVector`): `bounds` are those of
    all, or a mapping of each column to its own; a missing number is refused, or counts as the "middle".
    Without bounds a first part of the clients finds them privately (`local_dp.protocols.vectors.mean_found.MeanFound`), and nothing is grouped.
    `missing`: refuse, or "exclude" (the mean of those present); `outside`: refuse, or "clip". See `local_dp.protocols.vectors.mean.Mean`.
    """
    if not isinstance(column, str):
        if by:
            raise InputError("groups are of one column's mean; give one column, or leave out by")
        return ask(_mean_vector(tuple(column), bounds, outside, missing), table, RunOptions.of(how))
    if isinstance(bounds, Mapping):
        raise InputError(f"bounds is {bounds!r}; give (low, high) for one column")
    if bounds is None:
        if by or outside != "refuse":
            raise InputError("groups and clipping need public bounds: add bounds=(low, high)")
        return ask(MeanFound(column=column, missing=missing), table, RunOptions.of(how))
    low, high = ends_of(bounds)
    plain = Mean(column=column, low=low, high=high, outside=outside, missing=missing)
    return ask(replace(plain, by=by, labels=_texts(labels), labels_from_data=labels_from_data, other=other), table, RunOptions.of(how))


def _mean_vector(columns: tuple[str, ...], bounds: Bounds | Mapping[str, Bounds] | None, outside: str, missing: str) -> MeanVector:
    if bounds is None or (isinstance(bounds, Mapping) and set(bounds) != set(columns)):
        raise InputError("the means of several columns need public bounds: add bounds=(low, high), or a mapping of each column to its own")
    low, high = zip(*(ends_of(bounds[column] if isinstance(bounds, Mapping) else bounds) for column in columns), strict=True)
    return MeanVector(columns=columns, low=tuple(map(str, low)), high=tuple(map(str, high)), outside=outside, missing=missing)


def quantiles(
    table: Table,
    column: str,
    *,
    bounds: Bounds,
    at: float | Sequence[float] = 0.5,
    bins: int = 1024,
    rounds: str = "best",
    missing: str = "refuse",
    **how: Unpack[Options],
) -> Result:
    """The quantiles of a column of numbers, on a grid of equal intervals of the public bounds: `at` 0.5, the median, or any shares.

    What lies beyond the bounds is counted and not moved. `rounds`: "one", "several", or the better of the two; `missing`: refuse, or "exclude" (the
    quantiles of those present). See `local_dp.protocols.search.quantiles.Quantiles`.
    """
    low, high = ends_of(bounds)
    shares = at if isinstance(at, Sequence) else (at,)
    protocol = Quantiles(column=column, low=low, high=high, at=tuple(map(str, shares)), bins=bins, rounds=rounds, missing=missing)
    return ask(protocol, table, RunOptions.of(how))


def crosstab(
    table: Table,
    columns: Sequence[str],
    *,
    labels: Mapping[str, Labels] | None = None,
    labels_from_data: bool = False,
    missing: str = "refuse",
    other: str = "refuse",
    **how: Unpack[Options],
) -> Result:
    """The share of every combination of two or more columns or yes/no questions, and for two a test of their independence.

    `labels` maps a column to its public labels. `missing`: refuse, "category" or "exclude" (complete records); `other`: refuse or "category".
    See `local_dp.protocols.surveys.crosstab.Crosstab`.
    """
    protocol = Crosstab(columns=tuple(columns), labels_from_data=labels_from_data, missing=missing, other=other)
    if labels:
        strangers = [column for column in labels if column not in protocol.parts.named]
        if strangers or len(labels) < len(protocol.parts.named):
            raise InputError(f"there are labels of {', '.join(labels)}, and the columns are {', '.join(protocol.parts.named)}; give the labels of each")
        listed = tuple(SEPARATOR.join(_texts(labels[column])) for column in protocol.parts.named)
        protocol = Crosstab(columns=tuple(columns), labels=listed, missing=missing, other=other)
    return ask(protocol, table, RunOptions.of(how))


def statistical_queries(
    table: Table, queries: Sequence[str], *, tolerances: float | Sequence[float] = 0.1, missing: str = "refuse", **how: Unpack[Options]
) -> Result:
    """Each yes/no question's answer on the scale from -1 to +1, each from clients of its own. See `local_dp.protocols.surveys.statistical_queries`."""
    told = tolerances if isinstance(tolerances, Sequence) else (tolerances,)
    return ask(StatisticalQueries(queries=tuple(queries), tolerances=tuple(map(str, told)), missing=missing), table, RunOptions.of(how))


def masked_parity(d: int = 8, **how: Unpack[Options]) -> Result:
    """The masked-parity learner of KLNRS Section 5 on made-up clients: two rounds learn what one round needs exponentially many for."""
    return ask(MaskedParityLearner(d=d), None, RunOptions.of(how))


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
    **how: Unpack[Options],
) -> Result:
    """A rule that predicts the label, and how often it is right on clients that were held out.

    The label is a question or a column, features are number columns (every other one, if left out) and questions; bounds that are not given are found
    privately. `missing`: refuse, or "exclude" rows that lack something. See `local_dp.protocols.learning.learn.Learn`.
    """
    protocol = Learn(
        learner=learner,
        label=label,
        features=tuple(features),
        bounds=bounds_written(bounds),
        cuts=cuts,
        parameters=settings_written(parameters),
        missing=missing,
    )
    return ask(protocol, table, RunOptions.of(how))


def bounds_written(bounds: Mapping[str, Bounds] | None) -> tuple[str, ...]:
    """Public bounds by column as `Learn` takes them."""
    return tuple(f"{column}={low}..{high}" for column, (low, high) in (bounds or {}).items())


def settings_written(parameters: Mapping[str, object] | None) -> tuple[str, ...]:
    """A learner's own parameters as `Learn` takes them."""
    return tuple(f"{name}={str(value).lower()}" for name, value in (parameters or {}).items())


def _texts(labels: Labels) -> tuple[str, ...]:
    """Labels as the library writes them: whole numbers without a decimal point."""
    if isinstance(labels, str):
        raise InputError(f"labels is {labels!r}; give a list of labels")
    return tuple(str(int(label)) if isinstance(label, float) and label.is_integer() else str(label) for label in labels)


def ends_of(bounds: Bounds) -> tuple[float, float]:
    """The bounds as two numbers."""
    try:
        low, high = bounds
        return float(low), float(high)
    except (TypeError, ValueError):
        raise InputError(f"bounds is {bounds!r}; give (low, high)") from None
