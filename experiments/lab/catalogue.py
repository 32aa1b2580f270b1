"""The experiments by name. A module is imported only when its experiment is asked for."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from local_dp.errors import InputError, unknown
from local_dp.experiments.lab.claim import Experiment

ALL = "all"
_PACKAGE = "local_dp.experiments.claims"
_FOLDER = Path(__file__).parents[1] / "claims"
_FOLDERS = ("local", "frontier", "curator", "attacks")  # in the order of the report


def _modules() -> dict[str, str]:
    """Module by name: a claim is a file of a chapter's folder, or the file "claim" in a folder of
    its own."""
    files = [
        file
        for folder in _FOLDERS
        for file in sorted(
            (*(_FOLDER / folder).glob("[a-z]*.py"), *(_FOLDER / folder).glob("*/claim.py")),
            key=_stem,
        )
    ]
    places = {
        _stem(file): ".".join((_PACKAGE, *file.relative_to(_FOLDER).with_suffix("").parts))
        for file in files
    }
    return {
        re.sub(r"(?<=\d)_(?=\d)", ".", stem).replace("_", "-"): place
        for stem, place in places.items()
    }


def _stem(file: Path) -> str:
    """The name of a claim's file, or of the folder that it fills."""
    return file.parent.name if file.stem == "claim" else file.stem


_MODULES = _modules()
NAMES = tuple(_MODULES)


def module_of(name: str) -> str:
    """The module that holds the experiment `name`."""
    if name not in _MODULES:
        raise InputError(unknown("no experiment named", name, (*NAMES, ALL)))
    return _MODULES[name]


def load(module: str) -> Experiment[Any, Any]:
    """The experiment of a module: its constant EXPERIMENT."""
    experiment = import_module(module).EXPERIMENT
    assert isinstance(experiment, Experiment)
    return experiment


def chosen(name: str) -> list[str]:
    """The modules of one experiment, or of every experiment for "all"."""
    return [module_of(each) for each in (NAMES if name == ALL else (name,))]
