"""Questions about several columns together: all their marginals, and synthetic records with nearly
the same marginals."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import accumulate, combinations, pairwise
from typing import Any, TypeVar

import numpy as np

from local_dp.api.curating.labelled import Policies, Yes, check_label
from local_dp.api.curating.values import MISSING, NO_VALUE
from local_dp.api.declare import option, policy
from local_dp.api.release_text import DRAWN
from local_dp.api.trusted import Offer, Question, Task, after, bounded, measured
from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.bounds.tails import normal_quantile
from local_dp.checks import check_whole
from local_dp.curator.account import Account
from local_dp.curator.marginals.base import DENSE, BinaryTable, Errors, Marginals, Synthetic
from local_dp.curator.marginals.baselines import SpanningTree
from local_dp.curator.marginals.fourier import (
    FourierGaussian,
    NoisyCharacters,
    choose,
    nearest_table,
)
from local_dp.curator.query_release.synthetic import pure_mwem
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play, as_play
from local_dp.loss import Approximate, Pure
from local_dp.protocols.local_protocol import PlainData
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.encoded import question_in
from local_dp.queries.labels import Listed
from local_dp.records import Records, absent
from local_dp.tallies import Z95, Possible

OTHER = "(other)"
_MOST_VALUES = 1 << 10
_BY_TABLE = "No error is known: that of this mechanism depends on the table."


@dataclass(frozen=True)
class Attribute:
    """A question or a column of 0 and 1; or a column of numbers with `cuts`; or a column of
    `labels`.

    Its values are public: none is read from the table. `missing` and `other` "category" give a
    value of its own to rows without one, and to values that are not listed: labels, or 0 and 1.
    """

    column: str
    cuts: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    missing: str = "refuse"
    other: str = "refuse"

    def __post_init__(self) -> None:
        if len(set(self.labels)) < len(self.labels) or any(
            low >= high for low, high in pairwise(self.cuts)
        ):
            raise InputError(
                f"the cuts or labels of {self.column!r} are not distinct, or not in order; give "
                "each once, cuts from small to large"
            )
        if len(self.values) > _MOST_VALUES:
            raise InputError(
                f"{self.column!r} has {len(self.values)} values; give at most {_MOST_VALUES}"
            )

    @classmethod
    def cut_at(cls, column: str, cuts: Sequence[Any], missing: str = "refuse") -> "Attribute":
        """A column of numbers with cuts, which may be texts. Raises InputError."""
        try:
            return cls(column, cuts=tuple(map(float, cuts)), missing=missing)
        except ValueError:
            raise InputError(
                f"the cuts of {column!r} are no numbers: {', '.join(map(str, cuts))}; write them "
                "like age=27;32"
            ) from None

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names of the values, by their numbers."""
        ends = [str(cut).removesuffix(".0") for cut in self.cuts]
        others = (OTHER,) if self.other == "category" else ()
        lacking = (MISSING,) if self.missing == "category" else ()
        if self.labels:
            return (*self.labels, *others, *lacking)
        if ends:
            middle = (f"{low} to < {high}" for low, high in pairwise(ends))
            return (f"< {ends[0]}", *middle, f">= {ends[-1]}", *lacking)
        if question_in(self.column):
            return ("no", "yes", *lacking)
        return ("0", "1", *others, *lacking)

    @property
    def bits(self) -> int:
        return (len(self.values) - 1).bit_length()

    def check(self, table: Launch, asking: Policies) -> None:
        """Raises InputError unless there is a value for every row of a table."""
        if not (self.labels or self.cuts):
            check_label(table, self.column, asking)
            return
        table.types[self.column] if self.labels else table.types.numbers(self.column)
        table.refuse_missing(self.missing, self.column, asking.choices("missing"))
        if self.labels:
            table.refuse_other(
                self.other,
                self.column,
                self.labels,
                f"{asking.choices('other')}, or list all labels",
            )

    def numbers(self, records: Records) -> Ints:
        """The number of each record's value; `check` finds that there is one."""
        last = len(self.values) - 1  # the value of a missing one
        if self.labels:
            values, count = records[self.column], len(self.labels)
            places = Listed(self.labels, values.dtype).places(values)
            lacks, numbers = absent(values), np.where(places < 0, min(count, last), places)
        elif self.cuts:
            values = records.numbers(self.column)
            lacks = np.isnan(values)
            numbers = np.searchsorted(np.array(self.cuts), values, side="right")
        else:
            answers = Yes.of(records, self.column)
            lacks, numbers = answers.missing, np.where(answers.other, min(2, last), answers.yes)
        return np.where(lacks, last, numbers).astype(np.int64)


@dataclass(frozen=True)
class Attributes:
    """Several attributes, each with bits of its own; those of the first are the lowest."""

    every: tuple[Attribute, ...]

    def __post_init__(self) -> None:
        names = [each.column for each in self.every]
        if not names or len(set(names)) < len(names):
            raise InputError(
                f"the columns are {', '.join(names) or 'none'}; give at least one, each once"
            )
        if self.d > 64:
            raise InputError(
                f"the columns take {self.d} bits; 64 is the most: give fewer columns, cuts or "
                "labels"
            )

    @property
    def d(self) -> int:
        """Bits of a record."""
        return sum(each.bits for each in self.every)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        return tuple(
            int(start) for start in np.cumsum([0, *(each.bits for each in self.every[:-1])])
        )

    def table(self, records: Records) -> BinaryTable:
        rows, start = np.zeros(len(records), dtype=np.uint64), 0
        for part in records.parts():
            for each, bit in zip(self.every, self.starts, strict=True):
                rows[start : start + len(part)] |= each.numbers(part).astype(
                    np.uint64
                ) << np.uint64(bit)
            start += len(part)
        return BinaryTable(self.d, rows)

    def workload(self, ways: int) -> Marginals:
        return Marginals.of(
            self.d,
            (
                [bit for number in group for bit in self.bits_of(number)]
                for group in self.groups(ways)
            ),
        )

    def groups(self, ways: int) -> list[tuple[int, ...]]:
        return list(combinations(range(len(self.every)), ways))

    def bits_of(self, number: int) -> range:
        return range(self.starts[number], self.starts[number] + self.every[number].bits)

    def cells(self, ways: int) -> list[tuple[int, list[str]]]:
        """The possible cells of the marginals of every `ways` attributes: place, and a value or an
        empty text for each attribute."""
        cells, start = list[tuple[int, list[str]]](), 0
        for group in self.groups(ways):
            size = 1 << sum(self.every[number].bits for number in group)
            for cell in range(size):
                names = self._values(group, cell)
                if names is not None:
                    cells.append((start + cell, names))
            start += size
        return cells

    def _values(self, group: Sequence[int], cell: int) -> list[str] | None:
        """The names of a cell's values, empty for the other attributes; None if some code in it has
        no value."""
        names = [""] * len(self.every)
        for number in group:
            each = self.every[number]
            code, cell = cell & (1 << each.bits) - 1, cell >> each.bits
            if code >= len(each.values):
                return None
            names[number] = each.values[code]
        return names

    def possible(self) -> Bools:
        """Which words of up to 22 bits are possible records, shape (2^d,): every code has a
        value."""
        words = np.arange(1 << self.d, dtype=np.uint64)
        possible: Bools = np.logical_and.reduce(
            [codes < len(each.values) for each, codes in self._codes(words)]
        )
        return possible

    def names(self, words: Words) -> list[list[str]]:
        columns = [np.array(each.values)[codes] for each, codes in self._codes(words)]
        names: list[list[str]] = np.stack(columns, axis=1).tolist()
        return names

    def _codes(self, words: Words) -> Iterator[tuple[Attribute, Ints]]:
        """Each attribute with its number in every word."""
        for each, start in zip(self.every, self.starts, strict=True):
            yield each, (words >> np.uint64(start)).astype(np.int64) & (1 << each.bits) - 1


def read_listed(text: str) -> tuple[str, list[str]]:
    """A column and its cuts or labels, from a text such as age=27;32. Raises InputError."""
    column, sign, tail = text.partition("=")
    values = [each.strip() for each in tail.split(";")]
    if not (column.strip() and sign and all(values)):
        raise InputError(f"{text!r} names no column with its values; write it like age=27;32")
    return column.strip(), values


A = TypeVar("A")


@dataclass(frozen=True)
class Cells:
    """The estimated counts of all cells of a workload, the reason for this mechanism, and the noisy
    characters that have the law of their errors."""

    counts: Floats
    reason: str
    noisy: NoisyCharacters | None = None

    def ends(self, places: Ints) -> tuple[Floats, Floats] | None:
        """The 95 % intervals of these cells: the noise of a cell is normal around its unbiased
        count. An estimate that is moved from it is held too."""
        if self.noisy is None:
            return None
        raw, reach = self.noisy.cells[places], Z95 * self.noisy.spread[places]
        counts = self.counts[places]
        return np.minimum(raw - reach, counts), np.maximum(raw + reach, counts)


@dataclass(frozen=True)
class Drawn:
    """Synthetic records, and the noisy characters that they come from."""

    synthetic: Synthetic
    noisy: NoisyCharacters | None = None

    def error(self, cells: Floats, places: Ints) -> int | None:
        """What the errors of these cells of the synthetic records stay within, all together with
        probability 95 %: normal errors and a union bound."""
        if self.noisy is None:
            return None
        reach = normal_quantile(0.025 / len(places)) * self.noisy.spread[places]
        return math.ceil(float(np.max(np.abs(cells[places] - self.noisy.cells[places]) + reach)))


@dataclass(frozen=True)
class OfAttributes(Question[BinaryTable, A], Task[BinaryTable, A]):
    """A question about the marginals of every `ways` of some attributes."""

    columns: Sequence[str] = option(
        (),
        "Yes/no question, or column of 0 and 1; may be repeated",
        name="--column --columns",
        metavar="X",
    )
    _: KW_ONLY
    ways: int = option(2, "Number of columns in a marginal", metavar="T")
    cuts: Mapping[str, Sequence[Any]] | None = option(
        None,
        "Column of numbers and its cuts; may be repeated",
        help="Such as age=27;32",
        metavar="X=A;B;...",
        read=read_listed,
        collect=dict,
    )
    labels: Mapping[str, Sequence[object]] | None = option(
        None,
        "Column and its labels; may be repeated",
        help="Such as job=baker;smith",
        metavar="X=A;B;...",
        read=read_listed,
        collect=dict,
    )
    missing: str = policy(NO_VALUE, category="a value of its own")
    other: str = policy("values that are not listed, or not 0 and 1", category="a value of its own")

    def check(self) -> None:
        check_whole("ways", self.ways, 1, len(self.attributes.every))

    def task(self, table: Launch) -> Task[BinaryTable, A]:
        for each in self.attributes.every:
            each.check(table, self)
        return self

    @cached_property
    def attributes(self) -> Attributes:
        """The columns as attributes. Raises InputError."""
        numbers = [
            Attribute.cut_at(column, cuts, self.missing)
            for column, cuts in (self.cuts or {}).items()
        ]
        categories = [
            Attribute(
                column, labels=tuple(map(str, labels)), missing=self.missing, other=self.other
            )
            for column, labels in (self.labels or {}).items()
        ]
        answers = [
            Attribute(column, missing=self.missing, other=self.other) for column in self.columns
        ]
        return Attributes((*answers, *numbers, *categories))

    @property
    def workload(self) -> Marginals:
        return self.attributes.workload(self.ways)

    def database(self, records: Records) -> BinaryTable:
        return self.attributes.table(records)

    def nearest(self, noisy: NoisyCharacters) -> Floats:
        """The weights of all possible records whose characters are nearest to the noisy ones."""
        return nearest_table(noisy, self.attributes.possible())

    @property
    def drawn(self) -> PlainData:
        """The figure: records with each combination of values."""
        return {"axis": "records", "rows": "", "labels": len(self.attributes.every), "named": True}

    def errors(self, counts: Floats, records: Records) -> PlainData:
        """Errors of the possible cells, as shares of the records."""
        places = [place for place, _ in self.attributes.cells(self.ways)]
        errors = Errors.of(
            counts[places], self.workload.answers(self.database(records))[places], len(records)
        )
        return {"largest_error_of_a_cell": errors.largest, "mean_error_of_a_cell": errors.mean}


@dataclass(frozen=True)
class MarginalCounts(OfAttributes[Cells]):
    """Releases the number of records with each combination of values, for every two or more of some
    columns."""

    name = "marginals"
    summary = "Releases counts of all combinations of some columns"
    example = (
        "marginals --records fair.csv --column 'affairs > 0' --cuts 'age=27;32' --cuts "
        "yrs_married=6"
    )

    def offer(self, size: int) -> Offer[BinaryTable, Cells]:
        workload, loss = self.workload, self.loss
        if isinstance(loss, Pure):
            return _mwem(workload, size, loss, self._of_weights)
        choice = choose(workload, size, loss)
        if choice.kind == "mst":
            tree = SpanningTree(workload.d, loss.epsilon, loss.delta)
            model = after(tree, lambda model: Cells(model.cells(workload), choice.reason))
            return Offer("SpanningTree", model, Account(loss))

        def cells(noisy: NoisyCharacters) -> Cells:
            is_nearest = choice.kind == "nearest"
            counts = workload.of_histogram(self.nearest(noisy)) if is_nearest else noisy.cells
            return Cells(counts, choice.reason, noisy)

        return _fourier(workload, loss, cells)

    def _of_weights(self, weights: Synthetic) -> Cells:
        return Cells(weights.answers(self.workload), "pure privacy, by weights of all rows")

    def to_data(self, result: Cells, records: Records) -> PlainData:
        cells, noisy = self.attributes.cells(self.ways), result.noisy
        places = np.array([place for place, _ in cells])
        is_raw = noisy is not None and np.array_equal(result.counts, noisy.cells)
        sizes = [
            math.prod(len(self.attributes.every[number].values) for number in group)
            for group in self.attributes.groups(self.ways)
        ]
        numbers = measured(
            result.counts[places].tolist(),
            noisy.spread[places] if noisy and is_raw else None,
            possible=Possible(0.0, len(records), tuple(accumulate(sizes))[:-1]),
            ends=result.ends(places),
            raw=self.raw,
        )
        rows = [
            [*values, count] for (_, values), count in zip(cells, numbers["value"], strict=True)
        ]
        return {
            "columns": [*(each.column for each in self.attributes.every), "records"],
            "rows": rows,
            "explanation": (
                f"Reason for this mechanism: {result.reason}. A count is an estimate: it may be a "
                "fraction."
            ),
            "drawn": self.drawn,
            **numbers,
            "error": None if noisy else _BY_TABLE,
        }

    def truth(self, result: Cells, records: Records) -> PlainData:
        true = self.workload.answers(self.database(records))
        return {
            **self.errors(result.counts, records),
            DRAWN: [float(true[place]) for place, _ in self.attributes.cells(self.ways)],
        }


@dataclass(frozen=True)
class SyntheticRecords(OfAttributes[Drawn]):
    """Releases synthetic records, with nearly the same marginals."""

    name = "synthetic"
    summary = "Releases synthetic records with nearly the same marginals"
    example = (
        "synthetic --records fair.csv --column 'affairs > 0' --cuts 'age=27;32' --out synthetic.csv"
    )

    def offer(self, size: int) -> Offer[BinaryTable, Drawn]:
        if self.workload.d > DENSE:
            raise InputError(
                f"the columns take {self.workload.d} bits, and synthetic records take up to "
                f"{DENSE}: give fewer columns, cuts or labels"
            )
        if isinstance(self.loss, Pure):
            return _mwem(self.workload, size, self.loss, Drawn)
        return _fourier(
            self.workload,
            self.loss,
            lambda noisy: Drawn(Synthetic(self.workload.d, self.nearest(noisy)), noisy),
        )

    def to_data(self, result: Drawn, records: Records) -> PlainData:
        words, columns = self._words(result), [each.column for each in self.attributes.every]
        kinds, counts = np.unique(words, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        common = [
            [*names, int(count)]
            for names, count in zip(self.attributes.names(kinds[order]), counts[order], strict=True)
        ]
        cells = self.workload.answers(BinaryTable(self.attributes.d, words))
        places = np.array([place for place, _ in self.attributes.cells(self.ways)])
        most = result.error(cells, places)
        text = f"every cell of these marginals is within {most} records of the table's."
        return {
            "columns": columns,
            "rows": self.attributes.names(words),
            "brief": {"columns": [*columns, "records"], "rows": common},
            "explanation": (
                f"No row is a person's. Marginals of {self.ways} columns are nearly those of the "
                "table; others may differ. --out writes all records."
            ),
            "drawn": self.drawn,
            **bounded(most, text, _BY_TABLE),
        }

    def _words(self, result: Drawn) -> Words:
        """Rows by their weights, without impossible ones. The cumulative sums of the weights are
        rounded, so no chance enters."""
        raw = result.synthetic.weights
        weights = np.where(self.attributes.possible(), raw, 0.0)
        upto = np.rint(np.cumsum(weights) * (raw.sum() / weights.sum())).astype(np.int64)
        return np.repeat(np.arange(len(raw), dtype=np.uint64), np.diff(upto, prepend=0))

    def truth(self, result: Drawn, records: Records) -> PlainData:
        return self.errors(
            self.workload.answers(BinaryTable(self.attributes.d, self._words(result))), records
        )


def _mwem(
    workload: Marginals, size: int, loss: Pure, finish: Callable[[Synthetic], A]
) -> Offer[BinaryTable, A]:
    """MWEM, and a function of its weights."""
    mwem = pure_mwem(workload, size, loss.epsilon)

    def play() -> Play[Any, Any, A]:
        return finish((yield from as_play(mwem.algorithm(size))))

    return Offer(f"MWEM of {mwem.rounds.rounds} rounds", Adaptive(play), Account(loss))


def _fourier(
    workload: Marginals, loss: Approximate, finish: Callable[[NoisyCharacters], A]
) -> Offer[BinaryTable, A]:
    """Noisy characters, and a function of them."""
    mechanism = FourierGaussian(workload, loss.epsilon, loss.delta)
    return Offer("FourierGaussian", after(mechanism, finish), Account(loss))
