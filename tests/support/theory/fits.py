"""Whether draws fit a law, and how often a learner of thresholds succeeds."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from scipy.stats import chisquare

from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.thresholds.learner import HardThreshold

R = TypeVar("R", bound=Hashable)
_FEW = 5.0


def p_value(drawn: Counter[R], law: Mapping[R, float]) -> float:
    """Chi-squared; outcomes expected fewer than five times count as one."""
    draws, total = drawn.total(), sum(law.values())
    expected = {outcome: draws * weight / total for outcome, weight in law.items()}
    common = [outcome for outcome, often in expected.items() if often >= _FEW]
    observed, often = (
        [drawn[outcome] for outcome in common],
        [expected[outcome] for outcome in common],
    )
    rest = draws - sum(often)
    if rest < 1e-9 and sum(observed) < draws:
        return 0.0  # an impossible outcome
    if rest > 1e-9:
        observed, often = [*observed, draws - sum(observed)], [*often, rest]
    return float(chisquare(observed, often).pvalue)


def mean_chance(
    chance: Callable[[LabelledMultiset, int, int], float],
    laws: Sequence[HardThreshold],
    n: int,
    alpha: float,
    generator: np.random.Generator,
) -> tuple[float, float]:
    """The mean over one sample of n from each law of the chance of a good threshold, and its
    standard error."""
    chances = [chance(law.sample(n, generator), *law.good(alpha)) for law in laws]
    return float(np.mean(chances)), float(np.std(chances, ddof=1) / len(chances) ** 0.5)
