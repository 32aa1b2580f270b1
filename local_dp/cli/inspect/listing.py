"""Lists and descriptions: `local-dp protocols`, `randomizers`, `queries`, `mechanisms`, `describe`,
`schema` and `export`."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, make_dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from local_dp.api.curate import OTHERS
from local_dp.api.declare import argument
from local_dp.curator.mechanism import mechanisms, privacy_in
from local_dp.errors import InputError, RefusedError, unknown
from local_dp.protocols.local_protocol import PROTOCOLS, LocalProtocol
from local_dp.queries.query import QUERIES
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.registry import is_place, load
from local_dp.text.layout import held, paragraph, screen_width
from local_dp.text.screen import SCREEN
from local_dp.text.widgets import table


def _listing(
    help: str,
    registry: Callable[[], Mapping[str, type[Any]]],
    label: Callable[[Any], str] = lambda kind: "",
) -> type[Any]:
    """The command that lists the classes of a registry."""
    return make_dataclass(
        "Listing",
        (),
        frozen=True,
        namespace={"__doc__": help, "__call__": lambda self: _show(registry(), label)},
    )


Protocols = _listing("List the protocols.", lambda: PROTOCOLS, lambda kind: kind.model())


@dataclass(frozen=True)
class Randomizers:
    """List the randomizers and the protocols that each is for, the best first at epsilon 1."""

    def __call__(self) -> None:
        protocols = {name: PROTOCOLS[name]() for name in PROTOCOLS.usable()}
        uses = {name: _uses(name, protocols) for name in RANDOMIZERS.usable()}
        first = {name: next(iter(own.values()), math.inf) for name, own in uses.items()}
        _show(
            RANDOMIZERS,
            lambda kind: f"{first[kind.name]:.3g}".replace("inf", "-"),
            lambda kind: f"for {', '.join(uses[kind.name]) or 'no protocol'}",
            sorted(RANDOMIZERS, key=lambda name: first.get(name, math.inf)),
        )
        SCREEN.tell("Number: n times the variance of an estimate of the first protocol, epsilon 1.")


def _uses(name: str, protocols: Mapping[str, LocalProtocol[Any]]) -> dict[str, float]:
    """The protocols that a randomizer is for, with the variance of their estimates."""
    uses = {}
    for each, protocol in protocols.items():
        variance = protocol.need.variance(name) if protocol.need else None
        if variance is not None or name in protocol.asks:
            uses[each] = math.inf if variance is None else variance
    return uses


Queries = _listing("List the queries.", lambda: QUERIES)
Mechanisms = _listing(
    "List the trusted curator's mechanisms, with their privacy: pure, approximate or concentrated.",
    lambda: {kind.__name__: kind for kind in mechanisms()},
    privacy_in,
)


@dataclass(frozen=True)
class Describe:
    """Describe a protocol, randomizer, query or mechanism."""

    name: str = argument("A protocol, randomizer, query or mechanism", metavar="NAME")

    def __call__(self) -> None:
        kind, label = _class_of(self.name)
        width, source = screen_width(), getattr(kind, "source", "")
        text = [
            paragraph(" ".join(each.split()), width)
            for each in (inspect.getdoc(kind) or "").split("\n\n")
        ]
        facts = [f"parameters: {_parameters(kind)}", *([f"source: {source}"] if source else [])]
        if label.startswith("randomizer"):
            facts.append(_variance_of(kind))
        SCREEN.tell(
            "\n\n".join(
                (
                    f"{self.name} ({label})",
                    *text,
                    "\n".join(paragraph(line, width, "  ") for line in facts),
                )
            )
        )


def _variance_of(kind: Any) -> str:
    """The shape of a randomizer's variance, from its example: from no client to all of those whose
    value adds most to the first estimate."""
    made = kind.example()
    values = made.domain.some(256)
    truths = made.truths(values)[:, 0]
    laws = np.zeros((3, len(values)))
    for law, share in zip(laws, (0.0, 0.5, 1.0), strict=True):
        law[truths.argmin()], law[truths.argmax()] = 1 - share, share
    try:
        none, half, every = made.variance(values, laws)[:, 0].tolist()
    except NotImplementedError:
        return "variance: no closed form"
    return (
        f"variance: n times that of an estimate at epsilon 1 is {none:.3g} where no client adds to "
        f"it, {half:.3g} where half do and {every:.3g} where all do"
    )


def _class_of(name: str) -> tuple[Any, str]:
    """The class of this name, and its kind. Raises InputError."""
    if is_place(name):
        load(name.rpartition(":")[0] or name)
        for registry in (PROTOCOLS, RANDOMIZERS, QUERIES, OTHERS):
            with suppress(InputError):
                return registry.find(name), f"{registry.noun}, a plug-in"
    if name in PROTOCOLS:
        return PROTOCOLS[name], f"protocol, model {PROTOCOLS[name].model()}"
    if name in RANDOMIZERS:
        return RANDOMIZERS[name], "randomizer"
    if name in QUERIES:
        return QUERIES[name], "query"
    curators = {kind.__name__: kind for kind in mechanisms()}
    if name in curators:
        return curators[
            name
        ], f"mechanism, {privacy_in(curators[name])}, neighbours: {curators[name].neighbours}"
    everything = (*PROTOCOLS, *RANDOMIZERS, *QUERIES, *curators)
    listing = "local-dp protocols, randomizers, queries or mechanisms"
    raise InputError(
        unknown("no protocol, randomizer, query or mechanism", name, everything, listing)
    )


def _show(
    registry: Mapping[str, type[Any]],
    label: Callable[[Any], str],
    purpose: Callable[[Any], str] | None = None,
    names: Iterable[str] = (),
) -> None:
    """A line for each class, in the order of `names`, grouped by its purpose or its folder. A class
    that cannot be imported has its error as its line."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    for name in names or registry:
        try:
            kind = registry[name]
            groups.setdefault((purpose or _purpose)(kind), []).append(
                (f"  {name}", *filter(None, [label(kind)]), kind.summary)
            )
        except RefusedError as error:
            groups.setdefault("not usable", []).append((f"  {name}", str(error)))
    for place, (theme, rows) in enumerate(groups.items()):
        lines = table([""] * len(rows[0]), rows, screen_width())
        head = paragraph(f"{theme}:", screen_width())
        SCREEN.tell(f"{chr(10) if place else ''}{head}\n{lines}")
    SCREEN.tell("\n`local-dp describe NAME` shows parameters, privacy, utility, cost and source.")


def _purpose(kind: type[Any]) -> str:
    """The theme of a class: the folder of its module, or its package if it is a plug-in."""
    home = kind.__module__.split(".")
    if home[0] != "local_dp":
        return f"from the package {home[0]}"
    if len(home) > 3:
        return home[2].replace("_", " ")
    return "others" if home[1] in ("randomizers", "protocols", "curator") else home[1]


def _parameters(kind: Any) -> str:
    texts = []
    for field in fields(kind):
        if field.name == "word_bits":  # for verification only
            continue
        default = field.default
        value = ";".join(default) if isinstance(default, tuple) else default
        text = f"{field.name}={'' if value is None else value}"
        texts.append(field.name if default is MISSING else held(text))
    return ", ".join(texts)


@dataclass(frozen=True)
class Schema:
    """Prints the JSON schema of what `run --json` and `server --json` print."""

    def __call__(self) -> None:
        SCREEN.tell(
            files("local_dp.simulation").joinpath("outcome.schema.json").read_text().rstrip()
        )


TABLES = ("fair",)


@dataclass(frozen=True)
class Export:
    """Writes a real table of an installed package as CSV; needs the extra `[examples]`."""

    table: str = argument(
        "Name of the table: fair",
        help="6,366 women's answers about their marriages (Fair 1978)",
        metavar="TABLE",
    )
    file: Path = argument("The file to write", metavar="FILE.csv")

    def __call__(self) -> None:
        if self.table not in TABLES:
            raise InputError(unknown("no table named", self.table, TABLES))
        SCREEN.working("loading statsmodels, which ships the table")
        try:
            from statsmodels.datasets import fair
        except ImportError:
            raise InputError(
                "the table is part of statsmodels, which is not installed; run: pip install "
                "'local-dp[examples]'"
            ) from None
        fair.load_pandas().data.to_csv(self.file, index=False)
