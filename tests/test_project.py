"""The project as a whole: what it installs, where its links lead, how long its files are."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def _build(kind: str, root: Path, folder: Path) -> Path:
    """The sdist or the wheel of a source tree."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)],
        cwd=root,
        check=True,
        capture_output=True,
    )
    (result,) = folder.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return result


@pytest.mark.long
def test_what_is_installed_is_one_name(tmp_path: Path) -> None:
    """A wheel of the tree and a wheel of the sdist hold the same files, below the one top-level
    name local_dp, with templates and styles."""
    with tarfile.open(_build("sdist", ROOT, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.glob("local_dp-*")
    names, again = (
        zipfile.ZipFile(_build("wheel", root, tmp_path / root.name)).namelist()
        for root in (ROOT, source)
    )
    assert sorted(names) == sorted(again)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"local_dp"}
    assert len(names) == len(set(names))
    assert not any(
        name.startswith(("local_dp/experiments/bench/", "local_dp/experiments/peers/"))
        for name in names
    )
    lab = "local_dp/experiments/lab"
    required = {
        f"{lab}/report.html",
        f"{lab}/models.html",
        f"{lab}/report.css",
        "local_dp/py.typed",
        "local_dp/clients/role.py",
        "local_dp/server/round.py",
    }
    assert required <= set(names)


def test_the_citation_is_of_this_version() -> None:
    """CITATION.cff names the version, the authors and the licence that the package has, and the
    paper, in the words of its format."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert citation["version"] == project["version"]
    assert citation["license"] == project["license"]
    assert citation["authors"] == project["authors"]
    assert project["urls"]["Paper"].removeprefix("https://doi.org/") in {
        paper["doi"] for paper in citation["references"]
    }


def test_ci_runs_the_readmes_test_command() -> None:
    """The command that the README gives for the tests is the one that continuous integration
    runs."""
    command = next(
        block.strip()
        for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
        if "pytest" in block
    )
    assert command in (ROOT / ".ci" / "run").read_text()


def test_the_readmes_links_lead_somewhere() -> None:
    """Every file that the README and the documents link to exists."""
    for document in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_no_test_imports_another() -> None:
    """What tests share lies in tests/support and tests/typing: a file of tests can be moved,
    renamed or run without any other."""
    for path in (ROOT / "tests").rglob("*.py"):
        shared = re.findall(r"^\s*(?:from|import) (tests[\w.]*)", path.read_text(), re.MULTILINE)
        assert all(module.startswith(("tests.support", "tests.typing")) for module in shared), (
            f"{path.relative_to(ROOT)} imports {shared}"
        )
