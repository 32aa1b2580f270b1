"""What is laid together before the first fork: the same functions, in other places."""

from types import CodeType

from clients.pages import together


def _outer(count: int) -> list[int]:
    def within(number: int) -> int:
        return _inner(number)

    return list(map(within, range(count)))


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
    (new,), (old,) = ([each for each in code.co_consts if isinstance(each, CodeType)] for code in (after[0], before[0]))
    assert new is not old
