"""What becomes of missing, unlisted and outlying values: decided by whoever asks, never by silence.

In a simulation the launcher looks at the table before the run and refuses what no policy decides about, with the choices. In a private run nobody looks: the
policy must be one under which every value has an answer, whatever the table holds, and a missing answer is a value like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Bools
from local_dp.errors import InputError
from local_dp.queries.questions import columns_of
from local_dp.queries.tables import Question, labels_of
from local_dp.records import Records, absent

MAX_LABELS = 1000  # read from a table at most


@dataclass(frozen=True)
class Launch:
    """A table as the launcher of a run sees it: all of it in a simulation, in a private run its columns' names and types and no row."""

    records: Records
    private: bool

    def __post_init__(self) -> None:
        if self.private:
            object.__setattr__(self, "records", self.records.schema())

    def refuse(self, policy: str, lost: Callable[[], Bools], what: str, choices: str) -> None:
        """Raises InputError where the policy is "refuse" and some record is of this kind, or may be and nobody may look.

        `lost` looks which records are; in a private run it is not called.
        """
        if policy != "refuse":
            return
        if self.private:
            raise InputError(f"a private run does not look whether {what}: declare {choices}")
        count = int(np.count_nonzero(lost()))
        if count:
            raise InputError(f"in {count} of {len(self.records)} records {what}: choose {choices}")

    def refuse_missing(self, policy: str, column: str, choices: str) -> None:
        """For a column of the table."""
        values = self.records[column]
        if values.dtype.kind in "fU":  # whole numbers are never missing
            self.refuse(policy, lambda: absent(values), f"{column!r} has no value", choices)

    def refuse_open(self, policy: str, question: Question, choices: str) -> None:
        """For a yes/no question that missing values leave open. Raises InputError too for a column that there is not, or of the wrong type."""
        columns = [self.records[name] for name in sorted(columns_of(question.expression))]
        question(self.records.take(slice(0, 1)))
        if any(values.dtype.kind in "fU" for values in columns):
            self.refuse(policy, lambda: question.answers(self.records).unknown, f"a missing value leaves {question.text!r} open", choices)

    def refuse_other(self, policy: str, column: str, labels: tuple[str, ...], choices: str) -> None:
        """For values of a column that are neither listed nor missing."""

        def unlisted() -> Bools:
            return ~np.isin(labels_of(self.records, column), np.array(labels)) & ~absent(self.records[column])

        self.refuse(policy, unlisted, f"{column!r} has a value that is not among the {len(labels)} labels", choices)

    def refuse_outside(self, policy: str, column: str, low: float, high: float, choices: str) -> None:
        """For numbers beyond the bounds."""
        numbers = self.records.numbers(column)
        self.refuse(policy, lambda: (numbers < low) | (numbers > high), f"{column!r} is outside the bounds [{low:g}, {high:g}]", choices)

    def labels(self, column: str, listed: tuple[str, ...], from_data: bool) -> tuple[str, ...]:
        """The public labels of a column: those listed, or in a simulation, when told to, those in the table. Raises InputError where there are none."""
        self.records[column]  # raises with the columns there are
        if listed:
            return listed
        if from_data and not self.private:
            return labels_in(self.records, column)
        if from_data:
            raise InputError(f"a private run takes nothing public from the table: declare the labels of {column!r}, as in labels='first;second'")
        raise InputError(f"the labels of {column!r} are public: list them, as in labels='first;second', or in a simulation let them be read: labels_from_data")

    def groups(self, column: str, listed: tuple[str, ...], from_data: bool, other: str) -> tuple[str, ...]:
        """The public labels of a column whose groups are asked about; who is in none of them is refused, or left out (`other` exclude)."""
        labels = self.labels(column, listed, from_data)
        self.refuse_missing(other, column, "other=exclude")
        self.refuse_other(other, column, labels, "other=exclude, or list all groups")
        return labels


def check_policy(name: str, policy: str, allowed: tuple[str, ...]) -> None:
    """Raises InputError for a policy that there is not."""
    if policy not in allowed:
        raise InputError(f"{name} is {policy!r}; choose from {', '.join(allowed)}")


def labels_in(records: Records, column: str) -> tuple[str, ...]:
    """The distinct values of a column as labels, sorted, numbers by size; missing ones left out. Raises InputError for more than 1,000."""
    present = records.take(~absent(records[column]))
    values = np.unique(present[column])
    if not 1 <= len(values) <= MAX_LABELS:
        raise InputError(f"column {column!r} has {len(values)} distinct values; {MAX_LABELS} are the most labels: count a number by intervals (histogram)")
    return tuple(dict.fromkeys(labels_of(Records({column: values}), column).tolist()))
