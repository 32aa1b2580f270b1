"""`local-dp experiment` and `local-dp report`: run experiments, write the report."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.errors import InputError
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.lab.catalogue import NAMES, chosen
from local_dp.experiments.lab.claim import Scale
from local_dp.experiments.lab.report import write_report
from local_dp.experiments.lab.results import read_results
from local_dp.experiments.text.screen import SCREEN
from local_dp.noise import SEED_BITS

DEFAULT_SEED = 1
DEFAULT_OUT = Path("results")


@dataclass(frozen=True)
class RunExperiment:
    """Runs an experiment, or all of them: claim, measurements, figures, tables and a verdict.

    Ctrl-C stops; the same command continues. The exit code is 1 if a claim is not shown.
    """

    name: str = argument(f"One of {', '.join(NAMES)}, or all.", metavar="NAME")
    full: bool = option(False, "All points (some 45 minutes for all experiments), or a few (2 minutes), the default", name="--full/--quick")
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
            verdicts = run_experiments(modules, scale, self.seed, self.out, progress, concluded, cluster=self.cluster)
        SCREEN.working("writing the report")
        page = write_report(self.out)
        failed = [line for name, verdict in verdicts.items() if verdict != "shown" for line in self._failed_checks(name)]
        SCREEN.tell("\n".join((*(f"{each}: {verdict}" for each, verdict in verdicts.items()), *failed, f"report: {page}")))
        return 1 if failed else 0

    def _failed_checks(self, name: str) -> list[str]:
        """The checks of an experiment that do not hold, a line each."""
        results = read_results(self.out / name)
        checks = (results or {"checks": []})["checks"]
        return [f"{name}: not shown: {check['statement']} ({check['evidence']})" for check in checks if not check["shown"]]


@dataclass(frozen=True)
class Report:
    """Writes pages about a folder of results: an index, report.html, and a page for each chapter.

    They need no network and no scripts.
    """

    folder: Path = argument("Folder of results, as in experiment --out.", metavar="FOLDER", default=DEFAULT_OUT)

    def __call__(self) -> None:
        SCREEN.working("writing the report")
        SCREEN.tell(f"report: {write_report(self.folder)}")
