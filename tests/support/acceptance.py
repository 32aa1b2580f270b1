"""The acceptance run: what was promised, test by test, each with its figure; and the table of docs/security.md, which it writes.

The tests of a number are those that its row names; each tells `figure(N, ...)` or prints "test N: ...".
"""

import argparse
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
BRIEF = 80  # characters of figures in a row
BEGIN, END = "<!-- scripts/acceptance writes this block -->", "<!-- the end of what it writes -->"
TOLD = re.compile(r"(test (\d+)|class \d+): (.*)")  # a figure, as it is printed
PATIENCE = 5400.0  # seconds for one number

CLAIMS = {  # number: the promises of docs/security.md that it holds to account, and what it claims
    "1": ("P1 P2 P5 P6", "Random faults of every kind: no budget exceeded, no second reply, no exception"),
    "2": ("P1 P2 P5", "Ten wrong twins of client and server, each caught"),
    "3": ("P2", "The same seed gives the same run, event by event"),
    "4": ("P1 P2", "Crashes around every durable step: no uncharged and no changed reply"),
    "5": ("P2", "The same request again and again: the same bytes, one charge"),
    "6": ("P2", "The same round with another question: refused, uncharged"),
    "7": ("P1 P3", "Hostile epsilons and numbers leave the ledger as it was"),
    "8": ("P1", "New run names do not refill the budget"),
    "9": ("P1", "A budget in k rounds lasts for exactly k"),
    "10": ("P1", "A ledger that is lost, damaged, locked, read-only or without space: no reply"),
    "11": ("P4", "Two records, the same requests: the same refusals, the same lengths"),
    "12": ("P1 P3", "Built-in randomizers lose exactly what they declare"),
    "13": ("P1", "Enumerated samplers are the declared channels, as fractions"),
    "14": ("P1 P3", "A zoo of randomizers: broken ones flagged, correct ones not"),
    "15": ("P1", "Floating-point noise is refused in private mode"),
    "16": ("P1", "Noise of no two processes is alike; a private run takes no seed"),
    "17": ("P6", "Random and mutated messages: none uncaught, bounded memory, a rate"),
    "18": ("P6 P7", "Bombs: each rejected, under its own counter"),
    "19": ("P5", "Repeated, reordered and replayed reports count once"),
    "20": ("P5", "A killed server goes on, to the same result"),
    "21": ("P5", "A killed broker loses no accepted report"),
    "22": ("P5", "A server that stands still loses no report"),
    "23": ("P7", "Silent and late clients: closed at the deadline, counted, and the error is that of those who answered"),
    "24": ("P5 P6", "The shipped broker configuration keeps forgers and listeners out"),
    "25": ("P5", "A proxy that rewrites is found out by the signatures"),
    "26": ("P7", "Poisoned reports: flagged, or within the stated bound"),
    "27": ("P6", "A flood from one client does not hold up the others"),
    "28": ("P5 P7", "After a run, the server's account and the clients' agree"),
    "29": ("P1 P2 P5 P6 P7", "A long run over a bad network"),
    "class 1": ("P4", "The record shows in no time, warning or word"),
    "class 2": ("P4", "A private run publishes no record"),
    "class 3": ("P5", "No hello takes clients that are not its own"),
    "class 4": ("P6", "A stranger neither stalls the server nor disables a client"),
    "class 5": ("P4", "No refusal depends on the record"),
    "class 6": ("P5 P6", "Nobody on the broker speaks for another"),
    "class 7": ("P7", "A result says private only where every member attests it"),
    "class 8": ("P6", "A closed connection is no wrong password"),
    "class 9": ("P6", "No process and no folder is left behind"),
    "class 10": ("P7", "Selective dropping is within the influence bound"),
    "class 11": ("P6 P7", "The server's bookkeeping is linear, and cannot be forged"),
    "class 12": ("P6", "The command line ends with a line, never a traceback"),
    "class 13": ("P1 P2", "Old words never meet new records, and entries of a store belong to people"),
    "class 14": ("P4", "The record shows neither in time nor in memory"),
    "class 15": ("P4", "A private curator refuses by the schema and never by a value; a person's rows are protected together"),
    "class 16": ("P6", "Strangers without a password end no run, and nothing is kept of them"),
    "class 17": ("P1", "A budget file that is damaged, deleted, older or copied is refused"),
    "class 18": ("P8", "Text of a table or a file is text everywhere, and a malformed file is a line"),
    "class 19": ("P7", "A result whose reports were lost by choice says so in every form"),
    "class 20": ("P1 P2 P5", "Every role killed at any moment: nothing counted twice, lost or released unpaid"),
    "class 21": ("P4", "Vectors, sets of labels and strings of heavy hitters show neither in time nor in memory"),
    "class 22": ("P1 P2 P5", "A client or its copy on two connections counts once, pays once, and what differs is flagged"),
    "class 23": ("P1 P6", "10,000 rounds of a server: the last cost what the first did, and the budget is exact"),
}


@dataclass(frozen=True)
class Row:
    """A line of the table: the promises and the claim of a number, the tests that ran, and their figures."""

    number: str
    promises: str
    claim: str
    tests: str
    figure: str

    def __str__(self) -> str:
        return f"| {self.number} | {self.promises} | {self.claim} | {self.tests} | {self.figure} |"


def named_in(where: str) -> list[str]:
    """The node ids of the tests that a row names."""
    return [f"tests/{file}::{name}" for file, names in re.findall(r"`(\S+): ([^`]*)`", where) for name in names.split(", ")]


def run(number: str, where: str) -> tuple[Row | None, str]:
    """Runs the tests of a number, which its row names: the row with their figures if they passed, and what is to be told."""
    started = time.monotonic()
    words = [sys.executable, "-m", "pytest", "-q", "-s", "-n", "0", "-p", "no:cacheprovider", "-m", "slow or not slow", *named_in(where)]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return None, f"{number}: FAILED: not over in {PATIENCE:.0f} s"
    told = (TOLD.match(line.lstrip(".sxX")) for line in done.stdout.splitlines())
    longest = {re.sub(r"[\d.,]+", "", found[3]): found[3] for found in told if found and (found[2] or found[1]) == number}  # of two forms of a test the last
    figures = "; ".join(longest.values())
    took = f"{time.monotonic() - started:.0f} s"
    if done.returncode != 0 or not figures:
        said = done.stdout.strip().splitlines()
        return None, f"{number}: {'SKIPPED' if done.returncode == 0 else 'FAILED'} after {took}: {said[-1] if said else done.stderr.strip()[-200:]}"
    return Row(number, *CLAIMS[number], where, brief(figures).replace("|", "\\|")), f"{number}: {figures} ({took})"


def brief(figures: str) -> str:
    """The first figures, as many as a row of the page takes."""
    parts = figures.split("; ")
    return "; ".join(part for place, part in enumerate(parts) if place == 0 or len("; ".join(parts[: place + 1])) <= BRIEF)


def rows(page: Path = PAGE) -> dict[str, Row]:
    """The rows that a page holds."""
    found = re.findall(r"^\| ((?:class )?\d+) \| (P[^|]*) \| ([^|]*) \| ([^|]*) \| (.*) \|$", page.read_text(), re.MULTILINE)
    return {row[0]: Row(*row) for row in found}


def write(new: dict[str, Row], page: Path = PAGE) -> None:
    """Puts new rows in the page's block, in the list's order; the others stay."""
    kept = {**rows(page), **new}
    lines = ["| test | promise | claim | where | figure |", "|---|---|---|---|---|", *(str(kept[number]) for number in CLAIMS if number in kept)]
    before, _, rest = page.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}")


def main() -> int:
    """Runs the numbers asked for, or all; 0 if each passed with a figure."""
    parser = argparse.ArgumentParser(prog="scripts/acceptance", description="Runs the acceptance tests in their long forms, each telling its figure.")
    parser.add_argument("number", nargs="*", help="a test, as 12, or a class of weakness, as class4; without any, all")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/security.md")
    arguments = parser.parse_args()
    asked = [re.sub(r"^class(?=\d)", "class ", number) for number in arguments.number] or list(CLAIMS)
    unknown = [number for number in asked if number not in CLAIMS]
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}; choose from {', '.join(CLAIMS)}")
    there, passed, whole = rows(), dict[str, Row](), True
    for number in asked:
        row, told = run(number, there[number].tests) if number in there else (None, f"{number}: MISSING: the page has no row")
        print(told, flush=True)
        whole &= row is not None
        if row is not None:
            passed[number] = row
    if arguments.write:
        write(passed)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
