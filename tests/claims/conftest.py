"""Measures an experiment before a test breaks anything, so that each test can run alone; once for
all workers."""

import pytest

from tests.support.runs.quick import Quick
from tests.support.runs.shared import Once


@pytest.fixture(autouse=True)
def _right_first(request: pytest.FixtureRequest, once: Once) -> None:
    for name, value in vars(request.module).items():
        if isinstance(value, Quick) and (
            request.node.get_closest_marker("long") or request.node.get_closest_marker("slow")
        ):
            value.all_right(once, f"{request.module.__name__}-{name}")
