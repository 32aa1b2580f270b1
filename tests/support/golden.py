"""What must never change by accident, written down in golden.json: noise, reports and messages.
`python -m tests.support.golden` prints fresh values.

For a new randomizer or a change on purpose, print the values into another file, since this module
reads golden.json, and move it there: `python -m tests.support.golden > new.json`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np

from local_dp.arrays import Ints
from local_dp.domains import Domain, Parameter, Vectors
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.oracles.local.asked import Cohort, LocalQuery, respond
from local_dp.oracles.local.memory import Memory
from local_dp.queries.query import Query
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.records import Records
from local_dp.wire import (
    Absent,
    Account,
    AnyMessage,
    End,
    Gone,
    Hello,
    Receipt,
    Refusal,
    Reply,
    Roll,
    encode,
)
from tests.support.inputs.builders import request, survey_query

FILE = Path(__file__).with_name("golden.json")
CLIENTS = 24
# (seed, round, client)
WORDS = [
    (0, 1, 0),
    (1, 1, 0),
    (1, 2, 0),
    (1, 1, 123456789),
    (2**64 - 1, 7, 3),
]
MESSAGES: list[AnyMessage] = [
    request(survey_query(9)),
    Reply(run="r", round=1, member="client-7", ask=0, start=7, width=1, reports=b"\x01"),
    Refusal(run="r", round=2, member="host-0", start=0, stop=5, code="budget", text="spent"),
    Absent(
        run="r", round=2, member="shuffler", ask=0, start=3, stop=5, why="refused", code="budget"
    ),
    Receipt(run="r", round=2, accepted=((0, 5, 1 << 63),)),
    Account(run="r", member="host-0", rounds=((1, 5, 7), (2, 5, 1 << 63))),
    Hello(run="r", member="host-0", start=0, stop=5, private=False),
    Gone(run="r", member="host-0"),
    Roll(run="r"),
    End(run="r"),
]
KINDS = get_args(AnyMessage)


@dataclass(frozen=True)
class Held(Query):
    """The value that a record holds, of any domain."""

    name: ClassVar[str] = "held"
    values_of: Domain

    @property
    def domain(self) -> Domain:
        return self.values_of

    def __call__(self, records: Records) -> Ints:
        return (
            self.values_of.some(CLIENTS)[records["value"]]
            if isinstance(self.values_of, Vectors)
            else records["value"]
        )


def words() -> dict[str, list[str]]:
    """The 32-bit and the 64-bit word of some clients, by (seed, round, client)."""
    return {
        f"{seed} {round} {client}": [
            KeyedNoise(seed).words(Draw(round), client, client + 1, bits).tobytes().hex()
            for bits in (32, 64)
        ]
        for seed, round, client in WORDS
    }


def coins() -> dict[str, str]:
    """A stream's key and its first two public coins."""
    key = stream_key("coins", 1, 1)
    return {"key": key.hex(), "coins": public_coins(key, 0, 2).tobytes().hex()}


def parameters() -> dict[str, dict[str, Any]]:
    """Those of each built-in randomizer beside epsilon: as they are written down, or those of its
    example."""
    entry = kept()["parameters"]
    return {
        name: entry.get(name) or _beside(RANDOMIZERS[name].example().params())
        for name in RANDOMIZERS.built_in
    }


def _beside(params: dict[str, Parameter]) -> dict[str, Parameter]:
    return {name: value for name, value in params.items() if name not in ("epsilon", "word_bits")}


def reports(name: str) -> str:
    """The report bytes of a built-in randomizer: seed 1, round 1, the first CLIENTS clients, who
    hold each value in turn; epsilon 1."""
    params = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in parameters()[name].items()
    }
    randomizer = RANDOMIZERS.build(name, {"epsilon": 1.0, **params})
    domain = randomizer.domain
    records = Records(
        {
            "value": np.arange(CLIENTS) % domain.size
            + (0 if isinstance(domain, Vectors) else domain.low)
        }
    )
    query = LocalQuery(Held(domain), randomizer, Cohort(0, CLIENTS))
    inputs = respond(
        query,
        records,
        0,
        KeyedNoise(1),
        Draw(1),
        stream_key("coins", 1, 1),
        Memory(),
        np.arange(CLIENTS),
    )
    return inputs.astype(randomizer.report_dtype.base).tobytes().hex()


def fresh() -> dict[str, Any]:
    """Everything that is written down, computed now."""
    return {
        "words": words(),
        "coins": coins(),
        "parameters": parameters(),
        "reports": {name: reports(name) for name in RANDOMIZERS.built_in},
        "messages": {message.kind: encode(message).hex() for message in MESSAGES},
    }


def kept() -> dict[str, Any]:
    """What is written down."""
    data: dict[str, Any] = json.loads(FILE.read_text())
    return data


if __name__ == "__main__":
    print(json.dumps(fresh(), indent=1))
