"""Questions to clients about a table, in one line each:
`import local_dp as ldp; ldp.mean(table, "age", bounds=(15, 45))`.

A table is a path, a mapping of columns or a frame. Every function also takes the options of a run,
the fields of `asking.RunOptions`. Values that need a decision, such as missing ones, are refused
with the choices.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from inspect import Parameter, Signature, getdoc
from typing import Any, TypeAlias, Unpack

from local_dp.api.asking import Options, RunOptions, ask, documented, protocol_of
from local_dp.api.declare import keywords
from local_dp.api.result import Result
from local_dp.api.tables import Bounds, Table, ends_of
from local_dp.errors import InputError
from local_dp.masked.protocols import MaskedParityLearner
from local_dp.protocols.learning.learn import Learn
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.search.heavy_hitters import HeavyHitters
from local_dp.protocols.search.quantiles import Quantiles
from local_dp.protocols.surveys.frequency import Crosstab, Frequency, Histogram
from local_dp.protocols.surveys.survey import StatisticalQueries, Survey
from local_dp.protocols.vectors.marginals import Marginals
from local_dp.protocols.vectors.mean_found import MeanFound
from local_dp.protocols.vectors.mean_vector import Mean, MeanVector
from local_dp.protocols.vectors.workload import Workload
from local_dp.text.layout import python_errors

Labels: TypeAlias = Iterable[object]
# of groups: by label, or in the order of labels
Weights: TypeAlias = Mapping[Any, float] | Sequence[float]


@python_errors()
def _run(
    kind: type[LocalProtocol[Any]], table: Table | None, options: Options, **parameters: Any
) -> Result:
    return ask(protocol_of(kind, parameters), table, RunOptions.of(options))


def _function(kind: type[LocalProtocol[Any]], *first: str) -> Callable[..., Result]:
    """The function of a protocol: a table, the parameters in `first` by place, and by name its
    other parameters and the options of a run."""

    def asked(table: Table | None = None, *placed: Any, **how: Any) -> Result:
        return run(kind.name, table, **dict(zip(first, placed, strict=False)), **how)

    own = {each.name: each for each in fields(kind)}
    named = (
        [own[name] for name in first],
        [each for each in (*own.values(), *fields(RunOptions)) if each.name not in first],
    )
    kinds = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    parameters = [
        Parameter(each.name, place, default=each.default)
        for place, part in zip(kinds, named, strict=True)
        for each in part
    ]
    asked.__name__ = asked.__qualname__ = kind.name.replace("-", "_")
    texts = re.sub(r", separated by '[;|]'(, columns by ';')?", "", keywords(kind))
    asked.__doc__ = (
        f"{getdoc(kind)}\n\nParameters; `labels` of several columns map each to its own:\n{texts}"
    )
    asked.__signature__ = Signature(  # type: ignore[attr-defined]
        [Parameter("table", kinds[0], default=None), *parameters], return_annotation=Result
    )
    return documented(asked)


@documented
def run(protocol: str | LocalProtocol[Any], table: Table | None = None, **how: Any) -> Result:
    """Runs any protocol, on a table or on synthetic clients:
    `run("frequency", table, column="colour", randomizer="grr", seed=1)`.

    A protocol given by name takes its parameters as keywords, beside the options of a run.
    """
    if isinstance(protocol, LocalProtocol):
        return ask(protocol, table, RunOptions.of(how))
    known = [each.name for each in fields(RunOptions)]
    built = protocol_of(
        protocol, {name: value for name, value in how.items() if name not in known}, known
    )
    return ask(
        built, table, RunOptions.of({name: value for name, value in how.items() if name in known})
    )


@documented
def survey(
    table: Table,
    question: str,
    *,
    by: str = "",
    labels: Labels = (),
    labels_from_data: bool = False,
    missing: str = "refuse",
    other: str = "refuse",
    weights: Weights = (),
    randomizer: str = Survey.randomizer,
    **how: Unpack[Options],
) -> Result:
    """The share of records that answer yes to a question such as "affairs > 0 and age >= 30"; with
    `by`, within each group of that column.

    `weights`, the size of each group in the population, adds the share of all, so weighted
    (post-stratification): `weights={"north": 4.1e6, "south": 1.2e6}`. `missing`: if a missing value
    leaves the question open, refuse, count it as "no", or "exclude" the record. See
    `local_dp.protocols.surveys.survey.Survey`.
    """
    groups = {
        "by": by,
        "labels": labels,
        "labels_from_data": labels_from_data,
        "other": other,
        "weights": weights,
    }
    return _run(
        Survey, table, how, question=question, missing=missing, randomizer=randomizer, **groups
    )


@documented
def frequency(
    table: Table,
    column: str,
    *,
    labels: Labels = (),
    labels_from_data: bool = False,
    missing: str = "refuse",
    other: str = "refuse",
    randomizer: str = Frequency.randomizer,
    **how: Unpack[Options],
) -> Result:
    """The share of each label of a column. The labels are public: list them, or in a simulation
    read them with `labels_from_data`.

    `missing`: refuse, "category" (a label of its own) or "exclude" (shares among those present);
    `other`: refuse or "category". See `local_dp.protocols.surveys.frequency.Frequency`.
    """
    public = {"labels": labels, "labels_from_data": labels_from_data}
    return _run(
        Frequency,
        table,
        how,
        column=column,
        missing=missing,
        other=other,
        randomizer=randomizer,
        **public,
    )


@documented
def histogram(
    table: Table,
    column: str,
    *,
    bounds: Bounds,
    bins: int = 10,
    missing: str = "refuse",
    randomizer: str = Histogram.randomizer,
    **how: Unpack[Options],
) -> Result:
    """The share of each of `bins` equal intervals of the public bounds, and the shares below and
    above.

    `missing`: refuse, "category" (a share of its own) or "exclude" (shares among those present).
    See `local_dp.protocols.surveys.frequency.Histogram`.
    """
    return _run(
        Histogram,
        table,
        how,
        column=column,
        bounds=bounds,
        bins=bins,
        missing=missing,
        randomizer=randomizer,
    )


@documented
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
    weights: Weights = (),
    **how: Unpack[Options],
) -> Result:
    """The mean of a column of numbers between public bounds; with `by`, within each group of that
    column, and with `weights` of all, as in `survey`.

    A list of columns gives the means of all, by one report of the whole record
    (`local_dp.protocols.vectors.mean_vector.MeanVector`). Their `bounds` are one pair for all, or a
    mapping of each column to its own; a missing number is refused, or counts as the "middle".
    Without bounds, a first part of the clients finds them privately
    (`local_dp.protocols.vectors.mean_found.MeanFound`); then there are no groups. `missing`:
    refuse, or "exclude" (the mean of those present); `outside`: refuse, or "clip". See
    `local_dp.protocols.vectors.mean_vector.Mean`.
    """
    if not isinstance(column, str):
        if by:
            raise InputError("groups are of one column's mean; give one column, or leave out by")
        return _mean_vector(table, tuple(column), bounds, how, outside=outside, missing=missing)
    if isinstance(bounds, Mapping):
        raise InputError(f"bounds is {bounds!r}; give (low, high) for one column")
    if bounds is None:
        if by or outside != "refuse":
            raise InputError("groups and clipping need public bounds: add bounds=(low, high)")
        return _run(MeanFound, table, how, column=column, missing=missing)
    groups = {
        "by": by,
        "labels": labels,
        "labels_from_data": labels_from_data,
        "other": other,
        "weights": weights,
    }
    return _run(
        Mean, table, how, column=column, bounds=bounds, outside=outside, missing=missing, **groups
    )


def _mean_vector(
    table: Table,
    columns: tuple[str, ...],
    bounds: Bounds | Mapping[str, Bounds] | None,
    options: Options,
    **policies: str,
) -> Result:
    if bounds is None or (isinstance(bounds, Mapping) and set(bounds) != set(columns)):
        raise InputError(
            "the means of several columns need public bounds: add bounds=(low, high), or a "
            "mapping of each column to its own"
        )
    low, high = zip(
        *(ends_of(bounds[column] if isinstance(bounds, Mapping) else bounds) for column in columns),
        strict=True,
    )
    return _run(MeanVector, table, options, columns=columns, low=low, high=high, **policies)


@documented
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
    """The quantiles of a column of numbers, on a grid of equal intervals of the public bounds: `at`
    0.5, the median, or any shares.

    Numbers beyond the bounds are counted and not moved. `rounds`: "one", "several", or the better
    of the two; `missing`: refuse, or "exclude" (the quantiles of those present). See
    `local_dp.protocols.search.quantiles.Quantiles`.
    """
    return _run(
        Quantiles,
        table,
        how,
        column=column,
        bounds=bounds,
        at=at,
        bins=bins,
        rounds=rounds,
        missing=missing,
    )


@documented
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
    """The share of every combination of two or more columns or yes/no questions, and for two a test
    of their independence.

    `labels` maps a column to its public labels. `missing`: refuse, "category" or "exclude"
    (complete records); `other`: refuse or "category". See
    `local_dp.protocols.surveys.frequency.Crosstab`.
    """
    policies = {
        "labels": labels,
        "labels_from_data": labels_from_data,
        "missing": missing,
        "other": other,
    }
    return _run(Crosstab, table, how, columns=columns, **policies)


marginals = _function(Marginals, "columns")
heavy_hitters = _function(HeavyHitters, "column")
workload = _function(Workload, "columns", "queries")


@documented
def statistical_queries(
    table: Table,
    queries: Sequence[str],
    *,
    tolerances: float | Sequence[float] = 0.1,
    missing: str = "refuse",
    **how: Unpack[Options],
) -> Result:
    """Each yes/no question's answer on the scale from -1 to +1, each from clients of its own. See
    `local_dp.protocols.surveys.survey`."""
    return _run(
        StatisticalQueries, table, how, queries=queries, tolerances=tolerances, missing=missing
    )


@documented
def masked_parity(d: int = 8, **how: Unpack[Options]) -> Result:
    """The masked-parity learner of KLNRS Section 5 on synthetic clients: two rounds learn a concept
    that takes one round exponentially many clients."""
    return _run(MaskedParityLearner, None, how, d=d)


@documented
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
    """A rule that predicts the label, and its accuracy on clients that were held out.

    The label is a question or a column, features are number columns (default: every other one) and
    questions; bounds that are not given are found privately. `missing`: refuse, or "exclude"
    incomplete rows. See `local_dp.protocols.learning.learn.Learn`.
    """
    if bounds is not None and not isinstance(bounds, Mapping):
        raise InputError(
            f"bounds is {bounds!r:.80}; give a mapping of each column to its own, such as "
            "{'age': (15, 45)}"
        )
    rule = {
        "learner": learner,
        "label": label,
        "features": features,
        "bounds": bounds,
        "cuts": cuts,
        "parameters": parameters,
        "missing": missing,
    }
    return _run(Learn, table, how, **rule)
