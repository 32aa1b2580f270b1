"""`local-dp protocols`, `randomizers` and `describe`: what there is."""

import inspect
from dataclasses import MISSING, dataclass, fields
from typing import Any

from experiments.cli.fields import argument
from experiments.cli.screen import SCREEN
from experiments.text.layout import held, paragraph, screen_width
from local_dp.errors import InputError, unknown
from local_dp.protocols.registry import PROTOCOLS
from local_dp.randomizers.registry import RANDOMIZERS


@dataclass(frozen=True)
class Protocols:
    """Lists the protocols: model, parameters with their defaults, source."""

    def __call__(self) -> None:
        SCREEN.tell("\n".join(_entry(f"{name} ({kind.model()})", kind) for name, kind in PROTOCOLS.items()))


@dataclass(frozen=True)
class Randomizers:
    """Lists the randomizers on this machine, those of installed packages included."""

    def __call__(self) -> None:
        SCREEN.tell("\n".join(_entry(name, RANDOMIZERS[name]) for name in RANDOMIZERS))


@dataclass(frozen=True)
class Describe:
    """Describes one protocol or randomizer: claim, privacy, utility, cost, parameters, source."""

    name: str = argument("A protocol or a randomizer.", metavar="NAME")

    def __call__(self) -> None:
        if self.name in PROTOCOLS:
            kind: Any = PROTOCOLS[self.name]
            label = f"protocol, model {PROTOCOLS[self.name].model()}"
        elif self.name in RANDOMIZERS:
            kind, label = RANDOMIZERS[self.name], "randomizer"
        else:
            raise InputError(unknown("no protocol or randomizer", self.name, (*PROTOCOLS, *RANDOMIZERS)))
        width = screen_width()
        told = [paragraph(" ".join(each.split()), width) for each in (inspect.getdoc(kind) or "").split("\n\n")]
        last = "\n".join(paragraph(line, width, "  ") for line in (f"parameters: {_parameters(kind)}", f"source: {kind.source}"))
        SCREEN.tell("\n\n".join((f"{self.name} ({label})", *told, last)))


def _entry(heading: str, kind: Any) -> str:
    """One entry of a list: name, claim, parameters, source."""
    claim = (inspect.getdoc(kind) or "").split("\n")[0]
    width = screen_width() - 2
    told = (claim, f"parameters: {_parameters(kind)}", f"source: {kind.source}")
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
