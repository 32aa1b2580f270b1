"""`local-dp protocols`, `randomizers`, `queries` and `describe`: what there is."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from importlib.resources import files
from typing import Any

from local_dp.curator.catalogue import mechanisms, privacy_in
from local_dp.errors import InputError, RefusedError, unknown
from local_dp.experiments.cli.fields import argument
from local_dp.experiments.text.layout import held, paragraph, screen_width
from local_dp.experiments.text.screen import SCREEN
from local_dp.protocols.registry import PROTOCOLS
from local_dp.queries.registry import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS


@dataclass(frozen=True)
class Protocols:
    """Lists the protocols: model, parameters with their defaults, source."""

    def __call__(self) -> None:
        SCREEN.tell("\n".join(_listed(name, PROTOCOLS, lambda kind: f" ({kind.model()})") for name in PROTOCOLS))


@dataclass(frozen=True)
class Randomizers:
    """Lists the randomizers on this machine, those of installed packages included."""

    def __call__(self) -> None:
        SCREEN.tell("\n".join(_listed(name, RANDOMIZERS) for name in RANDOMIZERS))


@dataclass(frozen=True)
class Queries:
    """Lists the queries: what a client may be asked about its record."""

    def __call__(self) -> None:
        SCREEN.tell("\n".join(_listed(name, QUERIES) for name in QUERIES))


@dataclass(frozen=True)
class Mechanisms:
    """Lists the trusted curator's mechanisms, and which privacy each has: pure or approximate."""

    def __call__(self) -> None:
        SCREEN.tell("\n".join(_entry(f"{kind.__name__} ({privacy_in(kind)}, neighbours: {kind.neighbours})", kind) for kind in mechanisms()))


@dataclass(frozen=True)
class Describe:
    """Describes one protocol, randomizer or query: claim, privacy, utility, cost, parameters, source."""

    name: str = argument("A protocol, a randomizer or a query.", metavar="NAME")

    def __call__(self) -> None:
        kind, label = _found(self.name)
        width = screen_width()
        told = [paragraph(" ".join(each.split()), width) for each in (inspect.getdoc(kind) or "").split("\n\n")]
        last = "\n".join(paragraph(line, width, "  ") for line in _facts(kind))
        SCREEN.tell("\n\n".join((f"{self.name} ({label})", *told, last)))


def _found(name: str) -> tuple[Any, str]:
    """The class of this name, and what it is. Raises InputError."""
    if name in PROTOCOLS:
        return PROTOCOLS[name], f"protocol, model {PROTOCOLS[name].model()}"
    if name in RANDOMIZERS:
        return RANDOMIZERS[name], "randomizer"
    if name in QUERIES:
        return QUERIES[name], "query"
    raise InputError(unknown("no protocol, randomizer or query", name, (*PROTOCOLS, *RANDOMIZERS, *QUERIES)))


def _facts(kind: Any) -> list[str]:
    """Its parameters, and its source where it has one."""
    source = getattr(kind, "source", "")
    return [f"parameters: {_parameters(kind)}", *([f"source: {source}"] if source else [])]


def _listed(name: str, registry: Mapping[str, type[Any]], label: Callable[[Any], str] = lambda kind: "") -> str:
    """An entry of a registry; of one whose package cannot be imported, why not, and the others are none the worse."""
    try:
        kind = registry[name]
        return _entry(f"{name}{label(kind)}", kind)
    except RefusedError as error:
        return "\n".join((name, *(f"  {line}" for line in paragraph(f"not usable: {error}", screen_width() - 2, "  ").splitlines())))


def _entry(heading: str, kind: Any) -> str:
    """One entry of a list: name, claim, parameters, source."""
    claim = (inspect.getdoc(kind) or "").split("\n")[0]
    width = screen_width() - 2
    told = (claim, *_facts(kind))
    return "\n".join((heading, *(f"  {line}" for each in told for line in paragraph(each, width, "  ").splitlines())))


def _parameters(kind: Any) -> str:
    """The parameters, with their defaults where they have one."""
    shown = []
    for field in fields(kind):
        if field.name == "word_bits":  # for verification only
            continue
        value = ";".join(field.default) if isinstance(field.default, tuple) else field.default
        shown.append(held(f"{field.name}={value if value is not None else ''}" if field.default is not MISSING else field.name))
    return ", ".join(shown)


@dataclass(frozen=True)
class Schema:
    """Prints the JSON schema of what `run --json` and `server --json` print."""

    def __call__(self) -> None:
        SCREEN.tell(files("local_dp.experiments.tiers").joinpath("outcome.schema.json").read_text().rstrip())
