"""The total of many losses by every rule: basic, advanced, its tanh form, zCDP, exact; and lists of mechanisms as text.

Sources: Dwork, Rothblum, Vadhan 2010 (advanced); Bun, Steinke 2016 and Canonne, Kamath, Steinke 2020, Proposition 12 (zCDP); Kairouz, Oh, Viswanath 2015 and
Zhu, Dong, Wang 2022 (exact).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias, TypeVar

from local_dp.accounting.gaussian import DiscreteGaussian, Gaussian, conversion, gaussian_epsilon
from local_dp.accounting.lattice import Lattice, discrete_laplace
from local_dp.accounting.laws import Curve, Exact, Summed, binomial_curve
from local_dp.checks import check_share, check_whole, whole_number
from local_dp.errors import InputError, unknown
from local_dp.loss import NANO, Approximate, Concentrated, Pure, approximate, nano_epsilon

Part: TypeAlias = Exact | Concentrated
Losses: TypeAlias = Mapping[Part, int]
"""How many there are of each loss: `Counter` makes it of a list. All are fixed beforehand; the mechanisms may be chosen adaptively."""
P = TypeVar("P", bound=Part)

MAX_PARTS = 10**8
_LEAST = 1e-18  # delta
_UP = 1 + 1e-12  # more than the rounding of a few floats


def epsilon(losses: Mapping[P, int], delta: float, rule: str = "exact") -> float:
    """The least epsilon (nats) of all losses together beside `delta`, by the rule, rounded up; infinite where no epsilon goes with so small a delta.

    Raises InputError unless 0 < delta < 1, or for an unknown rule, no losses, more than 10^8 of one, or a concentrated one under "exact".
    """
    checked = _checked(losses, rule)
    check_share("delta", delta)
    return max(0.0, RULES[rule](checked, delta))


def delta(losses: Mapping[P, int], epsilon: float, rule: str = "exact") -> float:
    """The least delta, of 1e-18 or more, of all losses together beside `epsilon` (nats), by the rule, rounded up; 1 where it promises nothing."""
    checked = _checked(losses, rule)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon is {epsilon:g}; give a number of nats, 0 or more")
    if rule == "exact":
        return _optimal(checked).delta(epsilon)
    low, high = math.log(_LEAST), 0.0
    if RULES[rule](checked, _LEAST) <= epsilon:
        return _LEAST
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if RULES[rule](checked, math.exp(middle)) <= epsilon else (middle, high)
    return math.exp(high)


def _basic(losses: Losses, delta: float) -> float:
    """Epsilons and deltas add up; a part without an epsilon of its own gets an equal share of the remaining delta."""
    parts = _each(losses, delta)
    if not parts:
        return math.inf
    exact = (Fraction(part.nano, NANO) if isinstance(part, Pure | Approximate) else Fraction(eps) for part, (eps, _) in zip(losses, parts, strict=True))
    total = sum((eps * count for eps, count in zip(exact, losses.values(), strict=True)), Fraction(0))
    nearest = float(total)
    return nearest if nearest >= total else math.nextafter(nearest, math.inf)


def _spread(losses: Losses, delta: float, mean: Callable[[float], float]) -> float:
    """sqrt(2 ln(1 / d) sum eps^2) + sum eps mean(eps), d the remaining delta, or half of it if parts need some.

    `mean` is e^eps - 1 in the advanced rule. The tanh form has tanh(eps / 2), as eps tanh(eps / 2) is the largest expected loss.
    """
    rest = _rest(losses, delta) / (2 if _sharing(losses) else 1)
    parts = _each(losses, delta - rest) if _sharing(losses) else _each(losses, delta)
    if rest <= 0 or not parts:
        return math.inf
    squares = math.fsum(count * eps**2 for eps, count in parts)
    try:
        return (math.sqrt(-2 * math.log(rest) * squares) + math.fsum(count * eps * mean(eps) for eps, count in parts)) * _UP
    except OverflowError:
        return math.inf


def _zcdp(losses: Losses, delta: float) -> float:
    """The sum of all rho, eps^2 / 2 of a pure part and 1 / (2 sigma^2) of a Gaussian one, converted beside the remaining delta."""
    rest = _rest(losses, delta)
    return conversion(math.fsum(count * _rho(part) for part, count in losses.items()), rest) if rest > 0 else math.inf


def _optimal(losses: Losses) -> Curve | Summed:
    """The optimal composition: of the parts' worst laws, which no adaptive choice exceeds. Raises InputError for a part without a worst law."""
    ((part, count), *others) = losses.items()
    if isinstance(part, Pure) and part.nano and not others:
        return binomial_curve(part, count)
    exact = {part: count for part, count in losses.items() if not isinstance(part, Concentrated)}
    if len(exact) < len(losses):
        raise InputError("a concentrated loss has no worst law; choose the rule zcdp, or name the mechanism")
    return Summed.of(exact)


RULES: dict[str, Callable[[Losses, float], float]] = {
    "basic": _basic,
    "advanced": lambda losses, delta: _spread(losses, delta, math.expm1),
    "tanh": lambda losses, delta: _spread(losses, delta, lambda eps: math.tanh(eps / 2)),
    "zcdp": _zcdp,
    "exact": lambda losses, delta: _optimal(losses).epsilon(delta),
}
"""Each rule by its name: what losses come to beside a delta."""


def _checked(losses: Mapping[P, int], rule: str) -> Losses:
    if rule not in RULES:
        raise InputError(unknown("no rule", rule, RULES))
    checked = dict[Part, int]()
    for part, count in losses.items():
        check_whole("the number of equal losses", count, 1, MAX_PARTS)
        checked[part] = count
    if not checked:
        raise InputError("there are no losses; give at least one")
    return checked


def _own(part: Part) -> tuple[float, float] | None:
    """A part's own epsilon and delta; None where each delta has another epsilon."""
    if isinstance(part, Lattice):
        return part.epsilon, part.infinite / part.total
    return (part.epsilon, part.delta) if isinstance(part, Pure | Approximate) else None


def _rest(losses: Losses, delta: float) -> float:
    """What remains of delta beside the parts' own deltas."""
    return delta - math.fsum(count * own[1] for part, count in losses.items() if (own := _own(part)))


def _sharing(losses: Losses) -> int:
    """How many parts need a share of delta."""
    return sum(count for part, count in losses.items() if _own(part) is None)


def _each(losses: Losses, delta: float) -> list[tuple[float, int]]:
    """The epsilon of each part and its count; empty where delta is too small."""
    rest, sharing = _rest(losses, delta), _sharing(losses)
    if rest < 0 or (sharing and rest <= 0):
        return []
    return [(own[0] if (own := _own(part)) else _alone(part, rest / sharing), count) for part, count in losses.items()]


def _alone(part: Part, delta: float) -> float:
    """The epsilon of one release beside this delta."""
    if isinstance(part, Gaussian):
        return gaussian_epsilon(part.mu, delta)
    return conversion(part.rho, delta) if isinstance(part, Concentrated) else _optimal({part: 1}).epsilon(delta)


def _rho(part: Part) -> float:
    if isinstance(part, Concentrated):
        return part.rho
    if isinstance(part, Gaussian | DiscreteGaussian):
        return part.mu**2 / 2
    return part.epsilon**2 / 2


MOST_MOVED = 100


class Kind(NamedTuple):
    """The numbers that a name takes, how many of them are required, and their loss."""

    numbers: tuple[str, ...]
    required: int
    loss: Callable[[Sequence[str]], Part]


def _noise(numbers: Sequence[str]) -> Part:
    sensitivity = whole_number("the sensitivity", numbers[1]) if len(numbers) > 1 else 1
    check_whole("the sensitivity", sensitivity, 1, MOST_MOVED)
    return discrete_laplace(nano_epsilon(_number(numbers[0])), sensitivity)


KINDS = {
    "pure": Kind(("EPSILON",), 1, lambda numbers: Pure(nano_epsilon(_number(numbers[0])))),
    "approximate": Kind(("EPSILON", "DELTA"), 2, lambda numbers: approximate(_number(numbers[0]), _number(numbers[1]))),
    "discrete-laplace": Kind(("EPSILON", "SENSITIVITY"), 1, _noise),
    "gaussian": Kind(("SIGMA",), 1, lambda numbers: Gaussian.of_sigma(_number(numbers[0]))),
    "discrete-gaussian": Kind(("SIGMA",), 1, lambda numbers: DiscreteGaussian.of_sigma(_number(numbers[0]))),
}
"""Sigma is in units of the sensitivity; epsilon is the loss of one answer; SENSITIVITY is how much one record moves the sum."""


def losses_of(text: str) -> Counter[Part]:
    """How many there are of each loss in such a text. Raises InputError for an unknown name, bad numbers and bad counts."""
    losses: Counter[Part] = Counter()
    for term in re.split(r"\+(?=\s*[a-z]|\s*$)", text.strip().lower()):
        words = term.split()
        has_count = words[-2:-1] in (["x"], ["*"], ["×"])
        count = whole_number("the count", words[-1]) if has_count else 1
        check_whole("the count", count, 1, MAX_PARTS)
        losses[_part(words[:-2] if has_count else words)] += count
    return losses


def _part(words: Sequence[str]) -> Part:
    if not words:
        raise InputError("a term is empty; write such as 'pure 0.1 x 100 + gaussian 5'")
    name, *numbers = words
    if name not in KINDS:
        raise InputError(unknown("no kind of mechanism", name, KINDS))
    kind = KINDS[name]
    if not kind.required <= len(numbers) <= len(kind.numbers):
        spelled = " ".join((name, *kind.numbers[: kind.required], *(f"[{each}]" for each in kind.numbers[kind.required :])))
        raise InputError(f"{' '.join(words)!r} is not of the form {spelled!r}, which 'x COUNT' may follow")
    return kind.loss(numbers)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number") from None
