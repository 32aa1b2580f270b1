"""Whole commands in fresh interpreters, and the tables that they read."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from local_dp.errors import BusError

RUN = ("-m", "local_dp", "run", "--json")
_SPENT = 3.0  # seconds on one command
_TIMED = """
import json, os, subprocess, sys, time
started = time.perf_counter()
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
seconds, code = time.perf_counter() - started, os.waitstatus_to_exitcode(status)
print(json.dumps([seconds, usage.ru_maxrss / 1024, code]))
"""  # by a small process: the peak memory of a child is no less than its parent's at its start


def fastest(arguments: list[str]) -> tuple[float, float]:
    """Seconds and MiB of the fastest of repeated runs, at least two, for some seconds in all."""
    runs = [_command(arguments), _command(arguments)]
    while sum(seconds for seconds, _ in runs) < _SPENT:
        runs.append(_command(arguments))
    return min(runs)


def _command(arguments: list[str]) -> tuple[float, float]:
    """Seconds from Enter to the end, and the peak resident memory in MiB."""
    output = subprocess.run(
        [sys.executable, "-c", _TIMED, sys.executable, *arguments],
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    seconds, mebibytes, code = json.loads(output)
    if code:
        raise BusError(
            f"{' '.join(arguments)} ended with exit code {code}; run it alone to see why"
        )
    return seconds, mebibytes


BARE = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import polars
from local_dp.noise import COINS, Draw, KeyedNoise
from local_dp.oracles.local.asked import Asking, Cohort, LocalQuery
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR

query, which = LocalQuery(Question("x0 > 49"), BinaryRR(1.0), Cohort(0, 1)), Draw(1)

def asked(path):
    read = polars.read_csv if path.suffix == ".csv" else polars.read_parquet
    values = read(path, columns=["x0"])["x0"].to_numpy() > 49
    asking = Asking(query, 0, KeyedNoise(0), which, which.key(COINS, 0))
    return int(asking.randomize(values).sum())

started = time.perf_counter()
with ThreadPoolExecutor() as pool:
    sum(pool.map(asked, sorted(Path(sys.argv[1]).iterdir())))
print(time.perf_counter() - started)
"""


@contextmanager
def table_of(rows: int, suffix: str = ".parquet") -> Iterator[Path]:
    """A folder of files with so many rows of 10 columns, whole numbers, fractions and texts: one
    part of a million rows under many names."""
    import polars

    generator, many = np.random.default_rng(0), min(rows, 10**6)
    integers = {f"x{place}": generator.integers(0, 100, many) for place in range(4)}
    fractions = {f"y{place}": generator.random(many).round(3) for place in range(3)}
    texts = {
        f"t{place}": generator.choice(["Oslo", "Rome", "Paris", "Lima"], many) for place in range(3)
    }
    with tempfile.TemporaryDirectory(prefix="ldp-table-") as folder:
        first, frame = (
            Path(folder) / f"0000{suffix}",
            polars.DataFrame(integers | fractions | texts),
        )
        (frame.write_csv if suffix == ".csv" else frame.write_parquet)(first)
        for part in range(1, rows // many):
            first.with_stem(f"{part:04}").hardlink_to(first)
        yield Path(folder)


def asked_of(folder: Path) -> tuple[float, float]:
    return fastest(
        [*RUN, "survey", "--question", "x0 > 49", "--records", str(folder), "--seed", "1"]
    )


def bare_of(folder: Path) -> float:
    """Seconds of the fastest of some runs."""
    command = (sys.executable, "-c", BARE, folder)
    return min(
        float(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout) for _ in range(3)
    )
