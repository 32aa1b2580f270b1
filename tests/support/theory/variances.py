"""The comparison of reports with a closed-form variance."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Tally


@dataclass(frozen=True)
class Sample:
    """The estimate from n clients' reports, shape (m,), and by how much what each stands for
    differs from it, shape (kinds, m), for so many of them."""

    value: Floats
    own: Floats
    counts: Counts

    @classmethod
    def of(cls, randomizer: Randomizer, values: Ints, reader: Randomizer) -> "Sample":
        """By the estimator of `reader`: what its estimate moves by with each report, so that
        estimates may be quotients."""
        n = len(values)
        cells = (
            randomizer.cells_of(public_coins(stream_key("coins", 5, 1), 0, n))
            if randomizer.uses_coins
            else np.zeros(1, dtype=np.uint8)
        )
        reports = randomizer.respond(values, randomizer.draw(KeyedNoise(11), Draw(1), 0, n), cells)
        tally = reader.tally(reports, cells)
        moves = influence(reader, tally)
        value = np.atleast_1d(reader.estimate(tally).value)
        if isinstance(reader, FiniteChannel):
            return cls(value, moves[0] + moves[1:], tally.counts.ravel())
        kinds = reports.reshape(n, -1).view(np.dtype((np.void, reports[0].nbytes)))
        whole = np.rec.fromarrays([np.broadcast_to(cells, (n,)), kinds.ravel()])
        _, first, counts = np.unique(whole, return_index=True, return_counts=True)
        cells = np.broadcast_to(cells, (n,))
        rows = np.stack(
            [
                reader.tally(reports[at : at + 1], cells[at : at + 1]).counts.ravel()
                for at in first.tolist()
            ]
        )
        return cls(value, moves[0] + rows @ moves[1:], counts)

    def variances(self, total: bool) -> tuple[Floats, Floats]:
        """The measured ones, or their sum if `total`, and their standard errors."""
        share = self.counts / self.counts.sum()
        squares = (self.own - share @ self.own) ** 2
        squares = squares.sum(axis=1, keepdims=True) if total else squares
        mean = share @ squares
        return mean, np.sqrt(share @ (squares - mean) ** 2 / self.counts.sum())


def influence(randomizer: Randomizer, tally: Tally) -> Floats:
    """By how much n times the estimate moves with a report that adds nothing (first), and with 1
    more in each count: shape (1 + counts, m). For an estimate that is a mean over reports, what
    each report stands for less the estimate itself; for a quotient, as far as it is linear."""
    flat, n = tally.counts.ravel(), tally.n
    value = np.atleast_1d(randomizer.estimate(tally).value)
    more_reports = randomizer.estimate(Tally(tally.counts, n + 1))
    moves = [(n + 1) * (np.atleast_1d(more_reports.value) - value)]
    for place in range(len(flat)):
        more = flat.copy()
        more[place] += 1
        counts = more.reshape(tally.counts.shape)
        moves.append(n * (np.atleast_1d(randomizer.estimate(Tally(counts, n)).value) - value))
    return np.stack(moves)
