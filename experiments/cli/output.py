"""What a person sees of a run: a progress line a round on standard error, one readable summary at the end."""

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from server.collecting import RoundProgress

SHOWN = 40  # estimates in a summary


class ProgressLines:
    """One line a round: replied/expected, epsilon spent, time left."""

    def __init__(self) -> None:
        self._shown = Progress(
            TextColumn("round {task.fields[round]}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f} replied  epsilon {task.fields[epsilon]:g}  {task.fields[left]:.0f} s left"),
            console=Console(stderr=True),
        )
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._shown.stop()

    def update(self, progress: RoundProgress) -> None:
        """Shows how far a round is."""
        fields: dict[str, Any] = {"epsilon": progress.epsilon, "left": progress.seconds_left}
        if progress.round not in self._tasks:
            self._shown.start()
            self._tasks[progress.round] = self._shown.add_task("", total=progress.asked, round=progress.round, **fields)
        self._shown.update(self._tasks[progress.round], completed=progress.answered, **fields)


def summary(data: dict[str, Any]) -> None:
    """Prints a run's outcome."""
    console = Console()
    clients, result = data["clients"], data["result"]
    stamp = "private: operating-system entropy" if data["private"] else f"{data['stamp']}, seed {data['seed']}"
    console.print(
        f"[bold]{data['protocol']}[/bold] ({data['model']}, {data['interaction']}) in tier {data['tier']}, epsilon {data['epsilon']:g}  [dim]{stamp}[/dim]",
        soft_wrap=True,
    )
    console.print(_result_table(result))
    if result["true_error"] is not None:
        console.print(f"true error {result['true_error']:.4g}")
    told = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in clients.items() if value or name in ("asked", "answered", "missing"))
    bits = sorted({round["bits_per_client"] for round in data["rounds"]})
    each = " or ".join(map(str, bits)) + (" bit" if bits == [1] else " bits")
    console.print(f"clients: {told}", soft_wrap=True)
    rounds = f"{len(data['rounds'])} round{'s' if len(data['rounds']) > 1 else ''}"
    console.print(
        f"{rounds}, {each} from each client asked, most epsilon spent by one client {data['max_epsilon_spent']:g}, {data['wall_s']:.2f} s", soft_wrap=True
    )


def _result_table(result: dict[str, Any]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    if "hypothesis" in result:
        for name in result["hypothesis"]:
            table.add_column(name, justify="right")
        table.add_row(*map(str, result["hypothesis"].values()))
        return table
    for name in ("", "estimate", "standard error", "95 % interval"):
        table.add_column(name, justify="left" if not name else "right", overflow="fold")
    rows = estimates(result)
    for label, estimate, error, (low, high) in rows[:SHOWN]:
        table.add_row(escape(label), f"{estimate:.4f}", f"{error:.4f}", f"{low:.4f} .. {high:.4f}")
    if len(rows) > SHOWN:
        table.add_row(f"... {len(rows) - SHOWN} more", "", "", "--json has all")
    return table


def estimates(result: dict[str, Any]) -> list[tuple[str, float, float, tuple[float, float]]]:
    """The result's estimates: (label, estimate, standard error, interval) each."""
    if not isinstance(result["estimate"], list):
        label = result.get("question") or result["column"]
        return [(label, result["estimate"], result["standard_error"], tuple(result["interval"]))]
    return list(zip(result["labels"], result["estimate"], result["standard_error"], map(tuple, result["interval"]), strict=True))
