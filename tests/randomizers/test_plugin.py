"""The gate that verifies a randomizer for every tier, and a randomizer from a separate installed
package."""

import json
import os
from collections.abc import Callable, Iterator
from functools import wraps
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.arrays import Ints, Words
from local_dp.clients import helper
from local_dp.clients import role as client
from local_dp.clients.fleet import packed
from local_dp.conformance import conform_protocol, conform_query
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Game, Nonadaptive
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.queries.query import QUERIES
from local_dp.randomizers.evidence import PROVEN, entries
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.simulation import execute as verified
from local_dp.simulation.execute import Verified
from local_dp.verification.audit import _verdict, is_built_in, verify
from local_dp.wire import Refusal, reason
from tests.support.inputs.builders import request, role, survey_query, yes_records
from tests.support.inputs.plugins import plugged_in, plugin_site
from tests.support.long import short
from tests.support.runs.command import Done, in_a_process, local_dp
from tests.support.wrong import wrong


class Teller(GRR):  # declares randomized response, and reports the last symbol as it is
    name: ClassVar[str] = "teller"

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports = super().respond(values, words, cells)
        return np.where(values == self.k - 1, reports.dtype.type(self.k - 1), reports)


class Impostor(Teller):  # is equal to everything, and to a built-in randomizer above all
    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(GRR(self.epsilon, k=self.k))


def test_a_refusal_says_what_failed_where_and_how_to_see_more() -> None:
    """One line: the check, two inputs, the report, the ratio, and the command that shows all
    findings."""
    with pytest.raises(RefusedError) as refusal:
        verify(Teller(1.0, k=3))
    line = str(refusal.value)
    assert refusal.value.code == "unverifiable"
    assert line.startswith("teller: over all words of 20 bits")
    assert "input 0 sends report 0, input 2 never does" in line
    assert line.endswith(
        "local-dp audit tests.randomizers.test_plugin:Teller --epsilon 1 --set k=3 shows more"
    )
    assert "\n" not in line


@pytest.mark.parametrize("name", ["privunit", "projunit"])
def test_a_density_is_taken_by_whom_it_is_enough_for(name: str) -> None:
    """A client answers by a built-in randomizer of that evidence if its policy accepts it, at the
    cost of no enumeration, and else not."""
    randomizer = RANDOMIZERS[name](1.0)
    verify(randomizer, PROVEN | {"density"})
    with pytest.raises(RefusedError, match="is density"):
        verify(randomizer)
    assert entries(randomizer) == 0
    work = client.Work(PROVEN | {"density"}, yes_records(1))
    work.begin()
    work.verify([work.build(name, randomizer.params())])
    assert work.done < client.FOR_ONE


@wrong(
    "local_dp.verification.audit:is_built_in",
    "RANDOMIZERS[name] is type(randomizer)",
    "isinstance(randomizer, RANDOMIZERS[name])",
    "whoever derives a class from a built-in one runs what nobody has verified",
)
def test_only_the_classes_of_this_library_are_built_in() -> None:
    """A class derived from a built-in one is audited, under whatever name; so is one that says it
    is equal to it."""
    assert all(is_built_in(RANDOMIZERS[name](1.0)) for name in RANDOMIZERS.built_in)
    assert not is_built_in(Teller(1.0, k=3))
    verify(GRR(1.0, k=3))
    with pytest.raises(RefusedError, match="never does"):
        verify(Impostor(1.0, k=3))
    impostor = type(
        "GRR", (Teller,), {"name": "grr", "__module__": GRR.__module__, "__qualname__": "GRR"}
    )
    with pytest.raises(RefusedError, match="never does"):
        verify(impostor(1.0, k=3))


@wrong(
    "local_dp.verification.audit:verify",
    "fault or _difference(randomizer, reference, params)",
    "fault",
    "thresholds that were replaced after the randomizer was made are run as if they were verified",
    at="flip-1",
)
@pytest.mark.parametrize(
    ("attribute", "put"), [("flip", 1), ("_cut", np.array([1], dtype=np.uint32))]
)
def test_what_was_changed_after_it_was_made_is_refused(attribute: str, put: object) -> None:
    """A built-in randomizer whose thresholds were replaced is not what its parameters make, though
    it is equal to it; before and after it was verified."""
    right, wrong = BinaryRR(1.0), BinaryRR(1.0)
    verify(right)
    object.__setattr__(wrong, attribute, put)
    assert wrong == right
    with pytest.raises(RefusedError, match=f"changed after it was made: {attribute}"):
        verify(wrong)
    right.private_report(1)
    object.__setattr__(right, "epsilon", 0.5)
    with pytest.raises(RefusedError, match="changed after it was made: _cut, flip"):
        verify(right)


class Counting(BinaryRR):  # right, and counts how often one is made
    name: ClassVar[str] = "counting"
    times: ClassVar[list[int]] = [0]

    def prepare(self) -> None:
        super().prepare()
        self.times[0] += 1


def test_a_randomizer_is_audited_once() -> None:
    """The verdict is kept by class, name and parameters: another one with the same is not audited
    again."""
    before = _verdict.cache_info().misses
    for _ in range(5):
        verify(Counting(1.0))
    assert _verdict.cache_info().misses == before + 1
    verify(Counting(2.0))
    assert _verdict.cache_info().misses == before + 2


def test_every_tier_and_client_asks_the_same_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(vars(home)["verify"] is verify for home in (verified, client, helper))

    def closed(*anything: Any) -> None:
        raise RefusedError("unverifiable", "closed")

    for home in (client, verified):
        monkeypatch.setattr(home, "verify", closed)
    (refusal,) = role(yes_records(3)).handle(request(survey_query(3)))
    assert isinstance(refusal, Refusal)
    assert (refusal.code, refusal.text) == (
        "unverifiable",
        reason("unverifiable", request(survey_query(3))),
    )
    with pytest.raises(RefusedError, match="closed"):
        Verified(None, False).check((survey_query(3),))


def test_the_first_randomizers_are_verified_before_the_fork(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those from outside are named to the helper, once each, and its children find their verdict;
    what is refused waits for a client to say so."""
    for kind in (Counting, Teller):
        monkeypatch.setitem(RANDOMIZERS._classes, kind.name, kind)
    before = _verdict.cache_info().misses
    helper.verify_first(
        packed([BinaryRR(1.0), Counting(3.0), Counting(3.0), BinaryRR(0.5), Teller(1.0, k=2)])
    )
    assert _verdict.cache_info().misses == before + 2
    verify(Counting(3.0))
    assert _verdict.cache_info().misses == before + 2


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plugin_site(tmp_path_factory)


@pytest.fixture
def installed(site: Path) -> Iterator[None]:
    with plugged_in(site):
        yield


def test_it_is_found_through_its_entry_point(site: Path) -> None:
    """Randomizer, query and protocol of the package are listed and described alike once it is
    installed, and not before."""
    path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(site)]))
    for kind, name in (
        ("randomizers", "coin-rr"),
        ("queries", "multiple"),
        ("protocols", "coin-multiples"),
    ):
        assert name not in local_dp(kind).stdout
        with plugged_in(site):
            assert name in local_dp(kind).stdout
    with plugged_in(site):
        assert "a multiple of" in local_dp("describe", "multiple").stdout
    assert (
        "Multiples of this are counted"
        in in_a_process("run", "coin-multiples", "--help", PYTHONPATH=path).stdout
    )


UNANNOTATED = """
from coin_survey import CoinMultiples

class Unannotated(CoinMultiples):
    name = "unannotated"

    def algorithm(self, epsilon, clients):
        return super().algorithm(epsilon, clients)
"""


@pytest.mark.usefixtures("installed")
def test_a_protocol_without_a_return_annotation_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list shows all others and one line about it; asked for by name it is refused by that
    line, with no traceback."""
    (tmp_path / "unannotated.py").write_text(UNANNOTATED)
    # undone here: the packages leave the path after this module does
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        patch.setitem(
            PROTOCOLS._points,
            "unannotated",
            EntryPoint("unannotated", "unannotated:Unannotated", PROTOCOLS.group),
        )
        lines = local_dp("protocols")
        assert (lines.returncode, lines.stderr) == (0, "")
        assert "survey" in lines.stdout
        assert "unannotated:Unannotated cannot be used as a protocol" in " ".join(
            lines.stdout.split()
        )
        for words in (["describe", "unannotated"], ["run", "unannotated"]):
            refusal = local_dp(*words)
            assert refusal.returncode != 0
            assert "annotate it" in " ".join(refusal.stderr.split())
            assert "Traceback" not in refusal.stderr
        assert local_dp("run", "--help").returncode == 0


@pytest.mark.parametrize(
    ("home", "words"),
    [
        ("tests.randomizers.test_plugin:Teller", "is named 'teller'"),
        ("math:pi", "is no class derived from Randomizer"),
    ],
)
def test_an_entry_point_and_its_class_have_one_name(
    home: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        RANDOMIZERS._points, "other-key", EntryPoint("other-key", home, RANDOMIZERS.group)
    )
    with pytest.raises(RefusedError, match=f"{words}.*entry point 'other-key'"):
        RANDOMIZERS["other-key"]


@pytest.mark.usefixtures("installed")
def test_a_query_that_does_not_conform_is_told_why() -> None:
    multiple = QUERIES.build("multiple", {"column": "die", "of": 3})
    records, kind = Records({"die": np.arange(-5, 40)}), type(multiple)
    conform_query(multiple, records)
    faults: dict[str, Callable[..., Any]] = {
        "depends on others": lambda self, records: np.roll(kind.__call__(self, records), 1),
        "some of its values are not in the symbols 0 to 1": (
            lambda self, records: 2 * kind.__call__(self, records)
        ),
    }
    for fault, call in faults.items():
        with pytest.raises(AssertionError, match=fault):
            conform_query(type("Wrong", (kind,), {"__call__": call})("die", 3), records)
    with pytest.raises(InputError, match=r"this one is a Multiple; write \(query,\)"):
        Game(Nonadaptive(multiple, len))  # type: ignore[arg-type]


def check_fault(fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        conform_protocol(PROTOCOLS["coin-multiples"](), clients=500)


@pytest.mark.usefixtures("installed")
def test_a_protocol_that_does_not_conform_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = PROTOCOLS["coin-multiples"]
    algorithm = protocol.algorithm
    conform_protocol(protocol(), clients=500)
    with monkeypatch.context() as patch:
        patch.delattr(protocol, "describe")
        conform_protocol(protocol(), clients=500)
        assert "\nestimate  " in local_dp("run", "coin-multiples", "--clients", "500").stdout
        patch.setattr(protocol, "describe", lambda self, result: {"share": 0.5})
        check_fault("describe a hypothesis")
    with monkeypatch.context() as patch:
        patch.setattr(protocol, "truth", lambda self, population: 0.5)
        check_fault("is a float; give an array")
        patch.delitem(RANDOMIZERS._points, "coin-rr")
        check_fault("clients know no randomizer 'coin-rr'; install it")

        @wraps(algorithm)
        def ask_one_more(self: Any, epsilon: float, clients: int) -> Any:
            return algorithm(self, epsilon, clients + 1)

        patch.setattr(protocol, "algorithm", ask_one_more)
        check_fault("asks client 500, and its 500 clients are 0 to 499")
    monkeypatch.setattr(protocol, "true_error", lambda self, result, population: float("inf"))
    check_fault("its error")


@wrong(
    "local_dp.conformance:conform_intervals",
    "worst >= least",
    "worst >= 0",
    "a protocol conforms whose intervals miss the truth more often than they say",
)
@pytest.mark.usefixtures("installed")
def test_intervals_that_are_too_short_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol = PROTOCOLS["coin-multiples"]
    describe = protocol.describe

    def halve(self: LocalProtocol[Any], result: Any) -> dict[str, Any]:
        data = describe(self, result)
        low, high = data["interval"]
        return data | {"interval": [(3 * low + high) / 4, (low + 3 * high) / 4]}

    monkeypatch.setattr(protocol, "describe", halve)
    check_fault(r"an interval of 95 % contains the truth in \d+ of 100 runs; by chance")
    conform_protocol(protocol(), clients=500, runs=0)
    monkeypatch.setattr(protocol, "uncovered", "a reason", raising=False)
    conform_protocol(protocol(), clients=500)


RUNS = {
    "survey": ["--randomizer", "coin-rr"],
    "coin-multiples": ["--of", "2"],
    "frequency": ["--randomizer", "local-hash", "--k", "1024"],  # a hash under a 64-bit public seed
    "histogram": ["--randomizer", "optimised-unary", "--bins", "1024"],  # packed bits
}


@pytest.mark.slow(only=("frequency",))
@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize("protocol", short(RUNS, lambda protocol: protocol == "coin-multiples"))
def test_it_runs_in_every_per_client_tier(protocol: str) -> None:
    """Processes, hosts and population give identical reports with the package's randomizers, its
    query and its protocol."""
    digests = set()
    for tier in ("processes", "hosts", "population"):
        words = f"run {protocol} --clients 8 --seed 4 --tier {tier} --json"
        done = local_dp(*words.split(), *RUNS[protocol])
        assert done.returncode == 0, done.stderr
        data = json.loads(done.stdout)
        assert data["clients"]["answered"] == 8
        digests.add((data["rounds"][0]["digest"], str(data["result"]["estimate"])))
    assert len(digests) == 1


@pytest.mark.usefixtures("installed", "warm")
def test_a_tally_without_a_law_is_not_drawn() -> None:
    """The aggregate tier refuses a randomizer whose tally has no closed law here, in one line that
    names the tier to use."""
    words = "run frequency --randomizer local-hash --clients 30 --tier aggregate"
    done = local_dp(*words.split())
    assert done.returncode == 4
    assert "use --tier population" in done.stderr


@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize(("arguments", "words"), [
    (["--randomizer", "coin-rr", "--allow", "binary-rr,grr"], "not on this client's list"),
    (["--randomizer", "leaky-rr"], "leaky-rr failed the verification"),
], ids=["not allowed", "leaks"])  # fmt: skip
@pytest.mark.parametrize("tier", short(["processes", "hosts"], lambda tier: tier == "hosts"))
def test_clients_refuse_what_they_do_not_allow_or_cannot_verify(
    tier: str, arguments: list[str], words: str
) -> None:
    """Clients whose list lacks the randomizer, or that find it spends more than it claims, refuse:
    exit code 4."""
    done = local_dp("run", "survey", "--clients", "20", "--tier", tier, *arguments)
    assert done.returncode == 4
    assert words in done.stderr


@wrong(
    "local_dp.simulation.execute:Verified.check",
    "not self.anyway",
    "False",
    "a randomizer that spends more than it says is simulated as if it were private",
    at="population",
)
@pytest.mark.usefixtures("installed", "warm")
@pytest.mark.parametrize(
    "tier", short(["population", "aggregate"], lambda tier: tier == "population")
)
def test_a_simulation_refuses_a_leak_unless_told_otherwise(tier: str) -> None:
    """In memory a randomizer that spends more than it claims is refused as clients would; with
    --unverified it runs, and the result says so."""

    def run(name: str, *more: str) -> Done:
        words = f"run survey --randomizer {name} --clients 200 --seed 1 --tier {tier}"
        return local_dp(*words.split(), *more)

    done = run("leaky-rr")
    assert done.returncode == 4
    assert "claims epsilon 1 but its channel has 2" in done.stderr
    loud = run("leaky-rr", "--unverified")
    assert loud.returncode == 0, loud.stderr
    assert "NOT PRIVATE AS STATED" in loud.stdout
    data = json.loads(run("leaky-rr", "--unverified", "--json").stdout)
    assert "its channel has 2" in " ".join(data["unverified"])
    assert "NOT PRIVATE" not in run("coin-rr", "--unverified").stdout
    refusal = run("coin-rr", "--allow", "binary-rr")
    assert (refusal.returncode, "not on the clients' list" in refusal.stderr) == (4, True)


def test_real_clients_refuse_whoever_asks() -> None:
    """--unverified is for simulations in memory: with clients of their own, or in private, it is
    refused before the run."""
    for more in (["--tier", "hosts"], ["--tier", "population", "--private"]):
        done = local_dp("run", "survey", "--unverified", *more)
        assert (done.returncode, "leave out unverified" in done.stderr) == (2, True), done.stderr
