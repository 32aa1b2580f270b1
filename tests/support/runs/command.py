"""The command line: in this process, where a new interpreter would show nothing more, and as a
process of its own, where it would."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

from local_dp.cli.main import main

# what an interpreter does not show by itself
_QUIET = (
    DeprecationWarning,
    PendingDeprecationWarning,
    ImportWarning,
    ResourceWarning,
)


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def local_dp(*arguments: str) -> Done:
    """One command, as typed, in this process; what its child processes say on the two streams is
    caught too."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        with (
            _as_the_streams(out, err),
            pytest.MonkeyPatch.context() as patch,
            warnings.catch_warnings(),
        ):
            patch.setattr(sys, "argv", ["local-dp", *arguments])
            patch.setattr(
                warnings,
                "showwarning",
                lambda *details, **_: print(warnings.formatwarning(*details[:4]), file=sys.stderr),
            )
            warnings.simplefilter("default")
            for kind in _QUIET:
                warnings.simplefilter("ignore", kind)
            code = _exit_code()
        out.seek(0)
        err.seek(0)
        return Done(code, out.read(), err.read())


def _exit_code() -> int:
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        for number, handler in before.items():  # a command that is over ignores them
            signal.signal(number, handler)
    return 0


@contextmanager
def _as_the_streams(out: IO[str], err: IO[str]) -> Iterator[None]:
    """These files in the place of standard output and standard error, for this process and for its
    children."""
    streams = os.dup(1), os.dup(2)
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            try:
                yield
            finally:
                out.flush()
                err.flush()
    finally:
        for number, descriptor in enumerate(streams, start=1):
            os.dup2(descriptor, number)
            os.close(descriptor)


def outcome_of(*arguments: str) -> dict[str, Any]:
    """The JSON of a run that must succeed."""
    done = local_dp("run", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = json.loads(done.stdout)
    return data


def in_a_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One command, as typed, in an interpreter of its own."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def together(*lines: Sequence[str]) -> list[Done]:
    """Some commands, as typed, each in an interpreter of its own, at once; and their ends."""
    running = [
        subprocess.Popen(command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for words in lines
    ]
    outputs = [process.communicate(timeout=60) for process in running]
    return [
        Done(process.returncode, *output) for process, output in zip(running, outputs, strict=True)
    ]


def command(*arguments: str) -> list[str]:
    """The words that start the command line in an interpreter of its own."""
    return [sys.executable, "-m", "local_dp", *arguments]


def enrolled(folder: Path, *hosts: int) -> None:
    """Keys of a server and of hosts of 20 clients each, by their first one, and the roster."""
    for name in ("server", *(f"host-{start}" for start in hosts)):
        assert local_dp("keys", "create", str(folder / f"{name}.key")).returncode == 0
    for start in hosts:
        done = local_dp(
            "keys",
            "enrol",
            str(folder / "roster"),
            str(folder / f"host-{start}.key.pub"),
            "--start",
            str(start),
            "--clients",
            "20",
        )
        assert done.returncode == 0, done.stderr
