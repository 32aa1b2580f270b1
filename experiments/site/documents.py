"""The documents: where they are, and their text as pages of the site."""

import os.path
import re
from pathlib import Path, PurePosixPath

from local_dp.errors import InputError

CHECKOUT = Path(__file__).resolve().parents[2]  # local_dp/experiments is a link in a checkout
PACKED = Path(__file__).parent / "pages"  # where an installed package carries them
TOP = {  # at the top of the checkout, and on the site
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "CITATION.cff": "CITATION.cff",
}
DOCS = "docs"
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)]*)?\))")


def home() -> Path:
    """The folder that holds README.md and docs/. Raises InputError."""
    for folder in (PACKED, CHECKOUT):
        if (folder / DOCS).is_dir() and all((folder / name).is_file() for name in TOP):
            return folder
    raise InputError("the documents are not here: install local-dp from its wheel, or work in a checkout")


def sources(folder: Path) -> list[Path]:
    """Every document, relative to the folder, those at the top first."""
    return [*map(Path, TOP), *sorted(path.relative_to(folder) for path in (folder / DOCS).rglob("*") if path.is_file())]


def page_of(source: Path) -> PurePosixPath:
    """Where a document stands on the site."""
    told = source.as_posix()
    return PurePosixPath(TOP.get(told, told.removeprefix(f"{DOCS}/")))


def as_page(source: Path, text: str) -> str:
    """A document's text, its links leading from page to page."""
    here = page_of(source).parent

    def moved(match: re.Match[str]) -> str:
        target = Path(os.path.normpath(source.parent / match[2]))
        return f"{match[1]}{os.path.relpath(page_of(target), here)}{match[3]}"

    return _LINK.sub(moved, text)


def write_documents(folder: Path, target: Path) -> None:
    """Puts every document into the target, as a page."""
    for source in sources(folder):
        page = target / page_of(source)
        page.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            page.write_text(as_page(source, (folder / source).read_text()))
        else:
            page.write_bytes((folder / source).read_bytes())
