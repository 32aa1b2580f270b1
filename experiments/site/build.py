"""Builds the site: pages are gathered in a folder of their own, and MkDocs makes HTML of them."""

import logging
import shutil
import tempfile
from pathlib import Path
from typing import Any

from local_dp.errors import InputError
from local_dp.experiments.site.documents import home, write_documents
from local_dp.experiments.site.gallery import write_gallery
from local_dp.experiments.site.protocols import write_protocols
from local_dp.experiments.site.reference import ROOT, write_reference

HERE = Path(__file__).parent
MARK = "objects.inv"  # a folder that holds it is a site, and may be written anew
ASSETS = ("iframe-worker.js", "site.css", "site.js")
_GUIDES = ("why.md", "glossary.md", "plugins.md", "deployment.md", "security.md", "scaling.md")
_TUTORIALS = ("survey", "separation", "randomizer")


def build_site(out: Path, results: Path | None, strict: bool = True) -> Path:
    """Builds the site in `out`, with the figures of a folder of results if there is one, and gives its first page.

    Raises InputError where MkDocs is missing, where `out` holds something else, and in strict mode where a link leads nowhere.
    """
    _check_free(out)
    with tempfile.TemporaryDirectory() as folder:
        pages = Path(folder) / "pages"
        navigation = write_pages(pages, results)
        _build({"docs_dir": str(pages), "site_dir": str(out.resolve()), "nav": navigation, "strict": strict})
    (out / "404.html").unlink(missing_ok=True)  # a server's page, which finds nothing from a folder
    return out / "index.html"


def write_pages(target: Path, results: Path | None) -> list[Any]:
    """Writes the source of every page, and gives the navigation."""
    write_documents(home(), target)
    protocols = write_protocols(target)
    gallery = [{"Gallery": write_gallery(results, target)}] if results is not None else []
    reference = write_reference(target)
    (target / "assets").mkdir()
    for name in ASSETS:
        shutil.copyfile(HERE / name, target / "assets" / name)
    placed = {*_GUIDES, "index.md", "contributing.md", "changelog.md"}
    background = sorted(path.name for path in target.glob("*.md") if path.name not in placed)
    theory, decisions = (sorted(path.relative_to(target).as_posix() for path in (target / room).glob("*.md")) for room in ("theory", "decisions"))
    return [
        {"Home": "index.md"},
        {"Tutorials": [f"tutorials/{name}.md" for name in _TUTORIALS]},
        {"Protocols": protocols},
        *gallery,
        {"Guides": list(_GUIDES)},
        {"Background": background},
        {"Theory": theory},
        {"Decisions": decisions},
        {"Reference": reference},
        {"Project": ["contributing.md", "changelog.md"]},
    ]


def _check_free(out: Path) -> None:
    """MkDocs empties the folder it writes to."""
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} holds something other than a site, which would be lost; give another folder")


def _build(settings: dict[str, Any]) -> None:
    try:
        from mkdocs.commands.build import build
        from mkdocs.config import load_config
        from mkdocs.exceptions import MkDocsException
    except ImportError:
        raise InputError("the site is built by MkDocs, which is not installed; run: pip install 'local-dp[docs]'") from None
    heard = _Heard(logging.WARNING)
    logger = logging.getLogger("mkdocs")
    logger.addHandler(heard)
    try:
        config = load_config(str(HERE / "mkdocs.yml"), **settings)
        config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(ROOT)]
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    except MkDocsException as error:
        raise InputError(f"the site cannot be built: {'; '.join(dict.fromkeys(heard.told)) or error}") from None
    finally:
        logger.removeHandler(heard)


class _Heard(logging.Handler):
    """Keeps the warnings, for the one line that an error is."""

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())
