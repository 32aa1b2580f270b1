"""The mutation run: wrong twins of the source, chosen by hand, each applied to a copy of the tree and caught by the tests it names.

The twins of a theme stand beside its tests, in `mutants.toml`. Those marked `first` guard privacy and budgets; continuous integration runs them.

The checkout is never touched. Before anything is changed, the named tests must pass and the named experiments must be shown: otherwise nothing is proven.
"""

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import SimpleQueue
from typing import Any

ROOT = Path(__file__).parents[2]
LISTS = sorted((ROOT / "tests").glob("*/mutants.toml"))
AT_A_TIME = 2
PATIENCE = 600.0  # seconds for the tests or for one experiment of one mutant
_REWRITTEN = re.compile(r"/(test_\w+|conftest)\.py$")  # by pytest, which compiles these itself
_LEFT_BEHIND = shutil.ignore_patterns(".git", ".venv", ".*_cache", "__pycache__", "results", "*.egg-info")


@dataclass(frozen=True)
class Mutant:
    """A wrong twin: `old` occurs once in `file` and becomes `new`. `tests` (files or node ids) must fail, the verdict of each of `verdicts` must fall."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: tuple[str, ...]
    verdicts: tuple[str, ...] = ()
    first: bool = False


@dataclass(frozen=True)
class Judged:
    """What became of a mutant: by the tests, and by each experiment. A word other than "caught" or "fell" is a failure of the run."""

    mutant: Mutant
    tests: str
    verdicts: tuple[str, ...]

    @property
    def survives(self) -> bool:
        return self.tests != "caught" or any(verdict != "fell" for verdict in self.verdicts)


def load(paths: Sequence[Path] = LISTS) -> list[Mutant]:
    """The mutants of all lists. Raises TypeError for an entry with a missing or unknown key."""
    mutants = []
    for entry in (entry for path in paths for entry in tomllib.loads(path.read_text())["mutant"]):
        fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
        mutants.append(Mutant(**fields))
    return mutants


def lost(mutant: Mutant, root: Path = ROOT) -> str:
    """Why a mutant cannot be applied or judged any more; empty if it can."""
    path = root / mutant.file
    found = path.read_text().count(mutant.old) if path.exists() else 0
    if found != 1:
        return f"its old text occurs {found} times in {mutant.file}"
    for test in mutant.tests:
        file, *inside = test.split("::")
        if not (root / file).exists():
            return f"there is no file {file}"
        for name in inside:
            if not re.search(rf"\b{re.escape(name.split('[')[0])}\b", (root / file).read_text()):
                return f"there is no test {test}"
    return ""


@contextmanager
def copies(root: Path, count: int) -> Iterator["SimpleQueue[Path]"]:
    """Copies of the source tree, to be taken and given back. Their modules are compiled once; each is compiled again only while its text is another."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        free: SimpleQueue[Path] = SimpleQueue()
        first = Path(folder) / "0"
        shutil.copytree(root, first, ignore=_LEFT_BEHIND, symlinks=True)
        compileall.compile_dir(first, quiet=1, rx=_REWRITTEN, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        for index in range(1, count):
            shutil.copytree(first, Path(folder) / str(index), symlinks=True)
        for index in range(count):
            free.put(Path(folder) / str(index))
        yield free


def _run(tree: Path, *words: str) -> tuple[int, str]:
    """A module run in a copy: its exit code, and standard output. No bytecode is written: a twin of equal length and age would be mistaken for it."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    try:
        done = subprocess.run([sys.executable, "-m", *words], cwd=tree, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stdout


def tests_say(tree: Path, tests: Sequence[str], *options: str) -> str:
    """What pytest says of a copy: passed, caught (a test failed), or that it did not come to that."""
    code, said = _run(tree, "pytest", "-q", "-p", "xdist", "-n", "0", "-m", "not slow and not long", "-p", "no:cacheprovider", *options, *tests)
    return {0: "passed", 1: "caught", -1: "timed out"}.get(code, f"pytest ended with {code}: {said.strip().splitlines()[-1] if said.strip() else ''}")


def verdict_says(tree: Path, experiment: str) -> str:
    """What an experiment at quick scale says of a copy: shown, or fell, or that it did not come to that."""
    with tempfile.TemporaryDirectory() as out:
        code, said = _run(tree, "local_dp", "experiment", experiment, "--quick", "--out", out)
    if code != 0:
        return f"{experiment} ended with {code}"
    return {f"{experiment}: shown": "shown", f"{experiment}: not shown": "fell"}.get(said.splitlines()[0], said.splitlines()[0])


def judge(mutant: Mutant, tree: Path, with_verdicts: bool) -> Judged:
    """Applies a mutant to a copy, asks the tests and the experiments, and restores the copy."""
    path = tree / mutant.file
    text = path.read_text()
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        tests = tests_say(tree, mutant.tests, "-x") if mutant.tests else "no test named"
        return Judged(mutant, tests, tuple(verdict_says(tree, name) for name in mutant.verdicts if with_verdicts))
    finally:
        path.write_text(text)


def run(mutants: Sequence[Mutant], with_verdicts: bool, tell: Callable[[str], None], root: Path = ROOT) -> bool:
    """The whole run: tells a line a mutant; whether every one was caught."""
    stale = {mutant.name: reason for mutant in mutants if (reason := lost(mutant, root))}
    for name, reason in stale.items():
        tell(f"{name}: {reason}")
    left = [mutant for mutant in mutants if mutant.name not in stale]
    with copies(root, AT_A_TIME) as free, ThreadPoolExecutor(AT_A_TIME) as pool:

        def lent(work: Callable[[Path], Judged | str]) -> Judged | str:
            tree = free.get()
            try:
                return work(tree)
            finally:
                free.put(tree)

        tests = sorted({test for mutant in left for test in mutant.tests})
        asked = sorted({name for mutant in left for name in mutant.verdicts}) if with_verdicts else []
        files = {file: list(inside) for file, inside in groupby(tests, key=lambda test: test.split("::")[0])}
        shares = [[test for named in list(files.values())[part::AT_A_TIME] for test in named] for part in range(AT_A_TIME)]
        together = pool.map(lent, [lambda tree, named=named: tests_say(tree, named) for named in shares if named])
        alone = files if set(together) - {"passed"} else {}  # which file it is
        before = [
            *(lambda tree, named=named: tests_say(tree, named) for named in alone.values()),
            *(lambda tree, name=name: verdict_says(tree, name) for name in asked),
        ]
        for name, said in zip((*alone, *asked), pool.map(lent, before), strict=True):
            if said not in ("passed", "shown"):
                tell(f"without any mutant, {name}: {said}")
                return False
        good = not stale
        width = max((len(mutant.name) for mutant in left), default=0)
        for judged in pool.map(lent, [lambda tree, mutant=mutant: judge(mutant, tree, with_verdicts) for mutant in left]):
            assert isinstance(judged, Judged)
            fallen = ", ".join(f"{name} {verdict}" for name, verdict in zip(judged.mutant.verdicts, judged.verdicts, strict=False))
            tell(f"{judged.mutant.name:<{width}}  {'SURVIVES' if judged.survives else 'ok':<8}  tests: {judged.tests}  {fallen}".rstrip())
            good = good and not judged.survives
        return good


def main() -> None:
    """`scripts/mutants`: exit code 1 if a mutant survives or cannot be applied."""
    parser = argparse.ArgumentParser(prog="scripts/mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="some mutants only; default: all")
    parser.add_argument("--first", action="store_true", help="only those that guard privacy and budgets")
    parser.add_argument("--verdicts", action="store_true", help="also run, at quick scale, the experiments whose verdict a mutant must make fall")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    chosen = parser.parse_args()
    mutants = [mutant for mutant in load() if (not chosen.names or mutant.name in chosen.names) and (mutant.first or not chosen.first)]
    if unknown := set(chosen.names) - {mutant.name for mutant in mutants}:
        parser.error(f"no mutant named {', '.join(sorted(unknown))}; --list has them all")
    if chosen.list:
        print("\n".join(f"{mutant.name}: {mutant.why} ({mutant.file})" for mutant in mutants))
        return
    sys.exit(0 if run(mutants, chosen.verdicts, lambda line: print(line, flush=True)) else 1)


if __name__ == "__main__":
    main()
