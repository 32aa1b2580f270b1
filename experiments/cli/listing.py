"""`local-dp protocols`, `randomizers` and `describe`: what there is."""

import inspect
from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from local_dp.errors import InputError
from local_dp.protocols.registry import PROTOCOLS
from local_dp.randomizers.registry import RANDOMIZERS


def protocols() -> None:
    """Lists the protocols: model, parameters with their defaults, source."""
    for name, kind in PROTOCOLS.items():
        _show(f"{name} ({kind.model()})", kind)


def randomizers() -> None:
    """Lists the randomizers on this machine, those of installed packages included."""
    for name in RANDOMIZERS:
        _show(name, RANDOMIZERS[name])


def describe(name: Annotated[str, typer.Argument(metavar="NAME", help="A protocol or a randomizer.")]) -> None:
    """Describes one protocol or randomizer: claim, privacy, utility, cost, parameters, source."""
    if name in PROTOCOLS:
        kind: Any = PROTOCOLS[name]
        label = f"protocol, model {PROTOCOLS[name].model()}"
    elif name in RANDOMIZERS:
        kind, label = RANDOMIZERS[name], "randomizer"
    else:
        raise InputError(f"there is no protocol or randomizer {name!r}; `local-dp protocols` and `local-dp randomizers` list them")
    console = Console()
    console.print(f"[bold]{escape(name)}[/bold] ({label})\n", highlight=False)
    console.print(escape(inspect.getdoc(kind) or ""), highlight=False)
    console.print(f"\nparameters: {escape(_parameters(kind))}\nsource: {escape(kind.source)}", highlight=False)


def _show(heading: str, kind: Any) -> None:
    """One entry of a list: name, claim, parameters, source."""
    claim = (inspect.getdoc(kind) or "").split("\n")[0]
    told = (claim, f"parameters: {_parameters(kind)}", f"source: {kind.source}")
    Console().print(f"[bold]{escape(heading)}[/bold]", *(f"  {escape(line)}" for line in told), sep="\n", highlight=False, soft_wrap=True)


def _parameters(kind: Any) -> str:
    """The parameters, with their defaults where they have one."""
    shown = []
    for field in fields(kind):
        if field.name == "word_bits":  # for verification only
            continue
        value = ";".join(field.default) if isinstance(field.default, tuple) else field.default
        shown.append(f"{field.name}={value if value is not None else ''}" if field.default is not MISSING else field.name)
    return ", ".join(shown)
