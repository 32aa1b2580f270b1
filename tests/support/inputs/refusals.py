"""Bad input: each call is refused in one line."""

from collections.abc import Callable

import pytest

from local_dp.errors import InputError


def refuse(*cases: tuple[str, Callable[[], object]]) -> None:
    """Each call raises InputError with a message that contains the word, a regular expression."""
    for word, call in cases:
        with pytest.raises(InputError, match=word):
            call()
