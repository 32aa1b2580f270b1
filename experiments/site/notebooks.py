"""Tutorials as notebooks: the text, the code, and what it prints, which the tests of the tutorials verify by running the cells."""

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

Cell: TypeAlias = dict[str, Any]
_BLOCK = re.compile(r"^```(python|sh|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)


def notebook(page: str) -> dict[str, Any]:
    """A page of Markdown as a notebook in nbformat 4.5. A block of text after a block of Python is what this prints; commands are lines of the shell."""
    cells, end = list[Cell](), 0
    for block in _BLOCK.finditer(page):
        cells += _prose(page[end : block.start()])
        cells += [_code(block[2], block[3] or "")] if block[1] == "python" else _commands(block[2])
        end = block.end()
    cells += _prose(page[end:])
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": kernel, "cells": [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells)]}


def _prose(text: str) -> list[Cell]:
    return [{"cell_type": "markdown", "metadata": {}, "source": text.strip()}] if text.strip() else []


def _code(source: str, printed: str) -> Cell:
    outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": outputs, "source": source.rstrip("\n")}


def _commands(body: str) -> Iterator[Cell]:
    """A cell for each command and the lines after it, where a prompt sets commands off; else one for each line."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:] or body.splitlines(keepends=True):
        command, _, printed = part.partition("\n")
        yield _code(f"!{command}", printed)
