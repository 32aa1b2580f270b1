"""A laboratory of the local model of differential privacy.

The Python interface for a table of your own: each function asks one question and returns a
`Result`. `run` runs any protocol; `plan` computes the number of clients for an accuracy. The
functions are defined in `local_dp.api` and imported at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_dp.api import attack, curate
    from local_dp.api.audit import audit
    from local_dp.api.costs import best_for, budget, mix, price, shuffled
    from local_dp.api.functions import (
        crosstab,
        frequency,
        heavy_hitters,
        histogram,
        learn,
        marginals,
        masked_parity,
        mean,
        quantiles,
        run,
        statistical_queries,
        std,
        survey,
        workload,
    )
    from local_dp.api.plan import Plan, plan
    from local_dp.api.randomizer import Privatizer, randomizer
    from local_dp.api.result import Result
    from local_dp.api.sweep import Compared, compare, sweep
    from local_dp.api.trusted import Release
    from local_dp.errors import InputError

_API = {
    "audit": "audit",
    "costs": "best_for budget mix price shuffled",
    "functions": (
        "crosstab frequency heavy_hitters histogram learn marginals masked_parity mean quantiles "
        "run statistical_queries std survey workload"
    ),
    "plan": "Plan plan",
    "randomizer": "Privatizer randomizer",
    "result": "Result",
    "sweep": "Compared compare sweep",
    "trusted": "Release",
}
_HOMES = {
    name: f"local_dp.api.{module}" for module, names in _API.items() for name in names.split()
} | {"InputError": "local_dp.errors"}
_MODULES = ("attack", "curate")
__all__ = [
    "Compared",
    "InputError",
    "Plan",
    "Privatizer",
    "Release",
    "Result",
    "__version__",
    "attack",
    "audit",
    "best_for",
    "budget",
    "compare",
    "crosstab",
    "curate",
]
__all__ += [
    "frequency",
    "heavy_hitters",
    "histogram",
    "learn",
    "marginals",
    "masked_parity",
    "mean",
    "mix",
    "plan",
    "price",
    "quantiles",
    "randomizer",
    "run",
    "shuffled",
]
__all__ += ["statistical_queries", "std", "survey", "sweep", "workload"]


def __getattr__(name: str) -> Any:
    """A name of the interface, imported at first use (PEP 562)."""
    if name == "__version__":
        return import_module("importlib.metadata").version("local-dp")
    if name in _MODULES:
        return import_module(f"local_dp.api.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'local_dp' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
