"""A laboratory of the local model of differential privacy.

The front door, for a person's own table: each function asks one thing of it in a line, and gives a `Result`; `run` runs any protocol, and
`plan` says beforehand how many clients that takes. They live in `experiments.door`, which composes library, clients and server, and are imported when they
are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from experiments.door import attack, curate
    from experiments.door.audit import audit
    from experiments.door.best import best_for
    from experiments.door.budget import budget
    from experiments.door.functions import crosstab, frequency, histogram, learn, masked_parity, mean, quantiles, run, statistical_queries, survey
    from experiments.door.mix import mix
    from experiments.door.plan import Plan, plan
    from experiments.door.price import price
    from experiments.door.result import Result
    from experiments.door.shuffle import shuffled
    from local_dp.errors import InputError

_HOMES = {
    "experiments.door.audit": ("audit",),
    "experiments.door.best": ("best_for",),
    "experiments.door.budget": ("budget",),
    "experiments.door.functions": (
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
    "experiments.door.mix": ("mix",),
    "experiments.door.plan": ("Plan", "plan"),
    "experiments.door.price": ("price",),
    "experiments.door.result": ("Result",),
    "experiments.door.shuffle": ("shuffled",),
    "local_dp.errors": ("InputError",),
}
_ROOMS = {"attack": "experiments.door.attack", "curate": "experiments.door.curate"}  # names that hold several
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
