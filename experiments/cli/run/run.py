"""`local-dp run`: a whole run from one command."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from local_dp.errors import InputError
from local_dp.experiments.api.asking import ask
from local_dp.experiments.api.declare import option
from local_dp.experiments.api.picture import check_picture
from local_dp.experiments.cli.fields import json_option, show
from local_dp.experiments.cli.run.options import Role
from local_dp.experiments.cli.run.output import RunProgress
from local_dp.experiments.text.screen import SCREEN
from local_dp.protocols.local_protocol import LocalProtocol


@dataclass(frozen=True, kw_only=True)
class Run(Role):
    """Runs a protocol: clients, server and message bus, from one command.

    Each protocol has a command of its own, with its parameters: `local-dp run survey --help`.
    """

    example: ClassVar[str] = "survey --clients 1000 --seed 1"
    as_json: bool = json_option("the outcome (`local-dp schema` describes it)")
    plot: Path | None = option(None, "Draw the estimates with their intervals, as .png, .svg or .pdf", metavar="FILE")

    def __call__(self, kind: type[LocalProtocol[Any]], given: Mapping[str, str]) -> None:
        protocol, table = self.built(kind, given)
        if self.plot is not None:
            if kind.explain is not LocalProtocol.explain:
                raise InputError(f"{kind.name} learns a hypothesis: there is no estimate to draw; leave out --plot")
            check_picture(self.plot)
        SCREEN.working(f"starting the clients in tier {self.chosen_tier}")
        with RunProgress() as progress:
            result = ask(protocol, table, self.with_progress(progress.show))
        show(result, self.as_json)
        if self.plot is not None:
            SCREEN.working(f"drawing {self.plot.name}")
            result.plot(self.plot)
