"""Tables and the line of work. rich draws them, and is imported only then."""

from collections.abc import Sequence
from io import StringIO
from typing import TYPE_CHECKING

from local_dp.foreign import shown

if TYPE_CHECKING:
    from rich.progress import Progress

_GAP = 2  # columns
_ENOUGH = 1 << 20


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """A table whose numbers stand right, in `width` columns, or with 0 as wide as it needs. On too
    narrow a screen each row is a list, with its headings."""
    from rich.box import SIMPLE_HEAD
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    lines = [tuple(map(_shown, row)) for row in (headings, *rows)]
    columns = list(zip(*lines, strict=True))
    tight = 0 < width < sum(max(map(cell_len, column)) + _GAP for column in columns) - _GAP
    grid = Table(
        box=SIMPLE_HEAD,
        show_header=any(headings),
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for place, (heading, *column) in enumerate(columns):
        words = place == 0 or not heading or all(cell[:1].isalpha() for cell in column if cell)
        # a heading may take several lines, but no number
        least = max(map(cell_len, (*heading.split(), *column)), default=0)
        if words:
            grid.add_column(Text(heading), overflow="fold")
        else:
            grid.add_column(Text(heading), justify="right", width=least if tight else None)
    for row in lines[1:]:
        grid.add_row(*map(Text, row))
    console = Console(file=StringIO(), width=_ENOUGH, color_system=None)
    if tight and any(headings) and console.measure(grid).minimum > width:
        return "\n\n".join(
            table(("", ""), list(zip(headings, row, strict=True)), width) for row in rows
        )
    with console.capture() as drawing:
        console.print(grid, width=width or None)
    return "\n".join(line.rstrip() for line in drawing.get().replace("\xa0", " ").splitlines())


def _shown(cell: str) -> str:
    return shown(cell.replace("\n", " "))


def progress() -> "Progress":
    """The line of work on standard error: the time since its start, a bar, the time that is left,
    and the work itself."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Column

    console = Console(stderr=True)
    line = Progress(
        TimeElapsedColumn(),
        BarColumn(10),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, ratio=1)),
        console=console,
        transient=True,
        expand=True,
        disable=not console.is_interactive,
        redirect_stdout=False,
        redirect_stderr=False,
        refresh_per_second=4,
        speed_estimate_period=1e9,  # seconds: all work so far
    )
    line.add_task("")
    return line
