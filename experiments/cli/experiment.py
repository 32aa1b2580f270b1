"""The commands of the laboratory: run experiments, write the report. The command line registers these functions."""

from pathlib import Path
from typing import Annotated

import typer

from experiments.lab.catalogue import NAMES, chosen
from experiments.lab.claim import Scale
from experiments.lab.report import write_report
from local_dp.errors import InputError
from local_dp.noise import SEED_BITS

DEFAULT_SEED = 1
DEFAULT_OUT = Path("results")


def experiment(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}, or all.")],
    full: Annotated[bool, typer.Option("--full/--quick", help="Every point (up to 40 minutes for all) or a few (3 minutes).")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same results, byte for byte.")] = DEFAULT_SEED,
    out: Annotated[Path, typer.Option(help="The folder for the results; a stopped run goes on from what it holds.")] = DEFAULT_OUT,
) -> None:
    """Runs an experiment, or all of them: a claim, measurements on every core, figures, tables and a verdict. Ctrl-C stops; the same command goes on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

    from experiments.lab.runner import run_experiments

    if not 0 <= seed < 1 << SEED_BITS:
        raise InputError(f"seed is {seed}; give a whole number from 0 to 2^{SEED_BITS} - 1")
    modules = chosen(name)
    scale: Scale = "full" if full else "quick"
    columns = TextColumn("{task.description:<20}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[verdict]}")
    with Progress(*columns, console=Console(stderr=True)) as bar:
        tasks: dict[str, TaskID] = {}

        def progress(running: str, done: int, total: int) -> None:
            if running not in tasks:
                tasks[running] = bar.add_task(running, total=total, verdict="")
            bar.update(tasks[running], completed=done)

        def concluded(running: str, verdict: str) -> None:
            bar.update(tasks[running], verdict=verdict)

        try:
            verdicts = run_experiments(modules, scale, seed, out, progress, concluded)
        except KeyboardInterrupt:
            bar.console.print("stopped; what was measured is kept, and the same command goes on from it")
            raise typer.Exit(130) from None
    page = write_report(out)
    for each, verdict in verdicts.items():
        typer.echo(f"{each}: {verdict}")
    typer.echo(f"report: {page}")


def report(folder: Annotated[Path, typer.Argument(help="A folder of results, as given to experiment --out.")] = DEFAULT_OUT) -> None:
    """Writes one page, report.html, that explains everything in a folder of results. It needs no network and no scripts."""
    typer.echo(f"report: {write_report(folder)}")
