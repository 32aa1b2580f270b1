"""What anybody may know of a run before it begins, by which a client's life is rehearsed: the types of the columns, and what is asked first. No record."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgpack
from pydantic import BaseModel, ConfigDict

from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.verification.gate import is_built_in
from local_dp.wire import Ask

_ASKS = 16  # randomizers that are verified beforehand, at most: others are when they are asked for
_BYTES = 1 << 15  # it travels on a command line
_SURVEY = Ask.of(LocalQuery(Question("yes == 1"), BinaryRR(1.0), Cohort(0, 1)), bytes(16))


class Opening(BaseModel):
    """The run's first ask, and one for each other randomizer that is not built in, all of client 0; by default that of a survey."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    types: dict[str, str] = {"yes": "|u1"}
    asks: tuple[Ask, ...] = (_SURVEY,)

    @classmethod
    def of(cls, types: Mapping[str, str], queries: Iterable[LocalQuery]) -> "Opening":
        """That of a run which begins with these queries; the default where they cannot be told or are too long."""
        chosen = dict[str, LocalQuery]()
        for query in queries:
            if not chosen or (len(chosen) < _ASKS and not is_built_in(query.randomizer)):
                chosen.setdefault(repr((query.randomizer.name, query.randomizer.params())), query)
        asks = []
        for query in chosen.values():
            with suppress(TypeError, ValueError):  # parameters that are no data: a client refuses it
                asks.append(Ask.of(query.restricted(0, 1), bytes(16)))
        opening = cls(types=dict(types), asks=tuple(asks))
        return opening if asks and len(opening.to_bytes()) <= _BYTES else cls()

    def to_bytes(self) -> bytes:
        packed: bytes = msgpack.packb(self.model_dump(), use_bin_type=True)
        return packed

    @classmethod
    def from_bytes(cls, data: bytes) -> "Opening":
        return cls.model_validate(msgpack.unpackb(data, use_list=False, raw=False))
