"""Measures an experiment before a test breaks anything, so that each test can run alone."""

import pytest

from tests.support.runs.quick import Quick


@pytest.fixture(autouse=True)
def _right_first(request: pytest.FixtureRequest) -> None:
    for value in vars(request.module).values():
        if isinstance(value, Quick) and request.node.get_closest_marker("long"):
            value.all_right()
