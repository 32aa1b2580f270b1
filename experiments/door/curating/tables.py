"""What a curator tells of several columns together: all marginals of some of them, and synthetic records that have nearly the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.door.curating.attributes import Attributes
from experiments.door.trusted import Offer, Task, Trust, after
from local_dp.arrays import Floats, Words
from local_dp.checks import check_whole
from local_dp.curator.account import Account, ConcentratedAccount
from local_dp.curator.many.mwem import Mwem, concentrated_mwem, pure_mwem
from local_dp.curator.many.weights import Synthetic
from local_dp.curator.marginals.base import DENSE, BinaryTable, Errors, Marginals
from local_dp.curator.marginals.choice import choose
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.curator.marginals.tree import SpanningTree
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play, as_play
from local_dp.loss import Pure
from local_dp.records import Records


@dataclass(frozen=True)
class Cells:
    """The estimated counts of all cells of a workload, and why this mechanism made them."""

    counts: Floats
    reason: str


@dataclass(frozen=True)
class OfAttributes:
    """A task about the marginals of every `ways` of some attributes."""

    attributes: Attributes
    ways: int

    def __post_init__(self) -> None:
        check_whole("ways", self.ways, 1, len(self.attributes.every))

    @property
    def workload(self) -> Marginals:
        """On the attributes' bits."""
        return self.attributes.workload(self.ways)

    def database(self, records: Records) -> BinaryTable:
        return self.attributes.table(records)


@dataclass(frozen=True)
class MarginalCounts(OfAttributes, Task[BinaryTable, Cells]):
    """How many records have each combination of values, for every `ways` attributes."""

    name = "marginals"

    def offer(self, trust: Trust, size: int) -> Offer[BinaryTable, Cells]:
        workload, loss = self.workload, trust.loss
        if isinstance(loss, Pure):
            return _weighed(pure_mwem(workload, size, loss.epsilon), Account(loss), workload, size, "without a delta the rows are weighed")
        chosen = choose(workload, size, loss)
        if chosen.kind == "mwem":
            return _weighed(concentrated_mwem(workload, size, loss), ConcentratedAccount(loss), workload, size, chosen.reason)
        account = Account(loss)
        if chosen.kind == "mst":
            tree = SpanningTree(workload.d, loss.epsilon, loss.delta)
            return Offer("SpanningTree", after(tree, lambda told: Cells(told.cells(workload), chosen.reason)), account)
        fourier = FourierGaussian(workload, loss.epsilon, loss.delta)
        return Offer("FourierGaussian", after(fourier, lambda told: Cells(told.cells, chosen.reason)), account)

    def told(self, result: Cells, records: Records) -> dict[str, Any]:
        every = self.attributes.every
        said = f"By this mechanism, since {result.reason}. A count may be below 0 or no whole number: it is an estimate."
        return {"columns": [*(each.column for each in every), "records"], "rows": self.attributes.rows(result.counts, self.ways), "explanation": said}

    def truth(self, result: Cells, records: Records) -> dict[str, Any]:
        return _errors(result.counts, self.workload, self.database(records))


@dataclass(frozen=True)
class SyntheticRecords(OfAttributes, Task[BinaryTable, Synthetic]):
    """Records that no one gave, with nearly the marginals of the table: as many as there are, drawn from weights of all possible rows."""

    name = "synthetic"

    def offer(self, trust: Trust, size: int) -> Offer[BinaryTable, Synthetic]:
        if self.workload.d > DENSE:
            raise InputError(f"the columns take {self.workload.d} bits, and synthetic records up to {DENSE}: give fewer columns, cuts or labels")
        if isinstance(trust.loss, Pure):
            mwem: Mwem[Any] = pure_mwem(self.workload, size, trust.epsilon)
            return Offer(_named(mwem), mwem.algorithm(size), Account(trust.loss))
        mwem = concentrated_mwem(self.workload, size, trust.loss)
        return Offer(_named(mwem), mwem.algorithm(size), ConcentratedAccount(trust.loss))

    def told(self, result: Synthetic, records: Records) -> dict[str, Any]:
        words, columns = self._words(result), [each.column for each in self.attributes.every]
        kinds, counts = np.unique(words, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        common = [[*names, int(count)] for names, count in zip(self.attributes.names(kinds[order]), counts[order], strict=True)]
        said = f"No row is a person's. Marginals of {self.ways} columns are nearly the table's; what depends on more may not be. --out has all records."
        brief = {"columns": [*columns, "records"], "rows": common}
        return {"columns": columns, "rows": self.attributes.names(words), "brief": brief, "explanation": said}

    def _words(self, result: Synthetic) -> Words:
        """As many rows as the weights come to, those that are no record left out: the sums of all up to each row are rounded, which no chance enters."""
        words = np.arange(len(result.weights), dtype=np.uint64)
        weights = np.where(self.attributes.possible(words), result.weights, 0.0)
        upto = np.rint(np.cumsum(weights) * (result.weights.sum() / weights.sum())).astype(np.int64)
        return np.repeat(words, np.diff(upto, prepend=0))

    def truth(self, result: Synthetic, records: Records) -> dict[str, Any]:
        words = self._words(result)
        counts = self.workload.answers(BinaryTable(self.attributes.d, words))
        return _errors(counts, self.workload, self.database(records))


def _errors(counts: Floats, workload: Marginals, table: BinaryTable) -> dict[str, Any]:
    """Of the cells, as shares of the records."""
    errors = Errors.of(counts, workload.answers(table), table.size)
    return {"largest_error_of_a_cell": errors.largest, "mean_error_of_a_cell": errors.mean}


def _weighed(mwem: Mwem[Any], account: Account, workload: Marginals, size: int, reason: str) -> Offer[BinaryTable, Cells]:
    """MWEM, and the cells of its weights."""

    def play() -> Play[Any, Any, Cells]:
        weights = yield from as_play(mwem.algorithm(size))
        return Cells(weights.answers(workload), reason)

    return Offer(_named(mwem), Adaptive(play), account)


def _named(mwem: Mwem[Any]) -> str:
    return f"MWEM of {mwem.rounds.rounds} rounds"
