"""The experiments by name. A module is imported only when its experiment is asked for."""

from importlib import import_module

from local_dp.errors import InputError, unknown
from local_dp.experiments.lab.claim import Experiment

NAMES = (
    "map",
    "randomized-response",
    "sq-to-local",
    "local-to-sq",
    "masked-parity",
    "theorem-5.1",
    "parity",
    "occam",
    "suite",
    "interaction",
    "planning",
    "stability",
    "pure-or-approximate",
    "sanitizing",
    "data-noise",
    "reconstruction",
    "tracing",
    "intervals",
    "price",
    "oracles",
    "pairs",
    "many-answers",
    "shuffled",
    "coins",
    "kinds-of-interaction",
    "margins",
    "one-round-parity",
    "asking-again",
)
ALL = "all"


def module_of(name: str) -> str:
    """The module that holds the experiment `name`."""
    if name not in NAMES:
        raise InputError(unknown("no experiment named", name, (*NAMES, ALL)))
    return f"local_dp.experiments.claims.{name.replace('-', '_').replace('.', '_')}"


def load(module: str) -> Experiment:
    """The experiment of a module: its constant EXPERIMENT."""
    experiment = import_module(module).EXPERIMENT
    assert isinstance(experiment, Experiment)
    return experiment


def chosen(name: str) -> list[str]:
    """The modules of one experiment, or of every experiment for "all"."""
    return [module_of(each) for each in (NAMES if name == ALL else (name,))]
