"""A randomizer from a separate installed package."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_cli import local_dp

PACKAGE = Path(__file__).parents[1] / "support" / "plugin_package"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example package, built and installed into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(target), str(PACKAGE)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(target)


def _path(site: str) -> str:
    """Where Python looks: this checkout, then the folder with the package."""
    import os

    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), site]))


def test_it_is_found_through_its_entry_point(installed: str) -> None:
    """The package's randomizer is listed once it is installed, and not before."""
    assert "coin-rr" not in local_dp("randomizers").stdout
    assert "coin-rr" in local_dp("randomizers", PYTHONPATH=_path(installed)).stdout


def test_it_runs_in_every_per_client_tier(installed: str) -> None:
    """Processes, hosts and population give identical reports with it."""
    digests = set()
    for tier in ("processes", "hosts", "population"):
        arguments = ["run", "survey", "--set", "randomizer=coin-rr", "--clients", "30", "--seed", "4", "--tier", tier, "--json"]
        done = local_dp(*arguments, PYTHONPATH=_path(installed))
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        assert data["clients"]["answered"] == 30
        digests.add(data["rounds"][0]["digest"])
    assert len(digests) == 1


@pytest.mark.parametrize("randomizer", ["optimised-unary", "local-hash"])
def test_randomizers_that_are_no_small_table_run_in_every_per_client_tier(installed: str, randomizer: str) -> None:
    """Packed bits for 1,024 symbols, and a hash under a 64-bit public seed, give identical reports from processes, hosts and population."""
    told = set()
    for tier in ("processes", "hosts", "population"):
        arguments = ["run", "frequency", "--set", f"randomizer={randomizer}", "--set", "k=1024", "--clients", "30", "--seed", "4", "--tier", tier, "--json"]
        done = local_dp(*arguments, PYTHONPATH=_path(installed))
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        assert data["clients"]["answered"] == 30
        told.add((data["rounds"][0]["digest"], data["rounds"][0]["bits_per_client"], str(data["result"]["estimate"])))
    assert len(told) == 1


def test_a_tally_without_a_law_is_not_drawn(installed: str) -> None:
    """The aggregate tier refuses a randomizer whose tally has no closed law here, in one line that names the tier to use."""
    arguments = ["run", "frequency", "--set", "randomizer=local-hash", "--clients", "30", "--tier", "aggregate"]
    done = local_dp(*arguments, PYTHONPATH=_path(installed))
    assert done.returncode == 4
    assert "use --tier population" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "randomizer=coin-rr", "--allow", "binary-rr,grr"], "not on this client's list"),
        (["--set", "randomizer=leaky-rr"], "claims epsilon 1 but its channel has 2"),
    ],
    ids=["not allowed", "leaks"],
)
@pytest.mark.parametrize("tier", ["processes", "hosts"])
def test_clients_refuse_what_they_do_not_allow_or_cannot_verify(installed: str, tier: str, arguments: list[str], words: str) -> None:
    """Clients whose list lacks the randomizer, or that find it spends more than it claims, refuse: exit code 4."""
    done = local_dp("run", "survey", "--clients", "20", "--tier", tier, *arguments, PYTHONPATH=_path(installed))
    assert done.returncode == 4
    assert words in done.stderr
