"""The figure of an acceptance test, in one form: `python -m pytest -s` shows it."""


def figure(number: int | str, text: str) -> None:
    """Prints the figure of test `number`, or of a class of weakness, such as "class 4"."""
    print(f"{number if isinstance(number, str) else f'test {number}'}: {text}")
