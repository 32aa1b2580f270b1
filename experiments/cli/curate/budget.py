"""`local-dp budget` and `local-dp price`: what releases have spent, and what mechanisms cost together."""

import json
from dataclasses import dataclass
from pathlib import Path

from local_dp.experiments.cli.fields import argument, option
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN


@dataclass(frozen=True)
class Budget:
    """Makes a budget for one table in a file, or shows what is spent of it, or of a client's store, and what is left.

    Every `local-dp curate --budget FILE` is charged to it before anything is drawn, and refused (exit code 4) where it would pass it, whichever are started at
    once and whenever one is killed. Losses add up. With --epsilon a new budget is made, pure without --delta; a file that exists is never begun again.

    Of the store of a client or host (`--store FILE`) it tells on which runs and under which labels it was spent, and how much is left for life.
    """

    file: Path = argument("The budget, or the store of a client.", metavar="FILE")
    epsilon: float | None = option(None, "Of a new budget", metavar="E", unit="nats")
    delta: float | None = option(None, "Of a new budget", metavar="D")
    as_json: bool = option(False, "Print the budget as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        from local_dp.experiments.api.budget import budget

        told = budget(self.file, epsilon=self.epsilon, delta=self.delta)
        SCREEN.tell(json.dumps(told.data) if self.as_json else told.text(screen_width()))


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
