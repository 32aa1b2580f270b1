"""The figure of an acceptance test: printed, and kept where `scripts/acceptance` says."""

import json
import os
from pathlib import Path

KEPT = "ACCEPTANCE_FIGURES"  # names the file that figures are added to, a line of JSON each


def figure(number: int | str, text: str) -> None:
    """Tells the figure of test `number` of the list in `tests/support/acceptance.py`; of a class of weakness, "class 4"."""
    print(f"{number if isinstance(number, str) else f'test {number}'}: {text}")
    kept = os.environ.get(KEPT)
    if kept:
        test = os.environ.get("PYTEST_CURRENT_TEST", "").split(" ")[0].split("[")[0]
        with Path(kept).open("a") as file:
            file.write(json.dumps({"number": str(number), "text": text, "test": test}) + "\n")
