"""The acceptance run: what was promised, test by test, each with its figure; and the table of
docs/security.md, which lists them.

The tests of a number are those that its row names; each tells `figure(N, ...)` or prints "test N:
...".
"""

import argparse
import re
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
BRIEF = 80  # characters of figures in a row
TOLD = re.compile(r"(test (\d+)|class \d+): (.*)")  # a figure, as it is printed
PATIENCE = 5400.0  # seconds for one number


@dataclass(frozen=True)
class Row:
    """A line of the table: the promises and the claim of a number, the tests that ran, and their
    figures."""

    number: str
    promises: str
    claim: str
    tests: str
    figure: str

    def __str__(self) -> str:
        return f"| {self.number} | {self.promises} | {self.claim} | {self.tests} | {self.figure} |"


def named_in(where: str) -> list[str]:
    """The node ids of the tests that a row names."""
    return [
        f"tests/{file}::{name}"
        for file, names in re.findall(r"`(\S+): ([^`]*)`", where)
        for name in names.split(", ")
    ]


def run(row: Row) -> tuple[Row | None, str]:
    """Runs the tests that a row names: the row with their figures if they passed, and what is to be
    told."""
    number, started = row.number, time.monotonic()
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-s",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-m",
        "slow or not slow",
        *named_in(row.tests),
    ]
    try:
        done = subprocess.run(
            words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"{number}: FAILED: not over in {PATIENCE:.0f} s"
    told = (TOLD.match(line.lstrip(".sxX")) for line in done.stdout.splitlines())
    longest = {
        re.sub(r"[\d.,]+", "", found[3]): found[3]
        for found in told
        if found and (found[2] or found[1]) == number
    }  # of two forms of a test the last
    figures = "; ".join(longest.values())
    took = f"{time.monotonic() - started:.0f} s"
    if done.returncode != 0 or not figures:
        said = done.stdout.strip().splitlines()
        return (
            None,
            (
                f"{number}: {'SKIPPED' if done.returncode == 0 else 'FAILED'} after {took}: "
                f"{said[-1] if said else done.stderr.strip()[-200:]}"
            ),
        )
    return replace(row, figure=brief(figures).replace("|", "\\|")), f"{number}: {figures} ({took})"


def brief(figures: str) -> str:
    """The first figures, as many as a row of the page takes."""
    parts = figures.split("; ")
    return "; ".join(
        part
        for place, part in enumerate(parts)
        if place == 0 or len("; ".join(parts[: place + 1])) <= BRIEF
    )


def rows(page: Path = PAGE) -> dict[str, Row]:
    """The rows that a page holds."""
    found = re.findall(
        r"^\| ((?:class )?\d+) \| (P[^|]*) \| ([^|]*) \| ([^|]*) \| (.*) \|$",
        page.read_text(),
        re.MULTILINE,
    )
    return {row[0]: Row(*row) for row in found}


def write(new: Row, page: Path = PAGE) -> None:
    """Puts a row with its new figure in the place of the old one."""
    page.write_text(page.read_text().replace(str(rows(page)[new.number]), str(new)))


def main() -> int:
    """Runs the numbers asked for, or all; 0 if each passed with a figure."""
    parser = argparse.ArgumentParser(
        prog="scripts/acceptance",
        description="Runs the acceptance tests in their long forms, each telling its figure.",
    )
    parser.add_argument(
        "number",
        nargs="*",
        help="a test, as 12, or a class of weakness, as class4; without any, all",
    )
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/security.md"
    )
    arguments = parser.parse_args()
    there, whole = rows(), True
    asked = [re.sub(r"^class(?=\d)", "class ", number) for number in arguments.number] or list(
        there
    )
    unknown = [number for number in asked if number not in there]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(there)}")
    for number in asked:
        row, told = run(there[number])
        print(told, flush=True)
        whole &= row is not None
        if row is not None and arguments.write:
            write(row)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
