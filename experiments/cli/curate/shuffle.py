"""`local-dp shuffle` and `local-dp mix`: the epsilon of shuffled reports, and shares from blanket messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from local_dp.experiments.api.audit import parameters_of, refuse_unknown
from local_dp.experiments.api.costs import shuffled
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.api.mix import mix
from local_dp.experiments.cli.fields import json_option, set_option
from local_dp.experiments.cli.run.options import ProtocolCommand
from local_dp.experiments.cli.show import show
from local_dp.experiments.text.screen import SCREEN
from local_dp.protocols.local_protocol import LocalProtocol


@dataclass(frozen=True)
class Shuffle:
    """Computes the epsilon of shuffled reports from above and from below, exact if each report is a bit.

    A shuffler between clients and server removes the senders, so a report hides among the others. Neighbours differ in one client's value.
    """

    name: str = argument("A randomizer that is a finite channel, or a class of your own as module:Class.", metavar="NAME")
    clients: int = option(10_000, "Number of reports that are shuffled together", metavar="N")
    epsilon: float = option(1.0, "Epsilon of one report", metavar="E", unit="nats")
    delta: float = option(1e-6, "Probability of a larger loss", metavar="D")
    shuffled: float | None = option(
        None, "Instead of --epsilon, an epsilon for all reports together; computes the largest epsilon of a report", metavar="E", unit="nats"
    )
    settings: tuple[str, ...] = set_option("randomizer")
    as_json: bool = json_option("the bounds")

    def __call__(self) -> None:
        SCREEN.working("searching for the worst data set")
        refuse_unknown(self.name)
        parameters = parameters_of(self.settings)
        show(shuffled(self.name, clients=self.clients, epsilon=self.epsilon, delta=self.delta, together=self.shuffled, **parameters), self.as_json)


@dataclass(frozen=True, kw_only=True)
class Mix(ProtocolCommand):
    """Simulates shares of symbols behind a shuffler, by several messages a client: its symbol among blanket messages.

    For frequency, histogram and crosstab. Epsilon holds for all messages together at delta, exactly, for any data; the shuffler itself sees all messages.
    """

    example: ClassVar[str] = "frequency --k 16 --clients 10000 --epsilon 1 --seed 1"
    epsilon: float = option(1.0, "Epsilon of all messages together", metavar="E", unit="nats")
    delta: float = option(1e-6, "Probability of a larger loss", metavar="D")
    clients: int | None = option(None, "Number of clients; default: all rows, or 10,000", metavar="N")
    seed: int | None = option(None, "Seed of the simulation; default: random, printed", metavar="S")
    as_json: bool = json_option("the result")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        protocol, records = self.prepared(kind, given)
        SCREEN.working("mixing messages")
        show(mix(protocol, records, epsilon=self.epsilon, delta=self.delta, clients=self.clients, seed=self.seed), self.as_json)
