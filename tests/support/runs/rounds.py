"""How long a round takes beside one of an older version of the project, by turns on this machine: this version's signed and with stores."""

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from local_dp.experiments.bench.runs import local_mosquitto

ROOT = Path(__file__).parents[3]
SIZES = {"processes": 1000, "hosts": 100_000}  # clients
_COMMAND = "import sys; from {module} import {function}; sys.exit({function}())"


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The files of a revision, in a folder of their own for as long."""
    with tempfile.TemporaryDirectory() as folder:
        files = subprocess.run(["git", "archive", revision], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x"], cwd=folder, input=files, check=True)
        yield Path(folder)


def seconds(version: Path, broker: str, tier: str, clients: int, *more: str) -> float:
    """Of the round of a survey by the `local-dp` of these files."""
    entry = tomllib.loads((version / "pyproject.toml").read_text())["project"]["scripts"]["local-dp"]
    module, function = entry.split(":")
    words = ["run", "survey", "--json", "--clients", str(clients), "--tier", tier, "--broker", broker, "--seed", "1", "--deadline", "120", *more]
    command = [sys.executable, "-P", "-c", _COMMAND.format(module=module, function=function), *words]
    done = subprocess.run(command, cwd=version, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(version)}, stdout=subprocess.PIPE, check=True)
    (each,) = json.loads(done.stdout)["rounds"]
    return float(each["seconds"])


def beside(old: Path, broker: str, tier: str, clients: int) -> tuple[float, float]:
    """Seconds of a round of the old files, and of ours, signed and with stores."""
    with tempfile.TemporaryDirectory() as stores:
        return seconds(old, broker, tier, clients), seconds(ROOT, broker, tier, clients, "--stores", stores)


def main() -> None:
    """Prints each pair, and the median of the quotients."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", help="of git; c470d91 is the last that neither signed nor kept anything")
    parser.add_argument("--tier", choices=[*SIZES], default="processes")
    parser.add_argument("--clients", type=int, help="default: " + ", ".join(f"{size} for {tier}" for tier, size in SIZES.items()))
    parser.add_argument("--pairs", type=int, default=7)
    told = parser.parse_args()
    times = []
    with checkout(told.revision) as old, local_mosquitto() as broker:
        for _ in range(told.pairs):
            before, now = beside(old, broker, told.tier, told.clients or SIZES[told.tier])
            times.append(now / before)
            print(f"{told.revision} {before:.4g} s, now {now:.4g} s: {times[-1]:.2f} times as long", flush=True)
    print(f"median {median(times):.2f}, {min(times):.2f} to {max(times):.2f}")


if __name__ == "__main__":
    main()
