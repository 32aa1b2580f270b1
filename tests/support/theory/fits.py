"""Whether draws fit a law, and how often a learner of thresholds succeeds."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from scipy.stats import chisquare

R = TypeVar("R", bound=Hashable)
_FEW = 5.0


def p_value(sample: Counter[R], law: Mapping[R, float]) -> float:
    """Chi-squared; outcomes expected fewer than five times count as one."""
    draws = sample.total()
    total = sum(law.values())
    expected = {outcome: draws * weight / total for outcome, weight in law.items()}
    common = [outcome for outcome, often in expected.items() if often >= _FEW]
    observed = [sample[outcome] for outcome in common]
    often = [expected[outcome] for outcome in common]
    rest = draws - sum(often)
    if rest < 1e-9 and sum(observed) < draws:
        return 0.0  # an impossible outcome
    if rest > 1e-9:
        observed = [*observed, draws - sum(observed)]
        often = [*often, rest]
    return float(chisquare(observed, often).pvalue)
