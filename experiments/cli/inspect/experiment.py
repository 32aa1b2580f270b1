"""`local-dp experiment` and `local-dp report`: run experiments, write the report."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.errors import InputError
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.lab.catalogue import NAMES, chosen
from local_dp.experiments.lab.claim import Scale
from local_dp.experiments.lab.report import write_report
from local_dp.experiments.text.layout import paragraph, screen_width
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import SEED_BITS

DEFAULT_SEED = 1
DEFAULT_OUT = Path("results")


@dataclass(frozen=True)
class RunExperiment:
    """Runs an experiment, or all of them: claim, measurements, figures, tables and a verdict.

    Ctrl-C stops; the same command continues. A claim that is not shown prints its failed checks; the exit code is then 1.
    """

    name: str = argument(f"all, or one of: {'; '.join(NAMES)}.", metavar="NAME")
    full: bool = option(False, "All points (some 45 minutes for all experiments), or a few (4 minutes), the default", name="--full/--quick")
    seed: int = option(DEFAULT_SEED, "The same seed gives the same results, byte for byte", metavar="S")
    out: Path = option(DEFAULT_OUT, "Folder for the results; a stopped run continues from it", metavar="FOLDER")
    cluster: str = option("", "Dask scheduler whose workers measure the points, such as tcp://host:8786", metavar="URL")

    def __call__(self) -> int:
        from local_dp.experiments.lab.runner import run_experiments

        if not 0 <= self.seed < 1 << SEED_BITS:
            raise InputError(f"seed is {self.seed}; give a whole number from 0 to 2^{SEED_BITS} - 1")
        modules = chosen(self.name)
        scale: Scale = "full" if self.full else "quick"
        measured: dict[str, tuple[int, int]] = {}
        ended: list[str] = []

        def progress(running: str, done: int, total: int) -> None:
            measured[running] = done, total
            points, every = (sum(part) for part in zip(*measured.values(), strict=True))
            SCREEN.working(f"{points} of {every} points measured, {len(ended)} of {len(modules)} experiments concluded; now {running}")

        def concluded(name: str, verdict: str) -> None:
            ended.append(name)
            SCREEN.note("{}: {}/{} points measured; {}".format(name, *measured[name], verdict))

        with SCREEN.resumable():
            findings = run_experiments(modules, scale, self.seed, self.out, progress, concluded, cluster=self.cluster)
        SCREEN.working("writing the report")
        page = write_report(self.out)
        for name, finding in findings.items():
            SCREEN.tell(f"{name}: {finding.verdict}")
            for check in finding.checks:
                if not check.shown:
                    SCREEN.tell(paragraph(f"failed: {check.statement} ({check.evidence})", screen_width(), "  "))
        SCREEN.tell(f"report: {page}")
        return int(any(finding.verdict != "shown" for finding in findings.values()))


@dataclass(frozen=True)
class Report:
    """Writes pages about a folder of results: an index, report.html, and a page for each chapter.

    They need no network and no scripts.
    """

    folder: Path = argument("Folder of results, as in experiment --out.", metavar="FOLDER", default=DEFAULT_OUT)

    def __call__(self) -> None:
        SCREEN.working("writing the report")
        SCREEN.tell(f"report: {write_report(self.folder)}")
