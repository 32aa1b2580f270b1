"""Policies for missing, unlisted and outlying values, and the columns of a question with their
public labels.

In a simulation, a value that no policy covers stops the run, with the choices. A private run never
looks at the table: its policies must cover every value.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools
from local_dp.checks import check_whole
from local_dp.domains import MAX_SYMBOLS
from local_dp.errors import InputError
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.grammar import columns_of, only_names, parse
from local_dp.queries.labels import Listed, apart, value_of
from local_dp.queries.questions import answers_of, may_be_open
from local_dp.queries.tables import Category, Question, labels_of
from local_dp.records import MERGED, Records, absent, is_truth, may_lack

MAX_LABELS = 1000  # read from a table at most, of numbers or for several columns
SEARCH = (
    "; or search for the frequent ones: local-dp run heavy-hitters --records TABLE --column '{}'"
)
OTHER_CHOICES = "other=category (a label of its own), or list all labels"


@dataclass(frozen=True)
class Launch:
    """A table as the launcher of a run sees it: whole in a simulation; in a private run only the
    names and types of columns."""

    records: Records
    private: bool

    def __post_init__(self) -> None:
        if self.private:
            object.__setattr__(self, "records", self.records.schema())

    @cached_property
    def types(self) -> Records:
        """No record, in columns of the same names and types."""
        return self.records.schema()

    def refuse(
        self, policy: str, affects: Callable[[Records], Bools], what: str, choices: str
    ) -> None:
        """Raises InputError if the policy is "refuse" and `affects` finds an affected record, or a
        private run, which does not look, may have one.

        `affects` gets some of the records at a time, and returns which of them are affected.

        Also, in a simulation, where the policy is "exclude" and no record is left.
        """
        if policy not in ("refuse", "exclude") or (self.private and policy == "exclude"):
            return
        if self.private:
            raise InputError(f"a private run does not look whether {what}: declare {choices}")
        count = sum(int(np.count_nonzero(affects(part))) for part in self.records.parts())
        if policy == "exclude" and count == len(self.records):
            raise InputError(
                f"in all {count} records {what}, so nobody is left to answer; ask about another "
                "column, or other values"
            )
        if policy == "refuse" and count:
            raise InputError(f"in {count} of {len(self.records)} records {what}: choose {choices}")

    def refuse_missing(self, policy: str, column: str, choices: str) -> None:
        """For a column of the table."""
        if may_lack(self.types[column]):
            self.refuse(
                policy, lambda part: absent(part[column]), f"{column!r} has no value", choices
            )

    def bounded(
        self, column: str, low: float | None, high: float | None, what: str, more: str = ""
    ) -> None:
        """Raises InputError unless a column has numbers, and they have public bounds."""
        self.types.numbers(column)
        if low is None or high is None:
            raise InputError(
                f"{what} of {column!r} needs public bounds: add bounds=(low, high){more}"
            )

    def whole(self, column: str) -> None:
        """Raises InputError unless a column has whole numbers: in private those of a type without
        fractions, else also whole numbers that are stored as such."""
        if self.private or self.types[column].dtype.kind != "f":
            self.types.whole(column)
            return
        self.refuse(
            "refuse",
            lambda part: (part[column] != np.rint(part[column])) | (abs(part[column]) > MERGED),
            f"{column!r} has no whole number",
            "another column",
        )

    def refuse_open(self, policy: str, question: Question, choices: str) -> None:
        """For a yes/no question that missing values leave open. Raises InputError also for an
        unknown column, or one of the wrong type."""
        try:
            question(self.records.take(slice(0, 1)))
        except InputError:
            empty = [
                name
                for name in columns_of(question.expression) & self.records.columns.keys()
                if absent(self.records[name]).all()
            ]
            if empty and not self.private:
                raise InputError(
                    f"column {empty[0]!r} has no value in any of {len(self.records)} records; ask "
                    "about another column"
                ) from None
            raise
        if may_be_open(question.expression, self.types):
            self.refuse(
                policy,
                lambda part: answers_of(question.expression, part).unknown,
                f"a missing value leaves {question.text!r} open",
                choices,
            )

    def refuse_other(self, policy: str, column: str, labels: tuple[str, ...], choices: str) -> None:
        """For values of a column that are neither listed nor missing."""
        check_labels(column, self.types[column].dtype, labels)
        listing = Listed(labels, self.records[column].dtype)  # one for all parts: it is large

        def is_other(part: Records) -> Bools:
            values = part[column]
            return (listing.places(values) < 0) & ~absent(values)

        what = f"{column!r} has a value that is not among the {len(labels)} labels"
        if is_truth(self.types[column].dtype):
            what += " (the values are True and False)"
        self.refuse(policy, is_other, what, choices)

    def refuse_outside(
        self, policy: str, column: str, low: float, high: float, choices: str
    ) -> None:
        """For numbers beyond the bounds."""
        self.types.numbers(column)  # raises for texts and dates
        self.refuse(
            policy,
            lambda part: (part.numbers(column) < low) | (part.numbers(column) > high),
            f"{column!r} is outside the bounds [{', '.join(apart((low, high)))}]",
            choices,
        )

    def labels(
        self,
        column: str,
        labels: tuple[str, ...],
        from_data: bool | None,
        example: str = "first;second",
        most: int = MAX_LABELS,
    ) -> tuple[str, ...]:
        """The public labels of a column: those given, or in a simulation with `from_data` those in
        the table. Raises InputError where there are none.

        `from_data` None: the protocol has no such option. `example` is the form of the labels, and
        `most` how many distinct values that are no fractions may be read.
        """
        kind = self.types[column].dtype.kind  # raises with the columns there are
        if labels:
            return labels
        if from_data and not self.private:
            return labels_in(self.records, column, most)
        if from_data:
            raise InputError(
                "a private run takes nothing public from the table: declare the labels of "
                f"{column!r}, as in labels='{example}'"
            )
        advice = f"list them, as in labels='{example}'"
        if from_data is not None:
            advice += ", or in a simulation let them be read: labels_from_data"
        advice += SEARCH.format(column) if kind == "U" else ""
        raise InputError(f"the labels of {column!r} are public: {advice}")

    def groups(
        self, column: str, labels: tuple[str, ...], from_data: bool | None, other: str
    ) -> tuple[str, ...]:
        """The public labels of a column of groups; a record of no group stops the run, or is left
        out (`other` exclude)."""
        labels = self.labels(column, labels, from_data)
        self.refuse_missing(other, column, "other=exclude")
        self.refuse_other(other, column, labels, "other=exclude, or list all groups")
        return labels


def ends_of(low: float | None, high: float | None) -> tuple[float, float]:
    """The public bounds, 0 and 1 where there are none. Raises InputError for one without the
    other."""
    if low is None and high is None:
        return 0.0, 1.0
    if low is None or high is None:
        absence, present = ("low", "high") if low is None else ("high", "low")
        raise InputError(f"{absence} is not given, and {present} is; give both: bounds=(low, high)")
    return low, high


def spare_of(other: str, missing: str) -> tuple[str, ...]:
    """The extra symbols of a category, where a policy gives these records one."""
    policies = {"other": other, "missing": missing}
    return tuple(name for name, policy in policies.items() if policy != "refuse")


_WHOLE = "a whole number such as 2"
_WRITTEN = {
    "i": _WHOLE,
    "u": _WHOLE,
    "f": "a number such as 0.5",
    "b": "True or False",
    "M": "a date such as 2020-06-01",
}


def check_labels(column: str, kind: "np.dtype[np.generic]", labels: tuple[str, ...]) -> None:
    """Raises InputError for a label that can count nobody: no value of the column's kind equals it,
    or an earlier label stands for the same number."""
    if kind.kind == "U" or (is_truth(kind) and labels == tuple(map(str, range(len(labels))))):
        return
    wide = [np.dtype(np.int64), np.dtype(np.uint64)] if kind.kind in "iu" else [kind]
    numbers = dict[object, str]()
    for label in labels:
        values = (value_of(label, each) for each in wide)
        number = next((value for value in values if value is not None), None)
        if number is None:
            raise InputError(
                f"no value of {column!r} can equal the label {label!r:.80}; write "
                f"{_WRITTEN['b' if is_truth(kind) else kind.kind]}"
            )
        if number in numbers:
            raise InputError(
                f"the labels {numbers[number]!r} and {label!r} of {column!r} are one value; give "
                "one of them"
            )
        numbers[number] = label


def labels_in(records: Records, column: str, most: int = MAX_LABELS) -> tuple[str, ...]:
    """The distinct values of a column as labels, sorted, without missing ones. Raises InputError
    for more than `most`, and for more than 1,000 fractions."""
    parts = [np.unique(part[column][~absent(part[column])]) for part in records.parts()]
    values = np.unique(np.concatenate(parts))
    kind = values.dtype.kind
    most = MAX_LABELS if kind == "f" else most
    if not 1 <= len(values) <= most:
        advice = "list those that matter, with other=category for the rest" + SEARCH.format(column)
        raise InputError(
            f"column {column!r} has {len(values)} distinct values; {most} are the most labels: "
            + (advice if kind == "U" else "count a number by intervals (histogram)")
        )
    labels = dict.fromkeys(labels_of(Records({column: values}), column).tolist())
    places = {label: place for place, label in enumerate(records.orders.get(column) or ())}
    return tuple(sorted(labels, key=lambda label: places.get(label, 0)))


@dataclass(frozen=True)
class Columns:
    """Columns (with `labels`, else 0..k-1) and yes/no questions as one question; `missing` or
    `other` exclude adds a symbol for records without a place."""

    names: tuple[str, ...]
    labels: tuple[str, ...]
    k: int
    missing: str = "refuse"
    other: str = "refuse"

    @cached_property
    def questions(self) -> tuple[str, ...]:
        return tuple(filter(is_question, self.names))

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.questions)

    @cached_property
    def query(self) -> Crossed:
        """The combination of all parts. Raises InputError for labels that do not fit."""
        return self.crossed(range(len(self.names)))

    def crossed(self, places: range | tuple[int, ...]) -> Crossed:
        return Crossed(
            tuple(self.names[place] for place in places),
            tuple(self._labels[place] for place in places),
            self.spare,
        )

    @property
    def spare(self) -> tuple[str, ...]:
        """The extra symbols of the query."""
        policies = {"other": self.other, "missing": self.missing}
        spare = [name for name, policy in policies.items() if policy == "category"]
        if "exclude" in policies.values():
            spare.append("none")
        return tuple(spare)

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        """The labels of each part as they travel, empty for a question."""
        check_whole("k", self.k, 1, MAX_SYMBOLS)
        labels = self.labels or (SEPARATOR.join(map(str, range(self.k))),) * len(self.columns)
        if len(labels) != len(self.columns):
            raise InputError(
                f"there are labels for {len(labels)} columns, and {len(self.columns)} columns that "
                "are not questions; give those of each"
            )
        own = dict(zip(self.columns, labels, strict=True))
        return tuple(SEPARATOR.join(split_labels(own.get(column, ""))) for column in self.names)

    @cached_property
    def categories(self) -> tuple[Category | Question, ...]:
        return tuple(self.crossed((place,)).categories[0] for place in range(len(self.names)))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(part.domain.size for part in self.categories)

    @property
    def sides(self) -> list[list[str]]:
        """The names of the symbols of each part."""
        return [part.symbols for part in self.categories]

    def labels_of_table(
        self,
        table: Launch,
        from_data: bool | None,
        missing_choices: str,
        other_choices: str = OTHER_CHOICES,
    ) -> tuple[str, ...]:
        """The labels of each column, once the policies cover every value of the table. Raises
        InputError."""
        for question in self.questions:
            table.refuse_open(self.missing, Question(question), missing_choices)
        labels = []
        example = ";".join(["first|second"] * len(self.columns))
        for place, column in enumerate(self.columns):
            own = split_labels(self.labels[place]) if place < len(self.labels) else ()
            own = table.labels(column, own, from_data, example)
            table.refuse_missing(self.missing, column, missing_choices)
            table.refuse_other(self.other, column, own, other_choices)
            labels.append(SEPARATOR.join(own))
        return tuple(labels)


def is_question(text: str) -> bool:
    """True if a part is a yes/no question rather than a column's name."""
    try:
        return not only_names(parse(text))
    except InputError:
        return False


def split_labels(labels: str) -> tuple[str, ...]:
    """The labels of one column, from a list as it is typed or as it travels."""
    if SEPARATOR in labels:
        return tuple(labels.split(SEPARATOR))
    return tuple(part.strip() for part in labels.split("|") if part.strip())
