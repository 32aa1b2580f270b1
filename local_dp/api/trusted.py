"""A question to a trusted curator about a table: one release, charged to an account before anything
is drawn."""

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np

from local_dp.api.declare import CSV, DATES, WIDTH, Tabular, option
from local_dp.api.release_text import (
    DRAWN,
    MOVED,
    cell_of,
    grains,
    has_intervals,
    loss_data,
    loss_text,
    rows_of,
    truth_of,
    within,
)
from local_dp.api.tables import Dates, Notice, Schema, Table, records_of
from local_dp.checks import check_choices, check_whole, convert_fields
from local_dp.curator.account import Account, TrustedOracle
from local_dp.curator.mechanism import Mechanism, Neighbours
from local_dp.curator.people import MOST_ROWS, kept_rows, loss_of_group, loss_of_row
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Algorithm, Nonadaptive, run
from local_dp.loss import Approximate, Loss, Pure, approximate, nano_epsilon
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.grammar import names_in
from local_dp.records import Records
from local_dp.simulation.installation import installed_version
from local_dp.simulation.outcome import STAMP
from local_dp.simulation.settings import Randomness
from local_dp.storage.budget_file import KeptBudget
from local_dp.tallies import ANY, Possible
from local_dp.text.layout import held, number, paragraph, python_errors
from local_dp.text.widgets import table

if TYPE_CHECKING:  # what draws takes a while to import
    from local_dp.experiments.lab.style import Drawing

A = TypeVar("A")
D = TypeVar("D")
R = TypeVar("R")
MOST_SHOWN = 40  # rows in a summary, or in a figure


def measured(
    value: Any,
    standard_error: Any = None,
    reach: float | None = None,
    *,
    possible: Possible = ANY,
    ends: Any = None,
    raw: bool = False,
) -> PlainData:
    """The numbers of a release, one or a list: each with its standard error and the interval that
    the noise reaches with probability 95 %, or from `ends[0]` to `ends[1]`, where known.

    The noise does not depend on the records, so that both are public. Numbers and intervals are
    moved to what is `possible` unless they are to be `raw`.
    """
    data, numbers = PlainData(), np.array(value)
    if reach is not None:
        ends = numbers - reach, numbers + reach
    if not raw and possible is not ANY:
        near = possible.nearest(numbers)
        ends = None if ends is None else possible.interval(near, *ends)
        data = {"moved": not np.array_equal(near, numbers)}  # whatever the records
        value = near.tolist()
    errors = None if standard_error is None else np.full(numbers.shape, standard_error).tolist()
    interval = None if ends is None else np.stack(ends, -1).astype(numbers.dtype).tolist()
    return {"value": value, "standard_error": errors, "interval": interval, **data}


def bounded(
    most: float | None,
    text: str,
    otherwise: str = "No error is known: there are too few records for this epsilon.",
) -> PlainData:
    """The error of an answer by its mechanism's law: a number that it stays within with probability
    95 %, in a sentence; or why none is known."""
    return {"bound": most, "error": otherwise if most is None else f"With probability 95 % {text}"}


def after(
    mechanism: Mechanism[D, A, Loss], finish: Callable[[A], R]
) -> Nonadaptive[Mechanism[D, A, Loss], A, R]:
    """One release by the mechanism, and a function of it."""
    return Nonadaptive((mechanism,), lambda answers: finish(answers[0]))


@dataclass(frozen=True)
class Offer(Generic[D, R]):
    """A curator's algorithm, its name, and the account that pays for it. The account's budget is
    the price: it is fixed before the release."""

    name: str
    algorithm: Algorithm[Any, Any, R]  # of mechanisms
    account: Account

    @classmethod
    def of(cls, mechanism: Mechanism[D, R, Loss]) -> "Offer[D, R]":
        return cls(
            type(mechanism).__name__,
            after(mechanism, lambda value: value),
            Account(mechanism.loss, mechanism.neighbours),
        )


class Task(ABC, Generic[D, R]):
    """A release from a table: its price, its algorithm and its result as plain data."""

    name: ClassVar[str]

    @abstractmethod
    def offer(self, size: int) -> Offer[D, R]:
        """The algorithm for `size` records; pure where delta is None. Raises InputError where there
        is no pure form."""

    @abstractmethod
    def database(self, records: Records) -> D:
        """The table as the mechanism takes it. Where the policies of `Question.task` cover every
        value, it never raises: it was paid for."""

    @abstractmethod
    def to_data(self, result: R, records: Records) -> PlainData:
        """The result as plain data: `columns`, `rows`, `explanation`, and by `measured` its
        numbers; `brief` if a person sees other rows.

        `drawn` if there is a figure: its `axis`, `rows`, how many columns are `labels`, and whether
        they are `named`. Reads only the names of the records' columns.
        """

    @abstractmethod
    def truth(self, result: R, records: Records) -> PlainData:
        """In a simulation: the error of the result; under `DRAWN` the true numbers of the rows."""


@dataclass(frozen=True, kw_only=True)
class Question(ABC, Generic[D, R]):
    """A question to the curator. The fields of a subclass are the keywords of `ldp.curate.NAME` and
    the options of `local-dp curate NAME`."""

    name: ClassVar[str]
    summary: ClassVar[str]
    example: ClassVar[str]
    figureless: ClassVar[str] = ""  # what is released, if it has no figure
    epsilon: float = option(1.0, "Privacy loss of the release", metavar="E", unit="nats")
    delta: float | None = option(
        1e-6, "Probability of a larger loss", help="Below 1 over the number of records", metavar="D"
    )
    seed: int | None = option(None, "Seed of the simulation; default: random, printed", metavar="S")
    private: bool = option(
        False,
        "Draw noise from the operating system; takes no seed",
        help="It computes no truth, and needs a schema and a treatment of each value",
    )
    schema: Schema = option(
        None,
        "JSON file with the types of the table's columns",
        help="number, whole, truth, date, text, or text 40 for at most 40 characters",
        metavar="FILE",
    )
    csv: str = option("", **CSV)
    dates: Dates = option(None, **DATES)
    raw: bool = option(False, "Show the unbiased numbers, also impossible ones")
    person: str | None = option(
        None,
        "Column that names the person of each row",
        help="All rows of a person are then protected together",
        metavar="COLUMN",
    )
    rows: int | None = option(
        None,
        "Number of rows that count of each person",
        help="The first ones, in turn again for a person with fewer",
        usual=1,
        metavar="M",
    )
    budget: Path | str | None = option(
        None,
        "Budget file that pays before the release",
        help="`local-dp budget` makes one",
        metavar="FILE",
    )

    def __post_init__(self) -> None:
        convert_fields(self)
        check_whole("rows", self.counted, 1, MOST_ROWS)
        approximate(self.epsilon, 1e-6 if self.delta is None else self.delta)
        loss_of_row(self.loss, self.counted)
        check_choices(self)
        if self.person is None and self.rows is not None:
            raise InputError(
                f"rows is {self.rows}, and nothing says whose row is whose; name the column of "
                "people: person=COLUMN"
            )
        self.check()

    def check(self) -> None:
        """Checks the parameters. Raises InputError."""
        return

    @property
    def counted(self) -> int:
        """The rows that count of each person."""
        return 1 if self.rows is None else self.rows

    @classmethod
    def choices(cls, name: str) -> str:
        """The words of a policy with their meanings, for a refusal."""
        return " or ".join(
            f"{name}={word} ({meaning})"
            for word, meaning in cls.__dataclass_fields__[name].metadata["meanings"].items()
        )

    @property
    def reads(self) -> frozenset[str] | None:
        """The names of the columns that the question may be about: all in its texts. A table's
        other columns are not read. None: any column."""
        return names_in(*(getattr(self, each.name) for each in fields(self)))

    @property
    def loss(self) -> Loss:
        """The largest loss of the release."""
        return (
            Pure(nano_epsilon(self.epsilon))
            if self.delta is None
            else approximate(self.epsilon, self.delta)
        )

    @abstractmethod
    def task(self, table: Launch) -> Task[D, R]:
        """The task, once the policies cover every value of the table, or in private every value
        that its columns may have. Raises InputError."""

    def size(self, records: Records) -> int:
        """The public number: of records, where neighbours differ in one replaced record."""
        return len(records)

    def of_rows(self) -> "Question[D, R]":
        """The question that protects one row by so much that all rows of a person are protected by
        `loss`."""
        if self.person is None:
            return self
        loss = loss_of_row(self.loss, self.counted)
        return replace(self, epsilon=loss.epsilon, delta=loss.delta or None, person=None, rows=None)


class ByMechanism(Question[D, R], Task[D, R]):
    """A question that one mechanism answers, and its own task."""

    @abstractmethod
    def mechanism(self) -> Mechanism[D, R, Loss]:
        """Pure where delta is None. Raises InputError where there is no pure form."""

    def offer(self, size: int) -> Offer[D, R]:
        return Offer.of(self.mechanism())


@dataclass(frozen=True, repr=False)
class Release(Tabular):
    """A curator's release: prints itself, and is plain data by `to_dict`, a frame by `to_polars` or
    `to_pandas`, a figure by `plot`.

    `answer` is the mechanism's own result.
    """

    answer: Any = field(default=None, compare=False)

    @property
    def value(self) -> Any:
        """The released number, or a list of one for each row; a rule or synthetic records as the
        mechanism's own result."""
        return self.data["result"].get("value", self.answer)

    @property
    def standard_error(self) -> Any:
        """The standard error by the noise alone, of each number; None if it depends on the records,
        or has no closed form."""
        return self.data["result"].get("standard_error")

    @property
    def interval(self) -> Any:
        """The 95 % interval (low, high) of the table's own number, of each number, or of the score
        of a rule; None where none is known.

        A withheld value of a histogram counts as held.
        """
        return self.data["result"].get("interval")

    @property
    def bound(self) -> float | None:
        """The number of records that the error stays within with probability 95 %, of an answer
        without an interval; None where no number is known."""
        bound: float | None = self.data["result"].get("bound")
        return bound

    @property
    def truth(self) -> Any:
        """The truth and the errors, in a simulation; None in a private release."""
        return self.data["truth"]

    def text(self, width: int = WIDTH) -> str:
        data, result = self.data, self.data["result"]
        stamp = f"{data['stamp']}, seed {data['seed']}"
        if data["private"]:
            stamp = "private: operating-system entropy"
        price, count = held(loss_text(data, ", pure")), held(_count_text(data))
        head = (
            f"{data['task']} by a trusted curator ({data['mechanism']}), {price}, {count}; "
            f"{held(stamp)}"
        )
        listing = result.get("brief", result)
        rows, columns = listing["rows"], listing["columns"]
        fine = grains(result, len(rows))
        lines = [within(result, fine), result.get("error"), result["explanation"]]
        lines.append(MOVED if result.get("moved") else "")
        lines.append(_PROTECTS.get(data["neighbours"]))
        if len(rows) > MOST_SHOWN:
            lines.insert(0, f"and {len(rows) - MOST_SHOWN:,} more rows; --json prints all")
        if data["truth"]:
            lines.append(truth_of(data["truth"], *fine[:1]))
        if data["left"] is not None:
            lines.append(f"Left of the budget: {held(loss_text(data['left'], ', pure'))}.")
        parts = [paragraph(head, width)]
        if rows:
            columns = [*columns, *["95 % interval"] * has_intervals(result)]
            parts.append(table(columns, rows_of(result, rows[:MOST_SHOWN], fine), width))
        parts.append("\n".join(paragraph(line, width) for line in lines if line))
        return "\n\n".join(parts)

    def frame(self) -> Mapping[str, list[Any]]:
        """All rows; a column without a name is called `of`."""
        return {
            name or "of": [row[place] for row in self.rows]
            for place, name in enumerate(self.data["result"]["columns"])
        }

    def draw(self, path: Path, drawing: "Drawing") -> None:
        """Draws the numbers with their intervals, and the truth where it is known. Raises
        InputError for a result without a figure."""
        from local_dp.experiments.lab.figures import Estimates, plot_estimates

        result = self.data["result"]
        if "drawn" not in result:
            raise InputError(f"there is no figure of a {self.data['task']}; leave out plot")
        figure, listing = result["drawn"], result.get("brief", result)
        rows, count = listing["rows"][:MOST_SHOWN], len(listing["rows"])
        many = isinstance(self.value, list)

        def several(part: Any) -> list[Any]:
            return (part if many else [part])[:MOST_SHOWN]

        values = [row[-1] for row in rows] if "brief" in result else several(self.value)
        ends: Any = [(None, None)] * len(values)
        if self.interval is not None:
            ends = several(self.interval)
        lows, highs = (
            [math.nan if pair[side] is None else pair[side] for pair in ends] for side in (0, 1)
        )
        about = f"{loss_text(self.data, ', pure')}, {_count_text(self.data)}"
        title = f"{self.data['task']} by a trusted curator, {about}"
        labels = [_label(row, listing["columns"], figure) for row in rows]
        axis = figure["axis"]
        if len(rows) < count:
            axis = f"{axis}; the first {len(rows)} of {count:,}"
        truth = (self.data["truth"] or {}).get(DRAWN)
        truth = truth and truth[:MOST_SHOWN]
        estimates = Estimates(title, axis, figure["rows"], labels, values, lows, highs, truth)
        plot_estimates(estimates, path, drawing)

    @property
    def rows(self) -> list[list[Any]]:
        rows: list[list[Any]] = self.data["result"]["rows"]
        return rows


@python_errors()
def release(
    question: Question[D, R],
    table: Table,
    notice: Notice | None = None,
    ready: Callable[[], object] = lambda: None,
) -> Release:
    """Asks the trusted curator. The price is charged first, also to the budget file if there is
    one. A private release computes no truth.

    Before the charge a private release sees names and types of columns and the number of rows or
    people. So no refusal depends on a value. `notice` is that of `records_of`; `ready` raises
    InputError where the release could not be delivered.
    """
    records = _records(question, table, notice)
    size = question.size(records)
    people = size // question.counted
    _check_delta(question, people)
    task = question.of_rows().task(Launch(records, question.private))
    # what it cannot take is not paid for
    offer, database = task.offer(size), None if question.private else task.database(records)
    chance = Randomness.choose(question.seed, question.private)
    price, neighbours = _price_of(question, offer.account)
    ready()
    left = None if question.budget is None else _charge(question, price, neighbours)
    began = time.perf_counter()
    with np.errstate(all="ignore"):  # a warning would show an extreme value
        database = task.database(records) if database is None else database
        result = run(offer.algorithm, TrustedOracle(database, offer.account, Draws(chance.noise())))
    about = {
        "task": question.name,
        "model": "curator",
        "mechanism": offer.name,
        "n": people,
        "version": installed_version(),
        "privacy": "approximate" if isinstance(price, Approximate) else "pure",
        **loss_data(price),
        "neighbours": neighbours,
        "rows": None if question.person is None else question.counted,
        "left": None if left is None else loss_data(left),
        "private": question.private,
        "stamp": None,
        "seed": None,
        "result": task.to_data(result, records),
        "truth": None,
        "wall_s": None,
    }
    if not question.private:
        about |= {
            "stamp": STAMP,
            "seed": chance.seed,
            "truth": task.truth(result, records),
            "wall_s": time.perf_counter() - began,
        }
    return Release(about, result)


def _records(question: Question[Any, Any], table: Table, notice: Notice | None) -> Records:
    """The rows that count. Raises InputError."""
    records = records_of(
        table,
        question.schema,
        private=question.private,
        notice=notice,
        csv=question.csv,
        dates=question.dates,
        only=question.reads,
        copy=not question.private,
    )
    if question.person is None:
        return records
    return records.take(kept_rows(records[question.person], question.counted))


def _check_delta(question: Question[Any, Any], people: int) -> None:
    """Raises InputError for a delta that lets a whole record be published."""
    if question.delta is not None and question.delta * people >= 1:
        what = "records" if question.person is None else "people"
        most = f"give less than {1 / people:.2g}, or pure privacy"
        raise InputError(
            f"delta is {question.delta:g} with {people:,} {what}; from 1/n on a whole record may "
            f"be published: {most}"
        )


def _price_of(question: Question[Any, Any], account: Account) -> tuple[Loss, Neighbours]:
    """What a release costs, and who is protected. Raises InputError if that is not a person."""
    if question.person is None:
        return account.budget, account.neighbours
    if account.neighbours != "replace":
        raise InputError(
            f"{question.name} protects one {account.neighbours}, and not all rows of a person; "
            "leave out person"
        )
    return loss_of_group(account.budget, question.counted), "person"


def _charge(question: Question[Any, Any], price: Loss, neighbours: Neighbours) -> Loss:
    """Pays from the budget file, which stores nothing of the records. Returns what is left."""
    assert question.budget is not None
    entry = question.name if question.private else f"{question.name} (simulation)"
    return KeptBudget(Path(question.budget)).charge(price, neighbours, entry).left


_PROTECTS = {
    "replace": (
        "This protects one row: a person with k rows loses at least k times as much. To protect "
        "people, name their column (person)."
    ),
    "person": (
        "This protects people: each counts with equally many rows, and fewer rows of a person are "
        "repeated."
    ),
}


def _count_text(data: PlainData) -> str:
    """The public number."""
    count = number(data["n"])
    if data["rows"] is None:
        return f"{count} records"
    return f"{count} people, {data['rows']:,} {'row' if data['rows'] == 1 else 'rows'} of each"


def _label(row: Sequence[Any], columns: Sequence[str], figure: Mapping[str, Any]) -> str:
    """The name of a row of a figure: an interval, or the values of the columns that it counts."""
    labels = zip(columns, row[: figure.get("labels", 1)], strict=False)
    cells = [(column, cell_of(cell, 0.0)) for column, cell in labels if cell != ""]
    if figure.get("named"):
        return ", ".join(f"{column}:\N{NO-BREAK SPACE}{cell}" for column, cell in cells)
    return " to ".join(cell for _, cell in cells)
