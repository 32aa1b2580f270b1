"""A list of mechanisms as it is typed: 'discrete-laplace 0.01 x 10000 + gaussian 5 x 3'."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from local_dp.accounting.gaussian import DiscreteGaussian, Gaussian
from local_dp.accounting.lattice import discrete_laplace
from local_dp.accounting.rules import MAX_PARTS, Part
from local_dp.checks import check_whole, whole_number
from local_dp.errors import InputError, unknown
from local_dp.loss import Pure, approximate, nano_epsilon

MOST_MOVED = 100


class Kind(NamedTuple):
    """What a name stands for: its numbers, how many of them must be given, and the loss that they make."""

    numbers: tuple[str, ...]
    needed: int
    loss: Callable[[Sequence[str]], Part]


def _noise(numbers: Sequence[str]) -> Part:
    moved = whole_number("the sensitivity", numbers[1]) if len(numbers) > 1 else 1
    check_whole("the sensitivity", moved, 1, MOST_MOVED)
    return discrete_laplace(nano_epsilon(_number(numbers[0])), moved)


KINDS = {
    "pure": Kind(("EPSILON",), 1, lambda numbers: Pure(nano_epsilon(_number(numbers[0])))),
    "approximate": Kind(("EPSILON", "DELTA"), 2, lambda numbers: approximate(_number(numbers[0]), _number(numbers[1]))),
    "discrete-laplace": Kind(("EPSILON", "SENSITIVITY"), 1, _noise),
    "gaussian": Kind(("SIGMA",), 1, lambda numbers: Gaussian.of_sigma(_number(numbers[0]))),
    "discrete-gaussian": Kind(("SIGMA",), 1, lambda numbers: DiscreteGaussian.of_sigma(_number(numbers[0]))),
}
"""Each name: sigma is in units of the sensitivity, and epsilon what one answer loses; discrete Laplace noise is on a sum that one record moves by so much."""


def losses_of(text: str) -> Counter[Part]:
    """How many there are of each loss. Raises InputError with what is wrong: an unknown name, numbers that are none or out of range, a count that is none."""
    found: Counter[Part] = Counter()
    for term in re.split(r"\+(?=\s*[a-z]|\s*$)", text.strip().lower()):
        words = term.split()
        counted = words[-2:-1] in (["x"], ["*"], ["×"])
        count = whole_number("the count", words[-1]) if counted else 1
        check_whole("the count", count, 1, MAX_PARTS)
        found[_part(words[:-2] if counted else words)] += count
    return found


def _part(words: Sequence[str]) -> Part:
    if not words:
        raise InputError("a term is empty; write such as 'pure 0.1 x 100 + gaussian 5'")
    name, *numbers = words
    if name not in KINDS:
        raise InputError(unknown("no kind of mechanism", name, KINDS))
    kind = KINDS[name]
    if not kind.needed <= len(numbers) <= len(kind.numbers):
        spelled = " ".join((name, *kind.numbers[: kind.needed], *(f"[{each}]" for each in kind.numbers[kind.needed :])))
        raise InputError(f"{' '.join(words)!r} is not of the form {spelled!r}, which 'x COUNT' may follow")
    return kind.loss(numbers)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{text!r} is no number") from None
