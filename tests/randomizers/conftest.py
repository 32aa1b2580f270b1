"""What tests of randomizers share."""

import pytest

from local_dp.verification import behaviour, sampler


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same checks over shorter words, at any width of which weights are exact, and over fewer
    inputs. The long runs take them all."""
    monkeypatch.setattr(sampler, "MAX_WORK", 1 << 18)
    monkeypatch.setattr(sampler, "MAX_WALK", 1 << 18)
    monkeypatch.setattr(behaviour, "VALUES", 256)
    monkeypatch.setattr(behaviour, "REPEATED", 32)
