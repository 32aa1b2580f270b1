"""`local-dp shuffle`: what shuffled reports lose."""

import json
from dataclasses import dataclass

from local_dp.experiments.cli.fields import argument, option
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN


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
