"""`local-dp budget`, `price` and `shuffle`: spent budgets, the price of mechanisms together, and
the epsilon of shuffled reports."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.api.audit import parameters_of, refuse_unknown
from local_dp.api.costs import behind_shuffler, budget, price
from local_dp.api.declare import argument, option
from local_dp.cli.fields import json_option, set_option, show
from local_dp.text.screen import SCREEN


@dataclass(frozen=True)
class Budget:
    """Makes a budget for one table in a file, or shows the spent and the remaining budget of a
    table or of a client's store.

    Every `local-dp curate --budget FILE` is charged before its release, and refused (exit code 4)
    if the budget is too small. This also holds for concurrent runs and crashes. Losses add up.
    --epsilon makes a new budget, pure without --delta; an existing file is never overwritten.

    The store of a client or host (`--store FILE`) shows its runs, its labels, and the rest for
    life.
    """

    file: Path = argument("The budget, or the store of a client", metavar="FILE")
    epsilon: float | None = option(None, "Epsilon of a new budget", metavar="E", unit="nats")
    delta: float | None = option(None, "Delta of a new budget", metavar="D")
    as_json: bool = json_option("the budget")

    def __call__(self) -> None:
        SCREEN.check()
        show(budget(self.file, epsilon=self.epsilon, delta=self.delta), self.as_json)


@dataclass(frozen=True)
class Price:
    """Prices a list of mechanisms by every rule of composition: basic, advanced, tanh, zCDP and
    exact.

    Terms are joined by +. A term is a name, its numbers and a count: pure EPSILON, approximate
    EPSILON DELTA, discrete-laplace EPSILON [SENSITIVITY], gaussian SIGMA, discrete-gaussian SIGMA,
    followed by x COUNT. The list is fixed beforehand; the choice of questions may depend on
    answers.
    """

    mechanisms: str = argument(
        "Mechanisms and how often each is used",
        help="Such as 'discrete-laplace 0.01 x 10000 + gaussian 5 x 3'",
        metavar="TERMS",
    )
    delta: float = option(1e-6, "Probability of a larger loss", metavar="D")
    epsilon: float | None = option(
        None, "Compute the delta at this epsilon instead", metavar="E", unit="nats"
    )
    as_json: bool = json_option("the prices")

    def __call__(self) -> None:
        SCREEN.working("adding up losses")
        show(price(self.mechanisms, delta=self.delta, epsilon=self.epsilon), self.as_json)


@dataclass(frozen=True)
class Shuffle:
    """Computes the epsilon of shuffled reports from above and from below, exact if each report is a
    bit.

    A shuffler between clients and server removes the senders, so a report hides among the others.
    Neighbours differ in one client's value.
    """

    name: str = argument(
        "Randomizer, or a class of your own as module:Class",
        help="It must be a finite channel",
        metavar="NAME",
    )
    clients: int = option(10_000, "Number of reports that are shuffled together", metavar="N")
    epsilon: float = option(1.0, "Epsilon of one report", metavar="E", unit="nats")
    delta: float = option(1e-6, "Probability of a larger loss", metavar="D")
    shuffled: float | None = option(
        None,
        "Instead of --epsilon: epsilon of all reports together",
        help="Computes the largest epsilon of a report",
        metavar="E",
        unit="nats",
    )
    settings: tuple[str, ...] = set_option("randomizer")
    as_json: bool = json_option("the bounds")

    def __call__(self) -> None:
        SCREEN.working("searching for the worst data set")
        refuse_unknown(self.name)
        show(
            behind_shuffler(
                self.name,
                parameters_of(self.settings),
                self.clients,
                self.epsilon,
                self.delta,
                self.shuffled,
            ),
            self.as_json,
        )
