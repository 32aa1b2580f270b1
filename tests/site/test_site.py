"""The site as HTML: strict, whole, asks no other host, fit for eyes and screen readers; and the distributions in an empty environment."""

import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from local_dp.errors import InputError
from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.site.build import build_site, public_names
from tests.support.inputs.documents import ROOT, blocks
from tests.support.runs.browser import browser, faults, needs_chromium

pytestmark = pytest.mark.slow
PATIENCE = 1200.0  # seconds for an installation, on a machine that has much else to do


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run_experiments(["tests.support.inputs.toy_experiment"], "quick", 1, folder / "results", workers=1)
    return build_site(folder / "out", folder / "results").parent


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    """Every public class, function, constant and member in the library, the roles and the front door has an entry of its own, in one place."""
    anchors = [name for page in (site / "reference").glob("*.html") for name in re.findall(r'<h\d id="([\w.]+)"', page.read_text())]
    assert (set(public_names()) - set(anchors), len(anchors)) == (set(), len(set(anchors)))


def test_no_other_host_is_asked(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 60
    for page in pages:
        for tag in re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", page.read_text()):
            assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", tag), f"{page.name}: {tag}"
    for style in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?(?:https?:)?//", style.read_text()), style.name


@needs_chromium
def test_every_page_is_fit_for_its_readers(site: Path) -> None:
    with browser() as tab:
        wrong_pages = {page.relative_to(site).as_posix(): wrong for page in sorted(site.rglob("*.html")) if (wrong := faults(tab, page))}
    assert wrong_pages == {}


@needs_chromium
def test_the_site_follows_the_system(site: Path) -> None:
    with browser() as tab:
        for scheme, palette in (("dark", "slate"), ("light", "default"), ("dark", "slate")):
            tab.appear(1200, scheme)
            tab.go((site / "index.html").as_uri(), f"document.body.dataset.mdColorScheme === '{palette}'")


@needs_chromium
def test_the_search_works_without_a_server(site: Path) -> None:
    with browser() as tab:
        tab.appear(1200, "light")
        tab.go((site / "index.html").as_uri())
        tab.evaluate("document.querySelector('.md-search__input').focus()")
        tab.wait("document.querySelector('.md-search-result__meta').textContent.includes('Type to start')")  # the index is read
        tab.call("Input.insertText", text="randomized response")
        tab.call("Input.dispatchKeyEvent", type="keyUp", key="e")  # the search looks when a key is let go
        tab.wait("document.querySelectorAll('.md-search-result__link').length > 3")
        assert tab.errors == []


def test_a_broken_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local_dp.experiments.site.build.TOP", {"README.md": "index.md"})
    monkeypatch.setattr("local_dp.experiments.site.build.home", lambda: tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("# Nothing\n\n[gone](docs/gone.md)\n")
    with pytest.raises(InputError, match=r"gone\.md"):
        build_site(tmp_path / "out", None)


def _typed(command: str, folder: Path) -> str:
    """What a command prints that is typed into a shell. Raises AssertionError where it fails."""
    done = subprocess.run(["/bin/sh", "-c", command], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def test_the_wheel_runs_in_an_empty_environment(unpacked: Path, tmp_path: Path) -> None:
    """A wheel made of the source distribution, in an environment with nothing else: version, a mean in a line of Python, and its own documentation."""
    make = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), str(unpacked)]
    subprocess.run(make, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    _typed(f"{sys.executable} -m venv empty && empty/bin/pip install -q '{wheel}[docs]'", tmp_path)
    version = _typed("empty/bin/python -c 'import local_dp; print(local_dp.__version__)'", tmp_path).strip()
    assert _typed("empty/bin/local-dp --version", tmp_path).split() == ["local-dp", version]
    line = "import local_dp as ldp; print(ldp.mean({'age': [20, 30, 40] * 2000}, 'age', bounds=(0, 50), epsilon=4, seed=1).estimate)"
    assert abs(float(_typed(f'empty/bin/python -c "{line}"', tmp_path)) - 30) < 3
    assert "site/index.html" in _typed("empty/bin/local-dp docs --no-gallery --no-open", tmp_path)
    assert (tmp_path / "site" / "tutorials" / "survey.html").exists()


def test_a_newcomers_first_hour(unpacked: Path) -> None:
    """The README's first commands print what stands there, those of the tests for one room; then a CSV file of one's own, asked in shell and in Python."""
    first, test = (next(each for each in blocks(ROOT / "README.md", "sh") if word in each) for word in ("run survey", "pytest -q"))
    printed = " ".join(_typed(first.strip(), unpacked).split())
    assert all(" ".join(line.split()) in printed for line in blocks(ROOT / "README.md", "text")[0].splitlines())
    assert re.search(r"\d+ passed", _typed(f"{test.strip()} -n 0 tests/text", unpacked))
    rows = [f"{'Bern' if place % 3 else 'Basel'},{18 + place % 50}" for place in range(3000)]
    (unpacked / "own.csv").write_text("\n".join(("town,age", *rows)) + "\n")
    question = "town == 'Bern'"
    assert question in _typed(f'.venv/bin/local-dp run survey --records own.csv --question "{question}" --epsilon 2 --seed 1', unpacked)
    assert "Basel" in _typed(".venv/bin/local-dp run frequency --records own.csv --column town --labels 'Basel;Bern' --seed 1", unpacked)
    line = "import local_dp as ldp; print(ldp.mean('own.csv', 'age', bounds=(18, 67), seed=1))"
    assert "3,000 answered" in _typed(f'.venv/bin/python -c "{line}"', unpacked)
