"""`local-dp audit`: what a randomizer really guarantees."""

import json
from dataclasses import dataclass

from local_dp.errors import RefusedError
from local_dp.experiments.cli.fields import argument, option
from local_dp.experiments.cli.main import EXIT_CODES
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN


@dataclass(frozen=True)
class Audit:
    """Audits a randomizer: its exact loss, whether its sampler does what it declares, and how far that is known.

    A class of your own is run as it is. On a fault the two inputs, the report and their ratio are shown, and the exit code is 4.
    """

    name: str = argument("A randomizer, or a class of your own as module:Class.", metavar="NAME")
    epsilon: float = option(1.0, "The epsilon it is made with", metavar="E", unit="nats")
    settings: tuple[str, ...] = option((), "A parameter of the randomizer; may be repeated", name="--set", metavar="KEY=VALUE")
    as_json: bool = option(False, "Print the findings as JSON, alone on standard output", name="--json")

    def __call__(self) -> int:
        SCREEN.working(f"auditing {self.name}")  # before what takes a while to import
        from local_dp.experiments.api.audit import audit, parameters_of, refuse_unknown

        refuse_unknown(self.name)
        told = audit(self.name, epsilon=self.epsilon, **parameters_of(self.settings))
        SCREEN.tell(json.dumps(told.data) if self.as_json else told.text(screen_width()))
        return 0 if told.holds else EXIT_CODES[RefusedError]
