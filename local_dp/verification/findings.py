"""The findings of an audit; the inputs, words and distances that its checks share, and the truth
that estimates are compared with."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Vectors
from local_dp.randomizers.randomizer import Randomizer

Grade: TypeAlias = Literal["exact", "declared", "black box"]
"""How much an audit shows.

`exact`: the loss is computed from the whole channel, and the sampler is enumerated against it.
`declared`: the loss is computed from the channel as it is declared, and the sampler was compared
with it by drawing. `black box`: nothing is declared that could be enumerated, so that only a
violation can be shown.
"""


@dataclass(frozen=True)
class Witness:
    """Two inputs, numbers or lists, and a report that the first sends `ratio` times as often as the
    second, under public coin `cell`; None is infinite."""

    inputs: tuple[Any, Any]
    output: str
    cell: int
    ratio: float | None

    def __str__(self) -> str:
        first, second = self.inputs
        rarely = "never does"
        if self.ratio is not None:
            rarely = f"does so {self.ratio:.9g} times less often"
        coin = f"(public coin {self.cell})"
        return f"input {first} sends {self.output}, input {second} {rarely} {coin}"


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
    """All findings on one randomizer. `loss` is in nats: exact, or None where it cannot be
    computed."""

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
        return {"randomizer": self.name, "epsilon": self.epsilon, "evidence": self.evidence,
        "grade": self.grade, "holds": self.holds, "loss": self.loss,
                "findings": findings}  # fmt: skip


MAX_VALUES = 130  # values of a larger lattice that are checked, both ends among them


NUMBERS = 1 << 23  # coordinates or words that one check draws
ALPHA = 1e-9  # the probability that drawing rejects a right sampler


def words_for(randomizer: Randomizer, n: int, seed: int = 7) -> Words:
    """Words of its own width for n reports, always the same for one seed."""
    dtype = np.uint64 if randomizer.width == 64 else np.uint32
    shape = n if randomizer.words == 1 else (n, randomizer.words)
    generator, last = np.random.default_rng(seed), randomizer.total - 1
    return np.asarray(generator.integers(0, last, shape, dtype=dtype, endpoint=True))


def within(randomizer: Randomizer, n: int, numbers: int = NUMBERS) -> int:
    """n, or fewer where their coordinates or words would exceed `numbers`."""
    domain = randomizer.domain
    each = max(randomizer.words, domain.d if isinstance(domain, Vectors) else 1)
    return max(2, min(n, numbers // each))


def divergence(rate: Floats, share: Floats) -> Floats:
    """KL(seen, share) of two coins, in nats, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(rate > 0, rate * np.log(rate / share), 0.0)
        odds = (1 - rate) / np.maximum(1 - share, 0.0)
        tails = np.where(rate < 1, (1 - rate) * np.log(odds), 0.0)
    return np.asarray(np.maximum(heads + tails, 0.0))


def spread(size: int, most: int) -> Ints:
    """At most `most` of 0..size-1, from end to end."""
    if size <= most:
        return np.arange(size)
    return np.unique(np.linspace(0, size - 1, most).astype(np.int64))
