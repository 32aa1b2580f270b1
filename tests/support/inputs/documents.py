"""The documents of the project as text: their blocks, and the commands that are typed in them."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
TUTORIALS = tuple(sorted((ROOT / "docs" / "tutorials").glob("*.md")))
DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path not in TUTORIALS),
    *TUTORIALS,
)


def fenced(text: str) -> list[tuple[str, str]]:
    """The fenced blocks, in order: language and body."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Typed:
    """A command of a document, as it is typed, and the lines that are shown after it."""

    command: str
    output: tuple[str, ...] = ()


def blocks(document: Path, *languages: str) -> list[str]:
    """The fenced blocks in these languages, in order."""
    return [body for language, body in fenced(document.read_text()) if language in languages]


def typed(document: Path) -> Iterator[Typed]:
    """Every command of a document's shell blocks; `&&` joins several, a prompt sets commands off
    from what they show, a backslash goes on."""
    for block in blocks(document, "sh", "console"):
        yield from typed_in(block)


def typed_in(block: str) -> Iterator[Typed]:
    lines = block.replace("\\\n", " ").splitlines()
    has_prompt = any(line.startswith("$ ") for line in lines)
    for place, line in enumerate(lines):
        if has_prompt and not line.startswith("$ "):
            continue
        after = lines[place + 1 :]
        stop = next(
            (there for there, later in enumerate(after) if later.startswith("$ ")), len(after)
        )
        output = tuple(filter(None, after[:stop])) if has_prompt else ()
        for command in line.removeprefix("$ ").split("#")[0].split(" && "):
            if command.strip():
                yield Typed(re.sub(r"\s+", " ", command.strip()), output)


def perform(
    command: str, folder: Path, seconds: float = 300, **environment: str
) -> subprocess.CompletedProcess[str]:
    """A `local-dp` command of a document, in a folder of its own, with this interpreter."""
    program, *arguments = shlex.split(command)
    assert program in (".venv/bin/local-dp", "local-dp"), (
        f"{command}: neither local-dp nor among the commands that are skipped"
    )
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), environment.pop("PYTHONPATH", "")))),
        **environment,
    }
    words = [sys.executable, "-P", "-m", "local_dp", *arguments]
    return subprocess.run(
        words,
        cwd=folder,
        env=surroundings,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
