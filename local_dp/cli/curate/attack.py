"""Measures how much noisy answers about a table reveal: rows by reconstruction, members by tracing.

The table is your own: nothing is private here.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from local_dp.api.attack import Attacked, reconstruct, trace
from local_dp.api.declare import option
from local_dp.cli.fields import Reading, json_option, show
from local_dp.text.screen import SCREEN


@dataclass(frozen=True, kw_only=True)
class Attacking(Reading):
    """The options of every attack."""

    summary: ClassVar[str]
    example: ClassVar[str]
    attack: ClassVar[Callable[..., Attacked]]
    records: Path = option(brief="A CSV, TSV, Excel or Parquet file, or a folder", metavar="FILE")
    question: str = option(
        brief="Yes/no question that every row answers", help="Such as 'affairs > 0'", metavar="Q"
    )
    noise: float | None = option(
        None, "Standard deviation of the noise of each count", metavar="SD", unit="rows"
    )
    epsilon: float | None = option(
        None,
        "Instead of noise: a curator's epsilon for all counts",
        help="With delta 1e-6",
        metavar="E",
        unit="nats",
    )
    seed: int | None = option(None, "Seed of the attack; default: random, printed", metavar="S")
    as_json: bool = json_option("the result")

    def __call__(self) -> None:
        SCREEN.working(f"attacking {self.records.name}")
        how = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if each.name not in ("records", "csv", "dates", "as_json")
        }
        show(type(self).attack(self.read(self.records), **how), self.as_json)


@dataclass(frozen=True, kw_only=True)
class Reconstruct(Attacking):
    """Guesses every row's answer from many noisy counts of random groups of rows."""

    summary = "Guesses every row's answer from noisy counts of groups"
    example = "reconstruct --records fair.csv --question 'affairs > 0' --noise 40"
    attack = reconstruct


@dataclass(frozen=True, kw_only=True)
class Trace(Attacking):
    """Identifies the members of a small group of rows that answer yes, from the noisy means of all
    their attributes."""

    summary = "Finds the members of a group from its noisy means"
    example = "trace --records fair.csv --question 'affairs > 0' --noise 0"
    attack = trace
    members: int = option(25, "Number of rows in the group whose means are published", metavar="N")


ATTACK: dict[str, type[Attacking]] = {"reconstruct": Reconstruct, "trace": Trace}
