"""Tables in Parquet files that do not fit in memory, beside bare Polars that reads the one column and randomizes it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from local_dp.bus.children import Folder
from local_dp.experiments.api.tables import read_records, unsaid
from local_dp.experiments.bench.runs import CLIENTS, RUN, cluster_speeds, fastest
from local_dp.experiments.bench.speeds import REPEATS, Speed
from local_dp.experiments.text.screen import SCREEN
from local_dp.populations.finite import Rows
from local_dp.protocols.surveys.survey import Survey

QUESTION = "x0 > 49"
_PART = 10**6  # rows
_FEW = 10
_ROWS = 10**8
_TABLES = 10**7, _ROWS
_TIME, _SPREAD = 3.0, 64.0  # times that of bare Polars, and MiB

BARE = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import polars
from local_dp.noise import COINS, Draw, KeyedNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery, randomize
from local_dp.queries.tables import Question
from local_dp.randomizers.signs.binary_rr import BinaryRR

query, which = LocalQuery(Question("x0 > 49"), BinaryRR(1.0), Cohort(0, 1)), Draw(1)

def asked(path):
    values = polars.read_parquet(path, columns=["x0"])["x0"].to_numpy() > 49
    return int(randomize(query, values, 0, KeyedNoise(0), which, which.key(COINS, 0)).sum())

started = time.perf_counter()
with ThreadPoolExecutor() as pool:
    sum(pool.map(asked, sorted(Path(sys.argv[1]).iterdir())))
print(time.perf_counter() - started)
"""


@contextmanager
def _table(rows: int) -> Iterator[Path]:
    """A folder of files with so many rows of 10 columns, whole numbers, fractions and texts: one part of a million rows under many names."""
    import polars

    generator, many = np.random.default_rng(0), min(rows, _PART)
    numbers = {f"x{place}": generator.integers(0, 100, many) for place in range(4)} | {f"y{place}": generator.random(many).round(3) for place in range(3)}
    texts = {f"t{place}": generator.choice(["Oslo", "Rome", "Paris", "Lima"], many) for place in range(3)}
    with Folder() as folder:
        first, frame = Path(folder) / "0000.parquet", polars.DataFrame(numbers | texts)
        frame.write_parquet(first)
        for part in range(1, rows // many):
            first.with_stem(f"{part:04}").hardlink_to(first)
        yield Path(folder)


def table_speeds() -> list[Speed]:
    """Whole commands, without the time that they take for ten rows. References: bare Polars, once it is imported; the memory for a million rows."""
    with _table(_FEW) as few, _table(_PART) as part:
        SCREEN.working("measuring tables of ten and of a million rows")
        start, memory = _asked(few)[0], _asked(part)[1]
    speeds = []
    for rows in _TABLES:
        what = f"survey of 10^{len(str(rows)) - 1} rows, 1 of 10 columns"
        SCREEN.working(f"measuring a {what}")
        with _table(rows) as folder:
            runs = [(_asked(folder), _bare(folder)) for _ in range(REPEATS)]  # in turn: no machine is always as fast
            seconds, mebibytes = min(asked for asked, _ in runs)
            speeds.append(Speed(f"{what}: beyond start-up", seconds - start, "s", min(bare for _, bare in runs), _TIME))
            speeds.append(Speed(f"{what}: memory", mebibytes, "MiB", memory, 1 + _SPREAD / memory))
    return speeds


def all_cluster_speeds() -> list[Speed]:
    """One and two Dask workers on synthetic clients, and on a table whose files they read themselves."""
    speeds = cluster_speeds("survey, 10^9 clients", Survey(), Survey().synthetic(CLIENTS, 0))
    with _table(_ROWS) as folder:
        survey = Survey(QUESTION)
        table = read_records(folder, notice=unsaid, only=survey.reads)
        return speeds + cluster_speeds("survey of 10^8 rows", survey, Rows(table))


def _asked(folder: Path) -> tuple[float, float]:
    return fastest([*RUN, "survey", "--question", QUESTION, "--records", str(folder), "--seed", "1"])


def _bare(folder: Path) -> float:
    """Seconds of the fastest of some runs."""
    return min(float(subprocess.run([sys.executable, "-c", BARE, folder], stdout=subprocess.PIPE, check=True).stdout) for _ in range(REPEATS))
