"""A randomizer from a separate installed package."""

import json
import os
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

from local_dp.conformance import conform_protocol, conform_query
from local_dp.protocols.registry import PROTOCOLS
from local_dp.queries.registry import QUERIES
from local_dp.records import Records
from tests.support.inputs.plugins import plugged_in, plugin_site
from tests.support.long import short
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


UNANNOTATED = """
from coin_survey import CoinMultiples

class Unannotated(CoinMultiples):
    name = "unannotated"

    def algorithm(self, epsilon, clients):
        return super().algorithm(epsilon, clients)
"""


@pytest.mark.usefixtures("installed")
def test_a_protocol_without_a_return_annotation_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list shows all others and one line about it; asked for by name it is refused by that line, with no traceback."""
    (tmp_path / "unannotated.py").write_text(UNANNOTATED)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(PROTOCOLS._points, "unannotated", EntryPoint("unannotated", "unannotated:Unannotated", PROTOCOLS.group))
    listed = local_dp("protocols")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "survey" in listed.stdout
    assert "unannotated:Unannotated cannot be used as a protocol" in " ".join(listed.stdout.split())
    for words in (["describe", "unannotated"], ["run", "unannotated"]):
        refused = local_dp(*words)
        assert refused.returncode != 0
        assert "annotate it" in " ".join(refused.stderr.split())
        assert "Traceback" not in refused.stderr
    assert local_dp("run", "--help").returncode == 0


@pytest.mark.usefixtures("installed")
def test_the_example_conforms(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites for a query and for a protocol accept the package's own, and refuse wrong twins."""
    multiple, records = QUERIES.build("multiple", {"column": "die", "of": 3}), Records({"die": np.arange(-5, 40)})
    conform_query(multiple, records)
    conform_protocol(PROTOCOLS["coin-multiples"](), clients=500)

    kind, protocol = type(multiple), PROTOCOLS["coin-multiples"]
    neighbours = type("Neighbours", (kind,), {"__call__": lambda self, records: np.roll(kind.__call__(self, records), 1)})
    with pytest.raises(AssertionError, match="depends on others"):
        conform_query(neighbours("die", 3), records)
    with monkeypatch.context() as patch:
        patch.delattr(protocol, "describe")
        conform_protocol(protocol(), clients=500)
        assert "\nestimate  " in local_dp("run", "coin-multiples", "--clients", "500").stdout
        patch.setattr(protocol, "describe", lambda self, result: {"share": 0.5})
        with pytest.raises(AssertionError, match="describe a hypothesis"):
            conform_protocol(protocol(), clients=500)
    monkeypatch.setattr(protocol, "true_error", lambda self, result, population: float("inf"))
    with pytest.raises(AssertionError, match="its error"):
        conform_protocol(protocol(), clients=500)


RUNS = {
    "survey": ["--set", "randomizer=coin-rr"],
    "coin-multiples": ["--of", "2"],
    "frequency": ["--set", "randomizer=local-hash", "--set", "k=1024"],  # a hash under a 64-bit public seed
    "histogram": ["--set", "randomizer=optimised-unary", "--bins", "1024"],  # packed bits
}


@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize("protocol", short(RUNS, lambda protocol: protocol == "coin-multiples"))
def test_it_runs_in_every_per_client_tier(protocol: str) -> None:
    """Processes, hosts and population give identical reports with the package's randomizers, its query and its protocol."""
    digests = set()
    for tier in ("processes", "hosts", "population"):
        done = local_dp("run", protocol, *RUNS[protocol], "--clients", "8", "--seed", "4", "--tier", tier, "--json")
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        assert data["clients"]["answered"] == 8
        digests.add((data["rounds"][0]["digest"], str(data["result"]["estimate"])))
    assert len(digests) == 1


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
@pytest.mark.parametrize("tier", short(["processes", "hosts"], lambda tier: tier == "hosts"))
def test_clients_refuse_what_they_do_not_allow_or_cannot_verify(tier: str, arguments: list[str], words: str) -> None:
    """Clients whose list lacks the randomizer, or that find it spends more than it claims, refuse: exit code 4."""
    done = local_dp("run", "survey", "--clients", "20", "--tier", tier, *arguments)
    assert done.returncode == 4
    assert words in done.stderr


@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize("tier", short(["population", "aggregate"], lambda tier: tier == "population"))
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
