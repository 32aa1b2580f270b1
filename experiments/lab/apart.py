"""One point of an experiment measured in a process of its own, as a worker of a cluster does: its environment decides the last bits of sums."""

import json
import os
import subprocess
import sys
import threading
from contextlib import redirect_stdout

from local_dp.errors import InputError, LocalDPError
from local_dp.experiments.lab.catalogue import load
from local_dp.experiments.lab.claim import Data
from local_dp.experiments.lab.store import canonical, code_stamp, plain

# The cores are shared already, sums must not depend on the number of threads, nor anything on the order of a set.
ENVIRONMENT = {"PYTHONSAFEPATH": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def measure(module: str, point: Data, seed: int) -> Data:
    """One point of a module's experiment, in the calling process."""
    experiment = load(module)
    measured: Data = plain(experiment.measure(experiment.read_point(point), seed))
    return measured


def measure_apart(module: str, point: Data, seed: int, stamp: str) -> Data:
    """The same in a process of its own, with the code of this stamp, that ends with the caller's. Raises LocalDPError with its last line if it fails."""
    task = canonical({"module": module, "point": point, "seed": seed, "stamp": stamp})
    environment = {**os.environ, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-m", __name__], env=environment, text=True, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        told: list[str] = []
        listening = threading.Thread(target=lambda stream=process.stderr: told.extend(stream))
        listening.start()
        process.stdin.write(task + "\n")
        process.stdin.flush()  # but not closed: the process ends itself when this stream ends
        answer = process.stdout.read()
        listening.join()
    if process.returncode:
        last = "".join(told[-1:]).strip() or f"it ended with code {process.returncode}"
        raise LocalDPError(f"a worker of the cluster could not measure {point}: {last}")
    found: Data = json.loads(answer)
    return found


def main() -> None:
    """Reads one task, measures it, prints the measurement."""
    task = json.loads(sys.stdin.readline())

    def watch() -> None:
        sys.stdin.read()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    if (own := code_stamp(task["module"])) != task["stamp"]:
        raise InputError(f"its code of {task['module']} has the stamp {own}, and the run's has {task['stamp']}; install the same version")
    with redirect_stdout(sys.stderr):
        measured = measure(task["module"], task["point"], task["seed"])
    print(canonical(measured), flush=True)
    os._exit(0)  # not by way of the watching thread, which still reads


if __name__ == "__main__":
    main()
