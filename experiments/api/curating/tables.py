"""What a curator tells of several columns together: all marginals of some of them, and synthetic records that have nearly the same."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.checks import check_whole
from local_dp.curator.account import Account
from local_dp.curator.marginals.base import DENSE, BinaryTable, Errors, Marginals
from local_dp.curator.marginals.fourier import FourierGaussian, NoisyCharacters, choose, nearest_table
from local_dp.curator.marginals.tree import SpanningTree
from local_dp.curator.query_release.mwem import Mwem, pure_mwem
from local_dp.curator.query_release.weights import Synthetic
from local_dp.errors import InputError
from local_dp.experiments.api.curating.attributes import Attributes
from local_dp.experiments.api.trusted import Offer, Task, Trust, after
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

    def nearest(self, noisy: NoisyCharacters) -> Floats:
        """The weights of all rows that are nearest to these characters, of rows that are records."""
        return nearest_table(noisy, self.attributes.possible())

    def errors(self, counts: Floats, records: Records) -> dict[str, Any]:
        """Of the cells that some record may be in, as shares of the records."""
        places = [place for place, _ in self.attributes.told(self.ways)]
        errors = Errors.of(counts[places], self.workload.answers(self.database(records))[places], len(records))
        return {"largest_error_of_a_cell": errors.largest, "mean_error_of_a_cell": errors.mean}


@dataclass(frozen=True)
class MarginalCounts(OfAttributes, Task[BinaryTable, Cells]):
    """How many records have each combination of values, for every `ways` attributes."""

    name = "marginals"

    def offer(self, trust: Trust, size: int) -> Offer[BinaryTable, Cells]:
        workload, loss = self.workload, trust.loss
        if isinstance(loss, Pure):
            return _weighed(pure_mwem(workload, size, loss.epsilon), size, loss, workload)
        chosen, account = choose(workload, size, loss), Account(loss)
        if chosen.kind == "mst":
            tree = SpanningTree(workload.d, loss.epsilon, loss.delta)
            return Offer("SpanningTree", after(tree, lambda told: Cells(told.cells(workload), chosen.reason)), account)
        fourier = FourierGaussian(workload, loss.epsilon, loss.delta)
        if chosen.kind == "nearest":
            return Offer(
                "FourierGaussian",
                after(fourier, lambda told: Cells(workload.of_histogram(nearest_table(told, self.attributes.possible())), chosen.reason)),
                account,
            )
        return Offer("FourierGaussian", after(fourier, lambda told: Cells(told.cells, chosen.reason)), account)

    def to_data(self, result: Cells, records: Records) -> dict[str, Any]:
        every = self.attributes.every
        said = f"By this mechanism, since {result.reason}. A count may be below 0 or no whole number: it is an estimate."
        rows = [[*values, float(result.counts[place])] for place, values in self.attributes.told(self.ways)]
        return {"columns": [*(each.column for each in every), "records"], "rows": rows, "explanation": said}

    def truth(self, result: Cells, records: Records) -> dict[str, Any]:
        return self.errors(result.counts, records)


@dataclass(frozen=True)
class SyntheticRecords(OfAttributes, Task[BinaryTable, Synthetic]):
    """Records that no one gave, with nearly the marginals of the table: as many as there are, drawn from weights of all possible rows."""

    name = "synthetic"

    def offer(self, trust: Trust, size: int) -> Offer[BinaryTable, Synthetic]:
        if self.workload.d > DENSE:
            raise InputError(f"the columns take {self.workload.d} bits, and synthetic records up to {DENSE}: give fewer columns, cuts or labels")
        loss = trust.loss
        if isinstance(loss, Pure):
            mwem = pure_mwem(self.workload, size, loss.epsilon)
            return Offer(_named(mwem), mwem.algorithm(size), Account(loss))
        fourier = FourierGaussian(self.workload, loss.epsilon, loss.delta)
        return Offer("FourierGaussian", after(fourier, lambda told: Synthetic(self.workload.d, self.nearest(told))), Account(loss))

    def to_data(self, result: Synthetic, records: Records) -> dict[str, Any]:
        words, columns = self._words(result), [each.column for each in self.attributes.every]
        kinds, counts = np.unique(words, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        common = [[*names, int(count)] for names, count in zip(self.attributes.names(kinds[order]), counts[order], strict=True)]
        said = f"No row is a person's. Marginals of {self.ways} columns are nearly the table's; what depends on more may not be. --out has all records."
        brief = {"columns": [*columns, "records"], "rows": common}
        return {"columns": columns, "rows": self.attributes.names(words), "brief": brief, "explanation": said}

    def _words(self, result: Synthetic) -> Words:
        """As many rows as the weights come to, those that are no record left out: the sums of all up to each row are rounded, which no chance enters."""
        words, weights = np.arange(len(result.weights), dtype=np.uint64), np.where(self.attributes.possible(), result.weights, 0.0)
        upto = np.rint(np.cumsum(weights) * (result.weights.sum() / weights.sum())).astype(np.int64)
        return np.repeat(words, np.diff(upto, prepend=0))

    def truth(self, result: Synthetic, records: Records) -> dict[str, Any]:
        return self.errors(self.workload.answers(BinaryTable(self.attributes.d, self._words(result))), records)


def _weighed(mwem: Mwem[Pure], size: int, loss: Pure, workload: Marginals) -> Offer[BinaryTable, Cells]:
    """MWEM, and the cells of its weights."""

    def play() -> Play[Any, Any, Cells]:
        weights = yield from as_play(mwem.algorithm(size))
        return Cells(weights.answers(workload), "without a delta the rows are weighed")

    return Offer(_named(mwem), Adaptive(play), Account(loss))


def _named(mwem: Mwem[Pure]) -> str:
    return f"MWEM of {mwem.rounds.rounds} rounds"
