"""`local-dp budget`: what a curator's releases of one table may lose in all, kept in a file; and what clients have spent, in theirs."""

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
