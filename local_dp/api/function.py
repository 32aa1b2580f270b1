"""The Python function of a protocol, made from its declaration; and `run`, for any protocol."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, fields
from inspect import Parameter, Signature, getdoc
from typing import Any, Literal, TypeAlias, TypeVar, cast, get_origin, get_type_hints

from local_dp.api.asking import RunOptions, ask, protocol_of
from local_dp.api.declare import by_name, keywords
from local_dp.api.result import Result
from local_dp.api.tables import Bounds, Table, ends_of
from local_dp.errors import InputError
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.vectors.mean_vector import Mean

Listed: TypeAlias = str | float | Iterable[object] | Mapping[Any, Any] | None
"""A list, one value, or a mapping from columns or groups to values."""
F = TypeVar("F", bound=Callable[..., Result])

ENDS = ("low", "high")  # in Python one pair, `bounds`
SEVERAL = """

Several columns give the mean of each, from one report of the whole record; their `bounds` are one
pair, or a mapping of each column to its own, and a missing number may count as the "middle".
Without bounds, a first part of the clients finds them privately; then there are no groups."""
# of one column or of several
MEANS = {"column": str | Sequence[str], "bounds": Listed, "missing": str}


def documented(body: F) -> F:
    """The function `by_name`, with the options of a run in its documentation."""
    wrapper = by_name(body)
    wrapper.__doc__ = f"{body.__doc__}\n\nOptions of a run:\n{keywords(RunOptions)}"
    return wrapper


@documented
def run(protocol: str | LocalProtocol[Any], table: Table | None = None, **how: Any) -> Result:
    """Runs any protocol, on a table or on synthetic clients:
    `run("frequency", table, column="colour", randomizer="grr", seed=1)`.

    A protocol given by name takes its parameters as keywords, beside the options of a run.
    """
    if isinstance(protocol, LocalProtocol):
        return ask(protocol, table, RunOptions.of(how))
    options = [each.name for each in fields(RunOptions)]
    instance = protocol_of(
        protocol, {name: value for name, value in how.items() if name not in options}, options
    )
    return ask(
        instance,
        table,
        RunOptions.of({name: value for name, value in how.items() if name in options}),
    )


def function(
    kind: type[LocalProtocol[Any]], *first: str, name: str = "", **defaults: Any
) -> Callable[..., Result]:
    """The function of a protocol, by its name or another `name`: it takes the parameters in `first`
    by place too, and by name the others and the options of a run. `defaults` differ from the
    protocol's."""
    signature = Signature(_parameters(kind, first, defaults), return_annotation=Result)

    def call(*values: Any, **options: Any) -> Result:
        arguments = {**defaults, **dict(zip(first, values, strict=False)), **options}
        protocol = _kind_of_means(arguments) if kind is Mean else kind.name
        return run(protocol, **arguments)

    call.__name__ = call.__qualname__ = name or kind.name.replace("-", "_")
    more = SEVERAL if kind is Mean else ""
    texts = keywords(kind)
    if "bounds" in signature.parameters.keys() - kind.__dataclass_fields__.keys():
        texts = f"    bounds: Public bounds, as (low, high)\n{keywords(kind, without=ENDS)}"
    call.__doc__ = f"{kind.summary}.\n\n{getdoc(kind)}{more}\n\nParameters:\n{texts}"
    call.__signature__ = signature  # type: ignore[attr-defined]
    return documented(call)


def _parameters(
    kind: type[LocalProtocol[Any]], first: tuple[str, ...], defaults: Mapping[str, Any]
) -> list[Parameter]:
    hints = get_type_hints(RunOptions) | get_type_hints(kind)
    every = {each.name: each for each in (*fields(kind), *fields(RunOptions))}
    names = dict.fromkeys((*first, *every))
    if hints.get("low") == float | None:  # a range of one column
        names = dict.fromkeys("bounds" if name in ENDS else name for name in names)
    parameters = []
    for name in names:
        annotation, default = Table if name == "table" else Bounds, Parameter.empty
        if name in every:
            annotation, default = _hint_and_default(every[name], hints[name])
        place = Parameter.POSITIONAL_OR_KEYWORD if name in first else Parameter.KEYWORD_ONLY
        default = defaults.get(name, default)
        annotation = MEANS.get(name, annotation) if kind is Mean else annotation
        parameters.append(Parameter(name, place, default=default, annotation=annotation))
    return parameters


def _hint_and_default(each: Field[Any], hint: Any) -> tuple[Any, Any]:
    """The type of a parameter in Python, and its default: none where a table needs it."""
    default = Parameter.empty if each.metadata.get("of_table") else each.default
    if each.metadata.get("choices"):
        return cast(Any, Literal)[each.metadata["choices"]], default
    return Listed if get_origin(hint) is tuple else hint, default


def _kind_of_means(arguments: dict[str, Any]) -> str:
    """The protocol for these arguments of `mean`, which it changes to parameters of that protocol:
    of one column with bounds, without them, or of several columns. Raises InputError."""
    bounds, has_groups = arguments.pop("bounds"), bool(arguments.get("by"))
    if isinstance(arguments["column"], str):
        if bounds is not None:
            arguments["bounds"] = bounds
            return "mean"
        if has_groups or arguments.get("outside", "refuse") != "refuse":
            raise InputError("groups and clipping need public bounds: add bounds=(low, high)")
        arguments.setdefault("missing", "refuse")
        return "mean-found"
    if has_groups:
        raise InputError("groups are of one column's mean; give one column, or leave out by")
    columns = arguments["columns"] = tuple(arguments.pop("column"))
    each = bounds if isinstance(bounds, Mapping) else dict.fromkeys(columns, bounds)
    if bounds is None or set(each) != set(columns):
        raise InputError(
            "the means of several columns need public bounds: add bounds=(low, high), or a "
            "mapping of each column to its own"
        )
    ends = [ends_of(each[column]) for column in columns]
    arguments["low"], arguments["high"] = ([pair[side] for pair in ends] for side in (0, 1))
    return "mean-vector"
