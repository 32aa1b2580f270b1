"""The total of many losses by every rule: basic, advanced, its tanh form, zCDP, exact; and lists of
mechanisms as text.

Sources: Dwork, Rothblum, Vadhan 2010 (advanced); Bun, Steinke 2016 and Canonne, Kamath, Steinke
2020, Proposition 12 (zCDP); Kairouz, Oh, Viswanath 2015 and Zhu, Dong, Wang 2022 (exact).
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple, TypeAlias, TypeVar

from local_dp.accounting.laws import MAX_PARTS, Curve, Exact, Summed, binomial_curve
from local_dp.accounting.losses import (
    DiscreteGaussian,
    Gaussian,
    Lattice,
    conversion,
    discrete_laplace,
    gaussian_epsilon,
)
from local_dp.checks import check_share, check_whole, whole_number
from local_dp.errors import InputError, unknown
from local_dp.loss import (
    ATTO,
    NANO,
    Approximate,
    Concentrated,
    Pure,
    atto_delta,
    exp_epsilon,
    nano_epsilon,
)
from local_dp.optimise import crossing, least_whole

_TO_THE_DIGIT = 1 << 12  # parts; beyond, the log-domain curve, rounded up by a billionth
_DIGITS = 60  # every term is right to nearly as many: rounding is paid for by 1e-40


@lru_cache(maxsize=256)
def optimal_delta(part: Pure, parts: int, whole: Pure) -> int:
    """The least delta, in units of 1e-18 rounded up, with which `parts` adaptively chosen
    mechanisms of pure loss e = `part` are (eps, delta) together.

    delta = sum over l of C(k, l) max(0, e^(l e) - e^(eps + (k - l) e)) / (1 + e^e)^k, k = `parts`,
    eps = `whole`: exact (Kairouz, Oh, Viswanath 2015), and reached by k randomized responses.
    Deltas of the parts themselves are added to this.
    """
    check_whole("parts", parts, 1, MAX_PARTS)
    if parts > _TO_THE_DIGIT:
        return math.ceil(binomial_curve(part, parts).delta(whole.epsilon) * ATTO)
    with localcontext(prec=_DIGITS):
        step = (Decimal(part.nano) / NANO).exp()
        most = (Decimal(whole.nano) / NANO).exp()
        # below it the difference is negative
        least = max(0, math.ceil((whole.nano + parts * part.nano) / (2 * part.nano)))
        ways = Decimal(math.comb(parts, min(least, parts)))
        ahead = step**least
        behind = step ** (parts - least)
        total = Decimal(0)
        for likes in range(least, parts + 1):
            total += ways * max(Decimal(0), ahead - most * behind)
            ways = ways * (parts - likes) / (likes + 1)
            ahead = ahead * step
            behind = behind / step
        share = total / (1 + step) ** parts * (1 + Decimal(10) ** -40)
        return int((share * ATTO).to_integral_value(rounding=ROUND_CEILING))


def optimal_part(budget: Approximate, parts: int) -> Pure:
    """The largest pure loss of each of `parts` mechanisms within the budget, by optimal
    composition; by adding up where that allows more (k < 3)."""
    check_whole("parts", parts, 1, MAX_PARTS)
    too_much = least_whole(
        budget.nano // parts,
        budget.nano + 1,
        lambda nano: optimal_delta(Pure(nano), parts, Pure(budget.nano)) > budget.atto,
    )
    return _some(too_much - 1, budget, parts)


def advanced_part(budget: Approximate, parts: int) -> Pure:
    """The largest pure loss e with sqrt(2 k ln(1 / delta)) e + 2 k e^2 <= eps, k = `parts`: Theorem
    2.5. Below k = 32 at (1, 1e-6) it is less than eps / k."""
    check_whole("parts", parts, 1, MAX_PARTS)
    spread = math.sqrt(2 * parts * math.log(ATTO / budget.atto))
    square = spread**2 + 8 * parts * budget.epsilon
    root = 2 * budget.epsilon / (spread + math.sqrt(square))
    return _some(math.floor(root * (1 - 1e-12) * NANO), budget, parts)


def printed_part(budget: Approximate, parts: int) -> Pure:
    """eps / sqrt(8 k ln(1 / delta)): the simple split that the text solves Theorem 2.5 by, private
    for eps <= 2 ln(1 / delta)."""
    check_whole("parts", parts, 1, MAX_PARTS)
    spread = math.sqrt(8 * parts * math.log(ATTO / budget.atto))
    return _some(math.floor(budget.nano / spread * (1 - 1e-12)), budget, parts)


def _some(nano: int, budget: Approximate, parts: int) -> Pure:
    if nano < 1:
        raise InputError(
            f"{budget} in {parts} parts leaves less than 1e-9 nats for each; give a larger budget "
            "or fewer parts"
        )
    return Pure(nano)


L = TypeVar("L", Pure, Approximate, Concentrated)
_BEYOND = 1 + Fraction(1, 10**45)  # more than what `exp_epsilon` is below


def group_loss(loss: L, records: int) -> L:
    """The loss against `records` = k records at once: k eps, delta (e^(k eps) - 1) / (e^eps - 1),
    rounded up to 1e-18; k^2 rho.

    Exact: a coin with Pr[heads] = e^eps Pr[heads of its neighbour] + delta reaches it. The often
    printed e^(k eps) delta is too little for eps < ln 2. Source: Dwork, Roth 2014, Theorem 2.2,
    with the constants of the chain; Bun, Steinke 2016, Proposition 1.9.
    """
    check_whole("records", records, 1, 10**6)
    if isinstance(loss, Concentrated):
        return Concentrated(records**2 * loss.atto_rho)
    if isinstance(loss, Pure):
        return Pure(records * loss.nano)
    step = exp_epsilon(loss.nano)
    whole = exp_epsilon(min(records * loss.nano, 100 * NANO))  # beyond it every delta is 1
    chain = (whole * _BEYOND - 1) / (step - 1) if step > 1 else Fraction(records)
    return Approximate(records * loss.nano, min(ATTO, -int(-loss.atto * chain // 1)))


Part: TypeAlias = Exact | Concentrated
Losses: TypeAlias = Mapping[Part, int]
"""How many there are of each loss: `Counter` makes it of a list. All are fixed beforehand; the
mechanisms may be chosen adaptively."""
P = TypeVar("P", bound=Part)

_LEAST = 1e-18  # delta
_UP = 1 + 1e-12  # more than the rounding of a few floats


def epsilon(losses: Mapping[P, int], delta: float, rule: str = "exact") -> float:
    """The least epsilon (nats) of all losses together beside `delta`, by the rule, rounded up;
    infinite where no epsilon goes with so small a delta.

    Raises InputError unless 0 < delta < 1, or for an unknown rule, no losses, more than 10^8 of
    one, or a concentrated one under "exact".
    """
    valid = _check_losses(losses, rule)
    check_share("delta", delta)
    return max(0.0, RULES[rule](valid, delta))


def delta(losses: Mapping[P, int], epsilon: float, rule: str = "exact") -> float:
    """The least delta, of 1e-18 or more, of all losses together beside `epsilon` (nats), by the
    rule, rounded up; 1 where it promises nothing."""
    valid = _check_losses(losses, rule)
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise InputError(f"epsilon is {epsilon:g}; give a number of nats, 0 or more")
    if rule == "exact":
        return _optimal(valid).delta(epsilon)
    if RULES[rule](valid, _LEAST) <= epsilon:
        return _LEAST
    return math.exp(
        crossing(
            math.log(_LEAST), 0.0, lambda log: RULES[rule](valid, math.exp(log)) > epsilon, 60
        )[1]
    )


def _basic(losses: Losses, delta: float) -> float:
    """Epsilons and deltas add up; a part without an epsilon of its own gets an equal share of the
    remaining delta."""
    parts = _each(losses, delta)
    if not parts:
        return math.inf
    exact = (
        Fraction(part.nano, NANO) if isinstance(part, Pure | Approximate) else Fraction(eps)
        for part, (eps, _) in zip(losses, parts, strict=True)
    )
    total = sum(
        (eps * count for eps, count in zip(exact, losses.values(), strict=True)), Fraction(0)
    )
    nearest = float(total)
    return nearest if nearest >= total else math.nextafter(nearest, math.inf)


def _spread(losses: Losses, delta: float, mean: Callable[[float], float]) -> float:
    """sqrt(2 ln(1 / d) sum eps^2) + sum eps mean(eps), d the remaining delta, or half of it if
    parts need some; `mean` is e^eps - 1 or tanh(eps / 2)."""
    rest = _rest(losses, delta) / (2 if _sharing(losses) else 1)
    parts = _each(losses, delta - rest) if _sharing(losses) else _each(losses, delta)
    if rest <= 0 or not parts:
        return math.inf
    squares = math.fsum(count * eps**2 for eps, count in parts)
    try:
        deviation = math.sqrt(-2 * math.log(rest) * squares)
        mean_loss = math.fsum(count * eps * mean(eps) for eps, count in parts)
        return (deviation + mean_loss) * _UP
    except OverflowError:
        return math.inf


def _zcdp(losses: Losses, delta: float) -> float:
    """The sum of all rho, eps^2 / 2 of a pure part and 1 / (2 sigma^2) of a Gaussian one, converted
    beside the remaining delta."""
    rest = _rest(losses, delta)
    if rest > 0:
        return conversion(math.fsum(count * _rho(part) for part, count in losses.items()), rest)
    return math.inf


def _optimal(losses: Losses) -> Curve | Summed:
    """The optimal composition: of the parts' worst laws, which no adaptive choice exceeds. Raises
    InputError for a part without a worst law."""
    ((part, count), *others) = losses.items()
    if isinstance(part, Pure) and part.nano and not others:
        return binomial_curve(part, count)
    exact = {part: count for part, count in losses.items() if not isinstance(part, Concentrated)}
    if len(exact) < len(losses):
        raise InputError(
            "a concentrated loss has no worst law; choose the rule zcdp, or name the mechanism"
        )
    return Summed.of(exact)


_TINY = 1e-20  # beside less, transforms, and laws cut off at a probability of 1e-88, say too much


def _exact(losses: Losses, delta: float) -> float:
    """The optimal composition; beside a tiny delta the least of the rules."""
    least = _optimal(losses).epsilon(delta)
    return least if delta > _TINY else min(least, _basic(losses, delta), _zcdp(losses, delta))


RULES: dict[str, Callable[[Losses, float], float]] = {
    "basic": _basic,
    "advanced": lambda losses, delta: _spread(losses, delta, math.expm1),
    "tanh": lambda losses, delta: _spread(losses, delta, lambda eps: math.tanh(eps / 2)),
    "zcdp": _zcdp,
    "exact": _exact,
}
"""Each rule by its name: what losses come to beside a delta."""


def _check_losses(losses: Mapping[P, int], rule: str) -> Losses:
    if rule not in RULES:
        raise InputError(unknown("no rule", rule, RULES))
    valid = dict[Part, int]()
    for part, count in losses.items():
        check_whole("the number of equal losses", count, 1, MAX_PARTS)
        valid[part] = count
    if not valid:
        raise InputError("there are no losses; give at least one")
    return valid


def _own(part: Part) -> tuple[float, float] | None:
    """A part's own epsilon and delta; None where each delta has another epsilon."""
    if isinstance(part, Lattice):
        return part.epsilon, part.infinite / part.total
    return (part.epsilon, part.delta) if isinstance(part, Pure | Approximate) else None


def _rest(losses: Losses, delta: float) -> float:
    """What remains of delta beside the parts' own deltas."""
    own_deltas = (count * own[1] for part, count in losses.items() if (own := _own(part)))
    return delta - math.fsum(own_deltas)


def _sharing(losses: Losses) -> int:
    """How many parts need a share of delta."""
    return sum(count for part, count in losses.items() if _own(part) is None)


def _each(losses: Losses, delta: float) -> list[tuple[float, int]]:
    """The epsilon of each part and its count; empty where delta is too small."""
    rest, sharing = _rest(losses, delta), _sharing(losses)
    if rest < 0 or (sharing and rest <= 0):
        return []
    return [
        (own[0] if (own := _own(part)) else _alone(part, rest / sharing), count)
        for part, count in losses.items()
    ]


def _alone(part: Part, delta: float) -> float:
    """The epsilon of one release beside this delta."""
    if isinstance(part, Gaussian):
        return gaussian_epsilon(part.mu, delta)
    by_rho = conversion(_rho(part), delta)
    if isinstance(part, Concentrated):
        return by_rho
    return min(by_rho, _optimal({part: 1}).epsilon(delta))


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
    return discrete_laplace(_up(numbers[0], nano_epsilon, NANO), sensitivity)


KINDS = {
    "pure": Kind(("EPSILON",), 1, lambda numbers: Pure(_up(numbers[0], nano_epsilon, NANO))),
    "approximate": Kind(
        ("EPSILON", "DELTA"),
        2,
        lambda numbers: Approximate(
            _up(numbers[0], nano_epsilon, NANO), _up(numbers[1], atto_delta, ATTO)
        ),
    ),
    "discrete-laplace": Kind(("EPSILON", "SENSITIVITY"), 1, _noise),
    "gaussian": Kind(("SIGMA",), 1, lambda numbers: Gaussian.of_sigma(_number(numbers[0]))),
    "discrete-gaussian": Kind(
        ("SIGMA",), 1, lambda numbers: DiscreteGaussian.of_sigma(_number(numbers[0]))
    ),
}
"""Sigma is in units of the sensitivity; epsilon is the loss of one answer; SENSITIVITY is how much
one record moves the sum."""


def _up(text: str, check: Callable[[float], int], units: int) -> int:
    """The loss of a mechanism in whole units, rounded up: budgets are rounded down. `check` raises
    InputError for a number out of range."""
    number = _number(text)
    check(number)
    return math.ceil(Fraction(repr(number)) * units)


def losses_of(text: str) -> Counter[Part]:
    """How many there are of each loss in such a text. Raises InputError for an unknown name, bad
    numbers and bad counts."""
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
        optional = (f"[{each}]" for each in kind.numbers[kind.required :])
        form = " ".join((name, *kind.numbers[: kind.required], *optional))
        raise InputError(
            f"{' '.join(words)!r} is not of the form {form!r}, which 'x COUNT' may follow"
        )
    return kind.loss(numbers)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number") from None
