"""The example packages of randomizers, queries and protocols, as they are once somebody has
installed them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local_dp.protocols.local_protocol import PROTOCOLS
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.runs.shared import locked, shared_folder

ROOT = Path(__file__).parents[3]
PACKAGES = (ROOT / "examples" / "coin", ROOT / "tests" / "support" / "plugin_package")


def plugin_site(factory: pytest.TempPathFactory) -> Path:
    """The folder with the packages, built and installed once for all workers of this run."""
    shared = shared_folder(factory)
    site, partial = shared / "plugins", shared / "plugins.partial"
    with locked(shared / "plugins.lock"):
        if not site.exists():
            install = [
                sys.executable,
                "-m",
                "pip",
                "install",
                "-q",
                "--no-deps",
                "--no-build-isolation",
                "--target",
                str(partial),
                *map(str, PACKAGES),
            ]
            done = subprocess.run(install, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            partial.rename(site)
    return site


@contextmanager
def plugged_in(site: Path) -> Iterator[None]:
    """The packages are on this process's path, and so on that of the helper processes of its runs;
    afterwards they never were."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        _forget()
        yield
    _forget()


def _forget() -> None:
    for registry in (RANDOMIZERS, QUERIES, PROTOCOLS):
        for cache in ("_points", "_classes"):
            vars(registry).pop(cache, None)
    for module in ("coin_rr", "coin_survey", "leaky_rr", "frequency_oracles"):
        sys.modules.pop(module, None)
