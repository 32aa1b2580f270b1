"""Plug-ins as files: those in examples/plugins, run as a user runs them, and what is refused."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import local_dp as ldp
from local_dp.conformance import conform_mechanism
from local_dp.curator.mechanism import SmallDatabases
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Pure
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.registry import load
from tests.support.inputs.refusals import refuse
from tests.support.long import short
from tests.support.runs.command import local_dp
from tests.support.wrong import wrong

FOLDER = Path(__file__).parents[2] / "examples" / "plugins"


RUNS = {
    "shrug": f"survey --randomizer {FOLDER}/shrug.py:Shrug(share=0.1)",
    "diary": f"survey --randomizer {FOLDER}/diary.py",
    "two_rounds": f"{FOLDER}/two_rounds.py --width 2",
}


@wrong(
    "local_dp.simulation.over_bus:_plug_ins",
    "module in PLUG_INS",
    "False",
    "client processes lack the plug-ins of the command that starts them",
    at="shrug",
)
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("name", short(RUNS, lambda name: name == "two_rounds"))
def test_a_file_runs_in_every_tier(name: str) -> None:
    """Its randomizers, its query and its protocol: processes, hosts and population give the same
    reports, and the aggregate tier a result."""
    digests = set()
    for tier in ("population", "hosts", "processes", "aggregate"):
        words = f"run {RUNS[name]} --clients 8 --seed 4 --tier {tier} --json"
        done = local_dp(*words.split())
        assert done.returncode == 0, done.stderr
        rounds = json.loads(done.stdout)["rounds"]
        if tier != "aggregate":
            digests.add(tuple(each["digest"] for each in rounds))
    assert len(digests) == 1


def test_a_continuous_randomizer_is_simulated_and_audited() -> None:
    """Its mean is within five standard errors (but 6e-7); clients do not take such evidence."""
    place = f"{FOLDER}/float_laplace.py"
    run = f"run mean --randomizer {place} --seed 1 --json"
    assert "the loss of float-laplace is density" in local_dp(*run.split()).stderr
    result = json.loads(local_dp(*run.split(), "--unverified").stdout)["result"]
    assert abs(result["estimate"] - result["truth"]) < 5 * result["standard_error"]
    assert "epsilon 1: no fault was found" in local_dp("audit", place).stdout


def test_python_takes_any_form() -> None:
    """An object, a class, a file and a module, with parameters or without, are the same
    randomizer; an object of another epsilon than the clients' is refused."""
    kind = RANDOMIZERS.resolve(f"{FOLDER}/shrug.py")[0]
    forms = (kind(1.0), kind, f"{FOLDER}/shrug.py", f"{FOLDER}/shrug.py:Shrug(share=0.25)", "shrug")
    results = [ldp.run("survey", clients=2000, seed=1, randomizer=form) for form in forms]
    assert len({json.dumps(each.to_dict()["rounds"][0]["digest"]) for each in results}) == 1
    # an estimate of the ones alone, where both shares are asked for
    assert len(ldp.run("frequency", clients=2000, k=2, randomizer=f"{FOLDER}/diary.py").value) == 2
    run = partial(ldp.run, clients=4000)
    refuse(
        ("has epsilon 2", lambda: run("survey", randomizer=kind(2.0))),
        ("'shar'; did you mean 'share'", lambda: run("survey", randomizer="shrug(shar=0.1)")),
        ("takes the symbols 0 to 1", lambda: run("frequency", k=3, randomizer=kind)),
    )


def test_a_class_without_a_file_stays_in_this_process() -> None:
    """It is simulated here, and over a bus one line says to put it into a file."""

    @dataclass(frozen=True)
    class Local(BinaryRR):
        name: ClassVar[str] = "local"

    assert ldp.run("survey", clients=2000, seed=1, randomizer=Local).value > 0
    with pytest.raises(InputError, match="put it into a file, or use tier population"):
        ldp.run("survey", clients=2000, seed=1, randomizer=Local, tier="hosts")


BROKEN = {
    "x.astype(np.int64)": "some of its values are not in the symbols 0 to 1",
    "np.roll(x > 9, 1).view(np.uint8)": "the value of a record depends on others",
    "(x > x.mean()).view(np.uint8)": "the value of a record depends on others",
    "np.random.randint(0, 2, len(x))": "asked again, it answers otherwise",
    "(x > 9) * 1.0": "64 records gave float64 values of shape (64,); give whole numbers",
    "np.array([1])": "64 records gave int64 values of shape (1,)",
    "int(f'cell {x[0]}')": "fails with ValueError in line",
}


@wrong(
    "local_dp.simulation.execute:check_asked",
    "fault := fault_of(query.query, records)",
    "fault := ''",
    "a query whose values are clipped, or depend on others, gives a wrong estimate in silence",
    at="x.astype(np.int64)",
)
@pytest.mark.parametrize("value", BROKEN)
def test_a_query_that_breaks_its_promise_is_one_line(value: str, tmp_path: Path) -> None:
    text, right = (FOLDER / "two_rounds.py").read_text(), 'Question(f"number >= {'
    assert right in text
    text = (
        text.replace(right, 'Broken(f"number >= {').replace("MedianQuarter", "Quarter")
        + f"""

class Broken(Question):
    name = "broken-{len(value)}"

    def __call__(self, records):
        x = records["number"]
        return {value}
"""
    )
    file = tmp_path / f"broken_{list(BROKEN).index(value)}.py"
    file.write_text(text)
    done = local_dp(*f"run {file} --clients 400 --seed 1".split())
    assert (done.returncode, BROKEN[value] in done.stderr) == (2, True), done.stderr
    assert "cell" not in done.stderr


@wrong(
    "local_dp.conformance:conform_mechanism",
    "worst <= Fraction(loss.atto, ATTO)",
    "True",
    "a mechanism conforms that loses more than it says",
)
def test_a_majority_conforms() -> None:
    """Exactly, over all databases of five records; one that says half of its loss, and one that
    always says yes, are told why."""
    load(str(FOLDER / "majority.py"))
    import majority  # type: ignore[import-not-found]

    class Half(majority.NoisyMajority):  # type: ignore[misc]
        loss = Pure(5 * 10**8)

    class Always(majority.NoisyMajority):  # type: ignore[misc]
        def release(self, database: int, draws: Draws) -> bool:
            return True

    databases = SmallDatabases(((-1,), (1,)), 5, lambda rows: sum(sign for (sign,) in rows))
    conform_mechanism(majority.NoisyMajority(1.0), databases)
    with pytest.raises(AssertionError, match="Half: on two neighbours it needs a delta"):
        conform_mechanism(Half(1.0), databases)
    with pytest.raises(AssertionError, match="Always: of 2000 releases 0 are False, where"):
        conform_mechanism(Always(1.0), databases)


def test_a_question_of_a_file_is_asked(tmp_path: Path) -> None:
    """On the command line and in Python."""
    table = {"kids": np.arange(300) % 3}
    (tmp_path / "t.csv").write_text("kids\n" + "\n".join(map(str, table["kids"])))
    place = f"{FOLDER}/majority.py"
    done = local_dp(
        "curate", place, "--records", f"{tmp_path}/t.csv", "--question", "kids > 0", "--json"
    )
    assert json.loads(done.stdout)["result"]["rows"] == [["yes"]], done.stderr
    result = ldp.curate.ask(table, f"{place}:Majority", question="kids > 1", seed=1)
    assert result.value == "no"
    assert "majority.py (question, a plug-in)" in local_dp("describe", place).stdout


@pytest.mark.long
def test_an_experiment_of_a_file_is_run(tmp_path: Path) -> None:
    done = local_dp(*f"experiment {FOLDER}/two_models.py --seed 3 --out {tmp_path}/results".split())
    assert "two-models: shown" in done.stdout, done.stderr
    assert (tmp_path / "results" / "two-models" / "ratio.png").is_file()
