"""The protocols by name."""

from typing import Any

from local_dp.errors import InputError
from local_dp.protocols.base import Protocol
from local_dp.protocols.frequency import Frequency
from local_dp.protocols.masked_parity import MaskedParityLearner
from local_dp.protocols.masked_parity_fresh import MaskedParityFresh
from local_dp.protocols.masked_parity_list import MaskedParityList
from local_dp.protocols.masked_parity_literal import MaskedParityLiteral
from local_dp.protocols.masked_parity_one_round import MaskedParityOneRound
from local_dp.protocols.mean import Mean
from local_dp.protocols.parity import ParityLearner, ParityOneRound
from local_dp.protocols.prefix_sums import PrefixSums
from local_dp.protocols.sq import StatisticalQueries
from local_dp.protocols.survey import Survey

_KINDS: tuple[type[Protocol[Any]], ...] = (
    Survey, Frequency, Mean, StatisticalQueries, PrefixSums,
    MaskedParityLearner, MaskedParityList, MaskedParityFresh, MaskedParityLiteral, MaskedParityOneRound,
    ParityLearner, ParityOneRound,
)  # fmt: skip
PROTOCOLS: dict[str, type[Protocol[Any]]] = {kind.name: kind for kind in _KINDS}


def find_protocol(name: str) -> type[Protocol[Any]]:
    """The protocol called `name`."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise InputError(f"no protocol named {name!r}; there are {', '.join(PROTOCOLS)}") from None
