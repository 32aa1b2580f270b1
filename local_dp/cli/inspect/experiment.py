"""`local-dp experiment` and `report`: run experiments, and write the report."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.api.declare import CLUSTER, Drawn, argument, option
from local_dp.errors import InputError
from local_dp.experiments.lab.catalogue import NAMES, chosen, load
from local_dp.experiments.lab.report import write_report
from local_dp.experiments.lab.shapes import Scale
from local_dp.noise import SEED_BITS
from local_dp.text.layout import paragraph, screen_width
from local_dp.text.screen import SCREEN

DEFAULT_SEED = 1
DEFAULT_OUT = Path("results")


@dataclass(frozen=True)
class RunExperiment(Drawn):
    """Runs an experiment, or all of them: claim, measurements, figures, tables and a verdict.

    Ctrl-C stops; the same command continues. A claim that is not shown prints its failed checks;
    the exit code is then 1.
    """

    omissions = frozenset(("figure_series", "figure_format"))
    name: str = argument("An experiment, or all", metavar="NAME", help="; ".join(NAMES))
    full: bool = option(
        False,
        "All points, or a few (the default)",
        help="A few take five to ten minutes for all experiments",
        name="--full/--quick",
    )
    seed: int = option(
        DEFAULT_SEED, "The same seed gives the same results, byte for byte", metavar="S"
    )
    out: Path = option(
        DEFAULT_OUT, "Folder for the results; a stopped run continues from it", metavar="FOLDER"
    )
    cluster: str = option("", CLUSTER, metavar="URL")

    def __call__(self) -> int:
        from local_dp.experiments.lab.runner import run_experiments
        from local_dp.experiments.lab.store import code_stamp, write_provenance

        drawing = self.drawing
        if not 0 <= self.seed < 1 << SEED_BITS:
            raise InputError(
                f"seed is {self.seed}; give a whole number from 0 to 2^{SEED_BITS} - 1"
            )
        modules = chosen(self.name)
        scale: Scale = "full" if self.full else "quick"
        counts: dict[str, tuple[int, int]] = {}
        conclusions: list[str] = []

        def progress(running: str, done: int, total: int) -> None:
            counts[running] = done, total
            points, every = (sum(part) for part in zip(*counts.values(), strict=True))
            SCREEN.working(
                f"{points} of {every} points measured, {len(conclusions)} of {len(modules)} "
                f"experiments concluded; now {running}",
                points / every,
            )

        def conclude(name: str, verdict: str) -> None:
            conclusions.append(name)
            module = next(each for each in modules if load(each).name == name)
            write_provenance(self.out / name / "provenance.json", self.seed, code_stamp(module))
            SCREEN.note("{}: {}/{} points measured; {}".format(name, *counts[name], verdict))

        with SCREEN.resumable():
            findings = run_experiments(
                modules,
                scale,
                self.seed,
                self.out,
                progress,
                conclude,
                cluster=self.cluster,
                drawing=drawing,
            )
        SCREEN.working("writing the report")
        page = write_report(self.out)
        for name, finding in findings.items():
            SCREEN.tell(f"{name}: {finding.verdict}")
            for check in finding.checks:
                if not check.shown:
                    SCREEN.tell(
                        paragraph(
                            f"failed: {check.statement} ({check.evidence})", screen_width(), "  "
                        )
                    )
        SCREEN.tell(f"report: {page}")
        return int(any(finding.verdict != "shown" for finding in findings.values()))


@dataclass(frozen=True)
class Report:
    """Writes pages about a folder of results: an index, report.html, and a page for each
    experiment.

    They need no network and no scripts.
    """

    folder: Path = argument(
        "Folder of results, as in experiment --out", metavar="FOLDER", default=DEFAULT_OUT
    )

    def __call__(self) -> None:
        SCREEN.working("writing the report")
        SCREEN.tell(f"report: {write_report(self.folder)}")
