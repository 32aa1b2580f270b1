"""Every protocol by name."""

from typing import Any

from local_dp.errors import InputError
from local_dp.protocols.base import Protocol
from local_dp.registry import Registry

PROTOCOLS: Registry[Protocol[Any]] = Registry(
    "protocol",
    "local_dp.protocols",
    Protocol,
    {
        "survey": "local_dp.protocols.survey:Survey",
        "frequency": "local_dp.protocols.frequency:Frequency",
        "mean": "local_dp.protocols.mean:Mean",
        "sq": "local_dp.protocols.statistical_queries:StatisticalQueries",
        "prefix-sums": "local_dp.protocols.prefix_sums:PrefixSums",
        "masked-parity": "local_dp.masked_parity.two_rounds:MaskedParityLearner",
        "masked-parity-list": "local_dp.masked_parity.listed:MaskedParityList",
        "masked-parity-fresh": "local_dp.masked_parity.fresh:MaskedParityFresh",
        "masked-parity-literal": "local_dp.masked_parity.literal:MaskedParityLiteral",
        "masked-parity-one-round": "local_dp.masked_parity.one_round:MaskedParityOneRound",
        "parity": "local_dp.protocols.parity:ParityHalving",
        "parity-one-round": "local_dp.protocols.parity:ParityOneRound",
    },
)


def find_protocol(name: str) -> type[Protocol[Any]]:
    """The protocol called `name`. Raises InputError."""
    if name not in PROTOCOLS:
        raise InputError(f"no protocol named {name!r}; there are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
