"""`python -m tests.support.faults`: finds and shrinks again what catches each wrong twin, and saves
it: after a change of the roles or of the operations."""

from pathlib import Path

from tests.support.faults.shrink import save, shrunk
from tests.support.faults.twins import TWINS
from tests.support.faults.world import fault, searched

SAVED = Path(__file__).parent / "saved"

for name, twin in TWINS.items():
    found = searched(range(1000), twin)
    if found is None:
        print(f"{name}: survives")
        continue
    seed, operations, _ = found
    least = shrunk(operations, lambda left, seed=seed, twin=twin: bool(fault(seed, left, twin)))  # type: ignore[misc]
    save(SAVED / f"{name.replace(' ', '-').replace(chr(39), '')}.json", name, seed, least)
    print(f"{name}: seed {seed}, {len(least)} operations: {fault(seed, least, twin)}")
