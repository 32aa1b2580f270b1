"""A small site of each kind of page, in a browser: what `test_site` sees of all of them, when there is time."""

from pathlib import Path

import pytest

from local_dp.experiments.lab.runner import run_experiments
from local_dp.experiments.site import reference
from local_dp.experiments.site.build import build_site
from tests.support.runs.browser import browser, faults, needs_chromium

ROOMS = ("local_dp.loss", "local_dp.server")
PAGES = ("index", "tutorials/survey", "protocols/mean", "gallery/index", "quantiles", "reference/local_dp.server")


@needs_chromium
@pytest.mark.long
def test_a_page_of_each_kind_is_fit_for_its_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {name: modules for name, modules in reference.rooms().items() if name in ROOMS}
    monkeypatch.setattr(reference, "rooms", lambda: kept)
    monkeypatch.setattr(reference, "front_door", list)
    run_experiments(["tests.support.inputs.toy_experiment"], "quick", 1, tmp_path / "results", workers=1)
    site = build_site(tmp_path / "out", tmp_path / "results", strict=False).parent
    with browser() as tab:
        wrong_pages = {page: wrong for page in PAGES if (wrong := faults(tab, site / f"{page}.html"))}
    assert wrong_pages == {}
