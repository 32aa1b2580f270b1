"""`local-dp docs`: the documentation as a site."""

from dataclasses import dataclass
from pathlib import Path

from local_dp.experiments.cli.fields import option
from local_dp.experiments.text.screen import SCREEN

DEFAULT_SEED = 1


@dataclass(frozen=True)
class Docs:
    """Builds the documentation as a site and opens it: tutorials, protocols, gallery, reference.

    The site is read without a network, and needs no server. Needs the extra `[docs]`.
    """

    out: Path = option(Path("site"), "The folder for the site; an older one there is replaced", metavar="FOLDER")
    results: Path = option(Path("results"), "A folder of results, whose figures make the gallery", metavar="FOLDER")
    gallery: bool = option(
        True, "With the figures of the experiments; where there are no results, all are run at quick scale first", name="--gallery/--no-gallery"
    )
    open: bool = option(True, "Open it in the browser", name="--open/--no-open")

    def __call__(self) -> None:
        from local_dp.experiments.site.build import build_site
        from local_dp.experiments.site.gallery import names_in

        if self.gallery and not names_in(self.results):
            self._experiments()
        SCREEN.working("building the site")
        page = build_site(self.out, self.results if self.gallery else None)
        SCREEN.tell(f"site: {page}")
        if self.open:
            import webbrowser

            webbrowser.open(page.resolve().as_uri())

    def _experiments(self) -> None:
        """All of them at quick scale: under two minutes on two cores."""
        from local_dp.experiments.cli.inspect.experiment import RunExperiment

        RunExperiment(name="all", full=False, seed=DEFAULT_SEED, out=self.results)()
