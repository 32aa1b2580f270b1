"""What a folder of results holds, read as somebody else's: results of the declared form alone, and
drawings made again from the shapes in them.

No name in a folder leads out of it. Of a drawing remain the elements and attributes that our own
figures need: no script, link, style sheet or text.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal
from xml.etree import ElementTree

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from local_dp.errors import InputError, reading
from local_dp.foreign import shown

RESULTS = "results.json"
_AGAIN = "run the experiment again"
_Name = Annotated[str, Field(pattern=r"^[a-z0-9]+([.-][a-z0-9]+)*$")]
_Csv = Annotated[str, Field(pattern=r"^[a-z0-9-]+\.csv$")]
_Svg = Annotated[str, Field(pattern=r"^[a-z0-9-]+\.svg$")]
_Picture = Annotated[str, Field(pattern=r"^[a-z0-9-]+\.(png|pdf)$")]
_Json = Annotated[str, Field(pattern=r"^[a-z0-9-]+\.json$")]
_Command = Annotated[
    str, Field(pattern=r"^local-dp experiment [a-z0-9.-]+ --(quick|full) --seed [0-9]+$")
]


class StoredTable(TypedDict):
    csv: _Csv
    title: str
    columns: list[str]
    rows: list[list[Any]]


class StoredFigure(TypedDict):
    kind: Literal["curves", "regions"]
    svg: _Svg
    png: _Picture
    pdf: _Picture
    title: str
    alt: str
    key: str


class StoredCheck(TypedDict):
    statement: str
    shown: bool
    evidence: str
    chance: float
    catches: str


class Results(TypedDict):
    """The results of one experiment, as `store.write_results` writes them: the fields that a page
    shows."""

    name: _Name
    chapter: str
    title: str
    claim: str
    source: str
    verdict: Literal["shown", "not shown"]
    headline: str
    checks: list[StoredCheck]
    command: _Command
    tables: list[StoredTable]
    figures: list[StoredFigure]
    notes: list[str]
    certificates: list[_Json]


_FORM = TypeAdapter(Results)


def read_results(folder: Path) -> Results | None:
    """The results in a folder, or None if there are none. Raises InputError if they are
    malformed."""
    path = folder / RESULTS
    if not path.is_file():
        return None
    with reading(path, _AGAIN):
        data = json.loads(_inside(path, folder).read_text(encoding="utf-8"))
    try:
        results = _FORM.validate_python(data, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise InputError(
            f"{path} is an earlier version's, or malformed: {'.'.join(map(str, first['loc']))}: "
            f"{first['msg']}; {_AGAIN}"
        ) from None
    whole = all(
        len(row) == len(table["columns"]) for table in results["tables"] for row in table["rows"]
    )
    if not whole or results["name"] != folder.name:
        raise InputError(
            f"{path} is malformed: its name is not its folder's, or a row has not one value for "
            f"each column; {_AGAIN}"
        )
    return results


def _inside(path: Path, folder: Path) -> Path:
    """The path. Raises InputError if it leads out of the folder of results in which `folder`
    lies."""
    if not path.resolve().is_relative_to(folder.parent.resolve() / folder.name):
        raise InputError(
            f"{path} leads out of its folder; copy the file to this place, or {_AGAIN}"
        )
    return path


_DECIMAL = r"-?\d+(\.\d+)?([eE]-?\d+)?"
_ID = r"[A-Za-z0-9._-]+"
_VALUES = re.compile(
    rf"#[0-9a-f]{{6}}|none|round|butt|square|miter|bevel|{_DECIMAL}(pt|px)?([ ,]+{_DECIMAL})*"
)
_LINES = ("dasharray", "dashoffset", "linecap", "linejoin", "miterlimit", "opacity", "width")
_PROPERTIES = frozenset(
    (
        "fill",
        "fill-opacity",
        "fill-rule",
        "opacity",
        "stroke",
        *(f"stroke-{each}" for each in _LINES),
    )
)
_LINK = "{http://www.w3.org/1999/xlink}href"
_SVG = "{http://www.w3.org/2000/svg}"
_ATTRIBUTES = {
    "id": _ID,
    "d": r"[MLCQZHVz\d\seE.,+-]*",
    "transform": r"((matrix|translate|scale|rotate)\([\d\seE.,+-]*\) ?)+",
    "clip-path": rf"url\(#{_ID}\)",
    "viewBox": r"[\d .-]*",
    _LINK: f"#{_ID}",
    **dict.fromkeys(("x", "y", "width", "height", "version"), f"{_DECIMAL}(pt)?"),
}
_SHAPES = {name: re.compile(shape) for name, shape in _ATTRIBUTES.items()}
_ELEMENTS = frozenset(["svg", "g", "path", "defs", "use", "clipPath", "rect"])
# who drew it, and the line ends, which the new drawing has by itself
_DROPPED = frozenset((f"{_SVG}metadata", f"{_SVG}style"))
_ROOT = (
    'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'stroke-linejoin="round" stroke-linecap="butt"'
)


def drawing(folder: Path, name: str, prefix: str, more: str) -> str:
    """A stored figure as markup, made again; its names begin with the prefix, and its outermost
    element has `more`. Raises InputError for any other content."""
    path = folder / name
    if not path.is_file():
        raise InputError(f"the figure {path} is missing; {_AGAIN}")
    with reading(path, _AGAIN):
        text = _inside(path, folder).read_text(encoding="utf-8")
        root = ElementTree.fromstring(text[text.index("<svg") :])
        if root.tag != f"{_SVG}svg":
            raise InputError(f"the figure {path} is no drawing; {_AGAIN}")
        paths = {f"#{each.get('id')}" for each in root.iter(f"{_SVG}path")}
        # of anything else, few uses of uses would draw billions of shapes
        if any(each.get(_LINK) not in paths for each in root.iter(f"{_SVG}use")):
            raise InputError(f"the figure {path} repeats more than a path; {_AGAIN}")
        try:
            return "".join(_element(root, prefix, f" {_ROOT}{more}"))
        except ValueError as error:
            raise InputError(
                f"the figure {path} has {error}, which no figure of ours has; {_AGAIN}"
            ) from None


def _element(element: ElementTree.Element, prefix: str, more: str = "") -> Iterator[str]:
    """The markup of an element of a drawing. Raises ValueError for any element or attribute that is
    not on our list."""
    if element.tag in _DROPPED:
        return
    name = element.tag.removeprefix(_SVG)
    if name not in _ELEMENTS or (name == "svg") != bool(more):
        raise ValueError(f"an element {name!r:.60}")
    yield f"<{name}{more}"
    for key, value in element.attrib.items():
        yield f" {_attribute(key, value, prefix)}"
    yield ">"
    for child in element:
        yield from _element(child, prefix)
    yield f"</{name}>"


def _attribute(name: str, value: str, prefix: str) -> str:
    shape = _SHAPES.get(name)
    if not (_is_style(value) if name == "style" else shape is not None and shape.fullmatch(value)):
        raise ValueError(f"an attribute {f'{name}={value}'!r:.80}")
    if name == "id":
        value = prefix + value
    elif name in (_LINK, "clip-path"):
        value = value.replace("#", f"#{prefix}")
    return f'{"xlink:href" if name == _LINK else name}="{shown(value, "page")}"'


def _is_style(text: str) -> bool:
    """True if each declaration sets a property of a line or of an area to a number, a colour or a
    word."""
    for part in filter(str.strip, text.split(";")):
        name, _, value = part.partition(":")
        if name.strip() not in _PROPERTIES or not _VALUES.fullmatch(value.strip()):
            return False
    return True
