"""Clients that lie, for runs with faults: they ignore their record and send the most misleading report under the first one's coin."""

import numpy as np

from local_dp.arrays import Words
from local_dp.clients.role import ClientRole
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.asked import LocalQuery, Spoken, cells_of
from local_dp.randomizers.randomizer import Randomizer
from local_dp.wire import Reply, Request

_VALUES, _SAMPLED = 4, 16  # values of the domain, its ends among them, and reports of each


class LyingRole(ClientRole):
    """A client role whose clients `liars` lie. It is charged as others are."""

    liars: tuple[int, ...] = ()

    def _replies(self, request: Request, place: int, query: LocalQuery, spoken: Spoken) -> list[Reply]:
        return [self._lying(reply, query, request.asks[place].coins) for reply in super()._replies(request, place, query, spoken)]

    def _lying(self, reply: Reply, query: LocalQuery, coins: bytes) -> Reply:
        reports = np.frombuffer(reply.reports, dtype=query.randomizer.report_dtype).copy()
        lying = [client - reply.start for client in self.liars if reply.start <= client < reply.start + len(reports)]
        if not lying:
            return reply
        first = reply.start + lying[0]
        reports[lying] = worst(query.randomizer, cells_of(query.randomizer, coins, first, first + 1))
        return reply.model_copy(update={"reports": np.ascontiguousarray(reports).tobytes()})


def worst(randomizer: Randomizer, cells: Words) -> Words:
    """Among some possible reports, the one whose estimate is farthest from 0; shape (1,)."""
    dtype = randomizer.report_dtype
    candidates = [np.frombuffer(bytes([byte]) * dtype.itemsize, dtype=dtype) for byte in (0, 1, 255)]
    for place, value in enumerate(randomizer.domain.some(_VALUES)):
        words = randomizer.draw(KeyedNoise(0), Draw(1, place), 0, _SAMPLED)
        candidates += np.split(randomizer.respond(np.array([value] * _SAMPLED), words, cells), _SAMPLED)
    possible = [report for report in candidates if bool(randomizer.possible(report).all())]
    return max(possible, key=lambda report: _pull(randomizer, report, cells))


def _pull(randomizer: Randomizer, report: Words, cells: Words) -> float:
    estimate = np.abs(np.asarray(randomizer.estimate(randomizer.tally(report, cells)).value, dtype=np.float64))
    return float(np.nan_to_num(estimate.sum()))
