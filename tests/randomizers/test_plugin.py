"""A randomizer from a separate installed package."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.inputs.plugins import plugged_in, plugin_site
from tests.support.runs.command import in_a_process, local_dp


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example packages, built and installed into a folder of their own."""
    return plugin_site(tmp_path_factory)


@pytest.fixture
def installed(site: Path) -> Iterator[None]:
    """As if they were installed for this test."""
    with plugged_in(site):
        yield


def test_it_is_found_through_its_entry_point(site: Path) -> None:
    """Randomizer, query and protocol of the package are listed and described alike once it is installed, and not before."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(site)]))
    for kind, name in (("randomizers", "coin-rr"), ("queries", "multiple"), ("protocols", "coin-multiples")):
        assert name not in local_dp(kind).stdout
        with plugged_in(site):
            assert name in local_dp(kind).stdout
    with plugged_in(site):
        assert "a multiple of" in local_dp("describe", "multiple").stdout
    assert "Multiples of this are counted" in in_a_process("run", "coin-multiples", "--help", PYTHONPATH=path).stdout


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


@pytest.mark.usefixtures("installed", "warm")
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


@pytest.mark.usefixtures("installed", "warm")
def test_a_tally_without_a_law_is_not_drawn() -> None:
    """The aggregate tier refuses a randomizer whose tally has no closed law here, in one line that names the tier to use."""
    arguments = ["run", "frequency", "--set", "randomizer=local-hash", "--clients", "30", "--tier", "aggregate"]
    done = local_dp(*arguments)
    assert done.returncode == 4
    assert "use --tier population" in done.stderr


@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "randomizer=coin-rr", "--allow", "binary-rr,grr"], "not on this client's list"),
        (["--set", "randomizer=leaky-rr"], "leaky-rr failed the verification"),
    ],
    ids=["not allowed", "leaks"],
)
@pytest.mark.parametrize("tier", ["processes", "hosts"])
def test_clients_refuse_what_they_do_not_allow_or_cannot_verify(tier: str, arguments: list[str], words: str) -> None:
    """Clients whose list lacks the randomizer, or that find it spends more than it claims, refuse: exit code 4."""
    done = local_dp("run", "survey", "--clients", "20", "--tier", tier, *arguments)
    assert done.returncode == 4
    assert words in done.stderr


@pytest.mark.usefixtures("installed", "warm")
def test_a_protocol_and_a_query_from_outside_run_in_every_per_client_tier() -> None:
    """The package's own protocol asks its own query: processes, hosts and population give identical reports."""
    digests = set()
    for tier in ("processes", "hosts", "population"):
        done = local_dp("run", "coin-multiples", "--of", "2", "--clients", "30", "--seed", "4", "--tier", tier, "--json")
        assert done.returncode == 0, done.stderr
        digests.add(json.loads(done.stdout)["rounds"][0]["digest"])
    assert len(digests) == 1


@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize("tier", ["population", "aggregate"])
def test_a_simulation_refuses_a_leak_unless_told_otherwise(tier: str) -> None:
    """In memory a randomizer that spends more than it claims is refused as clients would; with --unverified it runs, and the result says so."""
    arguments = ["run", "survey", "--randomizer", "leaky-rr", "--clients", "200", "--seed", "1", "--tier", tier]
    done = local_dp(*arguments)
    assert done.returncode == 4
    assert "claims epsilon 1 but its channel has 2" in done.stderr
    loud = local_dp(*arguments, "--unverified")
    assert loud.returncode == 0, loud.stderr
    assert "NOT PRIVATE AS STATED" in loud.stdout
    assert "its channel has 2" in " ".join(json.loads(local_dp(*arguments, "--unverified", "--json").stdout)["unverified"])
    honest = local_dp("run", "survey", "--randomizer", "coin-rr", "--clients", "200", "--seed", "1", "--tier", tier, "--unverified")
    assert "NOT PRIVATE" not in honest.stdout
    listed = local_dp("run", "survey", "--randomizer", "coin-rr", "--clients", "200", "--seed", "1", "--tier", tier, "--allow", "binary-rr")
    assert (listed.returncode, "not on the clients' list" in listed.stderr) == (4, True)


def test_real_clients_refuse_whoever_asks() -> None:
    """--unverified is for simulations in memory: with clients of their own, or in private, it is refused before the run."""
    for more in (["--tier", "hosts"], ["--tier", "population", "--private"]):
        done = local_dp("run", "survey", "--unverified", *more)
        assert (done.returncode, "leave out unverified" in done.stderr) == (2, True), done.stderr
