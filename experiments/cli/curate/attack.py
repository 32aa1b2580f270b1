"""Measures how much noisy answers about a table reveal: rows by reconstruction, members by tracing.

The table is your own: nothing is private here.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from local_dp.experiments.api.attack import Attacked, AttackOptions, reconstruct, trace
from local_dp.experiments.api.declare import option
from local_dp.experiments.cli.fields import json_option, show
from local_dp.experiments.text.screen import SCREEN


@dataclass(frozen=True, kw_only=True)
class Attacking(ABC):
    """The options of every attack."""

    example: ClassVar[str]
    records: Path = option(help="A CSV or Parquet table", metavar="FILE")
    question: str = option(help="A yes/no question that every row answers, such as 'affairs > 0'", metavar="Q")
    noise: float | None = option(None, "Standard deviation of the noise of each count", metavar="SD", unit="rows")
    epsilon: float | None = option(None, "Instead, the epsilon of a curator for all counts together, with delta 1e-6", metavar="E", unit="nats")
    seed: int | None = option(None, "Seed of the attack; default: random, printed", metavar="S")
    as_json: bool = json_option("the result")

    def __call__(self) -> None:
        SCREEN.working(f"attacking {self.records.name}")
        show(self.attack({"noise": self.noise, "epsilon": self.epsilon, "seed": self.seed}), self.as_json)

    @abstractmethod
    def attack(self, options: AttackOptions) -> Attacked:
        """The result."""


@dataclass(frozen=True, kw_only=True)
class Reconstruct(Attacking):
    """Guesses every row's answer from many noisy counts of random groups of rows."""

    example: ClassVar[str] = "reconstruct --records fair.csv --question 'affairs > 0' --noise 40"

    def attack(self, options: AttackOptions) -> Attacked:
        return reconstruct(self.records, self.question, **options)


@dataclass(frozen=True, kw_only=True)
class Trace(Attacking):
    """Identifies the members of a small group of rows that answer yes, from the noisy means of all their attributes."""

    example: ClassVar[str] = "trace --records fair.csv --question 'affairs > 0' --noise 0"
    members: int = option(25, "Number of rows in the group whose means are published", metavar="N")

    def attack(self, options: AttackOptions) -> Attacked:
        return trace(self.records, self.question, members=self.members, **options)


ATTACK: dict[str, type[Attacking]] = {"reconstruct": Reconstruct, "trace": Trace}
