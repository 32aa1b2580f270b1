"""Privacy losses as data, in whole numbers: epsilon in nano-nats, delta and rho in units of 1e-18;
and e^epsilon as a fraction just below it.

Adding losses is basic composition (KLNRS Claim 2.1). The type of the sum says which privacy an
algorithm has: pure and pure is pure, otherwise approximate; concentrated with concentrated or pure
is concentrated. `accounting` composes losses by better rules.
"""

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, TypeAlias, overload

from local_dp.errors import InputError

NANO = 1_000_000_000
MAX_EPSILON = 24.0  # beyond it a report is the value itself for every practical purpose


def nano_epsilon(epsilon: float) -> int:
    """epsilon (nats) as whole nano-nats, rounded down (towards privacy). Raises InputError unless
    1e-9 <= epsilon <= 24."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float):
        raise InputError(f"epsilon is {epsilon!r}; give a number of nats in (0, {MAX_EPSILON:g}]")
    if not 1 / NANO <= epsilon <= MAX_EPSILON:  # also false for NaN
        raise InputError(
            f"epsilon is {epsilon!r}; it must lie between 1e-9 and {MAX_EPSILON:g} nats"
        )
    # 1e-12 nats: absorbs the float error of products such as 0.7 * 1e9
    return math.floor(epsilon * NANO + 1e-3)


def split_epsilon(epsilon: float, parts: int) -> float:
    """The largest epsilon that can be charged `parts` times within `epsilon`."""
    if parts < 1:
        raise InputError(f"cannot split a budget into {parts} parts; give 1 or more")
    return nano_epsilon(epsilon) // parts / NANO


ATTO = 10**18


def atto_delta(delta: float) -> int:
    """delta as whole units of 1e-18, rounded down (towards privacy). Raises InputError unless 1e-18
    <= delta < 1."""
    # also false for NaN
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 1 / ATTO <= delta < 1:
        raise InputError(f"delta is {delta!r}; it must lie between 1e-18 and 1, 1 excluded")
    return max(1, math.floor(Fraction(repr(float(delta))) * ATTO))


def _check_whole(**parts: int) -> None:
    """A loss below 0 would be a refund."""
    for name, value in parts.items():
        if type(value) is not int or value < 0:
            raise InputError(f"{name} is {value!r}; a loss is a whole number, 0 or more")


@dataclass(frozen=True)
class Pure:
    """Pure privacy: Pr[A(z) in S] <= e^epsilon Pr[A(z') in S] for all neighbours z, z' and all S,
    epsilon = `nano` / 1e9 nats (KLNRS Definition 2.1)."""

    nano: int
    atto: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _check_whole(nano=self.nano)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g}"

    @property
    def epsilon(self) -> float:
        """In nats."""
        return self.nano / NANO

    @property
    def delta(self) -> float:
        return 0.0

    @overload
    def __add__(self, other: "Pure") -> "Pure": ...
    @overload
    def __add__(self, other: "Approximate") -> "Approximate": ...
    def __add__(self, other: "Pure | Approximate") -> "Pure | Approximate":
        if isinstance(other, Approximate):
            return other + self
        if not isinstance(other, Pure):
            return NotImplemented
        return Pure(self.nano + other.nano)


@dataclass(frozen=True)
class Approximate:
    """Approximate privacy: Pr[A(z) in S] <= e^epsilon Pr[A(z') in S] + delta, with epsilon = `nano`
    / 1e9 nats and delta = `atto` / 1e18."""

    nano: int
    atto: int

    def __post_init__(self) -> None:
        _check_whole(nano=self.nano, atto=self.atto)

    def __str__(self) -> str:
        return f"epsilon {self.epsilon:g} and delta {self.delta:g}"

    @property
    def epsilon(self) -> float:
        """In nats."""
        return self.nano / NANO

    @property
    def delta(self) -> float:
        return self.atto / ATTO

    def __add__(self, other: "Pure | Approximate") -> "Approximate":
        if not isinstance(other, Pure | Approximate):
            return NotImplemented
        return Approximate(self.nano + other.nano, self.atto + other.atto)


Loss: TypeAlias = Pure | Approximate


@dataclass(frozen=True)
class Concentrated:
    """Zero-concentrated privacy: D_a(A(z) || A(z')) <= a rho for all neighbours z, z' and all
    orders a > 1, with rho = `atto_rho` / 1e18.

    Rhos add up, and e^2 / 2 is the rho of a pure loss e. It adds to no `Approximate`. Source: Bun,
    Steinke 2016, Lemma 2.3 and Proposition 3.3.
    """

    atto_rho: int

    def __post_init__(self) -> None:
        _check_whole(atto_rho=self.atto_rho)

    def __str__(self) -> str:
        return f"rho {self.rho:g}"

    @property
    def rho(self) -> float:
        """In nats, or squared nats."""
        return self.atto_rho / ATTO

    def __add__(self, other: "Concentrated | Pure") -> "Concentrated":
        if isinstance(other, Pure):
            # nano-nats squared are units of 1e-18
            return Concentrated(self.atto_rho + -(-(other.nano**2) // 2))
        if not isinstance(other, Concentrated):
            return NotImplemented
        return Concentrated(self.atto_rho + other.atto_rho)

    __radd__ = __add__


def approximate(epsilon: float, delta: float) -> Approximate:
    """The loss of epsilon (nats) and delta. Raises InputError unless 1e-9 <= epsilon <= 24 and
    1e-18 <= delta < 1."""
    return Approximate(nano_epsilon(epsilon), atto_delta(delta))


_PRIVATE_SIDE = 1 - Fraction(1, 10**50)


@lru_cache(maxsize=1024)
def exp_epsilon(nano: int | Fraction) -> Fraction:
    """A rational just below e^epsilon (relative gap 1e-50; none for 0), so that thresholds computed
    from it never exceed epsilon."""
    if nano == 0:
        return Fraction(1)
    with localcontext(prec=60):
        return Fraction((Decimal(nano.numerator) / (nano.denominator * NANO)).exp()) * _PRIVATE_SIDE


def nano_of_ratio(ratio: Fraction) -> int:
    """The least epsilon, in whole nano-nats, whose `exp_epsilon` reaches `ratio` >= 1: a loss
    computed from the worst ratio of two probabilities."""
    with localcontext(prec=60):
        nano = math.floor((Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln() * NANO)
    while exp_epsilon(nano) < ratio:
        nano += 1
    return nano
