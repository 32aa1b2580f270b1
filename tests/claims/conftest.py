"""What an experiment measures as it is right is measured before a test breaks anything, whichever test is run alone."""

import pytest

from tests.support.runs.quick import Quick


@pytest.fixture(autouse=True)
def _right_first(request: pytest.FixtureRequest) -> None:
    for held in vars(request.module).values():
        if isinstance(held, Quick):
            held.all_right()
