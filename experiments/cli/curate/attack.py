"""`local-dp attack`: what answers about one's own table would give away, by trying."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from local_dp.experiments.cli.fields import Kinds, option
from local_dp.experiments.text.layout import screen_width
from local_dp.experiments.text.screen import SCREEN

if TYPE_CHECKING:
    from local_dp.experiments.api.attack import Attacked, AttackOptions  # imported where it is used: help needs none of it


@dataclass(frozen=True, kw_only=True)
class Attacking(ABC):
    """What every attack is told."""

    example: ClassVar[str]
    records: Path = option(help="A CSV or Parquet table", metavar="FILE")
    question: str = option(help="A yes/no question that every row answers, such as 'affairs > 0'", metavar="Q")
    noise: float | None = option(None, "The standard deviation of each count's noise", metavar="SD", unit="rows")
    epsilon: float | None = option(None, "What a curator may lose by all counts together, with delta 1e-6", metavar="E", unit="nats")
    seed: int | None = option(None, "Repeats an attack; without it, one is drawn and shown", metavar="S")
    as_json: bool = option(False, "Print what was found as JSON, alone on standard output", name="--json")

    def __call__(self) -> None:
        SCREEN.working(f"attacking {self.records.name}")
        found = self.attack({"noise": self.noise, "epsilon": self.epsilon, "seed": self.seed})
        SCREEN.tell(json.dumps(found.data) if self.as_json else found.text(screen_width()))

    @abstractmethod
    def attack(self, how: "AttackOptions") -> "Attacked":
        """What it finds."""


@dataclass(frozen=True, kw_only=True)
class Reconstruct(Attacking):
    """Guesses every row's answer from many noisy counts of random groups of rows."""

    example: ClassVar[str] = "reconstruct --records fair.csv --question 'affairs > 0' --noise 40"

    def attack(self, how: "AttackOptions") -> "Attacked":
        from local_dp.experiments.api.attack import reconstruct

        return reconstruct(self.records, self.question, **how)


@dataclass(frozen=True, kw_only=True)
class Trace(Attacking):
    """Tells who is in a small group of rows that answer yes, from the noisy means of all their attributes."""

    example: ClassVar[str] = "trace --records fair.csv --question 'affairs > 0' --noise 0"
    members: int = option(25, "Rows in the group whose means are published", metavar="N")

    def attack(self, how: "AttackOptions") -> "Attacked":
        from local_dp.experiments.api.attack import trace

        return trace(self.records, self.question, members=self.members, **how)


KINDS: dict[str, type[Attacking]] = {"reconstruct": Reconstruct, "trace": Trace}


ATTACK = Kinds(
    "attack",
    KINDS,
    "Tries what noisy answers about a table would give away: rows by reconstruction, members by tracing.\n\nThe table is yours: nothing is private here.",
)
