"""Asks a trusted curator a question about a table: median, mean, histogram, intervals, marginals,
synthetic records, a learned rule and more.

The trust differs from `run`: the curator sees the records, and only its releases are private.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from local_dp.api.curate import OTHERS, QUESTIONS
from local_dp.api.declare import option
from local_dp.api.trusted import Question, release
from local_dp.cli.fields import Plotted, json_option, show
from local_dp.errors import InputError
from local_dp.registry import is_place
from local_dp.text.screen import SCREEN


@dataclass(frozen=True, kw_only=True)
class Curating(Plotted, Question[Any, Any]):
    """A question with the options that only the command line has."""

    records: Path = option(
        brief="CSV, TSV, Excel or Parquet file that the curator sees",
        help="Or a folder of them",
        metavar="FILE",
    )
    delta: float | None = option(
        None,
        Question.__dataclass_fields__["delta"].metadata["brief"],
        usual=Question.delta,
        metavar="D",
    )
    pure: bool = option(False, "Pure privacy, without a delta")
    out: Path | None = option(
        None,
        "Write all rows, as .parquet, .csv or .json",
        help="Their provenance is beside the file",
        metavar="FILE",
    )
    as_json: bool = json_option("the release")

    def __post_init__(self) -> None:
        if self.pure and self.delta is not None:
            raise InputError(
                f"--delta is {self.delta:g}, and --pure has none; leave out one of them"
            )
        if not self.pure and self.delta is None:
            object.__setattr__(self, "delta", Question.delta)
        super().__post_init__()

    def __call__(self) -> None:
        self.check_files(self.name, self.figureless)
        SCREEN.working(f"releasing from {self.records.name}")
        result = release(self, self.records, SCREEN.note, SCREEN.check)
        place = "lost" if self.out is None else f"written to {str(self.out)!r}"
        try:  # it is paid for
            show(
                result,
                self.as_json,
                f"the release is charged to {str(self.budget)!r} and {place}"
                if self.budget
                else "",
            )
        finally:
            self.write_files(result)


def _with_options(kind: type[Question[Any, Any]]) -> type[Any]:
    """The question as a command."""
    own = frozenset(each.name for each in fields(kind)) - {each.name for each in fields(Question)}
    command = type(
        kind.__name__,
        (Curating, kind),
        {"__doc__": kind.__doc__, "__module__": __name__, "own": own},
    )
    return dataclass(frozen=True, kw_only=True)(command)


class _Questions(dict[str, type[Any]]):
    """Our questions by name, and those of plug-ins at their places."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or str(name) in OTHERS or is_place(str(name))

    def __missing__(self, name: str) -> type[Any]:
        return _with_options(OTHERS.find(name))


CURATE = _Questions({name: _with_options(kind) for name, kind in QUESTIONS.items()})
