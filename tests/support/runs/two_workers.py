"""A Dask cluster of two workers with one thread each, on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

LOOPBACK = "127.0.0.1"


@contextmanager
def two_workers() -> Iterator[Any]:
    """The cluster; skips the test where the extra is not installed."""
    distributed = pytest.importorskip("distributed")
    near = {"host": LOOPBACK, "dashboard_address": f"{LOOPBACK}:0", "worker_dashboard_address": f"{LOOPBACK}:0"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, silence_logs=50, **near) as started:
        yield started
