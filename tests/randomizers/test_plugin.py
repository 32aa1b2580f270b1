"""A randomizer from a separate installed package."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.command import in_a_process, local_dp

PACKAGE = Path(__file__).parents[1] / "support" / "plugin_package"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The example package, built and installed into a folder of its own."""
    target = tmp_path_factory.mktemp("site")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--target", str(target), str(PACKAGE)]
    done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(target)


@pytest.fixture
def installed(site: str) -> Iterator[None]:
    """The package is on this process's path, and so on that of the helper processes of its runs; afterwards it never was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(site)
        _forget()
        yield
    _forget()


def _forget() -> None:
    for found in ("_points", "_loaded"):
        vars(RANDOMIZERS).pop(found, None)
    for module in ("coin_rr", "frequency_oracles"):
        sys.modules.pop(module, None)


def test_it_is_found_through_its_entry_point(site: str) -> None:
    """The package's randomizer is listed by a fresh interpreter once it is installed, and not before."""
    assert "coin-rr" not in local_dp("randomizers").stdout
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), site]))
    assert "coin-rr" in in_a_process("randomizers", PYTHONPATH=path).stdout


@pytest.mark.usefixtures("installed")
def test_it_runs_in_every_per_client_tier() -> None:
    """Processes, hosts and population give identical reports with it."""
    digests = set()
    for tier in ("processes", "hosts", "population"):
        arguments = ["run", "survey", "--set", "randomizer=coin-rr", "--clients", "30", "--seed", "4", "--tier", tier, "--json"]
        done = local_dp(*arguments)
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        assert data["clients"]["answered"] == 30
        digests.add(data["rounds"][0]["digest"])
    assert len(digests) == 1


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("randomizer", ["optimised-unary", "local-hash"])
def test_randomizers_that_are_no_small_table_run_in_every_per_client_tier(randomizer: str) -> None:
    """Packed bits for 1,024 symbols, and a hash under a 64-bit public seed, give identical reports from processes, hosts and population."""
    told = set()
    for tier in ("processes", "hosts", "population"):
        arguments = ["run", "frequency", "--set", f"randomizer={randomizer}", "--set", "k=1024", "--clients", "8", "--seed", "4", "--tier", tier, "--json"]
        done = local_dp(*arguments)
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        assert data["clients"]["answered"] == 8
        told.add((data["rounds"][0]["digest"], data["rounds"][0]["bits_per_client"], str(data["result"]["estimate"])))
    assert len(told) == 1


@pytest.mark.usefixtures("installed")
def test_a_tally_without_a_law_is_not_drawn() -> None:
    """The aggregate tier refuses a randomizer whose tally has no closed law here, in one line that names the tier to use."""
    arguments = ["run", "frequency", "--set", "randomizer=local-hash", "--clients", "30", "--tier", "aggregate"]
    done = local_dp(*arguments)
    assert done.returncode == 4
    assert "use --tier population" in done.stderr


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "randomizer=coin-rr", "--allow", "binary-rr,grr"], "not on this client's list"),
        (["--set", "randomizer=leaky-rr"], "claims epsilon 1 but its channel has 2"),
    ],
    ids=["not allowed", "leaks"],
)
@pytest.mark.parametrize("tier", ["processes", "hosts"])
def test_clients_refuse_what_they_do_not_allow_or_cannot_verify(tier: str, arguments: list[str], words: str) -> None:
    """Clients whose list lacks the randomizer, or that find it spends more than it claims, refuse: exit code 4."""
    done = local_dp("run", "survey", "--clients", "20", "--tier", tier, *arguments)
    assert done.returncode == 4
    assert words in done.stderr
