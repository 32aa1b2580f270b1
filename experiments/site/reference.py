"""The reference: a page for each room of the library and the roles, filled from the docstrings when the site is built."""

import ast
from collections.abc import Iterator
from pathlib import Path

import local_dp

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
