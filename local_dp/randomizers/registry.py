"""Which randomizers there are: the built-in ones, and those that installed packages offer under the entry-point group `local_dp.randomizers`."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from local_dp.errors import InputError, RefusedError
from local_dp.randomizers.base import Parameter, Randomizer
from local_dp.randomizers.binary_rr import BinaryRR
from local_dp.randomizers.characters import Characters
from local_dp.randomizers.discrete_laplace import DiscreteLaplace
from local_dp.randomizers.grr import GRR
from local_dp.randomizers.hadamard import Hadamard, SignedHadamard
from local_dp.randomizers.one_bit_mean import OneBitMean
from local_dp.randomizers.prefix_signs import PrefixSigns

GROUP = "local_dp.randomizers"
_KINDS: tuple[type[Randomizer], ...] = (BinaryRR, GRR, Hadamard, SignedHadamard, OneBitMean, DiscreteLaplace, PrefixSigns, Characters)
BUILT_IN: dict[str, type[Randomizer]] = {kind.name: kind for kind in _KINDS}


@cache
def _installed() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BUILT_IN}


def names() -> list[str]:
    """The names of all randomizers on this machine; a package cannot take the name of a built-in one."""
    return [*BUILT_IN, *sorted(_installed())]


def find(name: str) -> type[Randomizer]:
    """The randomizer class called `name`. Raises RefusedError("unknown-randomizer")."""
    if name in BUILT_IN:
        return BUILT_IN[name]
    point = _installed().get(name)
    if point is None:
        raise RefusedError("unknown-randomizer", f"no randomizer named {name!r} is installed; there are {', '.join(names())}")
    try:
        kind = point.load()
    except (ImportError, AttributeError) as error:
        raise RefusedError("unknown-randomizer", f"the package that offers {name!r} cannot be imported: {error}; reinstall it") from error
    if not (isinstance(kind, type) and issubclass(kind, Randomizer) and kind.name == name):
        raise RefusedError("unknown-randomizer", f"{point.value} is not a Randomizer named {name!r}; correct that package's entry point")
    return kind


def build(name: str, params: Mapping[str, Parameter]) -> Randomizer:
    """The randomizer `name` with these parameters. Raises RefusedError("unknown-randomizer" or "bad-parameters")."""
    kind = find(name)
    try:
        return kind(**params)  # type: ignore[arg-type]  # checked by the class itself
    except (TypeError, InputError) as error:
        raise RefusedError("bad-parameters", f"{name} does not accept {dict(params)}: {error}") from error
