"""`local-dp run`: a whole run from one command."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from experiments.cli.fields import option
from experiments.cli.options import Asking, allowed_names
from experiments.cli.output import RunProgress, estimates, show
from experiments.cli.protocols import RoleOfProtocols
from experiments.cli.screen import SCREEN
from experiments.tiers.execute import execute
from experiments.tiers.outcome import as_data
from experiments.tiers.settings import EMBEDDED, Settings, Tier
from local_dp.errors import InputError
from local_dp.protocols.base import Protocol


@dataclass(frozen=True, kw_only=True)
class Run(Asking):
    """Runs a protocol: clients, server and message bus, from one command.

    Each protocol has a command of its own, with its parameters: `local-dp run survey --help`.
    """

    example: ClassVar[str] = "survey --clients 1000 --seed 1"
    tier: Tier = option("hosts", "How the clients run: a process each, packed in hosts, simulated, or only their sum drawn")
    hosts: int = option(2, "How many host processes share the clients", metavar="H")
    broker: str = option(EMBEDDED, "embedded, or mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE]", metavar="URL")
    allow: str | None = option(None, "The clients' own list of randomizers, separated by commas", metavar="NAMES")
    plot: Path | None = option(None, "Draw the estimates with their intervals, as .png, .svg or .pdf", metavar="FILE")

    def __call__(self, kind: type[Protocol[Any]], given: Mapping[str, str]) -> None:
        protocol, table = self.configured(kind, given)
        randomness = self.randomness()
        population = self.population(protocol, table, randomness.seed)
        chosen = Settings(protocol, population, self.epsilon, randomness, self.tier, self.hosts, self.broker, self.terms, allowed_names(self.allow))
        if self.plot is not None:
            check_plot(self.plot, kind)
        with RunProgress(f"starting {chosen.clients:,} clients in tier {self.tier}") as progress:
            outcome = execute(chosen, progress.show)
        SCREEN.working("comparing with the truth")
        data = as_data(chosen, outcome)
        show(data, self.as_json)
        if self.plot is not None:
            SCREEN.working(f"drawing {self.plot.name}")
            draw(data, self.plot)


def check_plot(plot: Path, kind: type[Protocol[Any]]) -> None:
    """Raises InputError before the run if its figure could not be drawn after it."""
    if kind.explain is not Protocol.explain:
        raise InputError(f"{kind.name} learns a hypothesis: there is no estimate to draw; leave out --plot")
    if plot.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot is {str(plot)!r}; give a file that ends in .png, .svg or .pdf")
    if not plot.parent.is_dir():
        raise InputError(f"there is no folder {str(plot.parent)!r} for the figure; make it first")


def draw(data: dict[str, Any], plot: Path) -> None:
    """Draws a run's estimates."""
    from experiments.lab.figures import plot_estimates

    labels, values, _, intervals = zip(*estimates(data["result"]), strict=True)
    lows, highs = zip(*intervals, strict=True)
    truth = data["result"]["truth"]
    truths = truth if truth is None or isinstance(truth, list) else [truth]
    plot_estimates(f"{data['protocol']}, epsilon {data['epsilon']:g}, {data['rounds'][0]['n']:,} clients", labels, values, lows, highs, truths, plot)


RUN = RoleOfProtocols("run", Run)
