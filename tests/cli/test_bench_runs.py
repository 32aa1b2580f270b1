"""`local-dp bench`: whole commands are measured by themselves, and client processes beside bare ones."""

import numpy as np
import pytest

from local_dp.errors import BusError
from local_dp.experiments.bench import bare_clients
from local_dp.experiments.bench import runs as bench_runs
from local_dp.experiments.bench.bare_clients import Fleet
from local_dp.experiments.tiers.settings import EMBEDDED
from tests.support.runs.brokers import free_port

_LARGE = 200 << 20  # bytes


def test_a_command_s_memory_is_not_that_of_who_measures_it() -> None:
    """A process that starts another lends it its own peak, which is none of the command's."""
    values = np.ones(_LARGE, dtype=np.uint8)
    seconds, mebibytes = bench_runs._command(["-c", "import numpy"])
    assert values.all()
    assert 0 < seconds < 60
    assert 10 < mebibytes < 100


def test_a_command_that_fails_has_no_speed() -> None:
    with pytest.raises(BusError, match=r"ended with exit code 3; run it alone to see why"):
        bench_runs._command(["-c", "raise SystemExit(3)"])


@pytest.mark.long
def test_bare_clients_join_and_answer() -> None:
    """What client processes stand beside by the embedded broker too: seconds until they are there, those of a round, and the size of one."""
    for speed in bench_runs._processes(2, EMBEDDED):
        assert speed.reference is not None, speed.what
        assert speed.reference > 0


def test_of_several_fleets_the_shortest_times_and_the_most_memory_count() -> None:
    """What took longer was disturbed; what took less memory was looked at elsewhere."""
    assert bench_runs._best([Fleet(3.0, 1.0, 5.0), Fleet(2.0, 4.0, 6.0)]) == Fleet(2.0, 1.0, 6.0)


@pytest.mark.long
def test_bare_clients_that_cannot_join_are_no_reference(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BusError, match=r"of 2 processes of aiomqtt alone some could not join the broker"):
        bare_clients.bare_clients(2, f"mqtt://127.0.0.1:{free_port()}")
    assert "2 of 2 could not join" in capfd.readouterr().err
