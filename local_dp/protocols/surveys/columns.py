"""Columns that are asked about together: with public labels, or yes/no questions, and what becomes of values that have no label."""

from dataclasses import dataclass
from functools import cached_property

from local_dp.errors import InputError
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.cells import SEPARATOR, Crossed
from local_dp.queries.questions import parse
from local_dp.queries.tables import Category, Question


@dataclass(frozen=True)
class Columns:
    """Columns and questions, `labels` for each that is no question; without any, each has the labels 0..k-1.

    `missing` and `other`: refuse, or category (a label of its own); with `missing` exclude the query has one symbol more, for records that are not complete.
    """

    names: tuple[str, ...]
    labels: tuple[str, ...]
    k: int
    missing: str = "refuse"
    other: str = "refuse"

    @property
    def named(self) -> tuple[str, ...]:
        """The parts that are columns, not questions."""
        return tuple(column for column in self.names if not is_question(column))

    @cached_property
    def query(self) -> Crossed:
        """The combination of all parts. Raises InputError for labels that do not fit."""
        return self.crossed(range(len(self.names)))

    def crossed(self, places: range | tuple[int, ...]) -> Crossed:
        """The combination of some parts."""
        return Crossed(tuple(self.names[place] for place in places), tuple(self._told[place] for place in places), self.spare)

    @property
    def spare(self) -> tuple[str, ...]:
        """The extra symbols of the query."""
        chosen = (("other", self.other == "category"), ("missing", self.missing == "category"), ("none", self.missing == "exclude"))
        return tuple(name for name, spare in chosen if spare)

    @cached_property
    def _told(self) -> tuple[str, ...]:
        """The labels of each part as they travel, nothing for a question."""
        labels = self.labels or (SEPARATOR.join(map(str, range(self.k))),) * len(self.named)
        if len(labels) != len(self.named):
            raise InputError(f"there are labels for {len(labels)} columns, and {len(self.named)} columns that are not questions; give those of each")
        told = dict(zip(self.named, labels, strict=True))
        return tuple(SEPARATOR.join(split_labels(told.get(column, ""))) for column in self.names)

    @cached_property
    def categories(self) -> tuple[Category | Question, ...]:
        """Each part as a query of its own."""
        return tuple(self.crossed((place,)).categories[0] for place in range(len(self.names)))

    @property
    def shape(self) -> tuple[int, ...]:
        """How many symbols each part has."""
        return tuple(part.domain.size for part in self.categories)

    @property
    def sides(self) -> list[list[str]]:
        """The names of each part's symbols."""
        return [shown_symbols(part) for part in self.categories]

    def labels_of_table(self, table: Launch, from_data: bool, missing_choices: str) -> tuple[str, ...]:
        """The labels of each column that is no question, once no value of the table is left undecided. Raises InputError."""
        for column in self.names:
            if is_question(column):
                table.refuse_open(self.missing, Question(column), missing_choices)
        labels = []
        for place, column in enumerate(self.named):
            own = table.labels(column, split_labels(self.labels[place]) if place < len(self.labels) else (), from_data)
            table.refuse_missing(self.missing, column, missing_choices)
            table.refuse_other(self.other, column, own, "other=category (a label of its own), or list all labels")
            labels.append(SEPARATOR.join(own))
        return tuple(labels)


def is_question(text: str) -> bool:
    """Whether a part is a yes/no question rather than a column's name."""
    try:
        parse(text)
    except InputError:
        return False
    return True


def split_labels(labels: str) -> tuple[str, ...]:
    """The labels of one column, from a list as it is typed or as it travels."""
    return tuple(labels.split(SEPARATOR)) if SEPARATOR in labels else tuple(part.strip() for part in labels.split("|") if part.strip())


def shown_symbols(part: Category | Question) -> list[str]:
    """The names of a part's symbols in the table."""
    names = ["no", "yes"] if isinstance(part, Question) else list(part.labels)
    return [*names, *(f"({name})" for name in part.spare)]
