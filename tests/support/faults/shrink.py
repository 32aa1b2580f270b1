"""The least that still goes wrong: delta debugging of a list of operations (Zeller, Hildebrandt
2002), and its form as JSON."""

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.faults.world import Operation


def shrunk(
    operations: list[Operation], fails: Callable[[list[Operation]], bool]
) -> list[Operation]:
    """A part of `operations`, in order, that fails and does not if any one operation is left out.
    `operations` must fail."""
    size = len(operations) // 2
    while size:
        start = 0
        while start < len(operations):
            left = operations[:start] + operations[start + size :]
            if fails(left):
                operations = left
            else:
                start += size
        size = size // 2 if size > 1 else 0
    again = [operations[:place] + operations[place + 1 :] for place in range(len(operations))]
    return next((shrunk(left, fails) for left in again if fails(left)), operations)


def save(path: Path, twin: str, seed: int, operations: list[Operation]) -> None:
    """Keeps a reproduction: the wrong twin, the seed it was found at, and the operations that show
    it."""
    lines = ",\n".join(f"  {json.dumps(operation)}" for operation in operations)
    path.write_text(
        f'{{"twin": {json.dumps(twin)}, "seed": {seed}, "operations": [\n{lines}\n]}}\n'
    )


def load(path: Path) -> tuple[str, int, list[Operation]]:
    """The wrong twin, the seed and the operations of a reproduction."""
    data = json.loads(path.read_text())
    return (
        data["twin"],
        data["seed"],
        [(name, first, second) for name, first, second in data["operations"]],
    )
