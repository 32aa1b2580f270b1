"""What the conformance of every kind of randomizer has in common."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.domains import Domain, Vectors
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon
from local_dp.randomizers.evidence import exact_ratio, keeps_loss
from local_dp.randomizers.randomizer import Randomizer

MAX_VALUES = 130  # lattices larger than this are checked at so many values, both ends among them
SLACK = 1e-6  # nats by which the exact epsilon may stay below the declared one, unless the caller states another proven slack


def values_of(domain: Domain) -> Counts:
    """Every value of a small domain; of a large one, MAX_VALUES of them from end to end."""
    return domain.some(MAX_VALUES)


def truth(domain: Domain, value: Any, parameters: int) -> Floats:
    """What the estimate from clients that all hold `value` should be: a share of ones, the symbols' shares, signed means, the
    shares of both ends of each group, the number in [0, 1], or the vector in [-1, 1]^d."""
    if isinstance(domain, Vectors):
        return np.asarray(value) / domain.high
    if domain.kind == "levels":
        return np.array([value / domain.high])
    if domain.kind == "grouped levels":
        groups = parameters // 2
        steps = domain.high // groups - 1
        group, level = divmod(value, steps + 1)
        ends = np.zeros(parameters)
        ends[2 * group : 2 * group + 2] = (1 - level / steps, level / steps) if group < groups else (1.0,)
        return ends
    if domain.kind == "signed symbols":
        signed: Floats = np.sign(value) * (np.arange(1, domain.high + 1) == abs(value)).astype(np.float64)
        return signed
    if parameters == 1:
        return np.array([float(value)])
    held: Floats = (np.arange(domain.size) == value).astype(np.float64)
    return held


def check_loss(randomizer: Randomizer, slack: float) -> None:
    """By its evidence it loses at most the declared epsilon, and at least that less `slack`; of an approximate loss, at most what it declares."""
    if not isinstance(randomizer.loss, Pure):
        assert keeps_loss(randomizer), f"{randomizer.name}: its channel loses more than {randomizer.loss}"
        return
    ratio = exact_ratio(randomizer)
    assert ratio <= exp_epsilon(randomizer.nano), f"{randomizer.name}: exact epsilon {math.log(ratio)} above the declared {randomizer.epsilon}"
    loss = math.log1p(float(ratio - 1))
    assert loss >= randomizer.nano / NANO - slack, f"{randomizer.name}: exact epsilon {loss} is not within {slack} of {randomizer.epsilon}"


def check_parameters(randomizer: Randomizer) -> None:
    """params() rebuilds an equal randomizer; parameters outside their domain raise InputError."""
    kind = type(randomizer)
    again = kind(**randomizer.params())  # type: ignore[arg-type]
    assert again == randomizer, f"{randomizer.name}: params() does not rebuild it"
    assert hash(again) == hash(randomizer), f"{randomizer.name}: equal randomizers hash apart"
    assert randomizer.nano <= randomizer.epsilon * NANO + 1e-3, f"{randomizer.name}: charges {randomizer.nano} nano-nats"
    for epsilon in (0, -1.0, math.nan, math.inf, -math.inf, 1e-10, 5e-324, 25.0, 2**63, 10**400, True, "1", None, [1.0]):
        _refuses(randomizer, epsilon=epsilon)
    for bits in (-1, 33, 63, 65, 8.0, True, "8"):
        _refuses(randomizer, word_bits=bits)
    for field in ("k", "steps", "d"):
        if field in randomizer.params():
            for wrong in (0, -1, 1 << 21, 2.0, True, "2", None):
                _refuses(randomizer, **{field: wrong})


def _refuses(randomizer: Randomizer, **wrong: Any) -> None:
    """With these parameters it must not be made."""
    try:
        made = replace(randomizer, **wrong)
    except InputError:
        return
    raise AssertionError(f"{randomizer.name} accepts {wrong} and becomes {made}")
