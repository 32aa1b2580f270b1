"""The gallery: the figures of a folder of results, under the claims they belong to."""

import shutil
from html import escape
from pathlib import Path
from typing import Any

from local_dp.experiments.lab.catalogue import NAMES
from local_dp.experiments.lab.results import RESULTS, read_results
from local_dp.experiments.site.protocols import literal

FOLDER = "gallery"
_PLACE = f"{FOLDER}/index.md"
_INTRO = """# Gallery

Every figure here was made by an experiment. It stands under the claim that it tests, with the verdict of that run and the command that makes it again."""


def write_gallery(results: Path, target: Path) -> str:
    """Copies the figures and writes their page; gives its place."""
    folder = target / FOLDER
    folder.mkdir(parents=True)
    told = (_experiment(results / name, folder) for name in names_in(results))
    (target / _PLACE).write_text("\n\n".join((_INTRO, *filter(None, told))) + "\n")
    return _PLACE


def names_in(results: Path) -> list[str]:
    """The experiments with results in a folder, in the order of the catalogue; others after them."""
    found = {path.parent.name for path in results.glob(f"*/{RESULTS}")}
    return [*(name for name in NAMES if name in found), *sorted(found - set(NAMES))]


def _experiment(results: Path, folder: Path) -> str:
    """One experiment's part of the page; empty for one without figures."""
    data = read_results(results)
    if data is None or not data["figures"]:
        return ""
    figures = [_figure(results / figure["svg"], figure, folder / f"{results.name}-{figure['svg']}") for figure in data["figures"]]
    return "\n\n".join(
        (
            f"## {literal(data['title'])}",
            literal(data["claim"]),
            f"Verdict: **{data['verdict']}**, by `{data['command']}`. {literal(data['headline'])}",
            *figures,
        )
    )


def _figure(drawing: Path, figure: dict[str, Any], target: Path) -> str:
    """A figure with its caption."""
    shutil.copyfile(drawing, target)
    image = f'<img src="{escape(target.name)}" alt="{escape(figure["alt"])}" loading="lazy">'
    return f'<figure>\n<div class="drawing">{image}</div>\n<figcaption>{escape(figure["title"])}</figcaption>\n</figure>'
