"""The findings of an audit: claims that hold or do not, each with its evidence and, if broken, a witness."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

Grade: TypeAlias = Literal["exact", "declared", "black box"]
"""How much an audit shows.

`exact`: the loss is computed from the whole channel, and the sampler is enumerated against it. `declared`: the loss is computed from the channel as it is
declared, and the sampler was compared with it by drawing. `black box`: nothing is declared that could be enumerated, so that only a violation can be shown.
"""


@dataclass(frozen=True)
class Witness:
    """Two inputs, numbers or lists, and a report that the first sends `ratio` times as often as the second, under public coin `cell`; None is infinite."""

    inputs: tuple[Any, Any]
    output: str
    cell: int
    ratio: float | None

    def __str__(self) -> str:
        rarely = "never does" if self.ratio is None else f"does so {self.ratio:.9g} times less often"
        return f"input {self.inputs[0]} sends {self.output}, input {self.inputs[1]} {rarely} (public coin {self.cell})"


@dataclass(frozen=True)
class Finding:
    """One check: whether its claim holds, whether that is exact, and a sentence about it."""

    check: str
    holds: bool
    exact: bool
    said: str
    witness: Witness | None = None


@dataclass(frozen=True)
class Audit:
    """All findings on one randomizer. `loss` is in nats: exact, or None where it cannot be computed."""

    name: str
    epsilon: float
    evidence: str
    grade: Grade
    loss: float | None
    findings: tuple[Finding, ...]

    @property
    def holds(self) -> bool:
        return all(each.holds for each in self.findings)

    def describe(self) -> dict[str, Any]:
        findings = [asdict(each) for each in self.findings]
        return {"randomizer": self.name, "epsilon": self.epsilon, "evidence": self.evidence, "grade": self.grade, "holds": self.holds, "loss": self.loss,
                "findings": findings}  # fmt: skip
