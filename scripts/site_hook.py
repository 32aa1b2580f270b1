"""The hook of mkdocs.yml: pages of the files at the top and of the reference, links between them,
and formulas as MathML."""

import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
# MkDocs makes the first page of README.md
TOP = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "CITATION.cff",
)
FORMULA = r"(?<![\\$\w])(\$\$?)(?![\s$])([^$]+?)(?<![\s\\])\1(?![\w$])"
AFTER_CODE = 185  # above the escapes (180), below backticks (190)


class Formula(InlineProcessor):
    """`$...$` in a line, `$$...$$` as a line of its own."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        kind = "alone" if m[1] == "$$" else "long" if len(m[2]) > 40 else "short"
        formula = convert(" ".join(m[2].split()), display="block" if kind == "alone" else "inline")
        return (
            self.md.htmlStash.store(f'<span class="formula {kind}">{formula}</span>'),
            m.start(0),
            m.end(0),
        )


class Formulas(Extension):
    def extendMarkdown(self, md: Markdown) -> None:
        md.ESCAPED_CHARS.append("$")
        md.inlinePatterns.register(Formula(FORMULA, md), "formula", AFTER_CODE)


def on_config(config: Any) -> Any:
    config.markdown_extensions.append(Formulas())
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the files at the top, and a page of the reference for each room."""
    for name in TOP:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    rooms = (
        path.stem
        for path in (ROOT / "local_dp").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    )
    for room in sorted(
        room
        for room in rooms
        if not room.startswith("_") and room not in ("cli", "experiments", "text")
    ):
        name = f"local_dp.{room}"
        files.append(
            File.generated(config, f"reference/{name}.md", content=f"# {name}\n\n::: {name}\n")
        )
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between the files at the top and the documents, which are in one folder here."""
    if page.file.src_uri in TOP:
        return markdown.replace("](docs/", "](")
    return re.sub(rf"\]\(((?:\.\./)*)\.\./({'|'.join(TOP)})", r"](\1\2", markdown)
