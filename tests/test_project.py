"""The project as a whole: what it installs, where its links lead, how long its files are."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import yaml

from experiments.site.documents import sources

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_wheel_holds_four_packages(tmp_path: Path) -> None:
    """The wheel's top-level names are local_dp, clients, server and experiments, and it carries the report's template and style."""
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"local_dp", "clients", "server", "experiments"}
    assert {"experiments/lab/report.html", "experiments/lab/models.html", "experiments/lab/report.css", "local_dp/py.typed"} <= set(names)
    pages = {f"experiments/site/pages/{source.as_posix()}" for source in sources(ROOT)}
    assert {"experiments/site/mkdocs.yml", "experiments/site/site.css", "experiments/site/iframe-worker.js"} | pages <= set(names)


def test_the_citation_is_of_this_version() -> None:
    """CITATION.cff names the version, the authors and the licence that the package has, and the paper, in the words of its format."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (cited["cff-version"], cited["type"]) == ("1.2.0", "software")
    assert (cited["version"], cited["license"], cited["authors"]) == (project["version"], project["license"], project["authors"])
    assert cited.keys() == {"cff-version", "message", "type", "title", "authors", "version", "license", "abstract", "keywords", "references"}
    assert {(paper["title"], paper["year"], paper["type"]) for paper in cited["references"]} == {
        ("What Can We Learn Privately?", 2008, "conference-paper"),
        ("What Can We Learn Privately?", 2011, "article"),
    }
    assert all(len(paper["authors"]) == 5 for paper in cited["references"])
    assert project["urls"]["Paper"].removeprefix("https://doi.org/") in {paper["doi"] for paper in cited["references"]}


def test_ci_runs_the_readmes_test_command() -> None:
    """The command that the README gives for the tests is the one that continuous integration runs."""
    command = next(block.strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "pytest" in block)
    assert command in (ROOT / ".ci" / "run").read_text()


def test_the_readmes_links_lead_somewhere() -> None:
    """Every file that the README and the documents link to exists."""
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_no_source_file_is_too_long() -> None:
    """No Python file has more than 400 lines."""
    sources = [path for folder in ("local_dp", "clients", "server", "experiments", "tests") for path in (ROOT / folder).rglob("*.py")]
    assert sources
    long = {str(path.relative_to(ROOT)): lines for path in sources if (lines := len(path.read_text().splitlines())) > 400}
    assert long == {}


def test_no_test_imports_another() -> None:
    """What tests share lies in tests/support and tests/typing: a file of tests can be moved, renamed or run without any other."""
    for path in (ROOT / "tests").rglob("*.py"):
        shared = re.findall(r"^\s*(?:from|import) (tests[\w.]*)", path.read_text(), re.MULTILINE)
        assert all(module.startswith(("tests.support", "tests.typing")) for module in shared), f"{path.relative_to(ROOT)} imports {shared}"
