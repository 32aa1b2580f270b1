"""`local-dp price`: what a list of mechanisms costs together."""

import json
from dataclasses import dataclass

from local_dp.experiments.cli.fields import argument, option
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN


@dataclass(frozen=True)
class Price:
    """Prices a list of mechanisms by every rule of composition: basic, advanced, tanh, zCDP and exact.

    Terms are joined by +, each a name, its numbers and how many: pure EPSILON, approximate EPSILON DELTA, discrete-laplace EPSILON [SENSITIVITY],
    gaussian SIGMA, discrete-gaussian SIGMA, followed by x COUNT. The list is fixed beforehand; who is asked what may depend on answers. Nothing is drawn.
    """

    mechanisms: str = argument("What is released, such as 'discrete-laplace 0.01 x 10000 + gaussian 5 x 3'.", metavar="TERMS")
    delta: float = option(1e-6, "With which probability more may be lost", metavar="D")
    epsilon: float | None = option(None, "Instead of epsilon beside --delta, the delta beside this epsilon", metavar="E", unit="nats")
    as_json: bool = option(False, "Print the prices as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        from local_dp.experiments.api.price import price

        SCREEN.working("adding up losses")
        told = price(self.mechanisms, delta=self.delta, epsilon=self.epsilon)
        SCREEN.tell(json.dumps(told.data) if self.as_json else told.text(screen_width()))
