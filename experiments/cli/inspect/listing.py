"""`local-dp protocols`, `randomizers`, `queries` and `describe`: what there is."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from importlib.resources import files
from textwrap import shorten
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
    """List the protocols."""

    def __call__(self) -> None:
        _show(PROTOCOLS, lambda kind: kind.model())


@dataclass(frozen=True)
class Randomizers:
    """List the randomizers."""

    def __call__(self) -> None:
        _show(RANDOMIZERS)


@dataclass(frozen=True)
class Queries:
    """List the queries."""

    def __call__(self) -> None:
        _show(QUERIES)


@dataclass(frozen=True)
class Mechanisms:
    """List the trusted curator's mechanisms: what each protects is pure, approximate or concentrated privacy."""

    def __call__(self) -> None:
        _show({kind.__name__: kind for kind in mechanisms()}, privacy_in)


@dataclass(frozen=True)
class Describe:
    """Describe a protocol, randomizer, query or mechanism."""

    name: str = argument("A protocol, randomizer, query or mechanism.", metavar="NAME")

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
    curated = {kind.__name__: kind for kind in mechanisms()}
    if name in curated:
        return curated[name], f"mechanism, {privacy_in(curated[name])}, neighbours: {curated[name].neighbours}"
    raise InputError(unknown("no protocol, randomizer, query or mechanism", name, (*PROTOCOLS, *RANDOMIZERS, *QUERIES, *curated)))


def _facts(kind: Any) -> list[str]:
    """Its parameters, and its source where it has one."""
    source = getattr(kind, "source", "")
    return [f"parameters: {_parameters(kind)}", *([f"source: {source}"] if source else [])]


def _show(registry: Mapping[str, type[Any]], label: Callable[[Any], str] = lambda kind: "") -> None:
    """A table of one line each, grouped by the folder that each class stands in. One whose package cannot be imported says so."""
    groups: dict[str, list[tuple[str, str, str]]] = {}
    for name in registry:
        try:
            kind = registry[name]
            groups.setdefault(_purpose(kind), []).append((name, label(kind), (inspect.getdoc(kind) or "").split("\n")[0]))
        except RefusedError as error:
            groups.setdefault("not usable", []).append((name, "", str(error)))
    for place, (purpose, rows) in enumerate(groups.items()):
        names, labels = (max(len(row[column]) for row in rows) for column in (0, 1))
        lines = (f"  {name:<{names}}  {kind:<{labels}}{'  ' if labels else ''}" for name, kind, _ in rows)
        shown = "\n".join(f"{line}{_within(screen_width() - len(line), claim)}".rstrip() for line, (*_, claim) in zip(lines, rows, strict=True))
        SCREEN.tell(f"{chr(10) if place else ''}{purpose}:\n{shown}")
    SCREEN.tell("\n`local-dp describe NAME` shows parameters, privacy, utility, cost and source.")


def _within(width: int, claim: str) -> str:
    """As much of a claim as fits, up to the end of a clause where there is one."""
    whole = claim.rstrip(".")
    if len(whole) <= width:
        return whole
    clauses = [whole[: match.start()] for match in re.finditer(r"[,;:](?= )| \(", whole[: width + 1])]
    clauses = [clause for clause in clauses if all(clause.count(left) == clause.count(right) for left, right in ("()", "[]", "{}"))]
    return clauses[-1] if clauses and len(clauses[-1]) > width / 2 else shorten(whole, max(width, 1), placeholder=" …")


def _purpose(kind: type[Any]) -> str:
    """The theme of a class: the folder of its module, or its package where it is not of this library."""
    home = kind.__module__.split(".")
    if home[0] != "local_dp":
        return f"from the package {home[0]}"
    return home[2].replace("_", " ") if len(home) > 3 else "others" if home[1] in ("randomizers", "protocols", "curator") else home[1]


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
