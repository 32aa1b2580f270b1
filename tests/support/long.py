"""Which parameters of a test are for the long runs alone."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


def short(values: Iterable[T], keep: Callable[[T], bool], *, several: bool = False) -> list[Any]:
    """The parameters of a test: the normal suite runs those that `keep` accepts, the long runs
    the others. `several`: each value is that of several names."""
    return [
        value
        if keep(value)
        else pytest.param(*(value if several else (value,)), marks=pytest.mark.long)  # type: ignore[misc]
        for value in values
    ]
