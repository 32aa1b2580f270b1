"""`local-dp run`: a whole run from one command."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from local_dp.errors import InputError
from local_dp.experiments.api.asking import RunOptions, ask
from local_dp.experiments.api.picture import check_picture
from local_dp.experiments.cli.fields import option
from local_dp.experiments.cli.run.options import Asking, allowed_names
from local_dp.experiments.cli.run.output import RunProgress, show
from local_dp.experiments.cli.run.protocols import RoleOfProtocols
from local_dp.experiments.text.screen import SCREEN
from local_dp.experiments.tiers.settings import EMBEDDED, Tier
from local_dp.protocols.local_protocol import LocalProtocol


@dataclass(frozen=True, kw_only=True)
class Run(Asking):
    """Runs a protocol: clients, server and message bus, from one command.

    Each protocol has a command of its own, with its parameters: `local-dp run survey --help`.
    """

    example: ClassVar[str] = "survey --clients 1000 --seed 1"
    tier: Tier = option("hosts", "How the clients run: a process each, packed in hosts, simulated, or only their sum drawn")
    hosts: int = option(2, "How many host processes share the clients", metavar="H")
    broker: str = option(EMBEDDED, "embedded, or mqtt://[user:password@]host[:port], or mqtts://...[?ca=FILE[&cert=FILE]]", metavar="URL")
    allow: str | None = option(None, "The clients' own list of randomizers, separated by commas", metavar="NAMES")
    unverified: bool = option(False, "In memory, use a randomizer whose loss is not what it says; the result says so")
    cluster: str = option("", "A Dask scheduler whose workers simulate the population tier, as tcp://host:8786", metavar="URL")
    crowd: int = option(100, "With --shuffle, the fewest clients whose reports are passed on", metavar="C")
    fault: str = option("", "What goes wrong on purpose over the broker, as in drop=.05,duplicate=.1,delay=.2,kill=3,lie=.01", metavar="FAULTS")
    stores: Path | None = option(None, "Where client processes and hosts keep what they have answered and spent, over several runs", metavar="DIR")
    plot: Path | None = option(None, "Draw the estimates with their intervals, as .png, .svg or .pdf", metavar="FILE")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        protocol, table = self.asked(kind, given)
        if self.plot is not None:
            check_plot(self.plot, kind)
        with RunProgress(f"starting the clients in tier {self.tier}") as progress:
            result = ask(protocol, table, self._how(progress))
        show(result.to_dict(), self.as_json)
        if self.plot is not None:
            SCREEN.working(f"drawing {self.plot.name}")
            result.plot(self.plot)

    def _how(self, progress: RunProgress) -> RunOptions:
        own = {name: getattr(self, name) for name in ("tier", "hosts", "broker", "unverified", "cluster", "crowd", "fault")}
        return self.how(progress.show, **own, stores="" if self.stores is None else str(self.stores.absolute()), allow=allowed_names(self.allow))


def check_plot(plot: Path, kind: type[LocalProtocol[Any]]) -> None:
    """Raises InputError before the run if its figure could not be drawn after it."""
    if kind.explain is not LocalProtocol.explain:
        raise InputError(f"{kind.name} learns a hypothesis: there is no estimate to draw; leave out --plot")
    check_picture(plot)


RUN = RoleOfProtocols("run", Run)
