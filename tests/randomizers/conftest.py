"""What tests of randomizers share."""

import pytest

from local_dp.verification import sampler


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samplers are enumerated over shorter words, by the same check: their weights are exact at any width. The long runs take the widest."""
    monkeypatch.setattr(sampler, "MAX_WORK", 1 << 18)
    monkeypatch.setattr(sampler, "MAX_WALK", 1 << 18)
