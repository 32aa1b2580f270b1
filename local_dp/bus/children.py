"""How a run starts its own helper processes: the same interpreter, the same modules."""

import os
import sys


def python(module: str, *arguments: str) -> list[str]:
    """The command that runs a module of this project; -P keeps a folder of the user's with the same name out of the way."""
    return [sys.executable, "-P", "-m", module, *arguments]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment, with the places where it finds modules itself."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **changes}
