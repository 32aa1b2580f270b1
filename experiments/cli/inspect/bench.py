"""`local-dp bench`: speeds as ratios to references of the same run, as a table and as JSON. Its measurements are in the repository only."""

import json
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from local_dp.errors import InputError
from local_dp.experiments.api.declare import option
from local_dp.experiments.cli.fields import json_option
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN

HOME = "local_dp.experiments.bench"


@dataclass(frozen=True)
class Bench:
    """Measures the speeds of this machine beside references of the same run.

    Randomizers, the curator, attacks, the population tier, hosts, client processes and messages.

    Takes about three minutes.
    """

    processes: int = option(1000, "The larger number of client processes; 0 leaves processes out", metavar="N")
    stores: bool = option(False, "Measure stores instead: rounds with stores and without")
    as_json: bool = json_option("the figures")
    peers: bool = option(False, "Measure other libraries instead: speeds, variances, exact losses (pip install 'local-dp[peers]')")
    figure: Path | None = option(None, "With --peers, draw the speeds into this file (.png, .svg or .pdf)", metavar="FILE")

    def __call__(self) -> None:
        if self.figure is not None and not self.peers:
            raise InputError("--figure draws the speeds of --peers; give both")
        if find_spec(HOME) is None:
            raise InputError("bench is part of the repository only: clone it, and there run pip install -e '.[peers]'")
        if self.peers:
            from local_dp.experiments.bench.peers import as_data, describe, peer_rows

            rows = peer_rows(self.figure)
            SCREEN.tell(json.dumps(as_data(rows)) if self.as_json else describe(rows, screen_width()))
            return
        from local_dp.experiments.bench.speeds import as_rows, describe_speeds

        if self.stores:
            from local_dp.experiments.bench.runs import store_speeds as measured
        else:
            from local_dp.experiments.bench.speeds import all_speeds as measured
        speeds = measured(self.processes)
        SCREEN.tell(json.dumps(as_rows(speeds)) if self.as_json else describe_speeds(speeds, screen_width()))
