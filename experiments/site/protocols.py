"""A page for each protocol, from what the protocol says of itself: claim, formulas, cost, parameters, the clients it asks for."""

import inspect
import re
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from local_dp.interaction import Nonadaptive
from local_dp.protocols.local_protocol import MODELS, LocalProtocol
from local_dp.protocols.registry import PROTOCOLS

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0)
FOLDER = "protocols"


def write_protocols(target: Path) -> list[str]:
    """Writes the pages, the list of them first, and gives their places."""
    folder = target / FOLDER
    folder.mkdir(parents=True)
    (folder / "index.md").write_text(_index())
    for name in PROTOCOLS:
        (folder / f"{name}.md").write_text(page(name))
    return [f"{FOLDER}/index.md", *(f"{FOLDER}/{name}.md" for name in PROTOCOLS)]


def page(name: str) -> str:
    """The page of one protocol, as Markdown."""
    kind = PROTOCOLS[name]
    example = f"local-dp run {name} {kind.example}".strip()
    parts = (
        f"# {name}",
        f"*{kind.model()}: {MODELS[kind.model()]}. {_randomizers(kind)}*",
        *map(_in_parts, (inspect.getdoc(kind) or "").split("\n\n")),
        "## Parameters",
        _table(("parameter", "default", "meaning"), [_parameter(each) for each in fields(kind)]),
        "## Clients",
        "How many clients the parameters above ask for, for success in 95 % of the runs (epsilon in nats):",
        _table(("epsilon", "clients"), [(f"{epsilon:g}", f"{kind().clients(epsilon):,}") for epsilon in EPSILONS]),
        "## Run it",
        f"```sh\n{example}\n```",
        f"Source: {literal(kind.source)}. Code: [`{kind.__module__}.{kind.__name__}`][{kind.__module__}.{kind.__name__}]"
        if kind.__module__.startswith("local_dp.")
        else f"Source: {literal(kind.source)}. Code: `{kind.__module__}.{kind.__name__}`, of an installed package",
    )
    return "\n\n".join(parts) + "\n"


def _index() -> str:
    """The list of all protocols."""
    rows = [(f"[{name}]({name}.md)", PROTOCOLS[name].model(), literal(_claim(PROTOCOLS[name]))) for name in PROTOCOLS]
    told = "Complete local tasks. The model is read off the type of the algorithm: LNI asks in one round, LI in several, FI the same clients in several."
    return f"# Protocols\n\n{told}\n\n{_table(('name', 'model', 'claim'), rows)}\n"


def _claim(kind: type[LocalProtocol[Any]]) -> str:
    return (inspect.getdoc(kind) or "").split("\n", maxsplit=1)[0]


def _randomizers(kind: type[LocalProtocol[Any]]) -> str:
    """The randomizers of a protocol that asks once; another chooses as it goes on."""
    algorithm = kind().algorithm(1.0, kind().clients(1.0))
    if not isinstance(algorithm, Nonadaptive):
        return "Its rounds depend on what was answered before."
    names = sorted({query.randomizer.name for query in algorithm.queries})
    return f"Randomizer at epsilon 1: {', '.join(names)}."


def _parameter(each: "Field[Any]") -> tuple[str, str, str]:
    """One parameter's row."""
    default = each.default if each.default is not MISSING else ""
    shown = ";".join(map(str, default)) if isinstance(default, tuple) else "" if default is None else str(default)
    unit = each.metadata.get("unit", "")
    meaning = each.metadata.get("help", "")
    return f"`{each.name}`", f"`{shown}`" if shown else "", literal(f"{meaning} ({unit})" if unit else meaning)


def literal(text: str) -> str:
    """A docstring's text as Markdown: what is in backticks is code, and no other sign means anything."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(piece if piece.startswith("`") and piece.endswith("`") else _escaped(piece) for piece in pieces)


def _escaped(text: str) -> str:
    """Signs of Markdown with a backslash; < where it would open a tag."""
    return re.sub(r"<(?=[\w/!?])", "&lt;", re.sub(r"([\\*_>\[\]#|$])", r"\\\1", text))


def _in_parts(text: str) -> str:
    """A docstring's paragraph as Markdown; privacy, utility and cost begin paragraphs of their own."""
    return re.sub(r"(?:^|\s+)(Privacy|Utility|Cost)(?=[:,])", r"\n\n**\1**", literal(text)).strip()


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ("---",) * len(heads), *rows))
