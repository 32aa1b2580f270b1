"""Builds the site: the documents, a page for each protocol, the gallery and the reference are gathered in a folder, and MkDocs makes HTML of them."""

import ast
import inspect
import json
import logging
import os.path
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path, PurePosixPath
from typing import Any

import local_dp
from local_dp.bus.children import Folder
from local_dp.errors import InputError
from local_dp.experiments.lab.catalogue import NAMES
from local_dp.experiments.lab.stored import RESULTS, StoredFigure, drawing, read_results
from local_dp.experiments.site.notebooks import notebook
from local_dp.foreign import shown
from local_dp.interaction import Nonadaptive
from local_dp.protocols.local_protocol import MODELS, PROTOCOLS, LocalProtocol

PACKAGE = Path(local_dp.__file__).parent
ROOT = PACKAGE.parent
DOOR = "local_dp.experiments.api"
_FIRST = ("functions", "plan", "result")  # of the front door's modules
LEFT_OUT = "experiments"  # the front door has the first page; of the rest only the tiers are for readers
FOLDER = "reference"
_DOOR = """# Reference

`import local_dp as ldp` offers {names}. They stand below; the rooms of the library and the roles have pages of their own:

{rooms}

{entries}
"""


def rooms() -> dict[str, list[str]]:
    """The modules of each room by their dotted names; a room is a package, and comes first in its own list."""
    found: dict[str, list[str]] = {}
    folders = [each for each in sorted(PACKAGE.iterdir()) if each.is_dir() and each.name != LEFT_OUT] + [PACKAGE / LEFT_OUT / "tiers"]
    for folder in [None, *folders]:
        for file in sorted(PACKAGE.glob("*.py") if folder is None else folder.rglob("*.py")):
            room, module = ".".join(file.parent.relative_to(ROOT).parts), file.stem
            if module != "__main__":
                found.setdefault(room, []).append(room if module == "__init__" else f"{room}.{module}")
    return found


def front_door() -> list[str]:
    """The modules of the front door, those of its functions first."""
    files = [file.stem for file in sorted((ROOT / DOOR.replace(".", "/")).glob("*.py")) if file.stem != "__init__"]
    return [f"{DOOR}.{name}" for name in sorted(files, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))]


def public_names() -> Iterator[str]:
    """The dotted name of every public class, function and constant, and of every public member of a class: what the reference owes its reader."""
    for module in (*front_door(), *(name for names in rooms().values() for name in names)):
        place = ROOT.joinpath(*module.split("."))
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        for node, name in _public(ast.parse(source.read_text()).body):
            yield f"{module}.{name}"
            for _, member in _public(node.body if isinstance(node, ast.ClassDef) else []):
                yield f"{module}.{name}.{member}"


def _public(body: list[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """What a module or a class defines, by names without an underscore at their beginning."""
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names = [node.name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                names = []
        yield from ((node, name) for name in names if not name.startswith("_"))


def write_reference(target: Path) -> list[str]:
    """Writes the pages, the front door first, and gives their places."""
    folder = target / FOLDER
    folder.mkdir(parents=True)
    every = rooms()
    listed = "\n".join(f"* [`{room}`]({room}.md)" for room in every)
    entries = "\n\n".join(f"::: {module}" for module in front_door())
    names = ", ".join(f"`{name}`" for name in local_dp.__all__)
    (folder / "index.md").write_text(_DOOR.format(names=names, rooms=listed, entries=entries))
    for room, modules in every.items():
        empty = not (ROOT.joinpath(*room.split(".")) / "__init__.py").read_text().strip()  # a package's own file often has nothing
        told = [module for module in modules if module != room or not empty]
        entries = "\n\n".join(f"::: {module}{_PACKAGE_ALONE if module == room else ''}" for module in told)
        (folder / f"{room}.md").write_text(f"# {room}\n\n{entries}\n")
    return [f"{FOLDER}/index.md", *(f"{FOLDER}/{room}.md" for room in every)]


_PACKAGE_ALONE = "\n    options:\n      show_submodules: false"  # its modules have entries of their own


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
            text = as_page(source, (folder / source).read_text())
            if page.parent.name == "tutorials" and page.stem in _NOTEBOOKS:
                page.with_suffix(".ipynb").write_text(json.dumps(notebook(text), indent=1))
                text = text.replace("\n\n", f"\n\n[Download this page as a notebook]({page.stem}.ipynb)\n\n", 1)
            page.write_text(text)
        else:
            page.write_bytes((folder / source).read_bytes())


EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
PROTOCOL_PAGES = "protocols"


def write_protocols(target: Path) -> list[str]:
    """Writes the pages, the list of them first, and gives their places."""
    folder = target / PROTOCOL_PAGES
    folder.mkdir(parents=True)
    (folder / "index.md").write_text(_index())
    for name in PROTOCOLS:
        (folder / f"{name}.md").write_text(page(name))
    return [f"{PROTOCOL_PAGES}/index.md", *(f"{PROTOCOL_PAGES}/{name}.md" for name in PROTOCOLS)]


def page(name: str) -> str:
    """The page of one protocol, as Markdown."""
    kind = PROTOCOLS[name]
    example = f"local-dp run {name} {kind.example}".strip()
    parts = (
        f"# {name}",
        f"*{kind.model()}: {MODELS[kind.model()]}. {_randomizers(kind)}*",
        *map(_in_parts, (inspect.getdoc(kind) or "").split("\n\n")),
        "## Parameters",
        _table(("parameter", "default", "meaning"), [_parameter(each) for each in fields(kind)]),
        "## Clients",
        "How many clients the parameters above ask for, for success in 95 % of the runs (epsilon in nats):",
        _table(("epsilon", "clients"), [(f"{epsilon:g}", f"{kind().clients(epsilon):,}") for epsilon in EPSILONS]),
        "## Run it",
        f"```sh\n{example}\n```",
        f"Source: {literal(kind.source)}. Code: [`{kind.__module__}.{kind.__name__}`][{kind.__module__}.{kind.__name__}]"
        if kind.__module__.startswith("local_dp.")
        else f"Source: {literal(kind.source)}. Code: `{kind.__module__}.{kind.__name__}`, of an installed package",
    )
    return "\n\n".join(parts) + "\n"


def _index() -> str:
    """The list of all protocols."""
    rows = [(f"[{name}]({name}.md)", PROTOCOLS[name].model(), literal((inspect.getdoc(PROTOCOLS[name]) or "").partition("\n")[0])) for name in PROTOCOLS]
    told = "Complete local tasks. The model is read off the type of the algorithm: LNI asks in one round, LI in several, FI the same clients in several."
    return f"# Protocols\n\n{told}\n\n{_table(('name', 'model', 'claim'), rows)}\n"


def _randomizers(kind: type[LocalProtocol[Any]]) -> str:
    """The randomizers of a protocol that asks once; another chooses as it goes on."""
    algorithm = kind().algorithm(1.0, kind().clients(1.0))
    if not isinstance(algorithm, Nonadaptive):
        return "Its rounds depend on what was answered before."
    names = sorted({query.randomizer.name for query in algorithm.queries})
    return f"Randomizer at epsilon 1: {', '.join(names)}."


def _parameter(each: "Field[Any]") -> tuple[str, str, str]:
    """One parameter's row."""
    default = each.default if each.default is not MISSING else ""
    typed = ";".join(map(str, default)) if isinstance(default, tuple) else "" if default is None else str(default)
    unit = each.metadata.get("unit", "")
    meaning = each.metadata.get("help", "")
    return f"`{each.name}`", f"`{typed}`" if typed else "", literal(f"{meaning} ({unit})" if unit else meaning)


def literal(text: str) -> str:
    """A docstring's text as Markdown: what is in backticks is code, and no other sign means anything; < where it would open a tag."""
    pieces = re.split(r"(`[^`]*`)", text)  # the odd ones are code
    pieces[::2] = [re.sub(r"<(?=[\w/!?])", "&lt;", re.sub(r"([\\*_>\[\]#|$])", r"\\\1", piece)) for piece in pieces[::2]]
    return "".join(pieces)


def _in_parts(text: str) -> str:
    """A docstring's paragraph as Markdown; privacy, utility and cost begin paragraphs of their own."""
    return re.sub(r"(?:^|\s+)(Privacy|Utility|Cost)(?=[:,])", r"\n\n**\1**", literal(text)).strip()


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *rows))


GALLERY = "gallery"
_PLACE = f"{GALLERY}/index.md"
_INTRO = """# Gallery

Every figure here was made by an experiment. It stands under the claim that it tests, with the verdict of that run and the command that makes it again."""


def write_gallery(results: Path, target: Path) -> str:
    """Copies the figures and writes their page; gives its place."""
    folder = target / GALLERY
    folder.mkdir(parents=True)
    told = (_experiment(results / name, folder) for name in names_in(results))
    (target / _PLACE).write_text("\n\n".join((_INTRO, *filter(None, told))) + "\n")
    return _PLACE


def names_in(results: Path) -> list[str]:
    """The experiments with results in a folder, in the order of the catalogue; others after them."""
    found = {path.parent.name for path in results.glob(f"*/{RESULTS}")}
    return [*(name for name in NAMES if name in found), *sorted(found - set(NAMES))]


def _experiment(results: Path, folder: Path) -> str:
    """One experiment's part of the page; empty for one without figures."""
    data = read_results(results)
    if data is None or not data["figures"]:
        return ""
    figures = [_figure(results, figure, folder / f"{results.name}-{figure['svg']}") for figure in data["figures"]]
    return "\n\n".join(
        (
            f"## {_told(data['title'])}",
            _told(data["claim"]),
            f"Verdict: **{data['verdict']}**, by `{data['command']}`. {_told(data['headline'])}",
            *figures,
        )
    )


def _told(text: str) -> str:
    """Text of a results folder as Markdown, in one paragraph."""
    return literal(" ".join(shown(text, "block").split()))


def _figure(folder: Path, figure: StoredFigure, target: Path) -> str:
    """A figure with its caption."""
    target.write_text(drawing(folder, figure["svg"]), encoding="utf-8")
    alt, title = (" ".join(shown(text, "page").split()) for text in (figure["alt"], figure["title"]))
    image = f'<img src="{target.name}" alt="{alt}" loading="lazy">'
    return f'<figure>\n<div class="drawing">{image}</div>\n<figcaption>{title}</figcaption>\n</figure>'


HERE = Path(__file__).parent
MARK = "objects.inv"  # a folder that holds it is a site, and may be written anew
ASSETS = ("iframe-worker.js", "site.css", "site.js")
_GUIDES = (
    "choose.md", "why.md", "glossary.md", "python.md", "tables.md", "questions.md", "plugins.md", "deployment.md", "wire.md", "security.md", "scaling.md",
)  # fmt: skip
_TUTORIALS = ("survey", "poll", "separation", "curator", "randomizer")
_NOTEBOOKS = ("survey", "separation", "curator", "randomizer")


def build_site(out: Path, results: Path | None, strict: bool = True) -> Path:
    """Builds the site in `out`, with the figures of a folder of results if there is one, and gives its first page.

    Raises InputError where MkDocs is missing, where `out` holds something else, and in strict mode where a link leads nowhere.
    """
    if out.exists() and not (out / MARK).exists() and (not out.is_dir() or any(out.iterdir())):  # MkDocs empties the folder it writes to
        raise InputError(f"{out} holds something other than a site, which would be lost; give another folder")
    with Folder() as folder:
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
