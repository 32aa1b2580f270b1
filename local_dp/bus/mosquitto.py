"""The process of a Mosquitto that a run starts: it writes the configuration, and the broker ends
with it. Where Mosquitto fails, it is the embedded broker."""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from base64 import b64encode
from contextlib import suppress
from hashlib import pbkdf2_hmac
from pathlib import Path

from local_dp.bus.broker import USER, announce

_PLACES = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin:/opt/homebrew/sbin"
# of the hash in the file of passwords, as mosquitto_passwd has it: the password is random
_ROUNDS = 101
_PATIENCE, _GLANCE = 5.0, 0.02  # seconds
_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_CONFIGURATION = """\
listener 0 {path}
allow_anonymous false
password_file {path}.passwords
persistence false
max_inflight_messages 0
max_queued_messages 0
max_queued_bytes 0
set_tcp_nodelay true
connection_messages false
log_dest none
user {user}
"""


def found() -> str | None:
    """The Mosquitto of this machine; None elsewhere than on Linux, where it would outlive a killed
    run."""
    return shutil.which("mosquitto", path=_PLACES) if sys.platform == "linux" else None


def started(program: str, path: Path, password: str) -> "subprocess.Popen[bytes] | None":
    """The broker, once it listens on the socket `path`; None if it does not."""
    salt = secrets.token_bytes(12)
    digest = pbkdf2_hmac("sha512", password.encode(), salt, _ROUNDS)
    words = (b64encode(salt), b64encode(digest))
    # under root, Mosquitto would become another user, who may not enter the folder
    user = Path("/proc/self").owner()
    Path(f"{path}.conf").write_text(_CONFIGURATION.format(path=path, user=user))
    Path(f"{path}.passwords").write_text(f"{USER}:$7${_ROUNDS}${b'$'.join(words).decode()}\n")
    path.unlink(missing_ok=True)  # of one that was killed
    system = ctypes.CDLL(None)  # loaded before the fork
    process = subprocess.Popen(
        [program, "-c", f"{path}.conf"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        # this process has one thread
        preexec_fn=lambda: system.prctl(_WITH_PARENT, signal.SIGKILL),  # noqa: PLW1509
    )
    latest = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < latest:
        with socket.socket(socket.AF_UNIX) as line:
            if line.connect_ex(str(path)) == 0:
                return process
        time.sleep(_GLANCE)
    process.kill()
    process.wait()
    return None


def main() -> None:
    """Its only argument is the path of the socket; the first line on standard input is the
    password. It ends with standard input, or with the broker."""
    # the starter is gone, and its folder
    with (
        os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0) as standard_input,
        suppress(FileNotFoundError),
    ):
        password = standard_input.readline().decode().strip()
        program, path = found(), Path(sys.argv[1])
        process = None if program is None else started(program, path, password)
        if process is None:
            from local_dp.bus.embedded import serve

            serve(str(path), password)
            return
        announce("Mosquitto")
        threading.Thread(target=lambda: (process.wait(), os._exit(1)), daemon=True).start()
        standard_input.read()
        process.kill()
        process.wait()
        os._exit(0)


if __name__ == "__main__":
    main()
