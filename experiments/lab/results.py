"""The results of one experiment as files: results.json, a CSV file for each table, and for each figure a PNG, an SVG and a PDF file."""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

from local_dp.errors import InputError
from local_dp.experiments.lab.claim import Experiment, Figure, Finding, Regions, Scale
from local_dp.experiments.lab.figure_text import alt_text, key
from local_dp.experiments.lab.figures import save
from local_dp.experiments.lab.store import plain, write_text

Results: TypeAlias = Mapping[str, Any]
RESULTS = "results.json"
_DRAWN = ("svg", "png", "pdf")
_SIGNS = {"ε": "epsilon", "τ": "tau", "α": "alpha", "%": "percent"}


def command(name: str, scale: Scale, seed: int) -> str:
    """The command that repeats a run."""
    return f"local-dp experiment {name} --{scale} --seed {seed}"


def file_name(title: str) -> str:
    """A title as the stem of a file name: all its words in lower case, joined by hyphens."""
    for sign, word in _SIGNS.items():
        title = title.replace(sign, f" {word} ")
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "untitled"


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([list(columns), *rows])
    return text.getvalue()


def _distinct(stems: list[str]) -> list[str]:
    """The stems, numbered where two are equal."""
    return [stem if stems.count(stem) == 1 else f"{stem}-{place + 1}" for place, stem in enumerate(stems)]


def _figure_data(figure: Figure | Regions, stem: str) -> dict[str, Any]:
    kind = "regions" if isinstance(figure, Regions) else "curves"
    files = {ending: f"{stem}.{ending}" for ending in _DRAWN}
    return {"kind": kind, **files, "alt": alt_text(figure), "key": key(figure), **asdict(figure)}


def write_results(folder: Path, experiment: Experiment[Any, Any], finding: Finding, scale: Scale, seed: int, stamp: str) -> None:
    """Writes every file. Nothing in them but the figures' drawing depends on anything except the measurements, the scale and the seed: no time, no machine."""
    table_stems = _distinct([file_name(table.title) for table in finding.tables])
    figure_stems = _distinct([file_name(figure.name) for figure in finding.figures])
    for table, stem in zip(finding.tables, table_stems, strict=True):
        write_text(folder / f"{stem}.csv", as_csv(table.columns, plain(table.rows)))
    for figure, stem in zip(finding.figures, figure_stems, strict=True):
        save(figure, *(folder / f"{stem}.{ending}" for ending in _DRAWN))
    for name, certificate in finding.certificates.items():
        write_text(folder / f"{file_name(name)}.json", json.dumps(plain(certificate)) + "\n")
    results = {
        "name": experiment.name,
        "chapter": experiment.chapter.name,
        "title": experiment.title,
        "claim": experiment.claim,
        "source": experiment.source,
        "verdict": finding.verdict,
        "headline": finding.headline,
        "checks": [asdict(check) for check in finding.checks],
        "command": command(experiment.name, scale, seed),
        "scale": scale,
        "seed": seed,
        "code": stamp,
        "tables": [{"csv": f"{stem}.csv", **asdict(table)} for table, stem in zip(finding.tables, table_stems, strict=True)],
        "figures": [_figure_data(figure, stem) for figure, stem in zip(finding.figures, figure_stems, strict=True)],
        "notes": finding.notes,
        "certificates": [f"{file_name(name)}.json" for name in finding.certificates],
    }
    write_text(folder / RESULTS, json.dumps(plain(results), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def read_results(folder: Path) -> Results | None:
    """The results in a folder, or None if there are none. Raises InputError if they cannot be read."""
    path = folder / RESULTS
    if not path.exists():
        return None
    try:
        results: Results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}; run the experiment again") from None
    return results
