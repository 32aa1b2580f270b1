"""All mechanisms, and the kind of privacy of each, read from its class."""

from importlib import import_module
from pkgutil import walk_packages
from typing import Any, get_args, get_type_hints

from local_dp import curator
from local_dp.curator.mechanism import Mechanism
from local_dp.loss import Approximate, Concentrated, Pure

_KINDS: dict[Any, str] = {Pure: "pure", Approximate: "approximate", Concentrated: "concentrated"}


def mechanisms() -> list[type[Mechanism[Any, Any, Any]]]:
    """Every mechanism that the curator's modules define, sorted by the name of its class."""
    for module in walk_packages(curator.__path__, f"{curator.__name__}."):
        import_module(module.name)
    kinds = [kind for kind in _below(Mechanism) if not kind.__abstractmethods__ and kind.__module__.startswith(curator.__name__)]
    return sorted(kinds, key=lambda kind: kind.__name__)


def _below(kind: type[Any]) -> set[type[Any]]:
    return {each for child in kind.__subclasses__() for each in (child, *_below(child))}


def privacy_in(kind: type[Mechanism[Any, Any, Any]]) -> str:
    """Pure, approximate or concentrated, by the type of its loss; "that of its parts" where another mechanism decides it."""
    declared = vars(next(each for each in kind.__mro__ if "loss" in vars(each)))["loss"]
    loss = get_type_hints(declared.fget)["return"]
    if loss in _KINDS:
        return _KINDS[loss]
    kinds = get_args(loss)
    return "that of its parts" if not kinds else " or ".join(_KINDS[each] for each in kinds)
