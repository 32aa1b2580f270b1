"""`local-dp bench`: speeds as ratios to a reference measured in the same run, as a table and as JSON."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

from experiments.cli.bench_attacks import attack_speeds
from experiments.cli.bench_cluster import cluster_speeds
from experiments.cli.bench_curator import curator_speeds
from experiments.cli.bench_frequencies import frequency_speeds
from experiments.cli.bench_intervals import interval_speeds
from experiments.cli.bench_many import many_speeds
from experiments.cli.bench_marginals import marginal_speeds
from experiments.cli.fields import option
from experiments.cli.screen import SCREEN
from experiments.cli.speeds import REPEATS, Speed, best_of
from experiments.text.layout import screen_width, table
from experiments.tiers.execute import execute
from experiments.tiers.settings import Randomness, Settings
from local_dp.arrays import Ints, Words
from local_dp.errors import BusError, InputError
from local_dp.noise import Draw, KeyedNoise, philox_words, stream_key
from local_dp.oracles.local.asked import CHUNK, cells_of
from local_dp.protocols.survey import Survey
from local_dp.randomizers.base import Randomizer
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.numbers.discrete_laplace import DiscreteLaplace
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.randomizers.vectors.nearest_direction import NearestDirection
from local_dp.randomizers.vectors.privunit import PrivUnit
from server.progress import Progress, RoundProgress
from server.terms import Terms

REPORTS = 1 << 24
MEMORY = 64.0  # MiB
BEYOND = 0.15  # seconds that 10^8 clients may take, beside one
RUN = ("-m", "experiments.cli", "run", "--json")
DIMENSION = 100
VECTORS = 1 << 16
SMALL_FLEET = 200


@dataclass(frozen=True)
class Bench:
    """Measures the speeds of this machine: randomizers, curator, attacks, population tier, hosts and client processes.

    Takes about two minutes.
    """

    processes: int = option(1000, "The larger of the client-process runs; 0 leaves processes out", metavar="N")
    as_json: bool = option(False, "Print the figures as JSON, alone on standard output", name="--json")
    peers: bool = option(False, "Instead, other libraries at the same work: speeds, variances, exact losses (pip install 'local-dp[peers]')")
    figure: Path | None = option(None, "With --peers, draw the speeds into this file (.png, .svg or .pdf)", metavar="FILE")

    def __call__(self) -> None:
        if self.peers:
            self._beside_peers()
            return
        if self.figure is not None:
            raise InputError("--figure draws the speeds of --peers; give both")
        # runs first: a child's peak memory is no less than its parent's when it began
        speeds = [*_runs(), *cluster_speeds(), *_randomizers(), *frequency_speeds()]
        for count in sorted({min(SMALL_FLEET, self.processes), self.processes} - {0}):
            speeds += _processes(count)
        speeds += [*curator_speeds(), *interval_speeds(), *marginal_speeds(), *many_speeds(), *attack_speeds()]
        SCREEN.tell(json.dumps([asdict(speed) for speed in speeds]) if self.as_json else _told(speeds, screen_width()))

    def _beside_peers(self) -> None:
        from experiments.cli.bench_peers import as_data, peer_rows, speed_figure, told
        from experiments.lab.figures import save
        from experiments.peers.base import LIBRARIES, installed

        if not any(map(installed, LIBRARIES)):
            raise InputError("no peer is installed; pip install 'local-dp[peers]'")
        rows = peer_rows()
        if self.figure is not None:
            save(speed_figure(rows), self.figure)
        SCREEN.tell(json.dumps(as_data(rows)) if self.as_json else told(rows, screen_width()))


def _told(speeds: list[Speed], width: int) -> str:
    rows = [
        (speed.what, f"{speed.value:.3g}", speed.unit, "" if speed.reference is None else f"{speed.reference:.3g}", f"{speed.asked:g}", _verdict(speed))
        for speed in speeds
    ]
    return table(("what", "value", "unit", "reference", "asked", "verdict"), rows, width)


def _verdict(speed: Speed) -> str:
    return "meets" if speed.meets else "misses"


def _randomizers() -> list[Speed]:
    """Reports a second on one core, each beside bare numpy that draws the same Philox words in the same chunks and compares them."""
    cases: list[tuple[Randomizer, float]] = [(BinaryRR(1.0), 200e6), (GRR(1.0, k=1024), 100e6), (Hadamard(1.0, k=1024), 50e6), (DiscreteLaplace(1.0), 100e6)]
    speeds = []
    for randomizer, asked in cases:
        SCREEN.working(f"measuring {randomizer.name}, k = {randomizer.domain.size}")
        reference = REPORTS / best_of(partial(_draw_and_compare, randomizer)) / 1e6
        value = REPORTS / best_of(partial(_respond, randomizer)) / 1e6
        meets = value >= asked / 1e6 and value >= reference / 2
        speeds.append(Speed(f"{randomizer.name}, k = {randomizer.domain.size}", value, "million reports/s", reference, asked / 1e6, meets))
    return [*speeds, *_vectors()]


def _vectors() -> list[Speed]:
    """Reports of vectors a second, clients and server; the reference computes one inner product of as many normal vectors."""
    noise, speeds = KeyedNoise(0), []
    for randomizer in (PrivUnit(1.0, d=DIMENSION), NearestDirection(1.0, d=DIMENSION)):
        SCREEN.working(f"measuring {randomizer.name}, d = {DIMENSION}")
        rows = np.resize(randomizer.domain.some(64), (VECTORS, DIMENSION))
        words, cells = randomizer.draw(noise, Draw(1), 0, VECTORS), cells_of(randomizer, stream_key("bench coins", 0), 0, VECTORS)
        reports = randomizer.respond(rows, words, cells)
        reference = VECTORS / best_of(partial(_inner_products, rows)) / 1e6
        sides: list[tuple[str, Callable[[], object]]] = [
            ("clients", partial(randomizer.respond, rows, words, cells)),
            ("server", partial(randomizer.tally, reports, cells)),
        ]
        for side, work in sides:
            value = VECTORS / best_of(work) / 1e6
            speeds.append(Speed(f"{randomizer.name}, d = {DIMENSION}, {side}", value, "million reports/s", reference, 0.4, value >= 0.4))
    return speeds


def _inner_products(rows: Ints) -> None:
    (np.random.default_rng(0).standard_normal(rows.shape) * rows).sum(axis=1)


def _draw_and_compare(randomizer: Randomizer) -> None:
    key, coins, bits = stream_key("bench", 0), stream_key("bench coins", 0), randomizer.word_bits
    threshold = np.array(1 << (bits - 2), dtype=f"u{bits // 8}")
    for start in range(0, REPORTS, CHUNK):
        philox_words(key, start, start + CHUNK, bits) < threshold  # noqa: B015  # the comparison is what is timed
        if randomizer.uses_coins:
            philox_words(coins, start, start + CHUNK, 64) < np.uint64(1 << 62)  # noqa: B015


def _respond(randomizer: Randomizer) -> None:
    noise, coins = KeyedNoise(0), stream_key("bench coins", 0)
    dtype = np.uint8 if randomizer.domain.size == 2 else np.uint32
    values: Words = (np.arange(CHUNK) % randomizer.domain.size).astype(dtype)
    for start in range(0, REPORTS, CHUNK):
        words = randomizer.draw(noise, Draw(1), start, start + CHUNK)
        randomizer.respond(values, words, cells_of(randomizer, coins, start, start + CHUNK))


def _runs() -> list[Speed]:
    """Whole runs, each in a fresh interpreter, as a person would start them; the reference is an interpreter that only imports numpy."""
    cases = [
        ("survey, 10^6 clients, population", ["survey", "--clients", "1000000", "--tier", "population"], 1.0),
        ("survey, 10^8 clients, population", ["survey", "--clients", "100000000", "--tier", "population"], 20.0),
        ("survey, 10^10 clients, population", ["survey", "--clients", "10000000000", "--tier", "population"], 15.0),
        ("survey, 10^5 clients, 2 hosts", ["survey", "--clients", "100000", "--tier", "hosts"], 5.0),
        ("masked parity, default run", ["masked-parity"], 4.0),
    ]
    reference, _ = _command(["-c", "import numpy"])
    start_up = min(_command([*RUN, "survey", "--clients", "1", "--tier", "population"])[0] for _ in range(REPEATS))
    speeds = []
    for what, arguments, asked in cases:
        SCREEN.working(f"measuring {what}")
        seconds, mebibytes = _command([*RUN, *arguments])
        speeds.append(Speed(f"{what}: Enter to result", seconds, "s", reference, asked, seconds <= asked))
        if "10^8" in what:
            speeds.append(Speed(f"{what}: beyond start-up", seconds - start_up, "s", start_up, BEYOND, seconds - start_up <= BEYOND))
        if "population" in what:
            speeds.append(Speed(f"{what}: memory", mebibytes, "MiB", None, MEMORY, mebibytes <= MEMORY))
    return speeds


def _command(arguments: list[str]) -> tuple[float, float]:
    """Seconds from Enter to the end, and the peak resident memory in MiB."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise BusError(f"{' '.join(arguments)} ended with exit code {child.returncode}; run it alone to see why")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def _processes(count: int) -> list[Speed]:
    """A survey over real client processes: how soon they are ready, their memory, and one round."""
    protocol = Survey()
    settings = Settings(protocol, protocol.synthetic(count, 0), 1.0, Randomness(0, False), tier="processes", terms=Terms(deadline=120.0))
    sizes: list[float] = []
    looks: list[float] = []
    SCREEN.working(f"measuring {count} client processes")

    def look(progress: Progress) -> None:
        if not isinstance(progress, RoundProgress):
            return
        looks.append(time.perf_counter())
        if not sizes and progress.answered == progress.asked:
            sizes.extend(_member_sizes())

    started = time.perf_counter()
    seconds = execute(settings, look).seconds[0]
    ready = looks[0] - started  # the round has just begun then
    asked = 4.0 if count <= SMALL_FLEET else 20.0
    name = f"{count} client processes"
    return [
        Speed(f"{name}: ready", ready, "s", None, asked, ready <= asked),
        Speed(f"{name}: one round", seconds, "s", None, 2.0, seconds <= 2.0),
        Speed(f"{name}: memory of one (PSS)", max(sizes), "MiB", None, 8.0, max(sizes) <= 8.0),
    ]


def _member_sizes() -> list[float]:
    """The proportional set size of each client process, in MiB: our children's children."""
    sizes = []
    for helper in _children(os.getpid()):
        for member in _children(helper):
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    sizes.append(int(line.split()[1]) / 1024)
    return sizes


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
