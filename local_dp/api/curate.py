"""Asks a trusted curator about a table, in one line each:
`import local_dp as ldp; ldp.curate.histogram(table, "occupation", epsilon=1, delta=1e-6)`.

The curator sees the records; only its releases are private. A table is a path, a mapping of columns
or a frame. Each function takes the fields of its question, and `epsilon` (1 nat), `delta` (1e-6;
None: pure privacy), `seed` or `private`, a `schema` of the columns, `person` and `rows` for people
with several rows, and `budget`, a file that pays.
"""

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, cast

from local_dp.api.curating.labelled import Point, Rectangles, Threshold
from local_dp.api.curating.learned import LearnedRule
from local_dp.api.curating.numbers import CountTriangles, Intervals, Mean
from local_dp.api.curating.tables import MarginalCounts, SyntheticRecords
from local_dp.api.curating.values import Histogram, Median, Quantiles
from local_dp.api.declare import by_name, keywords
from local_dp.api.tables import Table
from local_dp.api.trusted import Question, Release, release
from local_dp.errors import InputError
from local_dp.registry import Registry

P = ParamSpec("P")
# by name, in the order of the list of `local-dp curate`
QUESTIONS: dict[str, type[Question[Any, Any]]] = {}
OTHERS: Registry[Question[Any, Any]] = Registry("question", "local_dp.questions", Question, {})


@by_name
def ask(
    table: Table, question: Question[Any, Any] | type[Question[Any, Any]] | str, /, **options: Any
) -> Release:
    """Asks a question of your own: an object, or a class with its fields as options, also by its
    place, "module:Class" or "path/file.py". Raises InputError."""
    if not isinstance(question, Question):
        return release(OTHERS.find(question)(**options), table)
    if options:
        raise InputError(f"{', '.join(options)}: options for a question that is an object")
    return release(question, table)


def _function(kind: Callable[P, Question[Any, Any]]) -> Callable[Concatenate[Table, P], Release]:
    """Registers a question, and gives its function: a table, then the fields of the question."""
    question = cast(type[Question[Any, Any]], kind)
    signature = inspect.signature(kind)

    def ask(table: Table, /, *values: P.args, **options: P.kwargs) -> Release:
        return release(kind(*values, **options), table)

    parameters = [
        inspect.Parameter("table", inspect.Parameter.POSITIONAL_ONLY, annotation=Table),
        *signature.parameters.values(),
    ]
    ask.__name__ = ask.__qualname__ = question.name
    ask.__doc__ = f"{inspect.getdoc(question)}\n\nKeywords:\n{keywords(question)}"
    ask.__signature__ = signature.replace(parameters=parameters, return_annotation=Release)  # type: ignore[attr-defined]
    QUESTIONS[question.name] = question
    return by_name(ask)


median = _function(Median)
quantiles = _function(Quantiles)
mean = _function(Mean)
histogram = _function(Histogram)
intervals = _function(Intervals)
marginals = _function(MarginalCounts)
synthetic = _function(SyntheticRecords)
triangles = _function(CountTriangles)
threshold = _function(Threshold)
point = _function(Point)
rectangle = _function(Rectangles)
learn = _function(LearnedRule)


def __dir__() -> list[str]:
    return [*QUESTIONS, "ask"]
