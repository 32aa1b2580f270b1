"""`local-dp shuffle` and `local-dp mix`: what shuffled reports lose, and shares from blanket messages."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from local_dp.experiments.cli.fields import argument, option
from local_dp.experiments.cli.inspect.plan import read_task
from local_dp.experiments.cli.run.options import settings_of
from local_dp.experiments.cli.run.protocols import RoleOfProtocols
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN
from local_dp.protocols.local_protocol import LocalProtocol


@dataclass(frozen=True)
class Shuffle:
    """Accounts for shuffled reports: epsilon from above and from below, exact where each report is a bit.

    A shuffler between clients and server takes the senders away, so that a report hides among the others. Neighbours differ in one client's value.
    """

    name: str = argument("A randomizer that is a finite channel, or a class of your own as module:Class.", metavar="NAME")
    clients: int = option(10_000, "How many reports are shuffled together", metavar="N")
    epsilon: float = option(1.0, "What one report loses", metavar="E", unit="nats")
    delta: float = option(1e-6, "With which probability more may be lost", metavar="D")
    shuffled: float | None = option(
        None, "Instead of --epsilon, what all of them may lose: the largest epsilon of a report that keeps to it", metavar="E", unit="nats"
    )
    settings: tuple[str, ...] = option((), "A parameter of the randomizer; may be repeated", name="--set", metavar="KEY=VALUE")
    as_json: bool = option(False, "Print the bounds as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        from local_dp.experiments.api.audit import parameters_of, refuse_unknown
        from local_dp.experiments.api.shuffle import shuffled

        SCREEN.working("looking for the worst data set")
        refuse_unknown(self.name)
        told = shuffled(self.name, clients=self.clients, epsilon=self.epsilon, delta=self.delta, together=self.shuffled, **parameters_of(self.settings))
        SCREEN.tell(json.dumps(told.data) if self.as_json else told.text(screen_width()))


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """Simulates shares of symbols behind a shuffler, from several messages a client: its symbol among blanket messages.

    For frequency, histogram and crosstab. Epsilon is what all messages together lose beside delta, exactly, whatever the data; the shuffler itself sees all.
    """

    example: ClassVar[str] = "frequency --k 16 --clients 10000 --epsilon 1 --seed 1"
    epsilon: float = option(1.0, "What all messages together may lose", metavar="E", unit="nats")
    delta: float = option(1e-6, "With which probability more may be lost", metavar="D")
    clients: int | None = option(None, "How many; without it all rows, or 10,000", metavar="N")
    records: Path | None = option(None, "A CSV or Parquet table; each row is a client's record", metavar="FILE")
    settings: tuple[str, ...] = option((), "A parameter of the protocol; may be repeated", name="--set", metavar="KEY=VALUE")
    seed: int | None = option(None, "Repeats the simulation; without it, one is drawn and shown", metavar="S")
    as_json: bool = option(False, "Print the result as JSON, alone on standard output", name="--json")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        from local_dp.experiments.api.mix import Blend, mixed

        protocol, records = read_task(kind, settings_of(self.settings, given), self.records)
        SCREEN.working("mixing messages")
        told = mixed(protocol, records, Blend(epsilon=self.epsilon, delta=self.delta, clients=self.clients, seed=self.seed))
        SCREEN.tell(json.dumps(told.data) if self.as_json else told.text(screen_width()))


MIX = RoleOfProtocols("mix", Mixing)
