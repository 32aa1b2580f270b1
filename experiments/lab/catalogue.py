"""The experiments by name. A module is imported only when its experiment is asked for."""

from importlib import import_module

from local_dp.errors import InputError, unknown
from local_dp.experiments.lab.claim import Experiment
from local_dp.registry import is_place
from local_dp.registry import load as load_plug_in

ALL = "all"
_MODULES = {  # in the order of the report
    "interaction": "local_dp.experiments.claims.local.interaction.claim",
    "local-to-sq": "local_dp.experiments.claims.local.local_to_sq.claim",
    "map": "local_dp.experiments.claims.local.map.claim",
    "masked-parity": "local_dp.experiments.claims.local.masked_parity.claim",
    "occam": "local_dp.experiments.claims.local.occam",
    "parity": "local_dp.experiments.claims.local.parity",
    "parity-shuffled": "local_dp.experiments.claims.local.parity_shuffled",
    "planning": "local_dp.experiments.claims.local.planning",
    "randomized-response": "local_dp.experiments.claims.local.randomized_response",
    "shuffled": "local_dp.experiments.claims.local.shuffled",
    "sq-to-local": "local_dp.experiments.claims.local.sq_to_local",
    "suite": "local_dp.experiments.claims.local.suite.claim",
    "theorem-5.1": "local_dp.experiments.claims.local.theorem_5_1",
    "asking-again": "local_dp.experiments.claims.frontier.asking_again",
    "coins": "local_dp.experiments.claims.frontier.coins",
    "kinds-of-interaction": "local_dp.experiments.claims.frontier.kinds_of_interaction",
    "margins": "local_dp.experiments.claims.frontier.margins",
    "one-round-parity": "local_dp.experiments.claims.frontier.one_round_parity",
    "parity-any-rounds": "local_dp.experiments.claims.frontier.parity_any_rounds",
    "spare-clients": "local_dp.experiments.claims.frontier.spare_clients",
    "workloads": "local_dp.experiments.claims.frontier.workloads",
    "data-noise": "local_dp.experiments.claims.curator.data_noise",
    "intervals": "local_dp.experiments.claims.curator.intervals",
    "many-answers": "local_dp.experiments.claims.curator.many_answers.claim",
    "oracles": "local_dp.experiments.claims.curator.oracles.claim",
    "pairs": "local_dp.experiments.claims.curator.pairs",
    "price": "local_dp.experiments.claims.curator.price",
    "pure-or-approximate": "local_dp.experiments.claims.curator.pure_or_approximate.claim",
    "sanitizing": "local_dp.experiments.claims.curator.sanitizing",
    "stability": "local_dp.experiments.claims.curator.stability",
    "what-delta-buys": "local_dp.experiments.claims.curator.what_delta_buys",
    "reconstruction": "local_dp.experiments.claims.attacks.reconstruction",
    "tracing": "local_dp.experiments.claims.attacks.tracing.claim",
}
NAMES = tuple(_MODULES)


def module_of(name: str) -> str:
    """The module that holds the experiment `name`, or "path/file.py" or "package.module:EXPERIMENT"
    of a plug-in. Raises InputError."""
    if is_place(name):
        module = load_plug_in(name.removesuffix(":EXPERIMENT"))
        if not isinstance(getattr(module, "EXPERIMENT", None), Experiment):
            raise InputError(f"{name!r} has no experiment; give its module a constant EXPERIMENT")
        return module.__name__
    if name not in _MODULES:
        raise InputError(unknown("no experiment named", name, (*NAMES, ALL)))
    return _MODULES[name]


def load(module: str) -> Experiment:
    """The experiment of a module: its constant EXPERIMENT."""
    experiment: Experiment = import_module(module).EXPERIMENT
    return experiment


def chosen(name: str) -> list[str]:
    """The modules of one experiment, or of every experiment for "all"."""
    return [module_of(each) for each in (NAMES if name == ALL else (name,))]
