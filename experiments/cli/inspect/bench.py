"""`local-dp bench`: speeds as ratios to a reference measured in the same run, as a table and as JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from local_dp.errors import InputError
from local_dp.experiments.bench.aggregate import aggregate_speeds
from local_dp.experiments.bench.cluster import cluster_speeds
from local_dp.experiments.bench.curator import attack_speeds, curator_speeds, interval_speeds, many_speeds, marginal_speeds
from local_dp.experiments.bench.randomizers import randomizer_speeds
from local_dp.experiments.bench.runs import process_speeds, run_speeds
from local_dp.experiments.bench.speeds import Speed
from local_dp.experiments.cli.fields import option
from local_dp.experiments.text.layout import screen_width, table
from local_dp.experiments.text.screen import SCREEN


@dataclass(frozen=True)
class Bench:
    """Measures the speeds of this machine beside references of the same run.

    Randomizers, the curator, attacks, the population tier, hosts, client processes and messages.

    Takes about three minutes.
    """

    processes: int = option(1000, "The larger of the client-process runs; 0 leaves processes out", metavar="N")
    stores: bool = option(False, "Instead, what it costs that clients keep what they answer and spend: rounds with stores and without")
    as_json: bool = option(False, "Print the figures as JSON, alone on standard output", name="--json")
    peers: bool = option(False, "Instead, other libraries at the same work: speeds, variances, exact losses (pip install 'local-dp[peers]')")
    figure: Path | None = option(None, "With --peers, draw the speeds into this file (.png, .svg or .pdf)", metavar="FILE")

    def __call__(self) -> None:
        if self.peers:
            self._beside_peers()
            return
        if self.stores:
            from local_dp.experiments.bench.stores import store_speeds  # an event loop and a broker are not needed for the others

            self._tell(store_speeds(self.processes))
            return
        if self.figure is not None:
            raise InputError("--figure draws the speeds of --peers; give both")
        # runs first: a child's peak memory is no less than its parent's when it began
        speeds = [*run_speeds(), *cluster_speeds(), *randomizer_speeds(), *aggregate_speeds()]
        from local_dp.experiments.bench.bus import bus_speeds  # only now, for the same reason

        speeds += [*process_speeds(self.processes), *bus_speeds(), *curator_speeds(), *interval_speeds(), *marginal_speeds(), *many_speeds(), *attack_speeds()]
        self._tell(speeds)

    def _tell(self, speeds: list[Speed]) -> None:
        SCREEN.tell(json.dumps([asdict(speed) for speed in speeds]) if self.as_json else _describe(speeds, screen_width()))

    def _beside_peers(self) -> None:
        from local_dp.experiments.bench.peers import as_data, describe, peer_rows, speed_figure
        from local_dp.experiments.lab.figures import save
        from local_dp.experiments.peers.base import LIBRARIES, installed

        if not any(map(installed, LIBRARIES)):
            raise InputError("no peer is installed; pip install 'local-dp[peers]'")
        rows = peer_rows()
        if self.figure is not None:
            save(speed_figure(rows), self.figure)
        SCREEN.tell(json.dumps(as_data(rows)) if self.as_json else describe(rows, screen_width()))


def _describe(speeds: list[Speed], width: int) -> str:
    rows = [
        (speed.what, f"{speed.value:.3g}", speed.unit, "" if speed.reference is None else f"{speed.reference:.3g}", f"{speed.asked:g}", _verdict(speed))
        for speed in speeds
    ]
    return table(("what", "value", "unit", "reference", "asked", "verdict"), rows, width)


def _verdict(speed: Speed) -> str:
    return "meets" if speed.meets else "misses"
