"""Helper processes of a run: the same interpreter, the same modules; and a folder that outlives
none of them."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import weakref
from contextlib import AbstractContextManager
from tempfile import mkdtemp

from local_dp.errors import InputError

_DESCRIPTORS = 1 << 16
_NONE = subprocess.DEVNULL
_WATCH = 'trap "" HUP INT TERM; exec 3<&0; (read _; rm -rf "$0") <&3 &'
_OWN = 40  # open files of a process that starts or serves others, beside one for each of them


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this project; with -P a folder of the same name does not
    hide it."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, with its own module path."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **changes}


class Folder(AbstractContextManager[str]):
    """A temporary folder. A shell, nobody's child, removes it if this process is killed: it waits
    for the end of a line that only this process holds open."""

    def __init__(self, prefix: str = "ldp-") -> None:
        self.name = mkdtemp(prefix=prefix)
        line, end = os.pipe()
        self._end = weakref.finalize(self, os.close, end)
        subprocess.run(
            ("sh", "-c", _WATCH, self.name),
            stdin=line,
            stdout=_NONE,
            stderr=_NONE,
            start_new_session=True,
            check=True,
        )
        os.close(line)

        # unlike a TemporaryDirectory, it may go with its last holder: no warning
        self._files = weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)

    def __enter__(self) -> str:
        return self.name

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def cleanup(self) -> None:
        self._files()
        self._end()


def allow_open_files(others: int) -> None:
    """Raises the limit on this process's open files, so that it holds a connection to each of so
    many others. Raises InputError if it may not."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        soft = target
    if soft != resource.RLIM_INFINITY and soft < others + _OWN:
        raise InputError(
            f"{others} processes need {others + _OWN} open files, and the limit here is {soft}: "
            "raise it (ulimit -n), or start fewer"
        )


def is_stopped(pid: int) -> bool:
    """True if this child of ours is stopped, as by SIGSTOP, and so will neither work nor end. False
    where the system does not tell (macOS)."""
    if not hasattr(os, "waitid"):
        return False
    try:
        return os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def ending(code: int | None) -> str:
    """How a process ended, by its exit code."""
    return (
        f"killed by {signal.Signals(-code).name}"
        if code is not None and code < 0
        else f"exit code {code}"
    )
