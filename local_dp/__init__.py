"""A laboratory of the local model of differential privacy.

The Python interface, for a person's own table: each function asks one question of it and returns a `Result`. `run` runs any protocol; `plan` computes
how many clients an accuracy takes. The functions are defined in `local_dp.experiments.api` and imported at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_dp.errors import InputError
    from local_dp.experiments.api import attack, curate
    from local_dp.experiments.api.audit import audit
    from local_dp.experiments.api.best import best_for
    from local_dp.experiments.api.budget import budget
    from local_dp.experiments.api.functions import crosstab, frequency, histogram, learn, masked_parity, mean, quantiles, run, statistical_queries, survey
    from local_dp.experiments.api.mix import mix
    from local_dp.experiments.api.plan import Plan, plan
    from local_dp.experiments.api.price import price
    from local_dp.experiments.api.result import Result
    from local_dp.experiments.api.shuffle import shuffled

_HOMES = {
    "local_dp.experiments.api.audit": ("audit",),
    "local_dp.experiments.api.best": ("best_for",),
    "local_dp.experiments.api.budget": ("budget",),
    "local_dp.experiments.api.functions": (
        "crosstab",
        "frequency",
        "histogram",
        "learn",
        "masked_parity",
        "mean",
        "quantiles",
        "run",
        "statistical_queries",
        "survey",
    ),
    "local_dp.experiments.api.mix": ("mix",),
    "local_dp.experiments.api.plan": ("Plan", "plan"),
    "local_dp.experiments.api.price": ("price",),
    "local_dp.experiments.api.result": ("Result",),
    "local_dp.experiments.api.shuffle": ("shuffled",),
    "local_dp.errors": ("InputError",),
}
_ROOMS = {"attack": "local_dp.experiments.api.attack", "curate": "local_dp.experiments.api.curate"}  # names that hold several
_DOOR = {name: home for home, names in _HOMES.items() for name in names}
__all__ = [  # the names of the door, and the version
    "InputError",
    "Plan",
    "Result",
    "__version__",
    "attack",
    "audit",
    "best_for",
    "budget",
    "crosstab",
    "curate",
    "frequency",
    "histogram",
    "learn",
    "masked_parity",
    "mean",
    "mix",
    "plan",
    "price",
    "quantiles",
    "run",
    "shuffled",
    "statistical_queries",
    "survey",
]


def __getattr__(name: str) -> Any:
    """A name of the front door, imported when it is asked for (PEP 562)."""
    if name == "__version__":
        return import_module("importlib.metadata").version("local-dp")
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    if name not in _DOOR:
        raise AttributeError(f"module 'local_dp' has no attribute {name!r}")
    return getattr(import_module(_DOOR[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
