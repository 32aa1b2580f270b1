"""The measured figures of README and docs, and the results of experiments that they come from.

A page cites `local-dp experiment NAME --SCALE --seed S`; the table after it, or `PROSE`, has its
figures. `scripts/publish DIR` runs the cited experiments, keeps their results in DIR, and writes
docs/published.json.
"""

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.inputs.documents import ROOT

PUBLISHED = ROOT / "docs" / "published.json"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
# figures in sentences and in tables that stand before their citation, by page and experiment
PROSE: dict[str, dict[str, tuple[str, ...]]] = {
    "README.md": {"masked-parity --full": ("16,515", "1,526,359", "74")},
    "docs/theory/masked-parity.md": {
        "masked-parity --full": (
            "16,515",
            "28,322",
            "3,247,436",
            "74",
            "869",
            "3,724",
            "76,347",
            "378,397",
        )
    },
}
_CITED = re.compile(
    r"`(?:\.venv/bin/)?(local-dp experiment ([\w.-]+ --(?:quick|full)) --seed \d+)`"
)
_NUMBER = re.compile(r"(?<![\w.,^])-?(?:\d{1,3}(?:,\d{3})+|\d*\.\d+|\d+)(?![\w^]|[.,]\d)")
_NEAR = 6  # lines between a citation and its table


@dataclass(frozen=True)
class Cited:
    """A figure as a page prints it, and the commands of which one measures it."""

    page: str
    text: str
    commands: tuple[str, ...]


def cited() -> list[Cited]:
    """Every figure of README and docs that a named experiment measures."""
    return list(
        dict.fromkeys(
            figure
            for page in PAGES
            for figure in _cited_on(page.relative_to(ROOT).as_posix(), page.read_text())
        )
    )


def _cited_on(page: str, text: str) -> Iterator[Cited]:
    tables: dict[str, list[str]] = {}
    for match in _CITED.finditer(text):
        command, name = match.groups()
        for figure in PROSE.get(page, {}).get(name, ()):
            yield Cited(page, figure, (command,))
        table = _table_after(text[match.end() :])
        if table:
            tables.setdefault(table, []).append(command)
    for table, commands in tables.items():
        yield from (Cited(page, figure, tuple(commands)) for figure in _NUMBER.findall(table))


def _table_after(text: str) -> str:
    """The rows of the table that follows, without the heading and the first column; empty if there
    is none near."""
    lines = text.split("\n## ", maxsplit=1)[0].splitlines()
    start = next((place for place, line in enumerate(lines[:_NEAR]) if line.startswith("|")), None)
    if start is None:
        return ""
    rows = lines[start + 2 :]
    end = next((place for place, line in enumerate(rows) if not line.startswith("|")), len(rows))
    return "\n".join("|".join(row.split("|")[2:]) for row in rows[:end])


def is_shown(text: str, value: float) -> bool:
    """Whether `text` is `value`, rounded to the digits of the text; a half may be rounded either
    way."""
    step = 10.0 ** -len(text.partition(".")[2])
    return abs(float(text.replace(",", "")) - value) <= step / 2 * (1 + 1e-9)


def values(results: Any) -> Iterator[float]:
    """Every number in the tables of an experiment's results, and in their texts."""
    for cell in (cell for table in results["tables"] for row in table["rows"] for cell in row):
        if isinstance(cell, str):
            yield from (float(number.replace(",", "")) for number in _NUMBER.findall(cell))
        elif cell is not None and math.isfinite(cell):
            yield float(cell)


@cache
def _measure(command: str, folder: Path) -> tuple[float, ...]:
    _, _, name, scale, _, seed = command.split()
    where = folder / f"{scale.strip('-')}-{seed}"
    results = where / name / "results.json"
    if not results.exists():
        subprocess.run(
            [sys.executable, "-m", "local_dp", *command.split()[1:], "--out", str(where)],
            cwd=ROOT,
            check=True,
            stdout=sys.stderr,
        )
    return tuple(values(json.loads(results.read_text())))


def publish(folder: Path) -> list[str]:
    """Writes docs/published.json from the results in a folder. Gives a line for each figure that no
    result has; then nothing is written."""
    missing, figures = [], []
    for figure in cited():
        source = next(
            (
                (command, value)
                for command in figure.commands
                for value in _measure(command, folder)
                if is_shown(figure.text, value)
            ),
            None,
        )
        if source is None:
            missing.append(
                f"{figure.page}: {figure.text} is no figure of {' or '.join(figure.commands)}"
            )
        else:
            figures.append(
                {"page": figure.page, "text": figure.text, "value": source[1], "command": source[0]}
            )
    if not missing:
        from local_dp.simulation.installation import installed_version

        lines = ",\n".join(json.dumps(figure) for figure in figures)
        PUBLISHED.write_text(f'{{"version": "{installed_version()}", "figures": [\n{lines}\n]}}\n')
    return missing


if __name__ == "__main__":
    sys.exit("\n".join(publish(Path(sys.argv[1]))) or 0)
