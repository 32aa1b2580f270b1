"""`local-dp bench --stores`: rounds with stores beside rounds without, and whether they are as fast as they should be."""

import pytest

from local_dp.experiments.bench import runs as bench_stores
from local_dp.experiments.tiers.settings import EMBEDDED
from tests.support.runs.command import local_dp


def test_what_stores_cost_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round with stores beside one without, how many times as long it takes, and the verdict."""
    with_stores = {"processes": [0.13, 0.26, 0.12], "hosts": [0.15, 0.16, 0.1]}
    monkeypatch.setattr(bench_stores, "_seconds", lambda clients, tier, broker, stores: with_stores[tier].pop() if stores else 0.1)
    done = local_dp("bench", "--stores", "--processes", "7")
    assert done.returncode == 0, done.stderr
    output = " ".join(done.stdout.split())
    assert "7 client processes" in output
    assert (output.count("meets"), output.count("misses")) == (1, 1)


@pytest.mark.parametrize("stores", [False, True])
def test_a_round_is_measured(stores: bool) -> None:
    """A real one takes its time, with stores and without."""
    assert 0 < bench_stores._seconds(20, "hosts", EMBEDDED, stores) < 20
