"""Confidence intervals of success rates."""

from local_dp.tallies import Z95, score_interval


def wilson(successes: int, trials: int, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval for a success rate, 95 % by default: (low, high)."""
    low, high = score_interval(successes / trials, (0.0, 1.0), trials, z)
    return max(0.0, float(low)), min(1.0, float(high))
