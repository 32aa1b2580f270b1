"""`local-dp docs` and `local-dp export`: the documentation as a site, and a real table to try."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.errors import InputError, unknown
from local_dp.experiments.api.declare import argument, option
from local_dp.experiments.text.screen import SCREEN

DEFAULT_SEED = 1
TABLES = ("fair",)


@dataclass(frozen=True)
class Docs:
    """Builds the documentation as a site and opens it: tutorials, protocols, gallery, reference.

    The site needs no network and no server. Building it needs the extra `[docs]`.
    """

    out: Path = option(Path("site"), "Folder for the site; an older site there is replaced", metavar="FOLDER")
    results: Path = option(Path("results"), "Folder of results, with the figures of the gallery", metavar="FOLDER")
    gallery: bool = option(
        True, "With the figures of the experiments; if there are no results, all are run at quick scale first", name="--gallery/--no-gallery"
    )
    open: bool = option(True, "Open it in the browser", name="--open/--no-open")

    def __call__(self) -> None:
        from local_dp.experiments.site.build import build_site, names_in

        if self.gallery and not names_in(self.results):
            from local_dp.experiments.cli.inspect.experiment import RunExperiment

            RunExperiment(name="all", full=False, seed=DEFAULT_SEED, out=self.results)()  # under two minutes on two cores
        SCREEN.working("building the site")
        page = build_site(self.out, self.results if self.gallery else None)
        SCREEN.tell(f"site: {page}")
        if self.open:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())


@dataclass(frozen=True)
class Export:
    """Writes a real table of an installed package as CSV; needs the extra `[examples]`."""

    table: str = argument("fair: 6,366 women's answers about their marriages (Fair 1978).", metavar="TABLE")
    file: Path = argument("The file to write.", metavar="FILE.csv")

    def __call__(self) -> None:
        if self.table not in TABLES:
            raise InputError(unknown("no table named", self.table, TABLES))
        SCREEN.working("loading statsmodels, which ships the table")
        try:
            from statsmodels.datasets import fair
        except ImportError:
            raise InputError("the table is part of statsmodels, which is not installed; run: pip install 'local-dp[examples]'") from None
        fair.load_pandas().data.to_csv(self.file, index=False)
