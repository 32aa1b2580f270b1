"""The protocols by name."""

from typing import Any

from local_dp.errors import InputError
from local_dp.protocols.base import Protocol
from local_dp.protocols.frequency import Frequency
from local_dp.protocols.masked_parity import MaskedParityLearner
from local_dp.protocols.mean import Mean
from local_dp.protocols.prefix_sums import PrefixSums
from local_dp.protocols.sq import StatisticalQueries
from local_dp.protocols.survey import Survey

PROTOCOLS: dict[str, type[Protocol[Any]]] = {kind.name: kind for kind in (Survey, Frequency, Mean, StatisticalQueries, MaskedParityLearner, PrefixSums)}


def find_protocol(name: str) -> type[Protocol[Any]]:
    """The protocol called `name`."""
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise InputError(f"no protocol named {name!r}; there are {', '.join(PROTOCOLS)}") from None
