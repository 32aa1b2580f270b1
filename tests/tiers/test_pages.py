"""What is laid together before the first fork: the same functions, in other places."""

from types import CodeType

from clients.pages import together


def _outer(count: int) -> list[int]:
    return [_inner(number) for number in range(count)]


def _inner(number: int) -> int:
    return -number


def _other() -> None:
    """Is not run."""


def test_what_ran_is_copied_and_does_the_same() -> None:
    """With what is defined within it; and nothing else."""
    before = [each.__code__ for each in (_outer, _inner, _other)]
    with together():
        _outer(2)
    after = [each.__code__ for each in (_outer, _inner, _other)]
    assert after == before
    assert [new is old for new, old in zip(after, before, strict=True)] == [False, False, True]
    assert _outer(3) == [0, -1, -2]
    assert all(new is not old for new, old in zip(*(filter(_is_code, code.co_consts) for code in (after[0], before[0])), strict=True))


def _is_code(constant: object) -> bool:
    return isinstance(constant, CodeType)
