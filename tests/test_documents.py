"""What the documents say is so: every command runs, every Python block runs and prints its table,
every name, file and citation is there."""

import contextlib
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from local_dp.cli.commands import APP, COMMANDS
from local_dp.experiments.lab.runner import run_experiments
from tests.support.inputs.documents import DOCUMENTS, ROOT, TUTORIALS, blocks, perform, typed
from tests.support.inputs.plugins import plugged_in, plugin_site
from tests.support.long import short
from tests.support.runs.brokers import configured, free_port, needs_mosquitto
from tests.support.runs.certificates import deployed
from tests.support.runs.command import local_dp

PACKAGES = ("local_dp", "clients", "server", "experiments")
LIMITS = "\n".join(
    path.read_text()
    for path in (ROOT / "docs" / "limits.md", *sorted((ROOT / "docs" / "theory").glob("*.md")))
)

SKIPPED = {  # every command of the documents that no test here runs, and why
    "python3 -m venv .venv": "makes an environment; CI does it on a clean checkout",
    ".venv/bin/pip install -q '.[test]'": "installs; CI does it on a clean checkout",
    ".venv/bin/pip install -q '.[examples]'": "installs; the test extra holds the same package",
    ".venv/bin/pip install -q '.[poll]'": "installs; the test extra holds the same packages",
    ".venv/bin/pip install -e '.[dev]'": "installs; CI installs the same extra",
    "pip install uv": "installs, for an environment of the oldest versions",
    (
        "uv pip compile --resolution lowest-direct --extra test pyproject.toml -o oldest.txt"
    ): "needs uv",
    "uv pip install -r oldest.txt": "needs uv",
    ". .venv/bin/activate": "changes the shell it is typed in",
    "scripts/check": "the static checks; CI runs them",
    "scripts/rooms": "a part of scripts/check",
    "scripts/tables F": "a quarter of an hour; a slow test searches the tables too",
    "scripts/vectors": "rewrites the vectors of the wire; tests/wire checks them",
    ".venv/bin/python -m pytest -q": "this very suite",
    "python -m pytest -q": "this very suite",
    "python -m pytest -q -m long": "some minutes; CI runs them",
    "python -m pytest -q -m slow": "the long acceptance runs",
}
# run as written by the slow suite, and at one experiment by the normal one
LONG = {".venv/bin/local-dp experiment all --quick --seed 1 --out results"}

# commands that wait for people, and what ends them
ENDLESS = {
    ".venv/bin/local-dp poll 'Did you ever cheat in an exam?' --epsilon 1": " --demo 20 --until 4s"
}


def test_nothing_is_skipped_by_accident() -> None:
    """The commands that are not run are exactly those that are listed with a reason, and the long
    ones are in the documents; OpenSSL's lines are run."""
    commands = {each.command for document in DOCUMENTS for each in typed(document)}
    assert {
        command
        for command in commands
        if not re.match(r"(\.venv/bin/)?local-dp |openssl |cat ", command)
    } == SKIPPED.keys()
    assert commands >= LONG | ENDLESS.keys()


@pytest.mark.long
def test_the_readmes_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every local-dp command of the README ends well, in order and in one folder: the first by
    itself, the others here; the report is that of a toy."""
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    monkeypatch.syspath_prepend(ROOT)  # worker processes inherit it
    run_experiments(
        ["tests.support.inputs.toy_experiment"], "quick", 1, tmp_path / "results", workers=1
    )
    first, *others = (
        each.command
        for each in typed(ROOT / "README.md")
        if each.command not in SKIPPED.keys() | LONG
    )
    done = perform(first, tmp_path)
    assert done.returncode == 0, f"{first}: {done.stderr}"
    for command in others:
        here = local_dp(
            *shlex.split(command.removeprefix(".venv/bin/local-dp ") + ENDLESS.get(command, ""))
        )
        assert here.returncode == 0, f"{command}: {here.stderr}"
    assert len(others) >= 5
    assert {"fair.csv", "occupation.png", "results"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "results" / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(LONG))
def test_the_long_commands_run(command: str, tmp_path: Path) -> None:
    """Every experiment at quick scale, as the README writes it: no verdict but "shown"."""
    done = perform(command, tmp_path, seconds=1500)
    assert done.returncode == 0, done.stderr
    assert "not shown" not in done.stdout


@pytest.fixture(scope="module")
def plugins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the example package of docs/plugins.md, installed."""
    return plugin_site(tmp_path_factory)


@pytest.mark.long
def test_the_plugin_pages_python_is_the_packages(
    plugins: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page's conformance test of the example package passes."""
    (test,) = blocks(ROOT / "docs" / "plugins.md", "python")
    monkeypatch.syspath_prepend(str(plugins))
    names: dict[str, object] = {}
    exec(compile(test, "docs/plugins.md", "exec"), names)
    checks = [
        value for name, value in names.items() if name.startswith("test_") and callable(value)
    ]
    assert len(checks) == 1
    for check in checks:
        check()


# pages and how many commands they have at least
PAGES = {"plugins": 4, "guide": 6, "curator": 15, "shuffle": 3}


@pytest.mark.parametrize("page", short(list(PAGES), lambda page: page == "shuffle"))
def test_a_page_works_as_written(
    page: str, plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of a page, in order and in one folder, ends well or in the refusal shown, and
    prints the lines shown."""
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    commands = list(typed(ROOT / "docs" / f"{page}.md"))
    assert len(commands) >= PAGES[page]
    for each in commands:
        with plugged_in(plugins) if page == "plugins" else contextlib.nullcontext():
            done = local_dp(*shlex.split(each.command.removeprefix("local-dp ")))
        assert done.returncode == (4 if "refused" in " ".join(each.output) else 0), (
            f"{each.command}: {done.stderr}"
        )
        output = " ".join((done.stdout + done.stderr).split())
        assert all(" ".join(line.split()) in output for line in each.output), (
            f"{each.command}: {output}"
        )
        assert " curate " not in each.command or ", pure," in output or "delta 1e-06" in output, (
            each.command
        )


@pytest.mark.long
def test_a_run_is_watched_as_written(tmp_path: Path) -> None:
    """Each of its commands runs to its end and says where the page was."""
    commands = [each.command for each in typed(ROOT / "docs" / "measurements.md")]
    assert len(commands) == 2
    for command in commands:
        done = perform(command, tmp_path)
        assert done.returncode == 0, done.stderr
        assert "watch at http://127.0.0.1:" in done.stderr


@pytest.mark.long
@needs_mosquitto
def test_the_deployment_page_works_as_written(tmp_path: Path) -> None:
    """Its keys, roster, broker and certificates, and its server, host and client as three commands
    over TLS: all answer in private."""
    page, port = ROOT / "docs" / "deployment.md", free_port()
    *first, server, host, client = (
        each.command.replace(
            "broker.example:8883?ca=ca.crt&cert=", f"localhost:{port}?ca=broker/ca.crt&cert=broker/"
        )
        for each in typed(page)
        if each.command.startswith("local-dp ")
    )
    assert {command.split()[1] for command in first} == {"keys"}
    assert [command.split()[1] for command in (server, host, client)] == [
        "server",
        "host",
        "client",
    ]
    config = deployed(tmp_path / "broker", port, ["host-0", "client-500"])
    for command in first:
        done = perform(command, tmp_path)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    with configured(config, port):
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "local_dp", *shlex.split(command)[1:]],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for command in (server, host, client)
        ]
        outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], outputs
    clients = re.search(r"--clients (\d+)", server)
    assert clients is not None
    assert f"{clients[1]} answered" in outputs[0][0]
    assert "private: operating-system entropy" in outputs[0][0]
    for line in next(each.output for each in typed(page) if each.output):
        assert line in outputs[1][1], f"the host does not say {line!r}"


@cache
def _options(command: str) -> set[str]:
    """The options of a command; of a role, those of its commands for all protocols."""
    ctx = click.Context(APP)
    entry = APP.get_command(ctx, command)
    assert entry is not None, f"there is no command {command!r}"
    each = (
        [entry.get_command(ctx, name) for name in entry.list_commands(ctx)]
        if isinstance(entry, click.Group)
        else [entry]
    )
    return {
        option
        for one in each
        if one
        for parameter in one.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    } | {"--help", "--help-all"}


def test_commands_in_the_text_exist() -> None:
    """Every `local-dp ...` and every `experiment ...` in running text names a command that there
    is, with options that it has; so does every `--option`."""
    count = 0
    every = {option for parameter in APP.params for option in parameter.opts}.union(
        *(_options(command) for command in COMMANDS)
    )
    for document in DOCUMENTS:
        text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
        for span in re.findall(r"`([^`\n]+(?:\n[^`\n]+)?)`", text):
            match = re.fullmatch(r"(local-dp )?([a-z]+)((?:\s\S+)*)", span)
            if match and (match[1] or (match[2] == "experiment" and match[3])):
                assert set(re.findall(r"--[a-z][a-z-]*", match[3])) <= _options(match[2]), (
                    f"{document.name}: {span}"
                )
                count += 1
            elif not span.startswith(
                ("ruff", "mkdocs", "mypy", "scripts", ".venv", "apt-get", "pip")
            ):
                assert set(re.findall(r"(?<!\S)--[a-z][a-z-]*", span)) <= every, (
                    f"{document.name}: {span}"
                )
    assert count > 10


def printed_by(block: str, document: Path) -> str:
    """What a Python block prints, run by itself."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block, document.name, "exec"), {"__name__": "__document__"})
    return output.getvalue()


RUN_HERE = [
    document
    for document in DOCUMENTS
    if "```python" in document.read_text()
    and document.name != "plugins.md"
    and document not in TUTORIALS
]
FEW = ("README.md", "curator.md")  # in the normal suite


@pytest.mark.parametrize(
    "document",
    short(RUN_HERE, lambda document: document.name in FEW),
    ids=[document.stem for document in RUN_HERE],
)
def test_python_blocks_print_the_tables_above_them(
    document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every Python block runs by itself and prints the block of text below it, or the rows of the
    table right above it, and nothing else."""
    monkeypatch.chdir(tmp_path)
    blocks_run, fence = 0, r"((?:(?!```).*\n)*)```"
    for before, block, below in re.findall(
        rf"((?:^.*\n){{0,30}}?)^```python\n{fence}(?:\n\n```text\n{fence})?",
        document.read_text(),
        re.MULTILINE,
    ):
        table = re.search(r"^\|[-|]+\|\n((?:\|.*\n)+)\n\Z", before, re.MULTILINE)
        assert printed_by(block, document) == (below or (table[1] if table else "")), (
            f"{document.name}: print again what stands beside {block[:80]!r}"
        )
        blocks_run += 1
    assert blocks_run == document.read_text().count("```python"), (
        f"{document.name}: a block was not found"
    )


def sections() -> dict[str, str]:
    """The sections of docs/limits.md and docs/theory by number; a chapter holds its own
    sections."""
    texts: dict[str, str] = {}
    for match in re.finditer(
        r"^##+ (\d+(?:\.\d+)?)\.? .*?(?=^##+ |\Z)", LIMITS, re.DOTALL | re.MULTILINE
    ):
        texts[match[1]] = match[0]
        if "." in match[1]:
            chapter = match[1].split(".")[0]
            texts[chapter] = texts.get(chapter, "") + match[0]
    return texts


def citations() -> Iterator[tuple[Path, str, list[str]]]:
    """Every "limits 3.1, E5" of code and documents: the file, the section, the labels that are
    looked for in it."""
    number, label = r"\d+(?:\.\d+)?", r"[EPL]\d|I_det|Theorem \d|item \d"
    files = [
        path
        for folder in (*PACKAGES, "tests")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
    ]
    for file in (*files, *DOCUMENTS):
        for citation in re.findall(
            rf"\blimits ({number}(?:(?:, and |, | and | to )(?:{label}|{number})\b)*)",
            file.read_text(),
        ):
            section, labels = "", list[str]()
            for word in re.findall(rf"{label}|{number}", citation):
                if re.fullmatch(label, word):
                    labels.append(word)
                    continue
                if section:
                    yield file, section, labels
                section, labels = word, []
            yield file, section, labels


def test_every_citation_of_limits_resolves() -> None:
    """Every section and label that a docstring or a document cites is in docs/limits.md or
    docs/theory, under that number."""
    there = sections()
    citation = list(citations())
    assert len(citation) > 80
    for file, section, labels in citation:
        message = f"{file.relative_to(ROOT)} cites limits {section}, which is not there"
        assert section in there, message
        for label in labels:
            mark = (
                rf"^{label.split()[1]}\. " if label.startswith("item") else rf"\*\*[^*]*\b{label}\b"
            )
            assert re.search(mark, there[section].replace("I\\*", "I"), re.MULTILINE), (
                f"{message}: {label}"
            )


def test_files_and_names_in_the_documents_exist() -> None:
    """Every source file in a document exists and contains the names given with it; every dotted
    name can be imported."""
    placeholders = {"claim.py", "server.py", "path/file.py"}
    placeholders |= {"experiments/claims/local/name_with_underscores.py"}
    for document in DOCUMENTS:
        text = document.read_text()
        files = re.findall(r"`((?:\w+/)*\w+\.py)(?:: ([\w., ]+))?`", text)
        assert len(files) > {"map.md": 150}.get(document.name, -1)
        for file, names in files:
            places = [
                path
                for folder in ("", *PACKAGES, "tests")
                if (path := ROOT / folder / file).exists()
            ]
            assert places or file in placeholders, (
                f"{document.name} names {file}, which is not there"
            )
            for name in filter(None, re.split(r", |\.", names)):
                assert re.search(rf"\b{name}\b", places[0].read_text()), (
                    f"{document.name} names {name} in {file}, which is not there"
                )
        for full_name in re.findall(r"`((?:local_dp|clients|server|experiments)(?:\.\w+)+)`", text):
            if full_name in placeholders:
                continue
            module, _, name = full_name.rpartition(".")
            assert _importable(full_name) or hasattr(importlib.import_module(module), name), (
                f"{document.name} names {full_name}, which is not there"
            )
        for folder in re.findall(
            r"`((?:local_dp|clients|server|experiments|tests|docs|scripts)(?:/\w+)*/?)`", text
        ):
            assert (ROOT / folder).exists() or (ROOT / f"{folder}.py").exists(), (
                f"{document.name} names {folder}, which is not there"
            )


# names of others, and one to be chosen
FOREIGN = {"YourClass", "mosquitto_passwd", "password_file"}


def test_names_in_the_documents_are_names_in_the_code() -> None:
    """Every word in backticks that looks like a name of Python code, with an underscore or capitals
    inside, occurs in the source."""
    source = "\n".join(
        path.read_text()
        for folder in (*PACKAGES, "tests", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
    )
    there = set(
        re.findall(r"\w+", source + "\n".join(blocks(ROOT / "docs" / "deployment.md", "text")))
    )
    for document in DOCUMENTS:
        for name in re.findall(
            r"`(?:[\w.]+: )?([a-z]\w*_\w+|[A-Z][a-z]+[A-Z]\w+|[A-Z]+_[A-Z_]+)(?:\([^`]*\))?`",
            document.read_text(),
        ):
            assert name in there | FOREIGN, (
                f"{document.name} speaks of {name}, which is nowhere in the code"
            )


def test_dotted_names_in_docstrings_exist() -> None:
    """Every dotted name in backticks in the code, as `bounds.response.rr_clients`, ends in what a
    module, a package or a class of that name holds."""
    files = [path for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")]
    contents: dict[str, str] = {}
    for path in files:
        text = re.sub(r"`[^`]*`", "", path.read_text())
        for home in (path.stem, path.parent.name, *re.findall(r"^class (\w+)", text, re.MULTILINE)):
            contents[home] = f"{contents.get(home, '')}{text} {path.stem} "
    contents |= {
        package: (
            f"{contents.get(package, '')} "
            f"{' '.join(room.name for room in (ROOT / package).iterdir())}"
        )
        for package in PACKAGES
    }
    count = 0
    for path in files:
        for home, name in re.findall(
            r"`(?:\w+\.)*([A-Za-z]\w*)\.([A-Za-z]\w*)(?:\([^`]*\))?`", path.read_text()
        ):
            # what else is dotted is an attribute of a parameter
            if home[0].isupper() or "_" in home or home in contents:
                assert re.search(rf"\b{name}\b", contents.get(home, "")), (
                    f"{path.relative_to(ROOT)} speaks of {home}.{name}, which is not there"
                )
                count += 1
    assert count > 10


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_every_room_is_named() -> None:
    """CONTRIBUTING gives each room, a package or a module of the ground floor, a line of its table;
    deeper rooms may have one."""
    cells = re.findall(
        r"^\| ((?:`[\w/]+`(?:, )?)+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    names = [name for cell in cells for name in re.findall(r"`([\w/]+)`", cell)]
    rooms = {
        path.parent.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    } - {"local_dp"}
    modules = {
        path.relative_to(ROOT).with_suffix("").as_posix()
        for room in ("local_dp", "experiments")
        for path in (ROOT / room).glob("*.py")
    }
    modules -= {"local_dp/__init__", "experiments/__init__"}
    assert len(names) == len(set(names))
    assert (
        {room for room in rooms if room.count("/") < 2} | modules
        <= set(names)
        <= rooms | modules | {"local_dp", "clients/web"}
    )
