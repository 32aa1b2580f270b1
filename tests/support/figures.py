"""The figure of an acceptance test, in the one form that `scripts/acceptance` reads."""


def figure(number: int | str, text: str) -> None:
    """Tells the figure of test `number` of the list in `tests/support/acceptance.py`; of a class of
    weakness, "class 4"."""
    print(f"{number if isinstance(number, str) else f'test {number}'}: {text}")
